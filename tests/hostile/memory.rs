//! Memory: growth and declared sizes, over all memories and tables.

use oncebox_core::failure::Class;

use crate::sandbox::{attempt, component, dies, failed, lives, load, try_load};

#[tokio::test]
async fn a_guest_that_traps_after_a_refused_growth_is_over_its_memory() {
    let failure = dies("hostile/grow_bomb", Class::MemoryLimit, "memory").await;
    // The cap is 1 MiB, 16 pages; the table of the shims takes 8 bytes or so of it, so that the 16th page is refused.
    assert!(failure.message.contains("memory_bytes_max is 1048576"), "{}", failure.message);
    assert!(failure.message.ends_with("wasm trap: wasm `unreachable` instruction executed"), "{}", failure.message);
}

#[tokio::test]
async fn tables_are_under_the_cap_too() {
    dies("hostile/table_bomb", Class::MemoryLimit, "memory").await;
}

#[tokio::test]
async fn a_guest_that_lives_with_a_refused_growth_is_applied() {
    let outcome = load("hostile/grow_politely").await.run(attempt()).await;
    assert!(matches!(outcome, oncebox::plugin::Outcome::Applied { .. }), "{outcome:#?}");
}

#[tokio::test]
async fn memory_declared_over_the_handlers_cap_ends_the_run() {
    let failure = dies("hostile/big_memory", Class::MemoryLimit, "memory").await;
    assert!(failure.message.starts_with("the plugin asked for 2097152 bytes"), "{}", failure.message);
}

#[tokio::test]
async fn memory_declared_over_the_hosts_cap_is_refused_at_the_door() {
    let error = try_load(&component("hostile/huge_memory")).await.err().unwrap();
    assert_eq!(error.code(), "module-does-not-fit");
    assert_eq!(
        error.to_string(),
        "the component needs 65536000 bytes of memory at start, host.limits.memory_bytes_max is 4194304"
    );
    lives().await;
}

#[tokio::test]
async fn a_handlers_cap_above_the_hosts_counts_as_the_hosts() {
    let mut generous = attempt();
    let limits = std::sync::Arc::make_mut(&mut generous.limits);
    limits.memory_bytes_max = u64::MAX;
    let failure = failed(load("hostile/grow_bomb").await.run(generous).await);
    assert_eq!(failure.class, Class::MemoryLimit);
    assert!(failure.message.contains("memory_bytes_max is 4194304"), "{}", failure.message);
}
