//! The rows that cross the seam. Times are microseconds since 1970, by the database's clock.

use std::sync::Arc;

use oncebox_core::{
    blame::Open,
    failure::Class,
    ids::{BootId, BusinessKey, Fingerprint, HeldIdentity, LeaseToken, ModuleDigest},
    life::{HeldState, InboxState},
    manifest::Manifest,
    message::{Header, Message},
    rule::Rule,
    value::Value,
};
use serde::Serialize;

macro_rules! row_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

row_id!(
    /// Row of `ob_handler`.
    HandlerId
);
row_id!(
    /// Row of `ob_rule`.
    RuleId
);
row_id!(
    /// Row of `ob_deployment`.
    DeploymentId
);
row_id!(
    /// Row of `ob_held`.
    HeldId
);
row_id!(
    /// Row of `ob_local`.
    LocalId
);

impl HandlerId {
    /// "No handler": an undecodable message or one without a route.
    pub const NONE: Self = Self(0);
}

/// The inbox's primary key.
pub type InboxKey = (HandlerId, BusinessKey);

/// The primary key of `ob_order`: a handler and one of its ordering keys.
pub type OrderKey = (HandlerId, Vec<u8>);

/// A row of `ob_order`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow {
    /// Whose, and which key.
    pub key: OrderKey,
    /// Parked or blocking dead rows of the key.
    pub held: u32,
    /// Place of the next held row of the key.
    pub next_place: u64,
    /// Lowest place of a held row of the key that is parked or dead; read with the row, not written.
    pub head: Option<u64>,
}

/// Where a held row of an ordered handler stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its ordering key.
    pub ordering_key: Vec<u8>,
    /// Lower ones come before it.
    pub place: u64,
}

/// What a migration has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The number that the tables were at; 0: they were not there.
    pub from: i64,
    /// The number that they are at.
    pub to: i64,
    /// Whether the procedure that the SQL gate asks was made, or made anew.
    pub is_procedure_made: bool,
    /// What the host's own user still lacks, as far as it could be seen.
    pub missing: Option<String>,
}

/// A host that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveBoot {
    /// Its life.
    pub boot: BootId,
    /// Its name.
    pub host: String,
}

/// A host's answer to a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentAnswer {
    /// The host's life.
    pub boot: BootId,
    /// Ready, or why not.
    pub answer: Result<(), String>,
}

/// A handler that is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedHandler {
    /// The handler.
    pub handler: HandlerId,
    /// Why.
    pub reason: String,
    /// Since when, microseconds since 1970.
    pub since_us: i64,
}

/// A row of `ob_inbox`, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// Whose key.
    pub handler: HandlerId,
    /// The key.
    pub key: BusinessKey,
    /// Its state.
    pub state: InboxState,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The rule by which the fingerprint was made.
    pub rule: RuleId,
    /// Of the unit of work that inserted it.
    pub token: LeaseToken,
    /// One more for each authorised application.
    pub generation: u32,
}

/// A row to insert into `ob_inbox`, in state `applied`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInbox {
    /// Whose key.
    pub handler: HandlerId,
    /// The key.
    pub key: BusinessKey,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The rule by which it was made.
    pub rule: RuleId,
    /// The deployment that ran.
    pub deployment: DeploymentId,
    /// The event's id.
    pub event_id: String,
    /// Oncebox's name of the source.
    pub source: Arc<str>,
    /// The message's own trace context.
    pub traceparent: Option<String>,
    /// First receipt.
    pub received_us: i64,
    /// Its row as a look-up has seen it, equal to this one: good enough for a duplicate, if the row is still there. One
    /// that is inserted all the same has gone since, and is to be taken back.
    pub seen: Option<InboxRow>,
}

impl NewInbox {
    /// By what the row is found.
    #[must_use]
    pub fn inbox_key(&self) -> InboxKey {
        (self.handler, self.key.clone())
    }
}

/// What an inbox row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMark {
    /// Whose key.
    pub handler: HandlerId,
    /// The key.
    pub key: BusinessKey,
    /// Its state.
    pub state: InboxState,
    /// The deployment that ran last; `None`: it was not run.
    pub deployment: Option<DeploymentId>,
    /// Attempts so far.
    pub attempts: u32,
    /// Why not applied, or why skipped.
    pub code: Option<String>,
    /// The result that the plugin gave.
    pub result: Option<Vec<u8>>,
}

/// A message of a local source under our lease.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalMessage {
    /// The row.
    pub id: LocalId,
    /// What was sent.
    pub message: Message,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// How often it was taken, this time included.
    pub deliveries: u32,
    /// When it was sent.
    pub received_us: i64,
}

/// A message to put into a local source.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLocal {
    /// Name of the source.
    pub source: String,
    /// What is sent.
    pub message: Message,
    /// Handlers that it went through, the sending one included.
    pub hops: u8,
    /// Not before.
    pub due_us: i64,
}

/// The state of an outgoing event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutboxState {
    /// For a change-data-capture connector.
    Kept,
    /// Handed over: for `local`, in the same transaction.
    Confirmed,
}

