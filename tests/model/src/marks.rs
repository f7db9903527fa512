//! `host/marks.rs` and `host/order.rs`: what a unit writes beside the staged writes, in arrival order.
//!
//! All of it is written in one step, once all its locks are had: each may have to be waited for, with the others in hand.

use oncebox_core::life::{HeldChange, HeldState, InboxState, Verdict};

use crate::{
    database::{Blocked, Due, HeldRow, OrderRow, Row},
    fault::Fault,
    lane,
    state::{At, Claim, Fate, Item, Mark, Standing, Token},
    unit_of_work::{message, message_name},
    world::World,
};

/// Writes the marks, or waits for a lock with nothing written.
pub(crate) fn write(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    let before = *world.session(host);
    if let Err(blocked) = write_all(world, host) {
        let locks = world.session(host).locks;
        *world.session(host) = before;
        world.session(host).locks = locks;
        return Err(blocked);
    }
    world.state.hosts[host].at = At::Commit;
    let own = &world.state.hosts[host];
    let decides_nothing = own.in_unit().all(|at| own.batch[at].is_some_and(|item| item.fate == Some(Fate::Again)));
    if world.scenario.has(Fault::RollbackInsteadOfTakingBack) && decides_nothing {
        lane::give_up(world, host);
        lane::next_unit(world, host);
    }
    Ok(())
}

fn write_all(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    let own = &world.state.hosts[host];
    let items: Vec<Item> = own.in_unit().filter_map(|at| own.batch[at]).collect();
    let mut due = false;
    for item in &items {
        inbox_mark(world, host, item);
    }
    for item in &items {
        let Some(Mark { held: HeldChange::Hold(state), .. }) = item.mark else { continue };
        match item.delivery.claim {
            None => due |= held_insert(world, host, item, state)?,
            Some(claim) => held_mark(world, host, item, claim, state),
        }
    }
    for item in &items {
        if let (Some(Mark { held: HeldChange::Resolve, .. }), Some(claim)) = (item.mark, item.delivery.claim) {
            held_mark(world, host, item, claim, HeldState::Resolved);
            due |= order_resolve(world, host);
        }
    }
    if due && !world.scenario.has(Fault::NoWakeUp) {
        order_due(world, host)?;
    }
    for item in &items {
        inbox_delete(world, host, item);
    }
    Ok(())
}

/// The row was inserted as applied: only another outcome needs its mark.
fn inbox_mark(world: &mut World<'_>, host: usize, item: &Item) {
    let is_own = matches!(item.standing, Some(Standing::First | Standing::Claimed | Standing::Late));
    if item.fate == Some(Fate::Decided(Verdict::Applied)) {
        world.session(host).applied |= 1 << item.delivery.message;
    }
    let key = message(world, item).key;
    if let (true, Some(mark), Some(mut row)) = (is_own, item.mark, world.seen(host).inbox[usize::from(key)])
        && (row.state != mark.inbox || item.delivery.claim.is_some())
    {
        world.say(|| format!("host {}: inbox_mark of {}: {}", host + 1, message_name(item), mark.inbox.name()));
        row.state = mark.inbox;
        world.write_inbox(host, key, Some(row));
    }
}

/// A new row, one more of the same, or one that is opened again. Whether it has a place.
fn held_insert(world: &mut World<'_>, host: usize, item: &Item, state: HeldState) -> Result<bool, Blocked> {
    let message = message(world, item);
    let Some((identity, mark)) = world.scenario.identity(message.key, message.fingerprint).zip(item.mark) else {
        return Ok(false);
    };
    world.lock(host, Row::Held(identity))?;
    let is_own = matches!(state, HeldState::Parked | HeldState::Dead);
    let place = if is_own { order_hold(world, host) } else { None };
    let new = HeldRow {
        state,
        due: mark.due,
        lease: Token::NONE,
        attempts: mark.attempts,
        place,
        revision: message.fingerprint,
        message: item.delivery.message,
    };
    let begins_anew = |known: &HeldRow| {
        is_own && !world.scenario.has(Fault::HeldRowNotOpenedAgain)
            || state == HeldState::Late
            || known.state == HeldState::Resolved && !world.scenario.has(Fault::HeldRowNotOpenedAgain)
    };
    if world.seen(host).held[usize::from(identity)].as_ref().is_none_or(begins_anew) {
        world.say(|| format!("host {}: held_insert of {}: {}", host + 1, message_name(item), state.name()));
        world.write_held(host, identity, new);
    }
    Ok(place.is_some())
}

