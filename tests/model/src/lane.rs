//! `host/lane.rs`: a batch's units of work until it is through, and what becomes of them when a lock or a session is gone.

use crate::{
    database::{Blocked, Orphan, Session, Undone},
    fault::Fault,
    marks, road,
    state::{At, Fate, Item, Stage, Token},
    unit_of_work,
    world::World,
};

/// The next step of a lane that is on its road.
pub(crate) fn step(world: &mut World<'_>, host: usize) {
    if let Some(session) = &mut world.state.hosts[host].session {
        session.waits_for = None;
    }
    let done = match world.state.hosts[host].at {
        At::Idle => Ok(()),
        At::LookUp => {
            road::look_up(world, host);
            Ok(())
        }
        At::Inbox => unit_of_work::inbox(world, host),
        At::Stand => unit_of_work::stand(world, host),
        At::Marks => marks::write(world, host),
        At::Commit => {
            unit_of_work::commit(world, host);
            Ok(())
        }
        At::Settle => {
            road::settle(world, host);
            Ok(())
        }
    };
    if let Err(Blocked(row)) = done {
        world.say(|| format!("host {} waits for {}", host + 1, crate::words::row_name(row)));
        world.wait_for(host, row);
    }
}

/// 1205: the wait for a lock has taken too long.
pub(crate) fn lock_wait(world: &mut World<'_>, host: usize) {
    world.say(|| format!("host {}: its wait takes too long (1205)", host + 1));
    if world.state.hosts[host].at == At::Inbox {
        // The whole insert is undone, so that nothing is there to take back.
        if let Some(session) = world.state.hosts[host].session.take() {
            world.undo(&session, Undone::ByForce);
        }
    } else {
        give_up(world, host);
    }
    busy(world, host);
}

/// `UnitOfWork::give_up`: the rows that it has inserted are deleted, and COMMIT lets those go on who wait for them. After
/// a ROLLBACK all of them but one would be deadlocked.
pub(crate) fn give_up(world: &mut World<'_>, host: usize) {
    let Some(mut session) = world.state.hosts[host].session.take() else { return };
    let has_first = session.view.inbox.iter().any(Option::is_some);
    if !has_first || world.scenario.has(Fault::RollbackInsteadOfTakingBack) {
        world.say(|| format!("host {}: give_up: ROLLBACK", host + 1));
        world.undo(&session, if has_first { Undone::ByChoice } else { Undone::ByForce });
        return;
    }
    world.say(|| format!("host {}: give_up: its rows are deleted, COMMIT", host + 1));
    // Back to the savepoint, which stands behind the inbox rows and the order row: what is left is an order row that
    // this unit has made.
    let made = session.view.order.filter(|_| world.state.tables.order.is_none());
    session = Session::default();
    if made.is_some() {
        session.written.add(crate::database::Row::Order);
        session.view.order = Some(crate::database::OrderRow::default());
    }
    world.make_durable(&session);
}

/// The unit's transaction is gone: a batch is cut in halves; what is alone is tried again, or left undecided for a while.
pub(crate) fn busy(world: &mut World<'_>, host: usize) {
    again(world, host);
    let in_unit: Vec<usize> = world.state.hosts[host].in_unit().collect();
    if let [_, rest @ ..] = in_unit.as_slice()
        && !rest.is_empty()
    {
        world.say(|| format!("host {} cuts its batch in halves", host + 1));
        for at in rest {
            set_stage(world, host, *at, Stage::Todo);
        }
    } else if world.oracle.pick(2) == 1 {
        world.say(|| format!("host {} leaves it undecided for a while", host + 1));
        for at in in_unit {
            set_stage(world, host, at, Stage::Later);
        }
        next_unit(world, host);
    }
}

/// The session is lost: the batch is done again on another one, with a new token.
pub(crate) fn away(world: &mut World<'_>, host: usize, commits: bool) {
    orphan(world, host, commits);
    again(world, host);
}

/// The host's session stays behind on the server.
pub(crate) fn orphan(world: &mut World<'_>, host: usize, commits: bool) {
    let Some(mut session) = world.state.hosts[host].session.take() else { return };
    session.waits_for = None;
    let free = world.state.orphans.iter_mut().find(|orphan| orphan.is_none());
    if let Some(free) = free {
        *free = Some(Orphan { session, commits });
    }
}

/// Nothing of the unit was committed, as far as the host knows.
fn again(world: &mut World<'_>, host: usize) {
    let own = &mut world.state.hosts[host];
    own.at = At::Inbox;
    own.rows = 0;
    for item in own.batch.iter_mut().flatten().filter(|item| item.stage == Stage::Unit) {
        *item = Item { ran: item.ran, ..Item::new(item.delivery) };
    }
}

/// A unit is through: on to the other half of the batch, or to settle.
pub(crate) fn next_unit(world: &mut World<'_>, host: usize) {
    let is_ordered = world.scenario.is_ordered;
    let own = &mut world.state.hosts[host];
    own.rows = 0;
    own.mark_at_begin = false;
    let in_line = |item: &Item| is_ordered && item.delivery.claim.is_none();
    let mut waits = false;
    for item in own.batch.iter_mut().flatten() {
        if item.stage == Stage::Unit {
            item.stage = Stage::Done;
        }
        waits |= in_line(item) && (item.stage == Stage::Later || item.fate == Some(Fate::Again));
    }
    // What another half of the batch holds of a line waits with what was left of it.
    for item in own.batch.iter_mut().flatten().filter(|item| item.stage == Stage::Todo) {
        if waits && in_line(item) {
            item.stage = Stage::Later;
        }
    }
    let next = own.batch.iter_mut().flatten().find(|item| item.stage == Stage::Todo);
    own.at = if let Some(next) = next {
        next.stage = Stage::Unit;
        At::Inbox
    } else {
        At::Settle
    };
    for tables in world.state.views() {
        tables.forget_unit(Token::of(host));
    }
}

fn set_stage(world: &mut World<'_>, host: usize, at: usize, stage: Stage) {
    if let Some(item) = &mut world.state.hosts[host].batch[at] {
        item.stage = stage;
    }
}
