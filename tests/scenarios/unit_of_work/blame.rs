//! Starts, ends and deaths in a unit of work; suspects in the queue of a lane.

use std::{sync::Arc, time::Duration};

use oncebox::{
    host::{BatchLimits, Delivery, Item, LaneQueue, Ran, Target, Work},
    source::{Origin, Receipt, Settle},
    store::HandlerId,
};
use oncebox_core::{
    blame::{Open, Start, Starts, Suspicion},
    failure::Class,
    ids::{BootId, MessageHash},
    life::{HeldState, Verdict},
};

use crate::{
    bench::{BOOT_TIMEOUT, Bench, deliver, effect, failed, message, origin, over, shared},
    fates,
};

const LEASE: Duration = Duration::from_secs(60);

fn starts(boots: &[u8]) -> Starts {
    Starts(boots.iter().map(|boot| Start { boot: BootId([*boot; 16]), at_us: i64::from(*boot) * 1_000_000 }).collect())
}

/// What speaks against an event, all of these lives being over.
fn against(bench: &Bench, beside: &[u8], alone: &[u8]) -> Suspicion {
    let open = Open { beside: starts(beside), alone: starts(alone) };
    open.suspicion(bench.lane.tenant.boot, &[].into(), BOOT_TIMEOUT)
}

/// A message of a broker that came again, with its start written down.
async fn begun(bench: &Bench, id: &str, tag: u64, deliveries: usize) -> Arc<Origin> {
    let settle = Settle::new(Receipt::Broker { generation: 1, tag }, deliveries, None);
    let plain = origin(Arc::new(message(id, 1)), Some(settle), 0);
    let mut own = Arc::into_inner(plain).unwrap();
    own.is_begun = true;
    bench.store.start_insert(&own.source, &[own.hash], bench.lane.tenant.start()).await.unwrap();
    Arc::new(own)
}

async fn alone(bench: &Bench, delivery: &Delivery) {
    let Delivery { origin, .. } = delivery;
    let suspect = oncebox::store::Suspect::Delivered((origin.source.clone(), origin.hash), delivery.handler_id());
    assert!(bench.store.lane().await.unwrap().start_alone(&suspect, bench.lane.tenant.start()).await.unwrap());
}

/// The rows of `ob_start`, as message and handler.
async fn open(bench: &Bench) -> Vec<(MessageHash, HandlerId)> {
    let mut messages = Vec::new();
    for row in bench.rows("SELECT message_hash, handler_id FROM ob_start ORDER BY message_hash, handler_id").await {
        match row.as_slice() {
            [oncebox_core::value::Value::Bytes(hash), oncebox_core::value::Value::Signed(handler)] => {
                messages.push((MessageHash::from_slice(hash).unwrap(), HandlerId(*handler)));
            }
            other => panic!("{other:?}"),
        }
    }
    messages
}

on_every_store!(the_end_is_written_by_the_unit_that_decides_the_last_handler);
async fn the_end_is_written_by_the_unit_that_decides_the_last_handler() {
    let bench = Bench::new().await;
    let origin = begun(&bench, "a", 1, 2).await;
    let rows = vec![(origin.hash, HandlerId::NONE)];
    let undecided = over(shared(&bench.plain, &origin), failed(Class::Infrastructure, "pool"));
    let done = bench.unit(&[undecided]).await;
    assert_eq!((done.fates, done.ended, open(&bench).await), (fates![Again].to_vec(), vec![], rows.clone()));
    let done = bench.unit(&[effect(shared(&bench.plain, &origin))]).await;
    assert_eq!((done.ended, open(&bench).await), (vec![], rows));
    // What the road does after each commit.
    assert!(!origin.settle.as_ref().unwrap().decided(1));
    // Whatever the verdict is.
    let last = over(shared(&bench.other, &origin), failed(Class::GuestRetry, "not-yet"));
    let done = bench.unit(&[last]).await;
    assert_eq!((done.fates, done.ended), (fates![Parked].to_vec(), vec![origin.settle.as_ref().unwrap().receipt]));
    assert_eq!(open(&bench).await, []);
}

on_every_store!(one_statement_ends_all_of_a_unit_and_nothing_else);
async fn one_statement_ends_all_of_a_unit_and_nothing_else() {
    let bench = Bench::new().await;
    let mut origins = Vec::new();
    for (tag, id) in (1..).zip(["a", "b", "c"]) {
        origins.push(begun(&bench, id, tag, 1).await);
    }
    let first = deliver(&bench.plain, "first", 1);
    let undecided = over(shared(&bench.plain, &origins[2]), failed(Class::Infrastructure, "pool"));
    let batch = [
        effect(shared(&bench.plain, &origins[0])),
        effect(first),
        effect(shared(&bench.plain, &origins[1])),
        undecided,
    ];
    assert_eq!(bench.unit(&batch).await.ended.len(), 2);
    assert_eq!(open(&bench).await, [(origins[2].hash, HandlerId::NONE)]);
}

