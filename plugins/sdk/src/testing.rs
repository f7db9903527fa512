//! Runs a handler natively, without a host, for the plugin's own unit tests.
//!
//! The stand-in answers queries with the rows given to it and records what is staged, emitted and logged. It checks
//! nothing against the manifest and knows no SQL: whether a statement does what it should is for a test with
//! `oncebox` and the embedded store.

use std::{cell::RefCell, collections::BTreeMap};

use crate::{
    Done, Event, Failure, Handler, Value,
    bindings::oncebox::handler::{db, types},
    log::Level,
};

/// What the stand-in will answer.
#[derive(Debug, Clone, Default)]
pub struct Host {
    config: BTreeMap<String, String>,
    queries: BTreeMap<String, db::Rows>,
    now_us: u64,
    attempt: u32,
    generation: u32,
}

/// What a handler did.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it returned.
    pub outcome: Result<Done, Failure>,
    /// Statements with their parameters, in order.
    pub staged: Vec<(String, Vec<Value>)>,
    /// Destinations with what was emitted to them, in order.
    pub emitted: Vec<(String, types::Outgoing)>,
    /// Log messages, in order.
    pub logged: Vec<(Level, String)>,
}

impl Host {
    /// A host at attempt 1 and generation 0, without configuration, whose queries find nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { attempt: 1, ..Self::default() }
    }

    /// Gives a configuration value.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.config.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Gives the rows that a query finds, whatever its parameters.
    #[must_use]
    pub fn rows<const N: usize>(mut self, query: &str, columns: [&str; N], rows: Vec<[Value; N]>) -> Self {
        let columns = columns.map(str::to_owned).to_vec();
        let data = rows.into_iter().map(Vec::from).collect();
        self.queries.insert(query.to_owned(), db::Rows { columns, data });
        self
    }

    /// Sets the time first recorded, in microseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_us(mut self, now_us: u64) -> Self {
        self.now_us = now_us;
        self
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Handles one event, and returns what was asked for.
    #[must_use]
    pub fn run<H: Handler>(&self, event: &Event) -> Run {
        OPEN.with_borrow_mut(|open| *open = Some(Open { host: self.clone(), ..Open::default() }));
        let outcome = H::handle(event);
        let done = OPEN.with_borrow_mut(Option::take).unwrap_or_default();
        Run { outcome, staged: done.staged, emitted: done.emitted, logged: done.logged }
    }
}

impl Event {
    /// An event with a JSON payload, for tests; its id and business key are `test`.
    #[must_use]
    pub fn test(event_type: &str, payload: &str) -> Self {
        Self {
            id: "test".to_owned(),
            event_type: event_type.to_owned(),
            ce_source: None,
            subject: None,
            time: None,
            business_key: b"test".to_vec(),
            ordering_key: None,
            content_type: Some("application/json".to_owned()),
            schema: None,
            attributes: Vec::new(),
            headers: Vec::new(),
            payload: payload.as_bytes().to_vec(),
        }
    }
}

/// A run that is going on in this thread.
#[derive(Debug, Default)]
struct Open {
    host: Host,
    staged: Vec<(String, Vec<Value>)>,
    emitted: Vec<(String, types::Outgoing)>,
    logged: Vec<(Level, String)>,
}

thread_local! {
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

/// The contract's functions, answered by the run that is open in this thread.
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "a component has the real ones"))]
pub(crate) mod current {
    use super::{Level, OPEN, Open, Value, db, types};

    fn with<R>(act: impl FnOnce(&mut Open) -> R) -> R {
        OPEN.with_borrow_mut(|open| {
            act(open.as_mut().unwrap_or_else(|| panic!("the host is called outside of `testing::Host::run`")))
        })
    }

    pub(crate) fn stage(statement: &str, params: &[Value]) {
        with(|open| open.staged.push((statement.to_owned(), params.to_vec())));
    }

    pub(crate) fn query(query: &str, _params: &[Value]) -> db::Rows {
        let nothing = || db::Rows { columns: Vec::new(), data: Vec::new() };
        with(|open| open.host.queries.get(query).cloned().unwrap_or_else(nothing))
    }

    pub(crate) fn emit(destination: &str, event: &types::Outgoing) -> String {
        with(|open| {
            open.emitted.push((destination.to_owned(), event.clone()));
            format!("test-event-{}", open.emitted.len())
        })
    }

    pub(crate) fn config(name: &str) -> Option<String> {
        with(|open| open.host.config.get(name).cloned())
    }

    pub(crate) fn log(level: Level, message: &str, _fields: &[(String, String)]) {
        with(|open| open.logged.push((level, message.to_owned())));
    }

    pub(crate) fn now_us() -> u64 {
        with(|open| open.host.now_us)
    }

    /// 0, 1, 2, …: plain to see in a test.
    pub(crate) fn random(len: u32) -> Vec<u8> {
        (0..=u8::MAX).cycle().take(len as usize).collect()
    }

    pub(crate) fn attempt() -> u32 {
        with(|open| open.host.attempt)
    }

    pub(crate) fn generation() -> u32 {
        with(|open| open.host.generation)
    }

    pub(crate) fn tenant() -> String {
        "test".to_owned()
    }

    pub(crate) fn handler() -> String {
        "test".to_owned()
    }

    pub(crate) fn traceparent() -> Option<String> {
        None
    }
}
