//! One engine for all tests, and short ways to run a module in it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use oncebox::plugin::{
    Attempt, Compiler, Context, Engine, EngineLimits, Event, Module, Outcome, PluginError, QueryPort, RunLimits,
};
use oncebox_core::failure::{Class, Failure};
use oncebox_tests::wat::{source, wat_component};
use tempfile::TempDir;

/// Declares what the good modules use.
pub(crate) const MANIFEST: &str = r#"
name = "hostile"
version = "1.0.0"
contract = "1.0"
description = "Awards points, or tries worse"
event_types = []
key = "order:{/orderId}"
fingerprint = "payload"

[tables]
points = "write"

[queries.level]
sql = "SELECT level FROM points WHERE user_id = ?"
params = [{ name = "user_id", type = "unsigned" }]
rows_max = 1
bytes_max = 1024

[statements.award]
sql = "UPDATE points SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1
mismatch = "retry"

[statements.note]
sql = "INSERT INTO points (note) VALUES (?)"
params = [{ name = "note", type = "bytes" }]
rows = 1
mismatch = "retry"

[config.rate]
default = "3"
description = "points for one yuan"

[destinations.out]
event_types = ["points.*"]
"#;

pub(crate) const ENGINE_LIMITS: EngineLimits =
    EngineLimits { memory_bytes_max: 4 * 1024 * 1024, instances_max: 8, module_bytes_max: 1024 * 1024 };

pub(crate) fn compiler() -> Compiler {
    Compiler::new(env!("CARGO_BIN_EXE_compile-child"), [] as [&str; 0])
}

pub(crate) fn engine() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    Arc::clone(ENGINE.get_or_init(|| Engine::with_compiler(&ENGINE_LIMITS, compiler()).unwrap()))
}

pub(crate) fn component(name: &str) -> Vec<u8> {
    wat_component(&source(name), MANIFEST)
}

pub(crate) async fn try_load(bytes: &[u8]) -> Result<Arc<Module>, PluginError> {
    static CACHE: OnceLock<TempDir> = OnceLock::new();
    engine().load(bytes, CACHE.get_or_init(|| TempDir::new().unwrap()).path()).await
}

pub(crate) async fn load(name: &str) -> Arc<Module> {
    try_load(&component(name)).await.unwrap()
}

pub(crate) fn limits() -> RunLimits {
    RunLimits {
        run_time_max: Duration::from_millis(200),
        memory_bytes_max: 1024 * 1024,
        staged_rows_max: 100,
        staged_bytes_max: 64 * 1024,
        events_max: 10,
        host_calls_max: 1000,
        log_lines_max: 20,
        result_bytes_max: 1024,
    }
}

pub(crate) fn attempt() -> Attempt {
    Attempt {
        event: Arc::new(Event {
            id: "e-1".into(),
            event_type: "order.paid".into(),
            business_key: b"order:42".to_vec(),
            payload: Arc::from(b"{\"orderId\":42}".as_slice()),
            ..Event::default()
        }),
        limits: Arc::new(limits()),
        config: Arc::new(BTreeMap::new()),
        context: Context {
            now_us: 1_795_953_600_000_000,
            attempt: 1,
            generation: 0,
            tenant: "acme".into(),
            handler: "points".into(),
            traceparent: None,
            random_key: [7; 32],
        },
        queries: None,
    }
}

pub(crate) fn with_payload(payload: &[u8]) -> Attempt {
    let mut attempt = attempt();
    attempt.event = Arc::new(Event { payload: Arc::from(payload), ..Event::clone(&attempt.event) });
    attempt
}

pub(crate) fn with_queries(port: QueryPort) -> Attempt {
    Attempt { queries: Some(port), ..attempt() }
}

/// Runs a hostile module, which must fail with this class and code, and then a good one, which must not.
pub(crate) async fn dies(name: &str, class: Class, code: &str) -> Failure {
    let outcome = load(name).await.run(attempt()).await;
    let failure = failed(outcome);
    assert_eq!((failure.class, failure.code.as_str()), (class, code), "{failure:#?}");
    lives().await;
    failure
}

pub(crate) fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        Outcome::Applied { .. } | Outcome::Skipped { .. } => panic!("it did not fail: {outcome:#?}"),
    }
}

pub(crate) fn result(outcome: Outcome) -> Vec<u8> {
    match outcome {
        Outcome::Applied { result: Some(result), .. } => result,
        Outcome::Applied { .. } | Outcome::Skipped { .. } | Outcome::Failed(_) => panic!("no result: {outcome:#?}"),
    }
}

/// The engine still runs a good module.
pub(crate) async fn lives() {
    let outcome = load("probes/good").await.run(attempt()).await;
    match outcome {
        Outcome::Applied { writes, events, .. } => assert_eq!((writes.len(), events.len()), (1, 1)),
        Outcome::Skipped { .. } | Outcome::Failed(_) => panic!("the engine is not well: {outcome:#?}"),
    }
}
