//! What goes into one attempt and what comes out of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oncebox_core::{config::HandlerLimits, failure::Failure, manifest::Limits, message::Header, value::Value};
use tokio::sync::{mpsc, oneshot};

/// Wall time of a run when neither the operator nor the manifest says another.
const RUN_TIME_DEFAULT: Duration = Duration::from_secs(1);
/// Bytes of an instance when neither the operator nor the manifest says another.
const MEMORY_BYTES_DEFAULT: u64 = 16 * 1024 * 1024;

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

impl RunLimits {
    /// The limits of a handler: the operator's word, else the manifest's, else 1 s and 16 MiB.
    #[must_use]
    pub fn of(handler: &HandlerLimits, module: &Limits) -> Self {
        let run_time = handler.run_time_max.or(module.run_time_ms_max.map(Duration::from_millis));
        Self {
            run_time_max: run_time.unwrap_or(RUN_TIME_DEFAULT),
            memory_bytes_max: handler.memory_bytes_max.or(module.memory_bytes_max).unwrap_or(MEMORY_BYTES_DEFAULT),
            staged_rows_max: handler.staged_rows_max,
            staged_bytes_max: handler.staged_bytes_max,
            events_max: handler.events_max,
            host_calls_max: handler.host_calls_max,
            log_lines_max: handler.log_lines_max,
            result_bytes_max: handler.result_bytes_max,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_limit_comes_before_the_manifests_and_that_before_the_default() {
        let mut handler = HandlerLimits {
            run_time_max: None,
            memory_bytes_max: None,
            staged_rows_max: 1,
            staged_bytes_max: 2,
            events_max: 3,
            host_calls_max: 4,
            log_lines_max: 5,
            result_bytes_max: 6,
        };
        let mut module = Limits::default();
        let both = |limits: RunLimits| (limits.run_time_max.as_millis(), limits.memory_bytes_max);
        assert_eq!(both(RunLimits::of(&handler, &module)), (1000, 16_777_216));
        module.run_time_ms_max = Some(200);
        module.memory_bytes_max = Some(8_388_608);
        assert_eq!(both(RunLimits::of(&handler, &module)), (200, 8_388_608));
        handler.run_time_max = Some(Duration::from_millis(50));
        handler.memory_bytes_max = Some(65_536);
        assert_eq!(both(RunLimits::of(&handler, &module)), (50, 65_536));
    }

    #[test]
    fn the_tenants_secret_is_never_shown() {
        let context = Context {
            now_us: 0,
            attempt: 1,
            generation: 0,
            tenant: "acme".into(),
            handler: "points".into(),
            traceparent: None,
            random_key: [0xa7; 32],
        };
        let shown = format!("{context:?}");
        assert!(shown.contains("acme") && !shown.contains("random_key") && !shown.contains("167"), "{shown}");
    }
}
