//! Time: loops, recursion, and fairness towards others.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use oncebox_core::failure::Class;

use crate::sandbox::{attempt, dies, engine, failed, lives, load};

#[tokio::test]
async fn a_loop_ends_at_its_time_limit() {
    let failure = dies("hostile/loop", Class::TimeLimit, "run-time").await;
    assert_eq!(failure.message, "the run was not over after 200 ms (run_time_ms_max)");
    dies("hostile/loop_in_realloc", Class::TimeLimit, "run-time").await;
}

#[tokio::test]
async fn a_loop_in_the_start_function_fails_the_dry_run_and_the_run() {
    let module = load("hostile/start_loop").await;
    let failure = failed(module.run(attempt()).await);
    assert_eq!(failure.class, Class::TimeLimit, "{failure:#?}");
    let error = module.dry_run().await.unwrap_err();
    assert_eq!(error.code(), "dry-run-failed");
    assert!(error.to_string().contains("time-limit"), "{error}");
    lives().await;
}

#[tokio::test]
async fn deep_recursion_is_a_trap_of_the_guest_with_its_stack() {
    let failure = dies("hostile/recurse", Class::Trap, "stack-overflow").await;
    let backtrace = failure.backtrace.unwrap();
    assert!(backtrace.contains("deeper"), "{backtrace}");
    assert!(backtrace.len() <= 16 * 1024, "{} bytes", backtrace.len());
}

/// On one thread, so that the sibling advances only if the loop gives its turn away.
#[tokio::test(flavor = "current_thread")]
async fn a_loop_lets_its_sibling_make_progress() {
    let module = load("hostile/loop").await;
    let turns = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&turns);
    let sibling = async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = module.run(attempt()) => assert_eq!(failed(outcome).class, Class::TimeLimit),
        () = sibling => {}
    }
    assert!(turns.load(Ordering::Relaxed) >= 10, "{turns:?} turns in 200 ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_not_over_may_be_moved_to_another_task() {
    let mut run = Box::pin(load("hostile/loop").await.run(attempt()));
    let here = std::future::poll_fn(|context| std::task::Poll::Ready(run.as_mut().poll(context))).await;
    assert!(here.is_pending(), "{here:?}");
    let outcome = tokio::spawn(run).await.unwrap();
    assert_eq!(failed(outcome).class, Class::TimeLimit);
}

#[tokio::test]
async fn a_run_that_is_dropped_frees_its_instance() {
    let module = load("hostile/loop").await;
    for _ in 0..3 * crate::sandbox::ENGINE_LIMITS.instances_max {
        let run = tokio::spawn(module.run(attempt()));
        tokio::task::yield_now().await;
        run.abort();
        let _ = run.await;
    }
    lives().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_beyond_the_instances_waits_for_its_turn() {
    let module = load("probes/good").await;
    let burst = 10 * engine().limits().instances_max;
    let runs: Vec<_> = (0..burst).map(|_| tokio::spawn(module.run(attempt()))).collect();
    for run in runs {
        let outcome = run.await.unwrap();
        assert!(matches!(outcome, oncebox::plugin::Outcome::Applied { .. }), "{outcome:#?}");
    }
}
