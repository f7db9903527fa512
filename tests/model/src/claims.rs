//! `host/claims.rs`: parked rows that are due come back to a lane, under a lease.

use oncebox_core::life::HeldState;

use crate::{
    database::{Due, Row, small},
    scenario::Scenario,
    state::{At, Claim, Delivery, Host, Item, State, Token},
    world::World,
};

/// Rows that may be claimed now. What somebody has locked is skipped.
pub(crate) fn due(world: &World<'_>) -> Vec<u8> {
    let rows = world.state.tables.held.iter().enumerate().filter_map(|(at, row)| Some((small(at), (*row)?)));
    rows.filter(|(_, row)| row.state == HeldState::Parked && row.due == Due::Now)
        .map(|(at, _)| at)
        .filter(|at| !world.is_locked(Row::Held(*at), None))
        .collect()
}

/// Sets of rows that one claim may take.
pub(crate) fn sets(due: &[u8], scenario: &Scenario) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = due.iter().map(|row| vec![*row]).collect();
    if scenario.batch > 1 {
        for (at, first) in due.iter().enumerate() {
            all.extend(due[at + 1..].iter().map(|second| vec![*first, *second]));
        }
    }
    all
}

/// `held_claim`: a short transaction of its own that writes a new token and the end of the lease.
pub(crate) fn claim(world: &mut World<'_>, host: usize, sets: &[Vec<u8>]) {
    let rows = sets[world.oracle.pick(sets.len())].clone();
    for tables in world.state.views() {
        tables.forget_lease(Token::of(host));
    }
    let mut items = Vec::new();
    for at in rows {
        let Some(row) = &mut world.state.tables.held[usize::from(at)] else { continue };
        (row.lease, row.due) = (Token::of(host), Due::Leased);
        let claim = Claim { held: at, attempts: row.attempts, place: row.place, revision: row.revision };
        let message = row.message;
        world.say(|| format!("host {}: held_claim of message {}", host + 1, message + 1));
        items.push(Item::new(Delivery { message, is_ours: false, at_risk: false, claim: Some(claim) }));
    }
    let mut items = items.into_iter();
    let own = &mut world.state.hosts[host];
    own.batch = std::array::from_fn(|_| items.next());
    own.at = At::Inbox;
}

/// Whether the host looks for claims: it has nothing else in hand.
pub(crate) fn has_room(host: &Host) -> bool {
    host.at == At::Idle && host.memory.iter().all(Option::is_none)
}

/// The lease is over by the database's clock: anybody may claim the row. Whoever had it may still hold its token.
pub(crate) fn lease_ends(state: &mut State, at: u8) {
    if let Some(row) = &mut state.tables.held[usize::from(at)] {
        row.due = Due::Now;
    }
}
