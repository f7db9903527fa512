//! What the sandbox costs an event of the example `points-award`: a fresh instance alone, and an attempt from the event to
//! the outcome. What is left when one is taken from the other is the handler's own work and what crosses the border.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::{sync::Arc, time::Duration};

use criterion::{BatchSize, Criterion, Throughput};
use oncebox::plugin::{Compiler, Engine, EngineLimits, Module, Outcome};
use oncebox_tests::points::{attempt, points_award};
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