impl OutboxState {
    /// The number kept in `ob_outbox.state` (1, 2, 4, 5 and 6 belong to destinations with a relay).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Kept => 0,
            Self::Confirmed => 3,
        }
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Kept, Self::Confirmed].into_iter().find(|state| state.number() == number)
    }
}

/// A row of `ob_outbox`.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxRow {
    /// Stable id of the outgoing event.
    pub event_id: String,
    /// The tenant's destination.
    pub destination: String,
    /// Its state.
    pub state: OutboxState,
    /// Who emitted it.
    pub handler: HandlerId,
    /// For which key.
    pub key: BusinessKey,
    /// Of which generation.
    pub generation: u32,
    /// The n-th of its event.
    pub position: u32,
    /// Order wanted at the destination.
    pub ordering_key: Option<Vec<u8>>,
    /// CloudEvents type.
    pub event_type: String,
    /// CloudEvents subject.
    pub subject: Option<String>,
    /// Media type of the payload.
    pub content_type: Option<String>,
    /// CloudEvents dataschema.
    pub schema: Option<String>,
    /// Per destination kind.
    pub attributes: Vec<(String, String)>,
    /// Headers.
    pub headers: Vec<Header>,
    /// The body.
    pub payload: Vec<u8>,
    /// Trace context carried on from the message.
    pub traceparent: Option<String>,
    /// Not before.
    pub due_us: i64,
}

/// A row to write into `ob_held`, with its body.
#[derive(Debug, Clone, PartialEq)]
pub struct NewHeld {
    /// What makes it unique.
    pub identity: HeldIdentity,
    /// Whose; `HandlerId::NONE` without one.
    pub handler: HandlerId,
    /// Its state.
    pub state: HeldState,
    /// The key, if it has one.
    pub key: Option<BusinessKey>,
    /// Claimable from; `None`: waits for a person.
    pub due_us: Option<i64>,
    /// Counted attempts.
    pub attempts: u32,
    /// Of these: traps, limits, 1062.
    pub attempts_short: u32,
    /// Why.
    pub class: Class,
    /// Short name of why.
    pub code: String,
    /// One sentence of why.
    pub message: String,
    /// The fingerprint, if it has one.
    pub fingerprint: Option<Fingerprint>,
    /// The rule of key and fingerprint.
    pub rule: Option<RuleId>,
    /// The deployment that ran.
    pub deployment: Option<DeploymentId>,
    /// Oncebox's name of the source.
    pub source: Arc<str>,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// The event's time.
    pub event_time_us: Option<i64>,
    /// First receipt.
    pub received_us: i64,
    /// The message as it came.
    pub body: Arc<Message>,
    /// Of an ordered handler: where it stands. Kept of parked and dead rows only.
    pub place: Option<Place>,
    /// Starts of it that have no end.
    pub open: Open,
}

/// What a claimed held row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMark {
    /// The row.
    pub held: HeldId,
    /// The claim's token.
    pub token: LeaseToken,
    /// Its state.
    pub state: HeldState,
    /// Claimable from; `None`: waits for a person, or is over.
    pub due_us: Option<i64>,
    /// Counted attempts.
    pub attempts: u32,
    /// Of these: traps, limits, 1062.
    pub attempts_short: u32,
    /// Why: class, code and sentence; `None` keeps the last ones (a row that is over).
    pub why: Option<(Class, String, String)>,
    /// The deployment that ran.
    pub deployment: Option<DeploymentId>,
    /// Starts of it that have no end still; this claim's own has it.
    pub open: Open,
}

/// A run that did not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    /// The row that it belongs to.
    pub held: HeldId,
    /// Of which generation.
    pub generation: u32,
    /// This host's life.
    pub boot: BootId,
    /// The deployment that ran.
    pub deployment: Option<DeploymentId>,
    /// When it began.
    pub started_us: i64,
    /// When it ended.
    pub ended_us: i64,
    /// Why.
    pub class: Class,
    /// Short name of why.
    pub code: String,
    /// One sentence of why.
    pub message: String,
    /// The guest's stack.
    pub backtrace: Option<String>,
}

/// A parked row under our lease, ready to be run again.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedRow {
    /// The row.
    pub held: HeldId,
    /// The key.
    pub key: BusinessKey,
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// The rule of both.
    pub rule: RuleId,
    /// Counted attempts.
    pub attempts: u32,
    /// Of these: traps, limits, 1062.
    pub attempts_short: u32,
    /// Of which generation.
    pub generation: u32,
    /// Oncebox's name of the source.
    pub source: String,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// First receipt.
    pub received_us: i64,
    /// The message as it came.
    pub body: Message,
    /// Where it stands, if its handler asked for order when it was parked.
    pub place: Option<Place>,
    /// Starts of it that have no end; this claim is the newest.
    pub open: Open,
}

/// The state of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeploymentState {
    /// Waits for a host to be ready.
    Offered,
    /// Serves.
    Active,
    /// A newer one serves.
    Replaced,
    /// A host could not serve it, with the reason.
    Refused,
}

