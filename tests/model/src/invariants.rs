//! What must hold after every step, after every COMMIT, at every ack, and where nothing more can happen.

use std::fmt;

use oncebox_core::life::{HeldState, InboxState};

use crate::{
    database::{Due, Row, Session, small},
    scenario::Scenario,
    state::{Place, State},
    world::World,
};

/// What was found broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Broken {
    /// I1: where nothing more can happen, a message is neither in the queue nor in the tables.
    Loss,
    /// I2: an effect was applied twice, or by an event that was proven a duplicate or is older than the horizon.
    Once,
    /// I3: an inbox row and its effect are not committed together.
    Atomic,
    /// I4: a message was acked and no table has it.
    AckAfterCommit,
    /// I7: a held row was written without its lease.
    Fencing,
    /// I8: an event was applied after a later one of its ordering key.
    Order,
    /// A message was acked as a duplicate of something else, or an equal one was called a conflict.
    Conflict,
    /// Inbox, held rows and the order row do not agree.
    RowsAgree,
    /// A body was applied that a person had replaced.
    Revision,
    /// Two units wait for each other, or the host itself has deadlocked those who waited.
    Deadlock,
    /// Something waits for ever.
    Quiescence,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "I1 no loss",
            Self::Once => "I2 once",
            Self::Atomic => "I3 atomic",
            Self::AckAfterCommit => "I4 ack after commit",
            Self::Fencing => "I7 fencing",
            Self::Order => "I8 order",
            Self::Conflict => "conflicts are told from duplicates",
            Self::RowsAgree => "inbox, held and order rows agree",
            Self::Revision => "only the body in force is applied",
            Self::Deadlock => "no deadlock of the host's own making",
            Self::Quiescence => "everything comes to an end",
        })
    }
}

impl World<'_> {
    /// Notes the first thing that is broken.
    pub(crate) fn broken(&mut self, what: Broken) {
        self.broken.get_or_insert(what);
    }

    fn must(&mut self, holds: bool, otherwise: Broken) {
        if !holds {
            self.broken(otherwise);
        }
    }

    /// After a COMMIT of a unit.
    pub(crate) fn check_commit(&mut self, session: &Session) {
        self.must(session.torn == 0, Broken::Atomic);
        for (at, message) in self.scenario.messages.iter().enumerate() {
            let bit = 1 << at;
            if session.applied & bit != 0 {
                let key = usize::from(message.key);
                let seen = &mut self.state.seen;
                let again = seen.applied[key] > 0 || seen.proven & bit != 0;
                let too_old = seen.purged & (1 << message.key) != 0 && !message.is_newer;
                let passed = self.scenario.is_ordered && small(at) < seen.last;
                seen.applied[key] += 1;
                seen.last = seen.last.max(small(at) + 1);
                self.must(!again && !too_old, Broken::Once);
                self.must(!passed, Broken::Order);
            }
            if session.conflicts & bit != 0 {
                let row = self.state.tables.inbox[usize::from(message.key)];
                self.must(!row.is_some_and(|row| row.equals(message.fingerprint)), Broken::Conflict);
            }
        }
        self.state.seen.proven |= session.proven;
        self.check_rows();
    }

    /// After whatever has changed the tables.
    pub(crate) fn check_rows(&mut self) {
        let identities = self.scenario.identities();
        for (key, row) in self.state.tables.inbox.into_iter().enumerate() {
            let applied = self.state.seen.applied[key] > 0;
            self.must(applied == row.is_some_and(|row| row.state == InboxState::Applied), Broken::Atomic);
            for (at, (_, fingerprint)) in identities.iter().enumerate().filter(|(_, (own, _))| usize::from(*own) == key)
            {
                let held = self.state.tables.held[at].map(|held| held.state);
                let is_own = row.is_some_and(|row| row.fingerprint == *fingerprint);
                let expected: &[_] = match row.filter(|_| is_own).map(|row| row.state) {
                    Some(InboxState::Parked) => &[Some(HeldState::Parked)],
                    Some(InboxState::Dead) => &[Some(HeldState::Dead), Some(HeldState::Late)],
                    Some(InboxState::Applied | InboxState::Skipped | InboxState::Discarded) | None => {
                        &[None, Some(HeldState::Resolved), Some(HeldState::Conflict)]
                    }
                };
                self.must(expected.contains(&held), Broken::RowsAgree);
            }
        }
        let order = self.state.tables.order.unwrap_or_default();
        let holds = self.state.tables.held.iter().flatten().filter(|held| held.holds()).count();
        self.must(usize::from(order.held) == holds, Broken::RowsAgree);
    }

    /// The broker hears "done" of a message.
    pub(crate) fn check_ack(&mut self, at: u8) {
        let message = self.scenario.messages[usize::from(at)];
        let is_purged = self.state.seen.purged & (1 << message.key) != 0;
        let recorded = match self.state.tables.inbox[usize::from(message.key)] {
            None => Err(Broken::AckAfterCommit),
            Some(row) if row.equals(message.fingerprint) => Ok(()),
            // A conflict that a person has decided is resolved, and still tells of it.
            Some(_) => self.held_of(at).map(|_| ()).ok_or(Broken::Conflict),
        };
        if let Err(broken) = recorded {
            self.must(is_purged, broken);
        }
    }

    fn held_of(&self, message: u8) -> Option<crate::database::HeldRow> {
        let message = self.scenario.messages[usize::from(message)];
        let identity = self.scenario.identity(message.key, message.fingerprint)?;
        self.state.tables.held[usize::from(identity)]
    }

    /// A claimed row is written.
    pub(crate) fn check_lease(&mut self, is_ours: bool) {
        self.must(is_ours, Broken::Fencing);
    }

    /// A claimed event is applied.
    pub(crate) fn check_revision(&mut self, is_in_force: bool) {
        self.must(is_in_force, Broken::Revision);
    }
}

/// Where nothing can happen any more but faults, a person and the purge.
pub(crate) fn check_quiescent(state: &State, scenario: &Scenario) -> Option<Broken> {
    let tables = &state.tables;
    for (at, message) in scenario.messages.iter().enumerate() {
        if state.queue.messages[at] != Place::Acked {
            return Some(Broken::Quiescence);
        }
        let identity = scenario.identity(message.key, message.fingerprint);
        let held = identity.and_then(|identity| tables.held[usize::from(identity)]);
        let is_purged = state.seen.purged & (1 << message.key) != 0;
        match tables.inbox[usize::from(message.key)] {
            None if !is_purged => return Some(Broken::Loss),
            Some(row) if row.equals(message.fingerprint) => {
                let contradicted = held.is_some_and(|held| held.state == HeldState::Conflict);
                if row.fingerprint != message.fingerprint && contradicted && !state.seen.person {
                    return Some(Broken::Conflict);
                }
            }
            Some(_) if held.is_none() && !is_purged => return Some(Broken::Loss),
            None | Some(_) => {}
        }
    }
    let held = || tables.held.iter().flatten();
    let waits = |row: &&crate::database::HeldRow| row.state == HeldState::Parked && row.due == Due::Never;
    let stuck = held().filter(waits).any(|row| {
        let is_ahead = |other: &&crate::database::HeldRow| other.state == HeldState::Dead && other.place < row.place;
        !held().any(|other| is_ahead(&other))
    });
    let locked = Row::all().any(|row| state.hosts.iter().any(|h| h.session.is_some_and(|s| s.locks.has(row))));
    (stuck || locked).then_some(Broken::Quiescence)
}
