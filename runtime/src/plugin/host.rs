//! The imports of a plugin: each call is checked at once, counted, and either answered or ends the attempt.
//!
//! Nothing here touches a database or a socket: `stage` and `emit` only keep, `query` only asks the lane.

use std::sync::Arc;

use oncebox_core::{
    failure::{Class, Failure},
    identify::outgoing_event_id,
    ids::BusinessKey,
    manifest::{Manifest, Param},
    message::Header,
    value::Value,
};
use tokio::{sync::oneshot, time::Instant};
use wasmtime::UpdateDeadline;

use super::{
    Attempt, Outcome, QueryFault, QueryPort, QueryRequest, StagedEvent, StagedWrite,
    contract::{config, context, db, events, log, types},
    fault::Breach,
    limiter::MemoryLimiter,
    lines::{Lines, Whose},
    random::{RANDOM_BYTES_MAX, RandomStream},
};

/// Bytes of an outgoing ordering key.
const ORDERING_KEY_BYTES_MAX: usize = 512;
/// Bytes that a value, header or attribute costs beside its content, in the host's memory.
const ENTRY_BYTES: usize = 32;
/// Bytes that one call may hand over beside what the quotas allow: names, texts of failures, lists of values.
const TRANSFER_SLACK_BYTES: u64 = 256 * 1024;

/// Where an attempt is: imports may be called only in `handle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The instance is being made.
    Init,
    /// `handle` runs.
    Handling,
    /// `handle` has returned.
    Sealed,
}

/// The host's side of one attempt: lives in the store and dies with it.
pub(super) struct Host {
    attempt: Attempt,
    manifest: Arc<Manifest>,
    phase: Phase,
    deadline: Instant,
    memory: MemoryLimiter,
    lines: Lines,
    /// Begun by the first call that asks for it.
    random: Option<RandomStream>,
    calls: u32,
    staged_bytes: u64,
    writes: Vec<StagedWrite>,
    events: Vec<StagedEvent>,
}

