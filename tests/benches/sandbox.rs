//! What the sandbox costs an event of the example `points-award`: a fresh instance alone, and an attempt from the event to
//! the outcome. What is left when one is taken from the other is the handler's own work and what crosses the border.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use criterion::{BatchSize, Criterion, Throughput};
use oncebox::plugin::{Attempt, Compiler, Context, Engine, EngineLimits, Event, Module, Outcome, RunLimits};
use oncebox_tests::points::{body, points_award};
use tokio::runtime::{Builder, Runtime};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
        .configure_from_args();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    sandbox(&mut criterion, &runtime, &module(&runtime));
    criterion.final_summary();
}

fn sandbox(criterion: &mut Criterion, runtime: &Runtime, module: &Arc<Module>) {
    let outcome = runtime.block_on(module.run(attempt(17)));
    assert!(matches!(outcome, Outcome::Applied { .. }), "the handler does not apply: {outcome:?}");

    let mut group = criterion.benchmark_group("sandbox");
    group.throughput(Throughput::Elements(1));
    group.bench_function("instance", |bencher| {
        bencher.iter(|| runtime.block_on(module.dry_run()).unwrap());
    });
    group.bench_function("attempt", |bencher| {
        let mut n = 0;
        let next = || {
            n += 1;
            attempt(n)
        };
        bencher.iter_batched(next, |attempt| runtime.block_on(module.run(attempt)), BatchSize::SmallInput);
    });
    group.finish();
}

/// Built as its author builds it, and taken in as the host does it.
fn module(runtime: &Runtime) -> Arc<Module> {
    let limits = EngineLimits { memory_bytes_max: 64 << 20, instances_max: 4, module_bytes_max: 16 << 20 };
    let compiler = Compiler::new(env!("CARGO_BIN_EXE_compile-child"), [] as [&str; 0]);
    let cache = tempfile::tempdir().unwrap();
    let loading = async { Engine::with_compiler(&limits, compiler)?.load(&points_award(), cache.path()).await };
    runtime.block_on(loading).unwrap()
}

fn attempt(n: u32) -> Attempt {
    let limits = RunLimits {
        run_time_max: Duration::from_secs(1),
        memory_bytes_max: 8_388_608, // what its manifest asks for
        staged_rows_max: 1_000,
        staged_bytes_max: 1 << 20,
        events_max: 16,
        host_calls_max: 1_000,
        log_lines_max: 0,
        result_bytes_max: 1_024,
    };
    let event = Event {
        id: format!("m-{n}"),
        event_type: "order.paid".to_owned(),
        business_key: format!("order:{n}:paid").into_bytes(),
        payload: body(n).into_bytes().into(),
        ..Event::default()
    };
    Attempt {
        event: Arc::new(event),
        limits: Arc::new(limits),
        config: Arc::new(BTreeMap::from([("points_per_yuan".to_owned(), "1".to_owned())])),
        context: Context {
            now_us: 0,
            attempt: 1,
            generation: 0,
            tenant: "shop".to_owned(),
            handler: "points".to_owned(),
            traceparent: None,
            random_key: [0; 32],
        },
        queries: None,
    }
}
