//! What waits for a lane: fair turns, one kind a batch, a key once.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use oncebox::{
    host::{BatchLimits, Claim, Delivery, LaneQueue, Target, Waiting},
    store::HeldId,
};
use oncebox_core::ids::LeaseToken;

use crate::bench::{Bench, deliver, delivery, message};

struct Waits {
    delivery: Delivery,
    begun: bool,
}

impl Waiting for Waits {
    fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    fn has_begun(&self) -> bool {
        self.begun
    }
}

type Queue = LaneQueue<Waits>;

fn waits(delivery: Delivery) -> Waits {
    Waits { delivery, begun: false }
}

fn claimed(target: &Target, key: &str) -> Waits {
    let claim = Claim { held: HeldId(1), token: LeaseToken([1; 16]), generation: 0, place: None };
    waits(Delivery { claim: Some(claim), ..deliver(target, key, 1) })
}

/// A message whose body has exactly so many bytes.
fn sized(target: &Target, key: &str, bytes: usize) -> Waits {
    let mut message = message(key, 1);
    message.body.resize(bytes, b' ');
    waits(delivery(target, Arc::new(message), None, 0))
}

const fn limits(events: usize) -> BatchLimits {
    BatchLimits { events, bytes: u64::MAX, gather: Duration::ZERO }
}

/// The keys of the next batch.
async fn batch(queue: &Queue, limits: BatchLimits) -> Vec<String> {
    let batch = queue.take(limits).await.unwrap();
    batch.iter().map(|one| one.delivery.key().unwrap().1.to_string()).collect()
}

#[tokio::test]
async fn a_backlog_of_one_handler_does_not_keep_the_others_waiting() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for n in 0..1000 {
        queue.push(waits(deliver(&bench.plain, &format!("p{n}"), 1)));
    }
    queue.push(waits(deliver(&bench.other, "o", 1)));
    queue.push(waits(deliver(&bench.third, "t", 1)));
    assert_eq!(batch(&queue, limits(5)).await, ["p0", "o", "t", "p1", "p2"]);
    queue.push(waits(deliver(&bench.other, "o2", 1)));
    assert_eq!(batch(&queue, limits(3)).await, ["o2", "p3", "p4"]);
    assert_eq!((queue.len(), bench_waiting(&queue, &bench.plain)), (995, 995));
}

fn bench_waiting(queue: &Queue, target: &Target) -> usize {
    let Target::Handler(handler, _) = target else { panic!("nobody waits") };
    queue.waiting(handler.id)
}

#[tokio::test]
async fn a_batch_takes_what_is_there_and_does_not_wait_to_fill_up() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    queue.push(waits(deliver(&bench.plain, "a", 1)));
    assert_eq!(batch(&queue, limits(64)).await, ["a"]);
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_batch_holds_one_kind_and_kinds_take_turns() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for n in 0..2 {
        queue.push(waits(deliver(&bench.inside, &format!("inside{n}"), 1)));
        queue.push(claimed(&bench.plain, &format!("claim{n}")));
        queue.push(waits(deliver(&bench.plain, &format!("new{n}"), 1)));
    }
    assert_eq!(batch(&queue, limits(1)).await, ["new0"]);
    assert_eq!(batch(&queue, limits(9)).await, ["inside0", "inside1"]);
    assert_eq!(batch(&queue, limits(9)).await, ["claim0", "claim1"]);
    assert_eq!(batch(&queue, limits(9)).await, ["new1"]);
}

/// Full batches of two busy handlers that always begin and end at the same place.
#[tokio::test]
async fn claims_are_not_starved_by_full_batches_of_deliveries() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for n in 0..50 {
        queue.push(waits(deliver(&bench.other, &format!("o{n}"), 1)));
        queue.push(waits(deliver(&bench.third, &format!("t{n}"), 1)));
    }
    // An uneven batch: the next one begins at the third handler and ends at the other one.
    assert_eq!(batch(&queue, limits(1)).await, ["o0"]);
    queue.push(claimed(&bench.plain, "claim"));
    let mut batches = Vec::new();
    for _ in 0..3 {
        batches.push(batch(&queue, limits(2)).await);
    }
    assert!(batches.contains(&vec!["claim".to_owned()]), "{batches:?}");
}

#[tokio::test]
async fn a_key_is_in_a_batch_once_and_the_second_waits_for_the_next() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for key in ["a", "a", "b", "a"] {
        queue.push(waits(deliver(&bench.plain, key, 1)));
    }
    queue.push(waits(deliver(&bench.other, "a", 1)));
    assert_eq!(batch(&queue, limits(9)).await, ["a", "a", "b"]);
    assert_eq!(batch(&queue, limits(9)).await, ["a"]);
    assert_eq!(batch(&queue, limits(9)).await, ["a"]);
    assert!(queue.is_empty());
}

#[tokio::test]
async fn what_can_wait_comes_together_until_the_batch_is_full_or_the_time_over() {
    let bench = Bench::new().await;
    let queue = Arc::new(Queue::default());
    let take = |gather| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.take(BatchLimits { gather, ..limits(3) }).await.map(|batch| batch.len()) })
    };
    let push = |key: &str| queue.push(waits(deliver(&bench.plain, key, 1)));
    // Far longer than any test.
    let for_ever = Duration::from_hours(24);
    let mut taken = take(for_ever);
    push("a");
    push("b");
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut taken).await.is_err(), "one has room");
    push("c");
    assert_eq!(taken.await.unwrap(), Some(3), "it is full");
    push("d");
    assert_eq!(take(Duration::from_millis(1)).await.unwrap(), Some(1), "the time is over");
    let taken = take(for_ever);
    push("e");
    queue.close();
    assert_eq!(taken.await.unwrap(), None, "nothing is waited for at the end");
}

