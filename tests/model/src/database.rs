//! The tenant's database: rows, sessions, row locks, READ COMMITTED.
//!
//! A session sees what is committed and what it has written itself. What it writes it locks, until COMMIT or ROLLBACK.
//! What InnoDB does beside that, tried on MySQL 9.7.4:
//!
//! - a fresh row that is rolled back while several wait for its key: all of them but one are deadlocked (1213);
//! - a row that is deleted and committed lets those who wait go on one by one;
//! - 1205 ends a wait and undoes one statement: an insert of several rows is undone as a whole.

use oncebox_core::life::{HeldState, InboxState};

use crate::{
    invariants::Broken,
    state::{HELD, HOSTS, KEYS, Token},
    world::World,
};

/// A row that can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Row {
    /// Of `ob_inbox`, by business key.
    Inbox(u8),
    /// Of `ob_order`: the model has one ordering key.
    Order,
    /// Of `ob_held`, by identity.
    Held(u8),
}

impl Row {
    fn bit(self) -> u8 {
        let at = match self {
            Self::Inbox(key) => usize::from(key),
            Self::Order => KEYS,
            Self::Held(identity) => KEYS + 1 + usize::from(identity),
        };
        1 << at
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let inbox = (0..KEYS).map(|key| Self::Inbox(small(key)));
        inbox.chain([Self::Order]).chain((0..HELD).map(|identity| Self::Held(small(identity))))
    }
}

/// An index of the model, none of which is large.
pub(crate) fn small(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

/// A set of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Rows(u8);

impl Rows {
    pub(crate) fn has(self, row: Row) -> bool {
        self.0 & row.bit() != 0
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.0 |= row.bit();
    }
}

/// Whether an inbox row may be purged: the later of event time and decision time, held against the horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Age {
    /// Not below the mark, as long as nobody moves it.
    Young,
    /// Below the mark.
    Old,
    /// Above any mark: its event is newer.
    New,
}

/// A row of `ob_inbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InboxRow {
    pub(crate) state: InboxState,
    pub(crate) fingerprint: u8,
    /// Fingerprints that a person has authorised beside it, a bit each.
    pub(crate) authorised: u8,
    /// Of the unit that inserted it.
    pub(crate) token: Token,
    pub(crate) age: Age,
}

impl InboxRow {
    /// Whether a delivery with this fingerprint says the same fact.
    pub(crate) fn equals(&self, fingerprint: u8) -> bool {
        self.fingerprint == fingerprint || self.authorised & (1 << fingerprint) != 0
    }
}

/// `due_at` of a held row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Due {
    /// NULL: waits for a predecessor or a person.
    Never,
    /// May be claimed.
    Now,
    /// When its lease ends.
    Leased,
}

/// A row of `ob_held`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HeldRow {
    pub(crate) state: HeldState,
    pub(crate) due: Due,
    pub(crate) lease: Token,
    pub(crate) attempts: u8,
    /// Of an ordered handler.
    pub(crate) place: Option<u8>,
    /// Which body is in force: its fingerprint.
    pub(crate) revision: u8,
    /// The message that it came from.
    pub(crate) message: u8,
}

impl HeldRow {
    /// Whether it holds those behind it.
    pub(crate) fn holds(&self) -> bool {
        self.place.is_some() && matches!(self.state, HeldState::Parked | HeldState::Dead)
    }
}

/// The row of `ob_order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct OrderRow {
    pub(crate) held: u8,
    pub(crate) next_place: u8,
}

/// Rows by their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tables {
    pub(crate) inbox: [Option<InboxRow>; KEYS],
    pub(crate) held: [Option<HeldRow>; HELD],
    pub(crate) order: Option<OrderRow>,
}

impl Tables {
    fn copy(&mut self, row: Row, from: &Self) {
        match row {
            Row::Inbox(key) => self.inbox[usize::from(key)] = from.inbox[usize::from(key)],
            Row::Order => self.order = from.order,
            Row::Held(identity) => self.held[usize::from(identity)] = from.held[usize::from(identity)],
        }
    }

    fn has(&self, row: Row) -> bool {
        match row {
            Row::Inbox(key) => self.inbox[usize::from(key)].is_some(),
            Row::Order => self.order.is_some(),
            Row::Held(identity) => self.held[usize::from(identity)].is_some(),
        }
    }

    /// The token of a unit is over: no inbox row carries it any more.
    pub(crate) fn forget_unit(&mut self, token: Token) {
        for row in self.inbox.iter_mut().flatten().filter(|row| row.token == token) {
            row.token = Token::NONE;
        }
    }

    /// The token of a claim is over: no held row carries it any more.
    pub(crate) fn forget_lease(&mut self, token: Token) {
        for row in self.held.iter_mut().flatten().filter(|row| row.lease == token) {
            row.lease = Token::NONE;
        }
    }
}

/// A session with its open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Session {
    pub(crate) locks: Rows,
    pub(crate) waits_for: Option<Row>,
    /// Rows that it has written, and how: only these are in `view`.
    pub(crate) written: Rows,
    pub(crate) view: Tables,
    /// Messages whose staged writes stand whole, a bit each.
    pub(crate) applied: u8,
    /// Messages of whose staged writes some stand, a bit each.
    pub(crate) torn: u8,
    /// Messages that it calls duplicates of something applied, a bit each.
    pub(crate) proven: u8,
    /// Messages that it calls conflicts, a bit each.
    pub(crate) conflicts: u8,
}

