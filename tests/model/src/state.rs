//! All that there is at one moment. Small, `Copy` and hashable: the exploration keeps millions of them apart.

use std::hash::{Hash, Hasher};

use oncebox_core::life::{HeldChange, InboxState, Verdict};

use crate::{
    database::{Due, Orphan, Session, Tables},
    scenario::Scenario,
};

/// Hosts at most; each has one lane.
pub(crate) const HOSTS: usize = 3;
/// Business keys at most.
pub(crate) const KEYS: usize = 3;
/// Pairs of key and fingerprint at most.
pub(crate) const HELD: usize = 3;
/// Messages at most.
pub(crate) const MESSAGES: usize = 3;
/// Deliveries in a batch, and in the memory of a host, at most.
pub(crate) const BATCH: usize = 2;
/// Sessions without a host, at most: as many as crashes and lost connections.
pub(crate) const ORPHANS: usize = 3;

/// A token, or none that matters any more. A host's unit has one of its own and so has its claim. Drawing a new one is
/// that no row anywhere carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(pub(crate) u8);

impl Token {
    /// Of nobody who is still there.
    pub(crate) const NONE: Self = Self(0);

    /// The token of the host's unit, or of its claim: one batch is never both.
    pub(crate) fn of(host: usize) -> Self {
        Self(crate::database::small(host) + 1)
    }
}

/// The whole world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What is committed.
    pub(crate) tables: Tables,
    pub(crate) hosts: [Host; HOSTS],
    pub(crate) orphans: [Option<Orphan>; ORPHANS],
    pub(crate) queue: Queue,
    pub(crate) purge: Purge,
    pub(crate) seen: Seen,
    /// What may still go wrong.
    pub(crate) budget: Budget,
}

/// How often each of these may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// kill -9 of a host.
    pub crashes: u8,
    /// A connection to the database is lost, the answer to a COMMIT with it.
    pub lost: u8,
    /// A connection to the broker is lost.
    pub broker: u8,
    /// A person decides a held row.
    pub person: u8,
    /// The purge mark is moved.
    pub purge: u8,
}

/// What has happened that no table tells, for the invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Seen {
    /// By key: how often its effect was applied since its row was purged.
    pub(crate) applied: [u8; KEYS],
    /// Keys of which a row was purged, a bit each.
    pub(crate) purged: u8,
    /// Messages that were proven duplicates of something applied, a bit each.
    pub(crate) proven: u8,
    /// One more than the last arrival that was applied, of an ordered handler.
    pub(crate) last: u8,
    /// A person has decided something.
    pub(crate) person: bool,
}

/// Where a message is, for the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Waits in the queue.
    Ready,
    /// Delivered, not acked.
    Unacked {
        /// To this host.
        host: u8,
    },
    /// Gone.
    Acked,
}

/// The broker's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    pub(crate) messages: [Place; MESSAGES],
    /// The one host that is consumed by, of an ordered handler.
    pub(crate) consumer: Option<u8>,
}

/// The purge, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Purge {
    /// The mark is committed.
    pub(crate) mark: bool,
    /// Keys that were selected, a bit each; a selection may be used again and again.
    pub(crate) selected: u8,
}

/// A host with its one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    pub(crate) at: At,
    pub(crate) batch: [Option<Item>; BATCH],
    /// Deliveries that were put back, in their order.
    pub(crate) memory: [Option<Delivery>; BATCH],
    /// The deliveries of its channel in the order of their tags.
    pub(crate) channel: [Option<Tag>; MESSAGES],
    /// Its lane's, with an open transaction.
    pub(crate) session: Option<Session>,
    /// Inbox rows of the unit that are inserted or locked.
    pub(crate) rows: u8,
    /// The purge mark as it was when the unit began; only a planted fault looks at it.
    pub(crate) mark_at_begin: bool,
}

impl Host {
    pub(crate) const IDLE: Self = Self {
        at: At::Idle,
        batch: [None; BATCH],
        memory: [None; BATCH],
        channel: [None; MESSAGES],
        session: None,
        rows: 0,
        mark_at_begin: false,
    };

    /// Indexes of the items of the open unit, in arrival order.
    pub(crate) fn in_unit(&self) -> impl Iterator<Item = usize> + use<> {
        let batch = self.batch;
        (0..BATCH).filter(move |at| batch[*at].is_some_and(|item| item.stage == Stage::Unit))
    }

    /// Whether the batch holds claims of parked rows; else it holds deliveries.
    pub(crate) fn has_claims(&self) -> bool {
        self.batch.iter().flatten().any(|item| item.delivery.claim.is_some())
    }
}