#[tokio::test]
async fn a_batch_that_is_not_full_waits_for_its_turn_with_what_comes_meanwhile() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    let limits = BatchLimits { gather: Duration::from_hours(24), ..limits(3) };
    let push = |key: &str| queue.push(waits(deliver(&bench.plain, key, 1)));
    let (give, given) = tokio::sync::oneshot::channel();
    let mut turn = Box::pin(queue.gather(limits, given));
    assert!(turn.as_mut().now_or_never().is_none(), "nothing is there");
    push("a");
    assert!(turn.as_mut().now_or_never().is_none(), "another one has the turn");
    push("b");
    give.send("its turn").unwrap();
    assert_eq!(turn.await, Some(Ok("its turn")));
    assert_eq!(batch(&queue, BatchLimits { gather: Duration::ZERO, ..limits }).await, ["a", "b"]);
    for key in ["c", "d", "e"] {
        push(key);
    }
    let never = queue.gather(limits, std::future::pending::<()>());
    assert_eq!(never.now_or_never(), Some(None), "a full one waits for nobody");
}

#[tokio::test]
async fn a_batch_keeps_its_bytes_but_takes_one_delivery_in_any_case() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for (key, bytes) in [("a", 500), ("b", 60), ("c", 40), ("d", 30)] {
        queue.push(sized(&bench.plain, key, bytes));
    }
    let limits = BatchLimits { bytes: 100, ..limits(9) };
    assert_eq!(batch(&queue, limits).await, ["a"]);
    assert_eq!(batch(&queue, limits).await, ["b", "c"]);
    assert_eq!(batch(&queue, limits).await, ["d"]);
}

/// Small ones behind it, and of others, do not pass it for ever.
#[tokio::test]
async fn a_large_delivery_begins_the_next_batch() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for n in 0..20 {
        queue.push(sized(&bench.plain, &format!("p{n}"), 30));
    }
    queue.push(sized(&bench.other, "large", 90));
    for n in 0..20 {
        queue.push(sized(&bench.other, &format!("o{n}"), 30));
    }
    let limits = BatchLimits { bytes: 100, ..limits(2) };
    assert_eq!(batch(&queue, limits).await, ["p0"]);
    assert_eq!(batch(&queue, limits).await, ["large"]);
    assert_eq!(batch(&queue, limits).await, ["p1", "o0"]);
}

#[tokio::test]
async fn what_is_put_back_comes_first_and_in_its_order() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for key in ["a", "b", "c", "d"] {
        queue.push(waits(deliver(&bench.plain, key, 1)));
    }
    let taken = queue.take(limits(3)).await.unwrap();
    queue.put_back(taken);
    assert_eq!(batch(&queue, limits(9)).await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_closed_queue_gives_out_only_runs_that_have_begun() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    for (key, begun) in [("a", false), ("b", true), ("c", false), ("d", true)] {
        queue.push(Waits { begun, ..waits(deliver(&bench.plain, key, 1)) });
    }
    assert_eq!(queue.close(), 2);
    assert_eq!(batch(&queue, limits(1)).await, ["b"]);
    // Left undecided by its unit: it is counted, and not taken up again.
    queue.put_back(vec![waits(deliver(&bench.plain, "e", 1))]);
    assert_eq!(batch(&queue, limits(9)).await, ["d"]);
    assert!(queue.take(limits(9)).await.is_none());
    assert_eq!(queue.len(), 1);
}

#[tokio::test]
async fn a_lane_that_waits_is_woken_by_the_next_delivery_and_by_the_end() {
    let bench = Bench::new().await;
    let queue = Arc::new(Queue::default());
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.take(limits(9)).await.map(|batch| batch.len()), queue.take(limits(9)).await.is_none()) }
    });
    tokio::task::yield_now().await;
    queue.push(waits(deliver(&bench.plain, "a", 1)));
    // Closed while the first may still be in the queue: then it stays there, and is counted.
    tokio::task::yield_now().await;
    while !queue.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.close(), 0);
    assert_eq!(waiting.await.unwrap(), (Some(1), true));
}

/// A delivery that its broker will drop soon.
fn at_risk(target: &Target, key: &str) -> Waits {
    let mut delivery = deliver(target, key, 1);
    Arc::get_mut(&mut delivery.origin).unwrap().is_at_risk = true;
    waits(delivery)
}

#[tokio::test]
async fn what_a_broker_would_drop_soon_is_taken_first_and_all_at_once() {
    let bench = Bench::new().await;
    let queue = Queue::default();
    queue.push(waits(deliver(&bench.plain, "p", 1)));
    queue.push(claimed(&bench.plain, "c"));
    for n in 0..20 {
        queue.push(at_risk(if n % 2 == 0 { &bench.plain } else { &bench.other }, &format!("r{n:02}")));
    }
    let first = batch(&queue, limits(2)).await;
    assert_eq!(first.len(), 20, "whatever a batch may hold else: {first:?}");
    assert!(first.iter().all(|key| key.starts_with('r')));
    assert_eq!(batch(&queue, limits(2)).await.len(), 1);
    assert_eq!(batch(&queue, limits(2)).await.len(), 1);
}