impl Host {
    /// Begins an attempt: its time runs from here on.
    pub(super) fn new(attempt: Attempt, manifest: &Arc<Manifest>) -> Self {
        Self {
            phase: Phase::Init,
            deadline: Instant::now() + attempt.limits.run_time_max,
            memory: MemoryLimiter::new(attempt.limits.memory_bytes_max),
            lines: Lines::new(attempt.limits.log_lines_max),
            random: None,
            calls: 0,
            staged_bytes: 0,
            writes: Vec::new(),
            events: Vec::new(),
            manifest: Arc::clone(manifest),
            attempt,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    pub(super) fn memory(&mut self) -> &mut MemoryLimiter {
        &mut self.memory
    }

    pub(super) fn memory_ref(&self) -> &MemoryLimiter {
        &self.memory
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.lines.last_error()
    }

    /// Bytes that the guest may hand over in one call, checked before anything is copied.
    pub(super) fn transfer_bytes_max(&self) -> usize {
        let limits = &self.attempt.limits;
        let bytes = limits.staged_bytes_max.max(limits.result_bytes_max.into()).saturating_add(TRANSFER_SLACK_BYTES);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// At each tick of the epoch: others get their turn, and a run over its time ends.
    pub(super) fn tick(&self) -> wasmtime::Result<UpdateDeadline> {
        self.check_time()?;
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    }

    /// Writes what is left to say in the log.
    pub(super) fn close(&self) {
        self.lines.close(whose(&self.attempt));
    }

    /// What was kept, with the plugin's result.
    pub(super) fn applied(self, result: Option<Vec<u8>>) -> Outcome {
        let (bytes, limit) = (result.as_ref().map_or(0, Vec::len), self.attempt.limits.result_bytes_max);
        if exceeds(bytes, limit) {
            let message = format!("the result has {bytes} bytes, result_bytes_max is {limit}");
            return Outcome::Failed(Failure::new(Class::Quota, "result-bytes", message));
        }
        Outcome::Applied { result, writes: self.writes, events: self.events }
    }

    fn check_time(&self) -> wasmtime::Result<()> {
        if Instant::now() >= self.deadline {
            return Err(Breach::time(self.attempt.limits.run_time_max));
        }
        Ok(())
    }

    /// Every import but `log.write` begins here.
    fn admit(&mut self, call: &str) -> wasmtime::Result<()> {
        match self.phase {
            Phase::Handling => {}
            Phase::Init => {
                return Err(Breach::abi("outside-handle", format!("{call} was called before handle")));
            }
            Phase::Sealed => {
                return Err(Breach::abi("outside-handle", format!("{call} was called after handle had returned")));
            }
        }
        let limit = self.attempt.limits.host_calls_max;
        if self.calls >= limit {
            return Err(Breach::quota("host-calls", format!("{call} is one call over host_calls_max, {limit}")));
        }
        self.calls += 1;
        Ok(())
    }

    fn charge(&mut self, call: &str, bytes: usize) -> wasmtime::Result<()> {
        let limit = self.attempt.limits.staged_bytes_max;
        let wanted = self.staged_bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if wanted > limit {
            let message = format!("{call} would stage {wanted} bytes in all, staged_bytes_max is {limit}");
            return Err(Breach::quota("staged-bytes", message));
        }
        self.staged_bytes = wanted;
        Ok(())
    }

    async fn ask(&self, name: String, params: Vec<Value>) -> wasmtime::Result<db::Rows> {
        let Some(QueryPort(port)) = &self.attempt.queries else {
            return Err(Breach::infrastructure("no-query-port", format!("no unit of work is open for query `{name}`")));
        };
        let closed = || Breach::infrastructure("no-query-port", "the lane of the open unit of work is gone");
        let (reply, answer) = oneshot::channel();
        let exchange = async {
            port.send(QueryRequest { name, params, reply }).await.map_err(|_| closed())?;
            answer.await.map_err(|_| closed())
        };
        let time_over = |_| Breach::time(self.attempt.limits.run_time_max);
        let answer = tokio::time::timeout_at(self.deadline, exchange).await.map_err(time_over)??;
        self.check_time()?;
        match answer {
            Ok(rows) => Ok(rows.into()),
            Err(QueryFault::Failed(failure)) => Err(wasmtime::Error::from(Breach(failure))),
        }
    }
}

fn exceeds(measured: usize, limit: u32) -> bool {
    !u32::try_from(measured).is_ok_and(|measured| measured <= limit)
}

/// The values of a call, if they are of the declared count and types.
fn checked(call: &str, declared: &[Param], given: Vec<types::Value>) -> wasmtime::Result<Vec<Value>> {
    if given.len() != declared.len() {
        let message = format!("{call}: {} parameters, the manifest declares {}", given.len(), declared.len());
        return Err(Breach::abi("param-count", message));
    }
    let values: Vec<Value> = given.into_iter().map(Value::from).collect();
    for (value, param) in values.iter().zip(declared) {
        if let Err(wrong) = value.check(param.kind) {
            return Err(Breach::abi("param-type", format!("{call}: parameter `{}` {wrong}", param.name)));
        }
    }
    Ok(values)
}

fn event_bytes(event: &types::Outgoing) -> usize {
    let texts = [
        Some(event.event_type.as_str()),
        event.subject.as_deref(),
        event.content_type.as_deref(),
        event.schema.as_deref(),
    ];
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let attributes: usize = event.attributes.iter().map(|(name, value)| name.len() + value.len() + ENTRY_BYTES).sum();
    let headers: usize = event.headers.iter().map(|header| header.name.len() + header.value.len() + ENTRY_BYTES).sum();
    let ordering_key = event.ordering_key.as_ref().map_or(0, Vec::len);
    texts + attributes + headers + ordering_key + event.payload.len() + ENTRY_BYTES
}

impl types::Host for Host {}

impl db::Host for Host {
    fn stage(&mut self, statement: String, params: Vec<types::Value>) -> wasmtime::Result<()> {
        self.admit("db.stage")?;
        let manifest = Arc::clone(&self.manifest);
        let Some(declared) = manifest.statements.get(&statement) else {
            let message = format!("db.stage: the manifest declares no statement `{statement}`");
            return Err(Breach::abi("unknown-statement", message));
        };
        let call = format!("db.stage `{statement}`");
        let params = checked(&call, &declared.params, params)?;
        let limit = self.attempt.limits.staged_rows_max;
        if exceeds(self.writes.len() + 1, limit) {
            return Err(Breach::quota("staged-rows", format!("{call} is one row over staged_rows_max, {limit}")));
        }
        self.charge(&call, statement.len() + params.iter().map(|value| value.bytes() + ENTRY_BYTES).sum::<usize>())?;
        self.writes.push(StagedWrite { statement, params });
        Ok(())
    }

    async fn query(&mut self, query: String, params: Vec<types::Value>) -> wasmtime::Result<db::Rows> {
        self.admit("db.query")?;
        let manifest = Arc::clone(&self.manifest);
        let Some(declared) = manifest.queries.get(&query) else {
            let message = format!("db.query: the manifest declares no query `{query}`");
            return Err(Breach::abi("unknown-query", message));
        };
        let params = checked(&format!("db.query `{query}`"), &declared.params, params)?;
        self.ask(query, params).await
    }
}

impl events::Host for Host {
    fn emit(&mut self, destination: String, event: types::Outgoing) -> wasmtime::Result<String> {
        self.admit("events.emit")?;
        let call = format!("events.emit `{destination}`");
        self.check_event(&call, &destination, &event)?;
        let limit = self.attempt.limits.events_max;
        if exceeds(self.events.len() + 1, limit) {
            return Err(Breach::quota("events", format!("{call} is one event over events_max, {limit}")));
        }
        self.charge(&call, destination.len() + event_bytes(&event))?;
        let position = u32::try_from(self.events.len()).unwrap_or(u32::MAX);
        let context = &self.attempt.context;
        let event_id = outgoing_event_id(
            &context.tenant,
            &context.handler,
            &BusinessKey::new(self.attempt.event.business_key.as_slice()),
            context.generation,
            position,
        );
        self.events.push(StagedEvent {
            event_id: event_id.clone(),
            destination,
            position,
            event_type: event.event_type,
            subject: event.subject,
            content_type: event.content_type,
            schema: event.schema,
            ordering_key: event.ordering_key,
            delay_ms: event.delay_ms,
            attributes: event.attributes,
            headers: event.headers.into_iter().map(Header::from).collect(),
            payload: event.payload,
        });
        Ok(event_id)
    }
}

impl Host {
    fn check_event(&self, call: &str, destination: &str, event: &types::Outgoing) -> wasmtime::Result<()> {
        let Some(declared) = self.manifest.destinations.get(destination) else {
            let message = format!("events.emit: the manifest declares no destination `{destination}`");
            return Err(Breach::abi("unknown-destination", message));
        };
        let event_type = &event.event_type;
        if event_type.is_empty() {
            return Err(Breach::abi("event-type", format!("{call}: event-type is empty")));
        }
        if !declared.event_types.is_empty() && !declared.event_types.iter().any(|known| takes(known, event_type)) {
            let known = declared.event_types.join(", ");
            let message = format!("{call}: event-type `{event_type}` is none of the manifest's ({known})");
            return Err(Breach::abi("event-type", message));
        }
        let Some(key) = &event.ordering_key else { return Ok(()) };
        if !declared.ordering {
            let message = format!("{call}: ordering-key is set, the manifest says ordering = false");
            return Err(Breach::abi("ordering-key", message));
        }
        if key.len() > ORDERING_KEY_BYTES_MAX {
            let message = format!("{call}: ordering-key has {} bytes, the limit is 512", key.len());
            return Err(Breach::quota("ordering-key", message));
        }
        Ok(())
    }
}

/// A trailing `*` matches any rest.
fn takes(known: &str, event_type: &str) -> bool {
    match known.strip_suffix('*') {
        Some(start) => event_type.starts_with(start),
        None => known == event_type,
    }
}

impl config::Host for Host {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        self.admit("config.get")?;
        let Some(declared) = self.manifest.config.get(&name) else {
            let message = format!("config.get: the manifest declares no config `{name}`");
            return Err(Breach::abi("unknown-config", message));
        };
        Ok(self.attempt.config.get(&name).or(declared.default.as_ref()).cloned())
    }
}

fn whose(attempt: &Attempt) -> Whose<'_> {
    let context = &attempt.context;
    Whose {
        tenant: &context.tenant,
        handler: &context.handler,
        key: &attempt.event.business_key,
        attempt: context.attempt,
    }
}

impl log::Host for Host {
    fn write(&mut self, level: log::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.lines.write(whose(&self.attempt), level, &message, &fields);
        #[cfg(feature = "failpoints")]
        kill::when_told(&message);
        Ok(())
    }
}

/// What a plugin that ends its host's process does, for tests: no plugin should be able to.
#[cfg(feature = "failpoints")]
mod kill {
    /// Ends the process, or takes memory until somebody ends it, if the line says so.
    pub(super) fn when_told(line: &str) {
        match line {
            "abort the process" => std::process::abort(),
            "take all memory" => {
                let mut taken: Vec<Vec<u8>> = Vec::new();
                loop {
                    // Written to, so that it is there.
                    taken.push(vec![std::hint::black_box(1); 1 << 20]);
                }
            }
            _ => {}
        }
    }
}

impl context::Host for Host {
    fn now_us(&mut self) -> wasmtime::Result<u64> {
        self.admit("context.now-us")?;
        Ok(self.attempt.context.now_us)
    }