/// How far a lane has come on the road.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// Takes the next batch.
    Idle,
    /// `road.rs`: look up.
    LookUp,
    /// `unit_of_work.rs`: the inbox rows, one by one.
    Inbox,
    /// The rest of `stand`, then the round of staged writes.
    Stand,
    /// `marks.rs`.
    Marks,
    /// RELEASE, COMMIT.
    Commit,
    /// `road.rs`: settle.
    Settle,
}

/// A delivery on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    pub(crate) message: u8,
    pub(crate) state: TagState,
}

/// What the tracker of the decided prefix knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TagState {
    Undecided,
    Decided,
    Settled,
}

/// A message for the handler, or a parked row that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Delivery {
    pub(crate) message: u8,
    /// Whether it is still a delivery of the host's channel.
    pub(crate) is_ours: bool,
    /// Its broker drops it soon: put aside without a run.
    pub(crate) at_risk: bool,
    pub(crate) claim: Option<Claim>,
}

/// A parked row under the host's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    pub(crate) held: u8,
    pub(crate) attempts: u8,
    pub(crate) place: Option<u8>,
    /// The body that runs.
    pub(crate) revision: u8,
}

/// A delivery in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) delivery: Delivery,
    pub(crate) ran: Ran,
    pub(crate) stage: Stage,
    pub(crate) standing: Option<Standing>,
    pub(crate) fate: Option<Fate>,
    pub(crate) mark: Option<Mark>,
}

impl Item {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self { delivery, ran: Ran::Runs, stage: Stage::Unit, standing: None, fate: None, mark: None }
    }
}

/// What the look-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ran {
    /// No equal row: it runs.
    Runs,
    /// An equal row: nothing runs.
    Known,
    /// Another fingerprint. The host makes nothing of it; only a planted fault does.
    SawConflict,
}

/// Where an item is in `lane.rs::decide`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// In the unit of now.
    Unit,
    /// In the other half of a batch that was cut.
    Todo,
    /// Through.
    Done,
    /// Left undecided for a while.
    Later,
}

/// `unit_of_work.rs::Standing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    First,
    /// First, and older than the horizon.
    Late,
    Claimed,
    Known,
    Reborn,
    Lost,
}

/// `unit_of_work.rs::Fate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Decided(Verdict),
    Again,
    Lost,
}

/// What is to be written of an item that is not just applied or a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) inbox: InboxState,
    pub(crate) held: HeldChange,
    pub(crate) due: Due,
    pub(crate) attempts: u8,
}

impl State {
    /// Before anything has happened.
    pub(crate) fn first(scenario: &Scenario) -> Self {
        let mut messages = [Place::Acked; MESSAGES];
        messages[..scenario.messages.len()].fill(Place::Ready);
        Self {
            tables: Tables::default(),
            hosts: [Host::IDLE; HOSTS],
            orphans: [None; ORPHANS],
            queue: Queue { messages, consumer: None },
            purge: Purge::default(),
            seen: Seen::default(),
            budget: scenario.budget,
        }
    }

    /// Tables as any session sees them.
    pub(crate) fn views(&mut self) -> impl Iterator<Item = &mut Tables> {
        let sessions = self.hosts.iter_mut().filter_map(|host| host.session.as_mut());
        let orphans = self.orphans.iter_mut().flatten().map(|orphan| &mut orphan.session);
        std::iter::once(&mut self.tables).chain(sessions.chain(orphans).map(|session| &mut session.view))
    }

    /// Its hash, without hosts that do nothing.
    pub(crate) fn hash_of(&self, hosts: usize, hasher: &mut impl Hasher) {
        let Self { tables, hosts: all, orphans, queue, purge, seen, budget } = self;
        (tables, queue, purge, seen, budget).hash(hasher);
        for host in &all[..hosts] {
            host.hash(hasher);
        }
        for orphan in orphans.iter().flatten() {
            orphan.hash(hasher);
        }
    }

    /// The same world with its hosts named otherwise: `names[old]` is the new one.
    pub(crate) fn renamed(&self, names: [usize; HOSTS]) -> Self {
        let mut new = *self;
        for (old, name) in names.into_iter().enumerate() {
            new.hosts[name] = self.hosts[old];
        }
        let host = |old: u8| crate::database::small(names[usize::from(old)]);
        let token = |old: Token| if old == Token::NONE { old } else { Token(host(old.0 - 1) + 1) };
        for tables in new.views() {
            tables.inbox.iter_mut().flatten().for_each(|row| row.token = token(row.token));
            tables.held.iter_mut().flatten().for_each(|row| row.lease = token(row.lease));
        }
        for place in &mut new.queue.messages {
            if let Place::Unacked { host: old } = place {
                *old = host(*old);
            }
        }
        new.queue.consumer = self.queue.consumer.map(host);
        new
    }
}
