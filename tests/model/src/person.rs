//! A person's acts on held rows, each one transaction. Replay and discard are those of `docs/operating.md`; that a conflict
//! is accepted as a revision is the design's, and not built yet.

use oncebox_core::life::{HeldState, InboxState};

use crate::{
    database::{Due, HeldRow, Row, Rows, Session, small},
    fault::Fault,
    marks::first_of,
    state::Token,
    world::World,
};

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A dead event runs again.
    Replay,
    /// A dead event is given up.
    Discard,
    /// A conflict is what its key should have said.
    Accept,
}

/// Acts that are possible on a held row; none while a unit of work has locked what the act would lock.
pub(crate) fn acts(world: &World<'_>, identity: u8) -> Vec<Act> {
    let tables = &world.state.tables;
    let (key, fingerprint) = world.scenario.identities()[usize::from(identity)];
    let Some((held, inbox)) = tables.held[usize::from(identity)].zip(tables.inbox[usize::from(key)]) else {
        return Vec::new();
    };
    if [Row::Inbox(key), Row::Order].into_iter().any(|row| world.is_locked(row, None)) {
        return Vec::new();
    }
    let mut written = vec![identity];
    let acts = match (held.state, inbox.state) {
        (HeldState::Dead, InboxState::Dead) => {
            written.extend(first_of(&tables.held).map(|(first, _)| first));
            vec![Act::Replay, Act::Discard]
        }
        (HeldState::Conflict, InboxState::Parked | InboxState::Dead) if !inbox.equals(fingerprint) => {
            let own = world.scenario.identity(key, inbox.fingerprint);
            let is_late = own.and_then(|own| tables.held[usize::from(own)]).is_some_and(|r| r.state == HeldState::Late);
            written.extend(own);
            if is_late { Vec::new() } else { vec![Act::Accept] }
        }
        _ => Vec::new(),
    };
    let is_locked = written.into_iter().any(|row| world.is_locked(Row::Held(row), None));
    if is_locked { Vec::new() } else { acts }
}

/// Does one of them.
pub(crate) fn decide(world: &mut World<'_>, identity: u8, act: Act) {
    world.say(|| format!("a person decides held row {}: {act:?}", identity + 1));
    let (key, fingerprint) = world.scenario.identities()[usize::from(identity)];
    let tables = &mut world.state.tables;
    let (Some(held), Some(inbox)) = (&mut tables.held[usize::from(identity)], &mut tables.inbox[usize::from(key)])
    else {
        return;
    };
    match act {
        Act::Replay => {
            inbox.state = InboxState::Parked;
            *held = HeldRow { state: HeldState::Parked, due: Due::Now, attempts: 0, ..*held };
        }
        Act::Discard => {
            inbox.state = InboxState::Discarded;
            *held = HeldRow { state: HeldState::Resolved, due: Due::Never, ..*held };
            if let Some(order) = tables.order.as_mut().filter(|_| held.place.is_some()) {
                order.held = order.held.saturating_sub(1);
            }
            if let Some((first, _)) = first_of(&tables.held)
                && let Some(next) = &mut tables.held[usize::from(first)]
                && next.state == HeldState::Parked
                && next.due == Due::Never
            {
                next.due = Due::Now;
            }
        }
        Act::Accept => {
            inbox.authorised |= 1 << fingerprint;
            inbox.state = InboxState::Parked;
            held.state = HeldState::Resolved;
            let own = world.scenario.identity(key, inbox.fingerprint);
            if let Some(own) = own.and_then(|own| tables.held[usize::from(own)].as_mut()) {
                let keeps_lease = world.scenario.has(Fault::PersonKeepsTheLease) && own.due != Due::Never;
                let (lease, due) = if keeps_lease { (own.lease, own.due) } else { (Token::NONE, Due::Now) };
                *own = HeldRow { state: HeldState::Parked, revision: fingerprint, attempts: 0, lease, due, ..*own };
            }
        }
    }
    world.state.seen.person = true;
    world.check_rows();
}

/// The purge (DESIGN, chapter 6; not built yet): the mark is committed before the first row below it is deleted.
pub(crate) fn purge_mark(world: &mut World<'_>) {
    world.say(|| "purge: the mark is committed; what is applied now is below it".to_owned());
    world.state.purge.mark = true;
    for row in world.state.tables.inbox.iter_mut().flatten().filter(|row| row.age == crate::database::Age::Young) {
        row.age = crate::database::Age::Old;
    }
}

/// Keys that may be selected or deleted now.
pub(crate) fn purge_keys(world: &World<'_>, is_selected: bool) -> Vec<u8> {
    let purge = world.state.purge;
    let of = |key: &u8| purge.mark && (purge.selected & (1 << key) != 0) == is_selected;
    (0..world.state.tables.inbox.len())
        .map(small)
        .filter(of)
        .filter(|key| is_purged(world, *key, is_selected))
        .collect()
}

fn is_purged(world: &World<'_>, key: u8, is_selected: bool) -> bool {
    let Some(row) = world.state.tables.inbox[usize::from(key)] else { return false };
    let is_old = row.age == crate::database::Age::Old
        && matches!(row.state, InboxState::Applied | InboxState::Skipped | InboxState::Discarded);
    if !is_selected {
        return is_old;
    }
    (is_old || world.scenario.has(Fault::PurgeDeletesUnselected)) && !world.is_locked(Row::Inbox(key), None)
}

/// Keys are selected by a snapshot.
pub(crate) fn purge_select(world: &mut World<'_>, key: u8) {
    world.say(|| format!("purge: key {} is selected", key + 1));
    world.state.purge.selected |= 1 << key;
}

/// Deleted by key, and by age below the mark.
pub(crate) fn purge_delete(world: &mut World<'_>, key: u8) {
    world.say(|| format!("purge: key {} is deleted", key + 1));
    let mut session = Session { written: Rows::default(), ..Session::default() };
    session.written.add(Row::Inbox(key));
    world.state.seen.purged |= 1 << key;
    world.state.seen.applied[usize::from(key)] = 0;
    world.make_durable(&session);
}