    fn random(&mut self, len: u32) -> wasmtime::Result<Vec<u8>> {
        self.admit("context.random")?;
        if len > RANDOM_BYTES_MAX {
            let message = format!("context.random: {len} bytes in one call, the limit is {RANDOM_BYTES_MAX}");
            return Err(Breach::quota("random-bytes", message));
        }
        let attempt = &self.attempt;
        let stream = self.random.get_or_insert_with(|| {
            let (context, key) = (&attempt.context, &attempt.event.business_key);
            RandomStream::new(&context.random_key, &context.handler, key, context.generation)
        });
        Ok(stream.take(usize::try_from(len).unwrap_or(0)))
    }

    fn attempt(&mut self) -> wasmtime::Result<u32> {
        self.admit("context.attempt")?;
        Ok(self.attempt.context.attempt)
    }

    fn generation(&mut self) -> wasmtime::Result<u32> {
        self.admit("context.generation")?;
        Ok(self.attempt.context.generation)
    }

    fn tenant(&mut self) -> wasmtime::Result<String> {
        self.admit("context.tenant")?;
        Ok(self.attempt.context.tenant.clone())
    }

    fn handler(&mut self) -> wasmtime::Result<String> {
        self.admit("context.handler")?;
        Ok(self.attempt.context.handler.clone())
    }

    fn traceparent(&mut self) -> wasmtime::Result<Option<String>> {
        self.admit("context.traceparent")?;
        Ok(self.attempt.context.traceparent.clone())
    }
}
