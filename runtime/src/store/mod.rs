//! The seam to a tenant's database: what the host may ask of it, and nothing else.
//!
//! A [`Store`] is one tenant's database. A [`Lane`] is one connection of it, owned by one worker for its life. A
//! [`UnitOfWork`] is the one transaction that makes a batch of verdicts durable; what must be inside it is only
//! reachable through it. The order of the calls is decided in `host/unit_of_work.rs`, for every store alike; the
//! conformance suite (`tests/conformance`) runs on every implementation.
//!
//! No future of these traits may be dropped before it is done: a database call that was begun is seen through.

mod error;
mod message_codec;
#[cfg(feature = "mysql")]
pub mod mysql;
mod rows;
#[cfg(feature = "embedded")]
pub mod sqlite;
mod starts;

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use oncebox_core::{
    blame::{Life, Start},
    fold::UpdateForm,
    ids::{BootId, BusinessKey, LeaseToken, MessageHash, ModuleDigest},
    life::{HeldState, Verdict},
    message::Message,
    rule::Rule,
    sql::{Catalogue, Dialect, Mark},
    value::Value,
};
use tokio::sync::watch;

pub use self::{
    error::*,
    message_codec::*,
    rows::*,
    starts::{MessageKey, StartEnd, StartRow, Suspect},
};

/// One tenant's database.
#[async_trait]
pub trait Store: Send + Sync {
    /// The SQL dialect in which this store's statement texts are written.
    fn dialect(&self) -> Dialect;

    /// How many lanes and slow lanes this store can use at the same time.
    fn lanes(&self) -> LaneCount;

    /// Brings the tables up to date; the answer is the number that they are at.
    async fn migrate(&self) -> Result<i64, StoreError>;

    /// Whether a host runs on this database now.
    async fn host_is_live(&self) -> Result<bool, StoreError>;

    /// How long a lane keeps its connection while it has nothing to do. `None`: as long as the lane lives; such
    /// connections take nothing from a server and are not counted (`host.limits.connections_max`).
    fn idle_after(&self) -> Option<Duration> {
        None
    }

    /// Opens a connection for a lane.
    async fn lane(&self) -> Result<Box<dyn Lane>, StoreError>;

    /// A counter that moves after something was committed that others may wait for: on the embedded store by any other
    /// connection, within 10 ms; on a server by a lane of this process. Other processes are looked for once a second.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The database's clock, microseconds since 1970.
    async fn now_us(&self) -> Result<i64, StoreError>;

    /// The tenant's secret, 32 bytes, made when the tables were made.
    async fn tenant_secret(&self) -> Result<[u8; 32], StoreError>;

    /// Records the beginning of a host's life.
    async fn boot_insert(&self, boot: BootId, host: &str) -> Result<(), StoreError>;

    /// Notes that the host still lives, and whether it is stopping; made anew if its row is gone.
    async fn boot_beat(&self, boot: BootId, host: &str, is_draining: bool) -> Result<(), StoreError>;

    /// Records its orderly end.
    async fn boot_end(&self, boot: BootId) -> Result<(), StoreError>;

    /// Hosts that have been seen within `timeout`, have not ended and are not stopping, oldest first.
    async fn boots_live(&self, timeout: Duration) -> Result<Vec<LiveBoot>, StoreError>;

    /// What the tables say of these lives; of those that they do not know, nothing.
    async fn boot_lives(&self, boots: &[BootId]) -> Result<BTreeMap<BootId, Life>, StoreError>;

    /// Counts starts of messages of a source that came again, in one statement; durable when it returns. The answer
    /// holds all rows of these messages, or none if all of them are begun for the first time.
    async fn start_insert(
        &self,
        source: &str,
        messages: &[MessageHash],
        start: Start,
    ) -> Result<Vec<StartRow>, StoreError>;

    /// Ends starts outside a unit of work: of messages whose last two handlers were decided at once, in two units.
    async fn start_end(&self, ends: &[StartEnd]) -> Result<(), StoreError>;

    /// The handler of that name, made if it is not there.
    async fn handler_ensure(&self, name: &str) -> Result<HandlerId, StoreError>;

    /// All handlers by name.
    async fn handlers(&self) -> Result<BTreeMap<String, HandlerId>, StoreError>;

    /// Notes for the fleet that a handler is blocked, with the reason (at most 255 bytes are kept), or that it runs.
    async fn handler_block(&self, handler: HandlerId, reason: Option<&str>) -> Result<(), StoreError>;

