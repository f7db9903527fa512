//! What a store is outside of units of work.

use std::time::Duration;

use oncebox_core::ids::BootId;

use crate::bench::{Bench, message};

pub(crate) async fn a_commit_of_another_connection_is_noticed(bench: Bench) {
    let mut changes = bench.store.changes();
    // Whatever came before has been seen.
    let _ = tokio::time::timeout(Duration::from_millis(200), async {
        loop {
            changes.changed().await.unwrap();
        }
    })
    .await;
    let before = *changes.borrow_and_update();
    bench.store.local_offer("orders", &[message(b"1")]).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
    assert_ne!(*changes.borrow(), before);
}

pub(crate) async fn handlers_keep_their_numbers(bench: Bench) {
    let other = bench.store.handler_ensure("other").await.unwrap();
    assert_eq!(bench.store.handler_ensure("points").await.unwrap(), bench.handler);
    assert_ne!(other, bench.handler);
    let handlers: Vec<_> = bench.store.handlers().await.unwrap().into_iter().collect();
    assert_eq!(handlers, [("other".into(), other), ("points".into(), bench.handler)]);
    assert!(bench.handler.0 > 0, "0 means no handler");
}

pub(crate) async fn the_clock_never_goes_back(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut last = bench.store.now_us().await.unwrap();
    // 2026-01-01, in microseconds: another unit would be far off.
    assert!((1_767_225_600_000_000..17_672_256_000_000_000).contains(&last), "{last}");
    for _ in 0..50 {
        let mut unit = lane.begin().await.unwrap();
        let now = unit.now_us().await.unwrap();
        unit.rollback().await.unwrap();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
}

pub(crate) async fn the_tenants_secret_stays_the_same(bench: Bench) {
    let secret = bench.store.tenant_secret().await.unwrap();
    assert_ne!(secret, [0; 32]);
    let beside = bench.beside().await;
    assert_eq!(beside.tenant_secret().await.unwrap(), secret);
    let other = Bench::sqlite().await;
    assert_ne!(other.store.tenant_secret().await.unwrap(), secret);
}

pub(crate) async fn a_boot_is_recorded_with_its_end(bench: Bench) {
    let (first, second) = (BootId([1; 16]), BootId([2; 16]));
    bench.store.boot_insert(first, "here").await.unwrap();
    bench.store.boot_insert(second, "here").await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM ob_boot WHERE ended_at IS NULL").await, 2);
    bench.store.boot_end(first).await.unwrap();
    let ended = bench.rows("SELECT boot_id FROM ob_boot WHERE ended_at >= started_at").await;
    assert_eq!(ended, [[oncebox_core::value::Value::Bytes(vec![1; 16])]]);
}
