//! Local messages are settled in the transaction that decides the last of their handlers.

use std::{sync::Arc, time::Duration};

use oncebox::{host::Item, source::Origin};
use oncebox_core::failure::Class;

use crate::{
    bench::{Bench, delivery, effect, failed, message, origin, over, settle, shared},
    fates,
};

const LEASE: Duration = Duration::from_secs(60);

async fn waiting(bench: &Bench) -> usize {
    bench.rows("SELECT local_id FROM ob_local").await.len()
}

async fn taken(bench: &Bench, keys: &[&str], deliveries: usize, lease: Duration) -> Vec<Arc<Origin>> {
    let messages: Vec<_> = keys.iter().map(|key| message(key, 1)).collect();
    let taken = bench.local(&messages, lease).await;
    taken.into_iter().map(|(message, parts)| origin(message, Some(settle(parts, deliveries)), 0)).collect()
}

on_every_store!(a_message_is_gone_with_its_verdict_whatever_that_is);
async fn a_message_is_gone_with_its_verdict_whatever_that_is() {
    let bench = Bench::new().await;
    let origins = taken(&bench, &["a", "b", "c"], 1, LEASE).await;
    let batch = [
        effect(shared(&bench.plain, &origins[0])),
        over(shared(&bench.plain, &origins[1]), failed(Class::GuestReject, "no")),
        over(shared(&bench.plain, &origins[2]), failed(Class::Infrastructure, "pool")),
    ];
    let done = bench.unit(&batch).await;
    assert_eq!(done.fates, fates![Applied Dead Again]);
    let ids: Vec<_> = origins.iter().map(|origin| origin.settle.as_ref().unwrap().receipt.local().unwrap().0).collect();
    assert_eq!(done.settled, ids[..2]);
    assert_eq!(waiting(&bench).await, 1);
}

on_every_store!(a_message_of_two_handlers_is_settled_with_the_decision_of_the_last);
async fn a_message_of_two_handlers_is_settled_with_the_decision_of_the_last() {
    let bench = Bench::new().await;
    let origin = taken(&bench, &["a"], 2, LEASE).await.remove(0);
    let first = bench.unit(&[effect(shared(&bench.plain, &origin))]).await;
    assert_eq!((first.settled, waiting(&bench).await), (vec![], 1));
    let settle = origin.settle.as_ref().unwrap();
    // What the road does after each commit.
    assert!(!settle.decided(1));
    let second = bench.unit(&[effect(shared(&bench.other, &origin))]).await;
    assert_eq!((second.settled, waiting(&bench).await), (vec![settle.receipt.local().unwrap().0], 0));
    assert!(settle.decided(1));
}

on_every_store!(a_message_of_two_handlers_in_one_batch_is_settled_once);
async fn a_message_of_two_handlers_in_one_batch_is_settled_once() {
    let bench = Bench::new().await;
    let origin = taken(&bench, &["a"], 2, LEASE).await.remove(0);
    let batch = [effect(shared(&bench.plain, &origin)), effect(shared(&bench.other, &origin))];
    assert_eq!(bench.unit(&batch).await.settled.len(), 1);
    assert_eq!(waiting(&bench).await, 0);
    // With one of them undecided, it stays.
    let origin = taken(&bench, &["b"], 2, LEASE).await.remove(0);
    let undecided = over(shared(&bench.other, &origin), failed(Class::Infrastructure, "pool"));
    let batch = [effect(shared(&bench.plain, &origin)), undecided];
    assert_eq!(bench.unit(&batch).await.settled, []);
    assert_eq!(waiting(&bench).await, 1);
}

on_every_store!(a_message_that_was_lost_meanwhile_is_left_out_and_the_rest_is_committed);
async fn a_message_that_was_lost_meanwhile_is_left_out_and_the_rest_is_committed() {
    let bench = Bench::new().await;
    let lost = taken(&bench, &["a"], 1, Duration::ZERO).await.remove(0);
    // Another one takes it over, and with it a further message of its own.
    let mine = bench.local(&[message("b", 1)], LEASE).await;
    assert_eq!(mine.len(), 2);
    let [again, further] = mine.try_into().unwrap();
    let kept = origin(further.0, Some(settle(further.1, 1)), 0);
    let batch = [effect(shared(&bench.plain, &lost)), effect(shared(&bench.plain, &kept))];
    let done = bench.unit(&batch).await;
    assert_eq!(done.fates, fates![Lost Applied]);
    assert_eq!(done.settled, [kept.settle.as_ref().unwrap().receipt.local().unwrap().0]);
    assert_eq!((bench.effects().await, waiting(&bench).await), (vec!["b".to_owned()], 1));
    assert_eq!(bench.texts("SELECT business_key FROM ob_inbox").await, ["b"]);
    // Whoever has it now decides it.
    let batch = [effect(delivery(&bench.plain, again.0, Some(settle(again.1, 1)), 0))];
    assert_eq!(bench.unit(&batch).await.fates, fates![Applied]);
    assert_eq!((bench.effects().await, waiting(&bench).await), (vec!["b".to_owned(), "a".to_owned()], 0));
}

on_every_store!(a_batch_that_is_lost_whole_commits_nothing);
async fn a_batch_that_is_lost_whole_commits_nothing() {
    let bench = Bench::new().await;
    let lost = taken(&bench, &["a", "b"], 1, Duration::ZERO).await;
    bench.local(&[], LEASE).await;
    let batch: Vec<Item> = lost.iter().map(|origin| effect(shared(&bench.plain, origin))).collect();
    let done = bench.unit(&batch).await;
    assert_eq!((done.fates, done.settled), (fates![Lost Lost].to_vec(), vec![]));
    assert_eq!(bench.texts("SELECT count(*) FROM ob_inbox").await, ["0"]);
    assert_eq!(waiting(&bench).await, 2);
}