/// A session whose host is gone, or has given it up; the server does not know that yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Orphan {
    pub(crate) session: Session,
    /// A COMMIT is on its way to the server.
    pub(crate) commits: bool,
}

/// A lock that another session has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked(pub(crate) Row);

/// Why a transaction is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undone {
    /// By an end of its session, a deadlock, or a wait that took too long: those who wait for its fresh keys may be
    /// deadlocked, and are done again.
    ByForce,
    /// Because the host wanted it so: then nobody may be deadlocked by it.
    ByChoice,
}

impl World<'_> {
    /// Whether somebody else than the session of `host` has a row locked; `None`: somebody at all.
    pub(crate) fn is_locked(&self, row: Row, host: Option<usize>) -> bool {
        let mut hosts = self.state.hosts.iter().enumerate();
        hosts.any(|(own, other)| Some(own) != host && other.session.is_some_and(|session| session.locks.has(row)))
            || self.state.orphans.iter().flatten().any(|orphan| orphan.session.locks.has(row))
    }

    pub(crate) fn lock(&mut self, host: usize, row: Row) -> Result<(), Blocked> {
        if self.is_locked(row, Some(host)) {
            return Err(Blocked(row));
        }
        self.session(host).locks.add(row);
        Ok(())
    }

    /// The open session of a host.
    pub(crate) fn session(&mut self, host: usize) -> &mut Session {
        self.state.hosts[host].session.get_or_insert_default()
    }

    /// What the session of a host sees.
    pub(crate) fn seen(&self, host: usize) -> Tables {
        let mut tables = self.state.tables;
        if let Some(session) = &self.state.hosts[host].session {
            for row in Row::all().filter(|row| session.written.has(*row)) {
                tables.copy(row, &session.view);
            }
        }
        tables
    }

    pub(crate) fn write_inbox(&mut self, host: usize, key: u8, row: Option<InboxRow>) {
        let session = self.session(host);
        session.written.add(Row::Inbox(key));
        session.view.inbox[usize::from(key)] = row;
    }

    pub(crate) fn write_held(&mut self, host: usize, identity: u8, row: HeldRow) {
        let session = self.session(host);
        session.written.add(Row::Held(identity));
        session.view.held[usize::from(identity)] = Some(row);
    }

    pub(crate) fn write_order(&mut self, host: usize, row: OrderRow) {
        let session = self.session(host);
        session.written.add(Row::Order);
        session.view.order = Some(row);
    }

    /// Makes a transaction durable and looks whether the tables are still what they must be.
    pub(crate) fn make_durable(&mut self, session: &Session) {
        for row in Row::all().filter(|row| session.written.has(*row)) {
            self.state.tables.copy(row, &session.view);
        }
        self.check_commit(session);
    }

    /// Undoes a transaction that was already taken from its owner.
    pub(crate) fn undo(&mut self, session: &Session, why: Undone) {
        let fresh = |row: &Row| session.written.has(*row) && session.view.has(*row) && !self.state.tables.has(*row);
        let fresh: Vec<Row> = Row::all().filter(fresh).collect();
        for row in fresh {
            self.deadlock_waiters(row, why == Undone::ByChoice);
        }
    }

    /// All who wait for a row but one are deadlocked.
    pub(crate) fn deadlock_waiters(&mut self, row: Row, is_wrong: bool) {
        let waits = |host: &usize| self.state.hosts[*host].session.is_some_and(|s| s.waits_for == Some(row));
        let mut waiting: Vec<usize> = (0..HOSTS).filter(waits).collect();
        if waiting.len() < 2 {
            return;
        }
        if is_wrong {
            self.broken(Broken::Deadlock);
        }
        waiting.remove(self.oracle.pick(waiting.len()));
        for host in waiting {
            // One that was deadlocked for another row's sake meanwhile waits no more.
            if let Some(session) = self.state.hosts[host].session.take_if(|s| s.waits_for == Some(row)) {
                self.say(|| format!("host {} is deadlocked (1213)", host + 1));
                self.undo(&session, Undone::ByForce);
                crate::lane::busy(self, host);
            }
        }
    }

    /// A session waits: nobody may wait for it in turn.
    pub(crate) fn wait_for(&mut self, host: usize, row: Row) {
        self.session(host).waits_for = Some(row);
        let (mut waited, mut steps) = (row, 0);
        while steps < HOSTS {
            let holder = |other: &usize| {
                let session = self.state.hosts[*other].session;
                *other != host || steps > 0 && session.is_some_and(|session| session.locks.has(waited))
            };
            let has = |other: &usize| self.state.hosts[*other].session.is_some_and(|s| s.locks.has(waited));
            let Some(other) = (0..HOSTS).filter(holder).find(has) else { return };
            if other == host {
                self.broken(Broken::Deadlock);
                return;
            }
            let Some(next) = self.state.hosts[other].session.and_then(|session| session.waits_for) else { return };
            (waited, steps) = (next, steps + 1);
        }
    }
}
