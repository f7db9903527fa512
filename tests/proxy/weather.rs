//! Bad connections for a while: slow, flapping, one byte at a time.

use std::time::Duration;

use oncebox_tests::{
    feed::Chance,
    fleet::{TENANT, TenantPlan},
    patience::{eventually, pass},
    proxy::Treatment,
};

use crate::stage::{ALERT, LONG, Stage};

/// One lane, so that none waits for another's row; what it may have prefetched is a sixth of all.
const NARROW: TenantPlan = TenantPlan {
    tenant: "lanes = 1\nbatch_max = 16",
    source: "prefetch = 16",
    connection: "heartbeat_s = 10",
    ..TENANT
};
const PADDING: usize = 600_000;
const GROWTH_MAX_MB: u64 = 40;

#[test]
fn a_slow_database_makes_no_dead_letters_and_fills_no_memory() {
    let stage = Stage::new(&[NARROW]);
    let host = stage.start();
    stage.publish_padded("before", 32, PADDING);
    stage.all_applied(32);
    let before = host.footprint();
    stage.database.treat_all(Treatment::Slow(Duration::from_millis(100)));
    stage.publish_padded("slow", 96, PADDING);
    let mut most = before;
    eventually("all are applied", LONG, || {
        let now = host.footprint();
        most.resident_mb = most.resident_mb.max(now.resident_mb);
        most.open_files = most.open_files.max(now.open_files);
        (stage.applied() == 128).then_some(())
    });
    stage.database.heal();
    stage.all_applied(128);
    println!("{before:?} before, at most {most:?}");
    assert!(most.resident_mb < before.resident_mb + GROWTH_MAX_MB, "{before:?}, then {most:?}");
    assert!(most.open_files < before.open_files + 20, "{before:?}, then {most:?}");
    host.stop();
}

#[test]
fn connections_that_flap_cost_time_only() {
    const ROUNDS: usize = 30;
    let stage = Stage::new(&[ALERT]);
    let host = stage.start();
    let mut chance = Chance::new(5);
    for round in 0..ROUNDS {
        stage.publish(&format!("round-{round}"), 10);
        pass(Duration::from_millis(chance.below(300)));
        match chance.below(3) {
            0 => stage.database.cut(),
            1 => stage.broker.cut(),
            _ => {
                stage.database.cut();
                stage.broker.cut();
            }
        }
    }
    stage.all_applied(i64::try_from(10 * ROUNDS).unwrap());
    host.stop();
}

#[test]
fn one_byte_at_a_time_everything_is_understood() {
    let stage = Stage::new(&[ALERT]);
    stage.database.treat_all(Treatment::Slices);
    stage.broker.treat_all(Treatment::Slices);
    let host = stage.start();
    stage.publish("k", 60);
    stage.all_applied(60);
    assert_eq!(stage.duplicates(), 0);
    host.stop();
}