on_every_store!(a_run_alone_has_its_end_with_its_own_handlers_decision);
async fn a_run_alone_has_its_end_with_its_own_handlers_decision() {
    let bench = Bench::new().await;
    let origin = begun(&bench, "a", 1, 2).await;
    let suspect = |target: &Target| {
        let mut delivery = shared(target, &origin);
        delivery.suspicion = against(&bench, &[2], &[]);
        delivery
    };
    let (one, other) = (suspect(&bench.plain), suspect(&bench.other));
    alone(&bench, &one).await;
    alone(&bench, &other).await;
    let others = vec![(origin.hash, HandlerId::NONE), (origin.hash, other.handler_id())];
    // Should the other handler's unit be over by now without having known that it was the last, the end of the message
    // is still to be written.
    let done = bench.unit(&[effect(one)]).await;
    assert_eq!((done.fates, done.ended, open(&bench).await), (fates![Applied].to_vec(), vec![], others));
    assert!(!origin.settle.as_ref().unwrap().decided(1));
    assert_eq!(bench.unit(&[effect(other)]).await.fates, fates![Applied]);
    assert_eq!(open(&bench).await, []);
}

/// A delivery as the road makes it of one with so many deaths.
fn given_up(bench: &Bench, mut delivery: Delivery, deaths: &[u8]) -> Item {
    let suspicion = against(bench, &[2], deaths);
    let failure = suspicion.failure(2);
    delivery.counted.attempts = 1;
    delivery.unrun = Some(failure.clone());
    delivery.suspicion = suspicion;
    Item { delivery, ran: Ran::Unrun(failure) }
}

on_every_store!(each_death_of_one_that_is_given_up_is_an_attempt_with_the_life_it_ended);
async fn each_death_of_one_that_is_given_up_is_an_attempt_with_the_life_it_ended() {
    let bench = Bench::new().await;
    let batch = [effect(deliver(&bench.plain, "a", 1)), given_up(&bench, deliver(&bench.plain, "k", 1), &[3, 4])];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Dead]);
    assert_eq!(bench.effects().await, ["a"]);
    let story = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!(
        (story.row.state, story.row.class, story.row.code.as_str()),
        (HeldState::Dead, Class::DeathAlone, "death-alone")
    );
    assert_eq!((story.row.due_us, story.row.attempts), (None, 2));
    let shown: Vec<_> =
        story.attempts.iter().map(|a| (a.attempt, a.class, a.started_us, a.deployment.is_none())).collect();
    assert_eq!(shown, [(1, Class::DeathAlone, 3_000_000, true), (2, Class::DeathAlone, 4_000_000, true)]);
    let boots = bench.rows("SELECT boot_id FROM ob_attempt ORDER BY attempt").await;
    let boot = |byte: u8| vec![oncebox_core::value::Value::Bytes(vec![byte; 16])];
    assert_eq!(boots, [boot(3), boot(4)]);
    // A person has it run again: it is a suspect, and not dead at once.
    bench.run("UPDATE ob_held SET state = 0").await;
    bench.run("UPDATE ob_inbox SET state = 2 WHERE state = 3").await;
    let replayed = bench.claim(&bench.plain, LEASE).await.remove(0);
    assert!(replayed.is_suspect(), "{:?}", replayed.suspicion);
}

on_every_store!(one_that_is_put_aside_without_a_run_stays_a_suspect_and_after_a_run_does_not);
async fn one_that_is_put_aside_without_a_run_stays_a_suspect_and_after_a_run_does_not() {
    let bench = Bench::new().await;
    let suspect = |key: &str, alone: &[u8]| {
        let mut delivery = deliver(&bench.plain, key, 1);
        delivery.suspicion = against(&bench, &[2], alone);
        delivery
    };
    let why = oncebox_core::failure::Failure::new(Class::Unrun, "redelivered", "too often");
    let retry = || failed(Class::GuestRetry, "not-yet");
    let batch = [
        Item { delivery: suspect("unrun", &[]), ran: Ran::Unrun(why.clone()) },
        over(suspect("ran", &[]), retry()),
        over(suspect("ran-with-a-death", &[3]), retry()),
        Item { delivery: suspect("unrun-with-a-death", &[3]), ran: Ran::Unrun(why) },
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Parked Parked Parked Parked]);
    let claims = bench.claim(&bench.plain, LEASE).await;
    let told: Vec<_> = claims.iter().map(|d| (d.is_suspect(), d.suspicion.deaths.0.len())).collect();
    assert_eq!(told, [(true, 0), (false, 0), (true, 1), (true, 1)]);
    // The same of claims: each has its end in the mark of its row.
    let why = oncebox_core::failure::Failure::new(Class::Unrun, "behind", "it waits");
    let again = claims.into_iter().map(|delivery| Item { delivery, ran: Ran::Unrun(why.clone()) });
    assert_eq!(bench.verdicts(&again.collect::<Vec<_>>()).await, fates![Parked Parked Parked Parked]);
    let claims = bench.claim(&bench.plain, LEASE).await;
    let told: Vec<_> = claims.iter().map(|d| (d.is_suspect(), d.suspicion.deaths.0.len())).collect();
    assert_eq!(told, [(true, 0), (false, 0), (true, 1), (true, 1)]);
    let ran: Vec<_> = claims.into_iter().map(|delivery| over(delivery, retry())).collect();
    assert_eq!(bench.verdicts(&ran).await, fates![Parked Parked Parked Parked]);
    let claims = bench.claim(&bench.plain, LEASE).await;
    let told: Vec<_> = claims.iter().map(|d| (d.is_suspect(), d.suspicion.deaths.0.len())).collect();
    assert_eq!(told, [(false, 0), (false, 0), (true, 1), (true, 1)]);
}