    /// Handlers that are blocked, each with the reason and since when.
    async fn handlers_blocked(&self) -> Result<Vec<BlockedHandler>, StoreError>;

    /// The rule that the handler is bound to now: the one of its newest deployment that was not refused.
    async fn rule_current(&self, handler: HandlerId) -> Result<Option<StoredRule>, StoreError>;

    /// Every rule that the handler ever had.
    async fn rules(&self, handler: HandlerId) -> Result<Vec<StoredRule>, StoreError>;

    /// Stores a module and offers it as a deployment of the handler, in one transaction, with an audit row.
    async fn deployment_offer(&self, offer: DeploymentOffer<'_>) -> Result<Deployment, StoreError>;

    /// The newest deployment of each handler that is offered or active, and the active one.
    async fn deployments(&self) -> Result<Vec<Deployment>, StoreError>;

    /// One deployment as it is now.
    async fn deployment_read(&self, id: DeploymentId) -> Result<Option<Deployment>, StoreError>;

    /// Makes an offered deployment the active one; what was active is `replaced`. Does nothing to one that is no longer
    /// offered: another host was first.
    async fn deployment_activate(&self, deployment: &Deployment) -> Result<(), StoreError>;

    /// Writes this host's answer to a deployment: ready (`Ok`), or why not (at most 4,096 bytes are kept).
    async fn deployment_answer(
        &self,
        deployment: DeploymentId,
        boot: BootId,
        answer: Result<(), &str>,
    ) -> Result<(), StoreError>;

    /// All answers to a deployment, also of hosts that are over.
    async fn deployment_answers(&self, deployment: DeploymentId) -> Result<Vec<DeploymentAnswer>, StoreError>;

    /// Writes down why this host cannot serve a deployment.
    async fn deployment_refuse(&self, deployment: &Deployment, reason: &str) -> Result<(), StoreError>;

    /// A module's bytes.
    async fn module_read(&self, digest: ModuleDigest) -> Result<Option<Vec<u8>>, StoreError>;

    /// A number that moves when a table's definition changes.
    async fn schema_version(&self) -> Result<i64, StoreError>;

    /// What the SQL gate needs to know of the tenant's tables.
    async fn catalogue(&self) -> Result<Catalogue, StoreError>;

    /// Those of these tables whose own definition would break a unit of work, each with the clause that would.
    async fn unfit_tables(&self, tables: &[&str]) -> Result<Vec<(String, &'static str)>, StoreError>;

    /// Asks the server whether it prepares the text; the answer is the number of its parameters where the server
    /// tells it.
    async fn prepare(&self, sql: &str) -> Result<(), StatementError>;

    /// Puts messages into a local source, in one transaction.
    async fn local_offer(&self, source: &str, messages: &[Message]) -> Result<u64, StoreError>;

    /// Takes up to `max` due messages of a local source under a lease.
    async fn local_claim(
        &self,
        source: &str,
        max: usize,
        token: LeaseToken,
        lease: Duration,
    ) -> Result<Vec<LocalMessage>, StoreError>;

    /// Lengthens the leases that carry one of these tokens.
    async fn local_renew(&self, tokens: &[LeaseToken], lease: Duration) -> Result<(), StoreError>;

    /// Deletes settled messages under their tokens, outside a unit of work; those that are no longer ours are left.
    async fn local_settle(&self, messages: &[(LocalId, LeaseToken)]) -> Result<(), StoreError>;

    /// Handlers with parked rows that wait for a time, each with the earliest such time (database clock).
    async fn held_due(&self) -> Result<Vec<(HandlerId, i64)>, StoreError>;

    /// Takes up to `max` due parked rows of a handler under a lease, oldest due first; each claim is a start.
    async fn held_claim(
        &self,
        handler: HandlerId,
        max: usize,
        token: LeaseToken,
        lease: Duration,
        start: Start,
    ) -> Result<Vec<ClaimedRow>, StoreError>;

    /// Held rows, newest last, after `after`.
    async fn held_list(&self, filter: &HeldFilter) -> Result<Vec<HeldRow>, StoreError>;

    /// One held row with its body and attempts.
    async fn held_show(&self, held: HeldId) -> Result<Option<HeldStory>, StoreError>;

    /// All that is known of a business key.
    async fn trace(&self, handler: HandlerId, key: &BusinessKey) -> Result<KeyStory, StoreError>;

    /// The books: verdicts by handler (`HandlerId::NONE`: no handler).
    async fn tallies(&self) -> Result<Vec<(HandlerId, Verdict, u64)>, StoreError>;

    /// Rows now held, by handler and state, and messages waiting in local sources, by source.
    async fn gauges(&self) -> Result<Gauges, StoreError>;

    /// Closes what the store itself has open.
    async fn close(&self);
}

/// One connection, owned by a lane.
#[async_trait]
pub trait Lane: Send {
    /// Inbox rows of these keys, in no order; keys without a row are not in the answer. A snapshot: good enough to
    /// conclude a duplicate, never an absence or a conflict.
    async fn inbox_look_up(&mut self, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError>;

    /// Writes down that a suspect is about to run alone; durable when it returns. False: the claim is no longer ours.
    async fn start_alone(&mut self, suspect: &Suspect, start: Start) -> Result<bool, StoreError>;

    /// Opens the transaction. A unit that is dropped without [`UnitOfWork::commit`] is rolled back before the next one.
    async fn begin(&mut self) -> Result<Box<dyn UnitOfWork + '_>, StoreError>;

    /// Says goodbye to the server. Dropping it instead is safe, too, and rolls back what is open.
    async fn close(self: Box<Self>) {}
}

/// The one transaction that makes a batch of verdicts durable. Lock order: inbox rows, order rows, held rows.
///
/// A call that answers nothing may go to the server together with the next one that does, or with COMMIT: that one tells
/// its error.
#[async_trait]
pub trait UnitOfWork: Send {
    /// The database's clock, microseconds since 1970.
    async fn now_us(&mut self) -> Result<i64, StoreError>;

    /// Inserts a row in state `applied` for each key, or raises the count of duplicates of the row that is there.
    /// The answer holds, in the order given, the rows as they are now: a row is first only if it carries `token`. One that
    /// a look-up has seen may be answered as it was then, if it is still there.
    async fn inbox_insert(&mut self, token: LeaseToken, rows: &[NewInbox]) -> Result<Vec<InboxRow>, StoreError>;

    /// Locks and reads the rows of claims, in the order given; `None`: no row.
    async fn inbox_lock(&mut self, keys: &[InboxKey]) -> Result<Vec<Option<InboxRow>>, StoreError>;

    /// Takes back rows that this unit inserted (of events that it leaves undecided).
    async fn inbox_delete(&mut self, token: LeaseToken, keys: &[InboxKey]) -> Result<(), StoreError>;

    /// Writes the outcome into the rows.
    async fn inbox_mark(&mut self, marks: &[InboxMark]) -> Result<(), StoreError>;

    /// Locks the order rows of these keys, sorted by the caller, making those that are not there: an absent row locks
    /// nothing. The answer is in the order given.
    async fn order_lock(&mut self, keys: &[OrderKey]) -> Result<Vec<OrderRow>, StoreError>;

    /// Writes what has changed of locked order rows.
    async fn order_mark(&mut self, rows: &[OrderRow]) -> Result<(), StoreError>;

    /// Of each key, makes the row with the lowest place of those that are parked or dead due now, if it is parked and
    /// waits (`due_at` NULL) for a predecessor.
    async fn order_due(&mut self, keys: &[OrderKey]) -> Result<(), StoreError>;

    /// Locks the held rows of claims; the answer tells, in the order given, whether the row is parked and still under
    /// the claim's token.
    async fn held_lock(&mut self, claims: &[(HeldId, LeaseToken)]) -> Result<Vec<bool>, StoreError>;

    /// Sets the savepoint `name`.
    async fn savepoint(&mut self, name: Savepoint) -> Result<(), StoreError>;

    /// Undoes all since the savepoint; it stays set.
    async fn rollback_to(&mut self, name: Savepoint) -> Result<(), StoreError>;

    /// Forgets the savepoint, keeping what was done since.
    async fn release(&mut self, name: Savepoint) -> Result<(), StoreError>;

    /// Forgets the last number that the server gave out (`LAST_INSERT_ID()`), so that no event sees an earlier one's.
    async fn last_insert_id_reset(&mut self) -> Result<(), StoreError>;

    /// Runs staged writes one after the other, in as few trips as they fit in; the answer is the number of rows that each
    /// matched.
    ///
    /// # Errors
    /// That of the first that fails; those behind it are not run. The caller rolls back.
    async fn staged_writes(&mut self, writes: &[Staged<'_>]) -> Result<Vec<u64>, Halted>;

    /// Runs one staged write, of whose text nothing more is known; the answer is the number of rows that it matched.
    async fn staged_write(&mut self, sql: &Arc<str>, params: &[Value]) -> Result<u64, StatementError> {
        let write = Staged::One(StagedText { sql, marks: &[] }, params);
        self.staged_writes(&[write]).await.map(|matched| matched.iter().sum()).map_err(|halted| halted.error)
    }

    /// Runs a query of a plugin; at most `rows_max` + 1 rows are read.
    async fn query(&mut self, sql: &Arc<str>, params: &[Value], rows_max: u32) -> Result<QueryAnswer, StatementError>;

    /// Inserts outgoing events.
    async fn outbox_insert(&mut self, rows: &[OutboxRow]) -> Result<(), StoreError>;

    /// Puts outgoing events into local sources.
    async fn local_insert(&mut self, rows: &[NewLocal]) -> Result<(), StoreError>;

    /// Deletes settled messages of local sources under their tokens; the answer names those that were no longer ours.
    async fn local_settle(&mut self, messages: &[(LocalId, LeaseToken)]) -> Result<Vec<LocalId>, StoreError>;

    /// Writes held rows: new ones, with body; one of the same identity is counted, and opened again if it was resolved.
    async fn held_insert(&mut self, rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError>;

    /// Brings claimed rows up to date under their tokens; one that is resolved gives up its place.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when a row does not carry its token any more.
    async fn held_mark(&mut self, marks: &[HeldMark]) -> Result<(), StoreError>;

    /// Records runs that did not apply.
    async fn attempt_insert(&mut self, rows: &[NewAttempt]) -> Result<(), StoreError>;

    /// Raises the books.
    async fn tally_add(
        &mut self,
        boot: BootId,
        lane: u16,
        counts: &[(HandlerId, Verdict, u64)],
    ) -> Result<(), StoreError>;

    /// Ends starts. The last one before the commit: whoever counts starts of these messages waits for it.
    async fn start_end(&mut self, ends: &[StartEnd]) -> Result<(), StoreError>;

    /// Makes all of it durable. An error leaves the outcome unknown: the batch is done again with a new token.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Undoes all of it because nothing could be decided, and lets those who wait for its keys go on.
    async fn give_up(self: Box<Self>) -> Result<(), StoreError>;

    /// Undoes all of it.
    async fn rollback(self: Box<Self>) -> Result<(), StoreError>;
}

/// How a process uses a tenant's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// `oncebox run`. On the embedded store the only one: leases of an earlier life are void.
    Host,
    /// A command beside a host, or without one.
    Command,
}

/// Lanes that a store can use at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneCount {
    /// Lanes of normal batches.
    pub lanes: u16,
    /// Lanes for slow runs.
    pub slow_lanes: u16,
    /// Whether what can wait has a lane of its own, beside the others; with one writer it would only be in their way.
    pub has_back_lane: bool,
}

/// A plugin's text, and its `?`.
#[derive(Debug, Clone, Copy)]
pub struct StagedText<'a> {
    /// The author's text.
    pub sql: &'a Arc<str>,
    /// Each `?` of it; none, if nothing is known of them.
    pub marks: &'a [Mark],
}

/// One of several staged writes has failed.
#[derive(Debug, PartialEq)]
pub struct Halted {
    /// What those before it have matched: as many as there were.
    pub matched: Vec<u64>,
    /// Its error.
    pub error: StatementError,
}

/// A staged write, or the same of many events as one statement.
#[derive(Debug)]
pub enum Staged<'a> {
    /// One write, with its values.
    One(StagedText<'a>, &'a [Value]),
    /// An INSERT, the byte range of whose text is repeated for each row.
    InsertMany(StagedText<'a>, Range<usize>, Vec<&'a [Value]>),
    /// An UPDATE, each of whose rows of values concerns another row of the table.
    UpdateMany(StagedText<'a>, &'a UpdateForm, Vec<&'a [Value]>),
}

/// The two savepoints of a unit of work. Their names are fixed, so that no text is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Savepoint {
    /// Set once, before any mark.
    Marks,
    /// Around one event's writes, in a unit where several events failed.
    Event,
}

/// A row of `ob_rule`.
pub type StoredRule = (RuleId, Rule);

/// Rows now held and waiting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Held rows by handler and state, resolved ones left out.
    pub held: Vec<(HandlerId, HeldState, u64)>,
    /// Receipt of the oldest parked row, microseconds since 1970.
    pub oldest_parked_us: Option<i64>,
    /// Messages in local sources, by source.
    pub local: Vec<(String, u64)>,
}
