//! What goes into one attempt and what comes out of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oncebox_core::{failure::Failure, message::Header, value::Value};
use tokio::sync::{mpsc, oneshot};

/// One attempt: everything that a run of a plugin may see, and its limits.
#[derive(Debug)]
pub struct Attempt {
    /// The event.
    pub event: Arc<Event>,
    /// The limits of the run.
    pub limits: Arc<RunLimits>,
    /// The operator's values by the names that the manifest declares.
    pub config: Arc<BTreeMap<String, String>>,
    /// Facts of the attempt.
    pub context: Context,
    /// Where queries go; `None` for a handler that declares none.
    pub queries: Option<QueryPort>,
}

/// What happened, as the host understood it: the contract's record `event`, whose comments say more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// CloudEvents id; else the broker's message id; else the hash of the body.
    pub id: String,
    /// CloudEvents type; `""` when none.
    pub event_type: String,
    /// CloudEvents source; never the name of an Oncebox source.
    pub ce_source: Option<String>,
    /// CloudEvents subject.
    pub subject: Option<String>,
    /// RFC 3339, UTC, microseconds; the producer's word.
    pub time: Option<String>,
    /// The inbox key.
    pub business_key: Vec<u8>,
    /// The ordering key, of an ordered handler.
    pub ordering_key: Option<Vec<u8>>,
    /// The payload's content type.
    pub content_type: Option<String>,
    /// CloudEvents dataschema, or a schema id.
    pub schema: Option<String>,
    /// Further CloudEvents attributes, and host facts equal at each delivery.
    pub attributes: Vec<(String, String)>,
    /// Headers in order, duplicates kept, without the broker's own.
    pub headers: Vec<Header>,
    /// As received, never serialised again.
    pub payload: Arc<[u8]>,
}

/// Facts of the attempt, equal at each repetition but for the attempt's number.
#[derive(Clone)]
pub struct Context {
    /// The time first recorded, Unix microseconds.
    pub now_us: u64,
    /// From 1.
    pub attempt: u32,
    /// 0, and one more for each authorised re-application of the key.
    pub generation: u32,
    /// The tenant's name.
    pub tenant: String,
    /// The handler's name.
    pub handler: String,
    /// The message's own trace context, unchanged.
    pub traceparent: Option<String>,
    /// The tenant's secret, from which the plugin's randomness is derived; never shown.
    pub random_key: [u8; 32],
}

/// The limits of one run; each is a setting of the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// Wall time of the run, waiting for queries included, waiting for a free instance not.
    pub run_time_max: Duration,
    /// Bytes over all memories and tables of the instance.
    pub memory_bytes_max: u64,
    /// Staged writes.
    pub staged_rows_max: u32,
    /// Bytes of staged values and emitted events together.
    pub staged_bytes_max: u64,
    /// Emitted events.
    pub events_max: u32,
    /// Calls of imports, `log.write` excepted.
    pub host_calls_max: u32,
    /// Log lines; further ones are dropped and counted.
    pub log_lines_max: u32,
    /// Bytes of the result.
    pub result_bytes_max: u32,
}

/// Where the queries of a handler go: to the lane that holds the open unit of work.
///
/// The channel has capacity 1: a plugin has one call at a time.
#[derive(Debug, Clone)]
pub struct QueryPort(pub mpsc::Sender<QueryRequest>);

/// One call of a declared query, checked against the manifest.
#[derive(Debug)]
pub struct QueryRequest {
    /// The query's name.
    pub name: String,
    /// Its parameters, of the declared count and types.
    pub params: Vec<Value>,
    /// Takes the answer; closed when the run is over its time.
    pub reply: oneshot::Sender<Result<Rows, QueryFault>>,
}

/// The answer to a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as wide as `columns`.
    pub data: Vec<Vec<Value>>,
}

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryFault {
    /// Ends the attempt with this failure.
    Failed(Failure),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// To be applied: with the inbox row, or not at all.
    Applied {
        /// Small evidence kept with the inbox row.
        result: Option<Vec<u8>>,
        /// What to write, in the order of the calls.
        writes: Vec<StagedWrite>,
        /// What to send, in the order of the calls.
        events: Vec<StagedEvent>,
    },
    /// Nothing to do; what was staged is dropped.
    Skipped {
        /// The plugin's reason.
        reason: String,
    },
    /// Not applied.
    Failed(Failure),
}

/// A call of a declared statement, not done yet.
#[derive(Debug, Clone, PartialEq)]
pub struct StagedWrite {
    /// The statement's name.
    pub statement: String,
    /// Its parameters, of the declared count and types.
    pub params: Vec<Value>,
}

/// An event to be sent if, and only if, the attempt is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedEvent {
    /// The same whenever the attempt is repeated.
    pub event_id: String,
    /// The destination, by the manifest's name.
    pub destination: String,
    /// From 0, in the order of the calls.
    pub position: u32,
    /// CloudEvents type.
    pub event_type: String,
    /// CloudEvents subject.
    pub subject: Option<String>,
    /// The payload's content type.
    pub content_type: Option<String>,
    /// CloudEvents dataschema, or a schema id.
    pub schema: Option<String>,
    /// Order is kept among events of one destination with the same one.
    pub ordering_key: Option<Vec<u8>>,
    /// Not before commit and this many milliseconds.
    pub delay_ms: Option<u64>,
    /// What belongs to the kind of the destination, e.g. `amqp.priority`.
    pub attributes: Vec<(String, String)>,
    /// Headers in order, duplicates kept.
    pub headers: Vec<Header>,
    /// The body.
    pub payload: Vec<u8>,
}

impl std::fmt::Debug for Context {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now_us", &self.now_us)
            .field("attempt", &self.attempt)
            .field("generation", &self.generation)
            .field("tenant", &self.tenant)
            .field("handler", &self.handler)
            .field("traceparent", &self.traceparent)
            .finish_non_exhaustive()
    }
}
