//! At a low rate: how long it takes from the publishing of an event to its decision.

use std::time::Duration;

use anyhow::{Result, ensure};
use oncebox::clock;
use oncebox_bench::stage::{Kit, Stage};
use oncebox_tests::{database::Tables as _, latency::Latency, pace::Published};

use crate::{
    contestant::{Contestant, Role},
    drain::{Player, Tables, until_decided},
};

/// Events a second.
pub(crate) const RATE: f64 = 200.0;
/// What is published at first finds a contestant that only begins, and does not count.
const WARM_UP: Duration = Duration::from_secs(4);
/// One round. A stall of the machine's disk is in one of several, and not in their median.
const MEASURED: Duration = Duration::from_secs(10);

/// Whether a contestant is asked for it: those that handle a message as soon as it comes, with nothing to warm up for long.
pub(crate) fn takes_part(role: Role) -> bool {
    match role {
        Role::Ours | Role::Naive | Role::HandBatched | Role::Go => true,
        Role::SpringSingle | Role::SpringBatch | Role::FloorDatabase | Role::FloorBroker => false,
    }
}

/// Publishes at that rate, and tells when each event was decided, by the database's clock.
pub(crate) fn latency(kit: &Kit, contestant: &Contestant) -> Result<Latency> {
    let stage = Stage::set(kit)?;
    let site = (contestant.role == Role::Ours).then(|| stage.site(kit));
    let tables = Tables::of(contestant.role);
    let session = stage.session();
    let mut player = Player::start(&stage, contestant, site.as_ref(), u32::MAX)?;
    let all = stage.publish(kit, RATE, WARM_UP + MEASURED);
    until_decided(&session, &tables, &mut player, u32::try_from(all.len())?)?;
    let end_us = clock::now_us();
    let decided = session.lines(tables.decisions);
    player.stop()?;
    let first_us = all.first().map_or(0, |event| event.at_us) + i64::try_from(WARM_UP.as_micros())?;
    let counted: Vec<Published> = all.into_iter().filter(|event| event.at_us >= first_us).collect();
    let latency = Latency::of(&counted, &decided, end_us);
    ensure!(latency.left == 0, "{} events have no decision", latency.left);
    Ok(latency)
}
