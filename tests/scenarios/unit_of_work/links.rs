//! Lanes' connections: opened when needed, and given up where another lane needs the place.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use oncebox::host::{Connections, LaneContext, LaneTurn, Link, Turns, Work};
use tokio::time::timeout;

use crate::bench::{Bench, deliver};

/// Long enough for whatever need not wait.
const SOON: Duration = Duration::from_secs(30);
/// What must not be over by then is taken for waiting.
const A_WHILE: Duration = Duration::from_millis(200);

/// The same lane once more, with what waits for it.
fn again(lane: &LaneContext) -> LaneContext {
    LaneContext {
        tenant: lane.tenant.clone(),
        number: lane.number,
        kind: lane.kind,
        queue: Arc::default(),
        turns: Arc::default(),
        stopping: lane.stopping.clone(),
    }
}

#[tokio::test]
async fn a_lane_that_idles_gives_its_connection_to_one_that_waits() {
    let bench = Bench::new().await;
    let connections = Connections::new(1);
    let (mut idle, mut busy) = (Link::new(Some(connections.clone())), Link::new(Some(connections.clone())));
    assert!(idle.open(&bench.lane).await.is_some());
    // Not at once: the lane is not idle yet.
    assert!(timeout(A_WHILE, busy.open(&bench.lane)).await.is_err());
    let lane = again(&bench.lane);
    let queue = lane.queue.clone();
    let idles = tokio::spawn(async move { idle.take(&lane).await });
    assert!(timeout(SOON, busy.open(&bench.lane)).await.unwrap().is_some());
    drop(busy);
    // It takes what comes as soon as it has a place again, and what has come meanwhile with it.
    let place = connections.place().await.unwrap();
    queue.push(Work::from(deliver(&bench.plain, "a", 1)));
    timeout(SOON, place.wanted()).await.unwrap();
    queue.push(Work::from(deliver(&bench.plain, "b", 1)));
    drop(place);
    assert_eq!(timeout(SOON, idles).await.unwrap().unwrap().unwrap().len(), 2);
}

#[tokio::test]
async fn between_two_batches_a_lane_makes_way_only_for_one_that_waits() {
    let bench = Bench::new().await;
    let connections = Connections::new(1);
    let (mut first, mut second) = (Link::new(Some(connections.clone())), Link::new(Some(connections.clone())));
    first.open(&bench.lane).await.unwrap();
    first.make_way().await;
    let lane = again(&bench.lane);
    let waits = tokio::spawn(async move {
        second.open(&lane).await.unwrap();
        // A batch later.
        second.make_way().await;
        second
    });
    tokio::task::yield_now().await;
    assert!(timeout(A_WHILE, connections.place()).await.is_err(), "nobody waited, so the first has kept its place");
    first.make_way().await;
    let second = timeout(SOON, waits).await.unwrap().unwrap();
    // The first comes back as a third: a link that is let go lets its place go.
    drop(second);
    assert!(timeout(SOON, first.open(&bench.lane)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_lost_connection_is_opened_anew_and_its_place_is_free_meanwhile() {
    let bench = Bench::new().await;
    let connections = Connections::new(1);
    let mut link = Link::new(Some(connections.clone()));
    link.open(&bench.lane).await.unwrap();
    link.lost();
    drop(timeout(SOON, connections.place()).await.unwrap());
    assert!(link.open(&bench.lane).await.unwrap().inbox_look_up(&[]).await.unwrap().is_empty());
}

/// All that nobody has.
fn all_turns(turns: &Turns) -> Vec<LaneTurn> {
    std::iter::from_fn(|| turns.turn().now_or_never().flatten()).collect()
}

#[tokio::test]
async fn a_lane_that_waits_for_its_database_has_no_turn() {
    let bench = Bench::new().await;
    let lane = again(&bench.lane);
    let (turns, all) = (lane.turns.clone(), all_turns(&lane.turns).len());
    lane.queue.push(Work::from(deliver(&bench.plain, "a", 1)));
    let bring_back = bench.take_away();
    let waits = tokio::spawn(async move {
        let mut link = Link::new(Some(Connections::new(1)));
        let batch = link.take(&lane).await.unwrap();
        (batch.len(), link)
    });
    let mut ready = bench.lane.tenant.health.ready();
    timeout(SOON, ready.wait_for(|is_ready| !is_ready)).await.unwrap().unwrap();
    assert!(!waits.is_finished());
    assert_eq!(all_turns(&turns).len(), all);
    bring_back();
    assert_eq!(timeout(SOON, waits).await.unwrap().unwrap().0, 1);
}

#[tokio::test]
async fn who_never_gives_its_turn_back_keeps_no_other_lane_for_long() {
    let bench = Bench::new().await;
    let lane = again(&bench.lane);
    let mut turns = all_turns(&lane.turns);
    assert!(turns.len() > 1);
    let mut link = Link::new(Some(Connections::new(1)));
    lane.queue.push(Work::from(deliver(&bench.plain, "a", 1)));
    assert_eq!(timeout(SOON, link.take(&lane)).await.unwrap().unwrap().len(), 1);
    // One that comes back is had by the next batch, and given back when the database is lost.
    turns.pop();
    lane.queue.push(Work::from(deliver(&bench.plain, "b", 1)));
    assert_eq!(timeout(SOON, link.take(&lane)).await.unwrap().unwrap().len(), 1);
    assert!(lane.turns.turn().now_or_never().is_none());
    link.lost();
    assert!(lane.turns.turn().now_or_never().is_some());
}
