//! What a source of any kind promises.

use crate::bench::{Bench, QUIET, Settings, bodies, receipts};

pub(crate) async fn what_was_sent_is_taken_once_and_in_order(bench: Bench) {
    let host = bench.host();
    bench.send(&["a", "b", "c"]).await;
    let held = host.take_all(3).await;
    assert_eq!(bodies(&held), ["a", "b", "c"]);
    assert!(held.iter().all(|held| held.at_risk.is_none()));
    host.takes_nothing().await;
}

pub(crate) async fn what_is_settled_is_gone(bench: Bench) {
    bench.send(&["a", "b", "c"]).await;
    let host = bench.host();
    let held = host.take_all(3).await;
    host.settle(&receipts(&held)).await;
    drop(held);
    host.stop().await;
    let again = bench.host();
    bench.send(&["d"]).await;
    assert_eq!(bodies(&again.take_all(1).await), ["d"]);
    again.takes_nothing().await;
}

pub(crate) async fn no_more_than_the_prefetch_is_in_memory(bench: Bench) {
    bench.send(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]).await;
    let host = bench.host();
    let mut held = host.take_all(10).await;
    bench.wait_for_waiting(2).await;
    host.takes_nothing().await;
    assert_eq!(bench.waiting().await, 2, "more than the prefetch was taken");
    let first = held.remove(0);
    host.settle(&[first.receipt]).await;
    drop(first);
    assert_eq!(bodies(&host.take_all(1).await), ["11"]);
    bench.wait_for_waiting(1).await;
}

pub(crate) async fn what_was_not_settled_comes_again_to_another_host(bench: Bench) {
    bench.send(&["a", "b", "c"]).await;
    let first = bench.host();
    let held = first.take_all(3).await;
    first.settle(&[held[0].receipt]).await;
    let hashes: Vec<_> = held.iter().map(|held| oncebox_core::identify::message_hash(&held.message)).collect();
    first.crash().await;
    drop(held);
    let second = bench.host();
    let again = second.take_all(2).await;
    assert_eq!(bodies(&again), ["b", "c"]);
    let again: Vec<_> = again.iter().map(|held| oncebox_core::identify::message_hash(&held.message)).collect();
    assert_eq!(again, hashes[1..], "Blame counts the redeliveries of a message by its hash");
}

pub(crate) async fn nothing_is_taken_before_its_handlers_are_served(bench: Bench) {
    bench.send(&["a"]).await;
    let host = bench.host_with(&Settings { served: false, ..Settings::default() });
    host.takes_nothing().await;
    assert_eq!(bench.waiting().await, 1);
    host.served.send_replace(true);
    assert_eq!(bodies(&host.take_all(1).await), ["a"]);
}

pub(crate) async fn a_stop_ends_the_taking(bench: Bench) {
    let mut host = bench.host();
    bench.send(&["a"]).await;
    drop(host.take_all(1).await);
    host.stop.send_replace(true);
    let taken = tokio::time::timeout(QUIET, oncebox::source::Source::take(&*host)).await;
    assert!(taken.expect("the take goes on").is_none());
    host.kept().await;
}

pub(crate) async fn what_is_undecided_at_a_stop_is_given_back(bench: Bench) {
    bench.send(&["a", "b", "c", "d"]).await;
    let host = bench.host();
    let held = host.take_all(4).await;
    host.settle(&[held[1].receipt]).await;
    host.stop().await;
    drop(held);
    assert_eq!(bodies(&bench.host().take_all(3).await), ["a", "c", "d"]);
}

pub(crate) async fn what_is_decided_after_a_stop_is_still_settled(bench: Bench) {
    bench.send(&["a", "b", "c"]).await;
    let mut host = bench.host();
    let held = host.take_all(3).await;
    host.stop.send_replace(true);
    host.kept().await;
    host.settle(&receipts(&held[..2])).await;
    host.close().await;
    drop(held);
    assert_eq!(bodies(&bench.host().take_all(1).await), ["c"]);
}

pub(crate) async fn a_settled_message_is_not_asked_back_by_a_crash(bench: Bench) {
    bench.send(&["a", "b", "c"]).await;
    let host = bench.host();
    let held = host.take_all(3).await;
    host.settle(&receipts(&held)).await;
    bench.all_settled();
    host.crash().await;
    drop(held);
    bench.send(&["d"]).await;
    let again = bench.host();
    assert_eq!(bodies(&again.take_all(1).await), ["d"]);
}
