//! COMMITs that fail, answers that are lost, units whose own statements fail.

use std::time::Duration;

use oncebox::{
    host::{Item, Link},
    store::{Lane, StoreError},
};
use oncebox_core::{failure::Class, life::Verdict};

use crate::{
    bench::{Bench, breaks, deliver, effect, failed, known, message, origin, over, settle, shared},
    fates,
    faulty::{Commit, FaultyLane},
};

async fn faulty(bench: &Bench, commit: Commit) -> Box<dyn Lane> {
    Box::new(FaultyLane::new(bench.store.lane().await.unwrap(), commit))
}

on_every_store!(a_commit_that_was_not_done_is_done_again);
async fn a_commit_that_was_not_done_is_done_again() {
    let bench = Bench::new().await;
    let (body, parts) = bench.local(&[message("a", 1)], Duration::from_secs(60)).await.remove(0);
    let origin = origin(body, Some(settle(parts, 1)), 0);
    let batch = vec![effect(shared(&bench.plain, &origin)), breaks(deliver(&bench.plain, "b", 1))];
    let mut link = Link::from(faulty(&bench, Commit::NotDone).await);
    let mut done = bench.lane.decide(&mut link, batch, None).await;
    assert_eq!(done.len(), 1);
    let (items, done) = done.remove(0);
    assert_eq!(items.len(), 2);
    assert_eq!((done.fates.as_slice(), done.settled), (fates![Applied Dead].as_slice(), vec![parts.0]));
    assert_eq!(bench.effects().await, ["a"]);
    assert_eq!(bench.texts("SELECT count(*) FROM ob_local").await, ["0"]);
    assert_eq!(bench.texts("SELECT state FROM ob_inbox ORDER BY business_key").await, ["0", "3"]);
    assert_eq!(bench.texts("SELECT count(*) FROM ob_attempt").await, ["1"]);
    bench.balanced().await;
}

on_every_store!(a_lost_commit_answer_applies_the_event_once);
async fn a_lost_commit_answer_applies_the_event_once() {
    let bench = Bench::new().await;
    let batch = vec![effect(deliver(&bench.plain, "a", 1)), breaks(deliver(&bench.plain, "b", 1))];
    let mut link = Link::from(faulty(&bench, Commit::AnswerLost).await);
    let done = bench.lane.decide(&mut link, batch, None).await;
    assert_eq!(done[0].1.fates, fates![Duplicate Duplicate]);
    assert_eq!(bench.effects().await, ["a"]);
    assert_eq!(bench.texts("SELECT state FROM ob_inbox ORDER BY business_key").await, ["0", "3"]);
    // What is done again counts as received again.
    let tallies = [Verdict::Applied, Verdict::Dead, Verdict::Duplicate];
    let mut counts = Vec::new();
    for verdict in tallies {
        counts.push(bench.tally(verdict).await);
    }
    assert_eq!(counts, [1, 1, 2]);
    bench.balanced().await;
}

on_every_store!(a_lost_commit_answer_of_a_settled_message_leaves_nothing_to_do);
/// The message was settled by the first COMMIT: the second one finds it gone and leaves it out.
async fn a_lost_commit_answer_of_a_settled_message_leaves_nothing_to_do() {
    let bench = Bench::new().await;
    let (body, parts) = bench.local(&[message("a", 1)], Duration::from_secs(60)).await.remove(0);
    let origin = origin(body, Some(settle(parts, 1)), 0);
    let mut link = Link::from(faulty(&bench, Commit::AnswerLost).await);
    let done = bench.lane.decide(&mut link, vec![effect(shared(&bench.plain, &origin))], None).await;
    assert_eq!((done[0].1.fates.as_slice(), done[0].1.settled.as_slice()), (fates![Lost].as_slice(), [].as_slice()));
    assert_eq!(bench.effects().await, ["a"]);
    assert_eq!(bench.texts("SELECT count(*) FROM ob_local").await, ["0"]);
    bench.balanced().await;
}

on_every_store!(a_lost_commit_answer_of_a_claim_applies_it_once);
async fn a_lost_commit_answer_of_a_claim_applies_it_once() {
    let bench = Bench::new().await;
    bench.unit(&[over(deliver(&bench.plain, "a", 1), failed(Class::GuestRetry, "later"))]).await;
    let claimed = bench.claim(&bench.plain, Duration::from_secs(60)).await.remove(0);
    let mut link = Link::from(faulty(&bench, Commit::AnswerLost).await);
    let done = bench.lane.decide(&mut link, vec![effect(claimed)], None).await;
    assert_eq!(done[0].1.fates, fates![Lost]);
    assert_eq!(bench.effects().await, ["a"]);
    assert_eq!(bench.texts("SELECT state FROM ob_held").await, ["5"]);
    bench.balanced().await;
}

on_every_store!(a_row_of_our_own_that_does_not_read_holds_up_its_event_alone);
async fn a_row_of_our_own_that_does_not_read_holds_up_its_event_alone() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "2", 1))]).await;
    bench.run("UPDATE ob_inbox SET state = 9").await;
    let batch: Vec<Item> = (0..5).map(|n| effect(deliver(&bench.plain, &n.to_string(), 1))).collect();
    let mut link = Link::from(bench.store.lane().await.unwrap());
    let done = bench.lane.decide(&mut link, batch, None).await;
    let decided: usize = done.iter().map(|(items, _)| items.len()).sum();
    assert_eq!(decided, 4);
    assert_eq!(bench.effects().await, ["2", "0", "1", "3", "4"]);
    let undecided = bench.lane.tenant.metrics.text();
    assert!(undecided.contains("oncebox_left_undecided_total{tenant=\"acme\"} 1"), "{undecided}");
}

on_every_store!(a_unit_that_failed_keeps_nothing_locked);
async fn a_unit_that_failed_keeps_nothing_locked() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 1))]).await;
    bench.run("UPDATE ob_inbox SET state = 9").await;
    let mut connection = bench.store.lane().await.unwrap();
    let again = effect(deliver(&bench.plain, "a", 1));
    let error = bench.unit_on(connection.as_mut(), &[again]).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { table: "ob_inbox", .. }), "{error}");
    // The lane's connection is still open, and another one writes without waiting for it.
    let written = tokio::time::timeout(Duration::from_secs(5), bench.run("DELETE FROM ob_inbox WHERE state = 9"));
    assert_eq!(written.await, Ok(1));
}

/// A unit that decides nothing is committed all the same, so that others who wait for its keys go on.
#[tokio::test]
async fn a_unit_that_gives_up_leaves_no_duplicate_counted() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 1))]).await;
    let (body, parts) = bench.local(&[message("b", 1)], Duration::from_secs(60)).await.remove(0);
    let origin = origin(body, Some(settle(parts, 1)), 0);
    bench.run("UPDATE ob_local SET lease_token = zeroblob(16)").await;
    let done = bench.unit(&[known(deliver(&bench.plain, "a", 1)), effect(shared(&bench.plain, &origin))]).await;
    assert_eq!(done.fates, fates![Duplicate Lost]);
    assert_eq!(bench.texts("SELECT duplicates FROM ob_inbox").await, ["1"]);
    bench.balanced().await;
}