impl DeploymentState {
    /// The number kept in `ob_deployment.state` (2 and 3 belong to canaries).
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Offered => 0,
            Self::Active => 1,
            Self::Replaced => 4,
            Self::Refused => 5,
        }
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Offered, Self::Active, Self::Replaced, Self::Refused].into_iter().find(|s| s.number() == number)
    }
}

/// A handler's use of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deployment {
    /// The row.
    pub id: DeploymentId,
    /// The handler.
    pub handler: HandlerId,
    /// The module.
    #[serde(serialize_with = "as_text")]
    pub digest: ModuleDigest,
    /// The module's own version.
    pub version: String,
    /// The rule in force.
    pub rule: RuleId,
    /// Its state.
    pub state: DeploymentState,
    /// Why it was refused.
    pub reason: Option<String>,
    /// When it was offered.
    pub created_us: i64,
    /// From when on it serves.
    pub active_from_us: Option<i64>,
}

fn as_text<T: std::fmt::Display, S: serde::Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// What `oncebox deploy` asks for.
#[derive(Debug, Clone, Copy)]
pub struct DeploymentOffer<'a> {
    /// The handler.
    pub handler: HandlerId,
    /// The packed module.
    pub module: &'a [u8],
    /// Its digest.
    pub digest: ModuleDigest,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// The manifest's packed text.
    pub manifest_text: &'a str,
    /// The rule: manifest and overrides of the configuration.
    pub rule: &'a Rule,
    /// Who.
    pub actor: &'a str,
    /// The audit row's action.
    pub action: &'a str,
}

/// The answer of a plugin's query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryAnswer {
    /// Column names in order.
    pub columns: Vec<String>,
    /// Rows of values.
    pub rows: Vec<Vec<Value>>,
}

/// Which held rows to list.
#[derive(Debug, Clone, Default)]
pub struct HeldFilter {
    /// Only this handler's.
    pub handler: Option<HandlerId>,
    /// Only in these states; empty: all but resolved.
    pub states: Vec<HeldState>,
    /// Only after this row.
    pub after: i64,
    /// At most so many.
    pub limit: u32,
}

/// A held row, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    /// The row.
    pub held: HeldId,
    /// Whose.
    pub handler: HandlerId,
    /// Its state.
    pub state: HeldState,
    /// The key, if it has one.
    pub key: Option<BusinessKey>,
    /// Claimable from.
    pub due_us: Option<i64>,
    /// Counted attempts.
    pub attempts: u32,
    /// How often the same identity came.
    pub times: u32,
    /// Why.
    pub class: Class,
    /// Short name of why.
    pub code: String,
    /// One sentence of why.
    pub message: String,
    /// The fingerprint, if it has one.
    pub fingerprint: Option<Fingerprint>,
    /// Oncebox's name of the source.
    pub source: String,
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// First receipt.
    pub received_us: i64,
    /// Last change.
    pub changed_us: i64,
}

/// An attempt, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// Its number, from 1, of runs that did not apply.
    pub attempt: u32,
    /// The deployment that ran, and its module.
    pub deployment: Option<(DeploymentId, ModuleDigest)>,
    /// When it began.
    pub started_us: i64,
    /// When it ended.
    pub ended_us: i64,
    /// Why.
    pub class: Class,
    /// Short name of why.
    pub code: String,
    /// One sentence of why.
    pub message: String,
    /// The guest's stack.
    pub backtrace: Option<String>,
}

/// A held row with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldStory {
    /// The row.
    pub row: HeldRow,
    /// The message as it came.
    pub body: Message,
    /// Its runs.
    pub attempts: Vec<AttemptRow>,
}

/// The inbox row, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxStory {
    /// Its state.
    pub state: InboxState,
    /// Its generation.
    pub generation: u32,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The deployment that decided, and its module.
    pub deployment: Option<(DeploymentId, ModuleDigest)>,
    /// Attempts so far.
    pub attempts: u32,
    /// Further deliveries.
    pub duplicates: u64,
    /// The last of them.
    pub duplicate_us: Option<i64>,
    /// The first event's id.
    pub event_id: String,
    /// Its source.
    pub source: String,
    /// Its trace context.
    pub traceparent: Option<String>,
    /// First receipt.
    pub received_us: i64,
    /// When it was decided.
    pub decided_us: i64,
    /// Why not applied.
    pub code: Option<String>,
    /// The plugin's result.
    pub result: Option<Vec<u8>>,
}

/// An outgoing event, as shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingStory {
    /// Its id.
    pub event_id: String,
    /// Where to.
    pub destination: String,
    /// Its state.
    pub state: OutboxState,
    /// Its type.
    pub event_type: String,
    /// When it was written.
    pub created_us: i64,
}

/// All that is known of a business key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyStory {
    /// The inbox row.
    pub inbox: Option<InboxStory>,
    /// Held rows of the key, each with its runs.
    pub held: Vec<HeldStory>,
    /// Outgoing events.
    pub outgoing: Vec<OutgoingStory>,
}

/// The start of a text, as far as a column of so many bytes takes it.
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