on_every_store!(a_suspect_inside_its_unit_of_work_has_its_end_there);
async fn a_suspect_inside_its_unit_of_work_has_its_end_there() {
    let bench = Bench::new().await;
    let origin = begun(&bench, "a", 1, 1).await;
    let mut delivery = shared(&bench.inside, &origin);
    delivery.suspicion = against(&bench, &[2], &[]);
    alone(&bench, &delivery).await;
    let done = bench.unit(&[Item { delivery, ran: Ran::Inside }]).await;
    assert_eq!((done.fates, open(&bench).await), (fates![Applied].to_vec(), vec![]));
    assert_eq!(bench.tally(Verdict::Applied).await, 1);
}

/// The keys of the next batch.
async fn batch(queue: &LaneQueue<Work>) -> Vec<String> {
    let batch = queue.take(BatchLimits { events: 9, bytes: u64::MAX, gather: Duration::ZERO }).await.unwrap();
    batch.iter().map(|work| work.delivery.key().unwrap().1.to_string()).collect()
}

#[tokio::test]
async fn suspects_come_one_at_a_time_and_those_with_the_fewest_deaths_first() {
    let bench = Bench::new().await;
    let queue = LaneQueue::default();
    let push = |key: &str, target: &Target, alone: Option<&[u8]>| {
        let mut delivery = deliver(target, key, 1);
        delivery.suspicion = alone.map_or_else(Suspicion::default, |alone| against(&bench, &[2], alone));
        queue.push(Work::from(delivery));
    };
    push("killer", &bench.plain, Some(&[3]));
    push("one", &bench.plain, Some(&[]));
    push("free-1", &bench.plain, None);
    push("two", &bench.inside, Some(&[]));
    push("three", &bench.plain, Some(&[]));
    push("free-2", &bench.plain, None);
    let mut batches = Vec::new();
    while !queue.is_empty() {
        batches.push(batch(&queue).await.join(" "));
    }
    assert_eq!(batches.len(), 5, "{batches:?}");
    assert!(batches.contains(&"free-1 free-2".to_owned()), "{batches:?}");
    let at = |key: &str| batches.iter().position(|batch| batch == key);
    assert!(at("one") < at("three") && at("three") < at("killer") && at("two").is_some(), "{batches:?}");
}

/// Each would wait by itself, and its lease be over before its turn.
#[tokio::test]
async fn a_suspect_is_taken_at_once_where_others_gather() {
    let bench = Bench::new().await;
    let queue = LaneQueue::default();
    let mut delivery = deliver(&bench.plain, "k", 1);
    delivery.suspicion = against(&bench, &[2], &[]);
    queue.push(Work::from(delivery));
    let limits = BatchLimits { events: 9, bytes: u64::MAX, gather: Duration::from_hours(24) };
    let taken = tokio::time::timeout(Duration::from_secs(30), queue.take(limits)).await;
    assert_eq!(taken.ok().flatten().map(|batch| batch.len()), Some(1), "it waits for others");
}

#[tokio::test]
async fn one_that_is_not_to_run_is_no_suspect() {
    let bench = Bench::new().await;
    let Item { delivery, .. } = given_up(&bench, deliver(&bench.plain, "k", 1), &[3, 4]);
    assert!(!delivery.is_suspect(), "it goes with the others, and needs nobody to wait");
    let mut free = deliver(&bench.plain, "k", 1);
    assert!(!free.is_suspect());
    free.suspicion = against(&bench, &[], &[3]);
    assert!(free.is_suspect());
}