/// A claimed row, under its token; one that is resolved gives up its place.
fn held_mark(world: &mut World<'_>, host: usize, item: &Item, claim: Claim, state: HeldState) {
    let Some((row, mark)) = world.seen(host).held[usize::from(claim.held)].zip(item.mark) else { return };
    world.check_lease(row.lease == Token::of(host));
    if mark.inbox == InboxState::Applied {
        world.check_revision(row.revision == claim.revision);
    }
    world.say(|| format!("host {}: held_mark of {}: {}", host + 1, message_name(item), state.name()));
    let place = row.place.filter(|_| state != HeldState::Resolved);
    let new = HeldRow { state, due: mark.due, lease: Token::NONE, attempts: mark.attempts, place, ..row };
    world.write_held(host, claim.held, new);
}

/// Another event of the key is held: behind all others.
fn order_hold(world: &mut World<'_>, host: usize) -> Option<u8> {
    let row = order_row(world, host)?;
    world.write_order(host, OrderRow { held: row.held + 1, next_place: row.next_place + 1 });
    Some(row.next_place)
}

/// A claimed event is over.
fn order_resolve(world: &mut World<'_>, host: usize) -> bool {
    let Some(row) = order_row(world, host) else { return false };
    world.write_order(host, OrderRow { held: row.held.saturating_sub(1), ..row });
    true
}

/// The order row as it was locked.
fn order_row(world: &World<'_>, host: usize) -> Option<OrderRow> {
    world.seen(host).order.or(Some(OrderRow::default())).filter(|_| world.scenario.is_ordered)
}

/// Makes the first of those that are not over due, if it waits for a predecessor.
fn order_due(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    let held = world.seen(host).held;
    let Some((identity, row)) = first_of(&held) else { return Ok(()) };
    if row.state == HeldState::Parked && row.due == Due::Never {
        world.lock(host, Row::Held(identity))?;
        world.say(|| format!("host {}: order_due: message {}", host + 1, row.message + 1));
        world.write_held(host, identity, HeldRow { due: Due::Now, ..row });
    }
    Ok(())
}

/// The held row with the lowest place, of those that hold others.
pub(crate) fn first_of(held: &[Option<HeldRow>]) -> Option<(u8, HeldRow)> {
    let rows = held.iter().enumerate().filter_map(|(at, row)| Some((crate::database::small(at), (*row)?)));
    rows.filter(|(_, row)| row.holds()).min_by_key(|(_, row)| row.place)
}

/// Takes back the rows of deliveries that stay undecided: those that carry this unit's token.
fn inbox_delete(world: &mut World<'_>, host: usize, item: &Item) {
    let is_claim = item.delivery.claim.is_some();
    if world.scenario.has(Fault::RollbackInsteadOfTakingBack) {
        return;
    }
    if item.fate != Some(Fate::Again) || is_claim && !world.scenario.has(Fault::ClaimTakesItsRowBack) {
        return;
    }
    let key = message(world, item).key;
    let row = world.seen(host).inbox[usize::from(key)];
    if row.is_some_and(|row| is_claim || row.token == Token::of(host)) {
        world.say(|| format!("host {}: inbox_delete of {}", host + 1, message_name(item)));
        world.write_inbox(host, key, None);
    }
}
