//! Parked rows that are claimed and tried again.

use std::time::Duration;

use oncebox::{
    host::{Delivery, Item, Ran},
    plugin::Outcome,
};
use oncebox_core::{
    failure::{Class, Failure},
    life::{HeldState, Verdict},
    value::Value,
};

use crate::{
    bench::{ATTEMPTS_MAX, Bench, applied, breaks, deliver, effect, failed, over, write},
    fates,
};

const LEASE: Duration = Duration::from_secs(60);

async fn park(bench: &Bench, keys: &[&str]) {
    let park = |key: &&str| over(deliver(&bench.plain, key, 1), failed(Class::GuestRetry, "not-yet"));
    let batch: Vec<Item> = keys.iter().map(park).collect();
    bench.unit(&batch).await;
}

async fn claim_one(bench: &Bench) -> Delivery {
    let mut claimed = bench.claim(&bench.plain, LEASE).await;
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

#[tokio::test]
async fn claims_go_to_the_back_lane_and_what_has_an_order_stays_in_the_lane_of_its_line() {
    let bench = Bench::new().await;
    park(&bench, &["a", "b"]).await;
    let [own, mut ordered] = <[Delivery; 2]>::try_from(bench.claim(&bench.plain, LEASE).await).ok().unwrap();
    ordered.identity.as_mut().unwrap().ordering_key = Some("line".into());
    let tenant = &bench.lane.tenant;
    let waiting = || (tenant.lanes[0].len(), tenant.back_lane.as_ref().unwrap().len(), tenant.slow_lanes[0].len());
    tenant.spread(own);
    assert_eq!(waiting(), (0, 1, 0));
    tenant.spread(ordered);
    tenant.spread(deliver(&bench.plain, "c", 1));
    assert_eq!(waiting(), (2, 1, 0));
    assert_eq!(tenant.all_lanes().count(), 3, "each has a number, and a place in the metrics");
}

#[tokio::test]
async fn what_comes_for_a_handler_that_does_nothing_but_fail_goes_to_the_back_lane_until_an_attempt_is_good() {
    let bench = Bench::new().await;
    let tenant = &bench.lane.tenant;
    let (first, other) = (deliver(&bench.plain, "first", 1), deliver(&bench.other, "other", 1));
    let waiting = || (tenant.lanes[0].len(), tenant.back_lane.as_ref().unwrap().len());
    for _ in 0..15 {
        first.note_end(Verdict::Parked);
    }
    // What says nothing of its attempts.
    first.note_end(Verdict::Duplicate);
    Delivery { unrun: Some(Failure::new(Class::Unrun, "slow-backlog", "")), ..deliver(&bench.plain, "unrun", 1) }
        .note_end(Verdict::Parked);
    tenant.spread(deliver(&bench.plain, "a", 1));
    assert_eq!(waiting(), (1, 0), "one more may be chance");
    first.note_end(Verdict::Dead);
    tenant.spread(deliver(&bench.plain, "b", 1));
    assert_eq!(waiting(), (1, 1));
    let mut ordered = deliver(&bench.plain, "c", 1);
    ordered.identity.as_mut().unwrap().ordering_key = Some("line".into());
    tenant.spread(ordered);
    tenant.spread(other);
    assert_eq!(waiting(), (3, 1), "neither what has an order nor what is for others");
    first.note_end(Verdict::Applied);
    tenant.spread(deliver(&bench.plain, "d", 1));
    assert_eq!(waiting(), (4, 1));
}

on_every_store!(a_parked_event_is_applied_by_its_second_attempt_and_its_row_resolved);
async fn a_parked_event_is_applied_by_its_second_attempt_and_its_row_resolved() {
    let bench = Bench::new().await;
    let before = bench.store.now_us().await.unwrap();
    park(&bench, &["a"]).await;
    let (_, due) = bench.store.held_due().await.unwrap()[0];
    // The first delay is at most a second.
    assert!((before..before + 60_000_000).contains(&due), "{due}");
    let delivery = claim_one(&bench).await;
    assert_eq!(delivery.counted.attempts, 1);
    assert_eq!(bench.verdicts(&[effect(delivery)]).await, fates![Applied]);
    assert_eq!(bench.effects().await, ["a"]);
    let story = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!((story.row.state, story.row.due_us, story.row.attempts), (HeldState::Resolved, None, 2));
    // Only the run that did not apply is an attempt; the reason of the last failure stays readable.
    assert_eq!((story.attempts.len(), story.row.code.as_str()), (1, "not-yet"));
    assert_eq!(bench.texts("SELECT concat(state, attempts) FROM ob_inbox").await, ["02"]);
    assert_eq!((bench.tally(Verdict::Parked).await, bench.tally(Verdict::Applied).await), (1, 1));
}

on_every_store!(a_parked_event_is_dead_at_its_last_attempt);
async fn a_parked_event_is_dead_at_its_last_attempt() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    for attempt in 2..=ATTEMPTS_MAX {
        let again = over(claim_one(&bench).await, failed(Class::GuestRetry, &format!("try-{attempt}")));
        let expected = if attempt == ATTEMPTS_MAX { fates![Dead] } else { fates![Parked] };
        assert_eq!(bench.verdicts(&[again]).await, expected, "{attempt}");
    }
    let story = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!((story.row.state, story.row.due_us, story.row.attempts), (HeldState::Dead, None, 3));
    let codes: Vec<_> = story.attempts.iter().map(|a| (a.attempt, a.code.as_str())).collect();
    assert_eq!(codes, [(1, "not-yet"), (2, "try-2"), (3, "try-3")]);
    assert!(bench.claim(&bench.plain, LEASE).await.is_empty());
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 1))]).await, fates![Duplicate]);
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 2))]).await, fates![Conflict]);
}

on_every_store!(a_delivery_of_a_parked_key_is_a_duplicate_of_it_and_never_runs_beside_it);
async fn a_delivery_of_a_parked_key_is_a_duplicate_of_it_and_never_runs_beside_it() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 1))]).await, fates![Duplicate]);
    assert_eq!(bench.effects().await, [""; 0]);
    let claimed = claim_one(&bench).await;
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 1))]).await, fates![Duplicate]);
    assert_eq!(bench.verdicts(&[effect(claimed)]).await, fates![Applied]);
    assert_eq!(bench.effects().await, ["a"]);
}

on_every_store!(a_claim_that_fails_in_sql_is_parked_again_beside_one_that_applies);
async fn a_claim_that_fails_in_sql_is_parked_again_beside_one_that_applies() {
    let bench = Bench::new().await;
    park(&bench, &["a", "b", "c"]).await;
    let mut claimed = bench.claim(&bench.plain, LEASE).await.into_iter();
    let retry = |delivery| over(delivery, applied(&[write("award-or-retry", &[Value::Signed(99)])]));
    let batch = [retry(claimed.next().unwrap()), effect(claimed.next().unwrap()), breaks(claimed.next().unwrap())];
    assert_eq!(bench.verdicts(&batch).await, fates![Parked Applied Dead]);
    assert_eq!(bench.effects().await, ["b"]);
    assert_eq!(bench.texts("SELECT concat(state, attempts) FROM ob_held ORDER BY held_id").await, ["02", "52", "12"]);
    assert_eq!(bench.texts("SELECT count(*) FROM ob_held WHERE lease_token IS NOT NULL").await, ["0"]);
}

on_every_store!(a_claim_that_was_taken_over_is_lost_and_changes_nothing);
async fn a_claim_that_was_taken_over_is_lost_and_changes_nothing() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    let late = bench.claim(&bench.plain, Duration::ZERO).await.remove(0);
    let now = claim_one(&bench).await;
    let before = bench.rows("SELECT * FROM ob_held").await;
    assert_eq!(bench.verdicts(&[effect(late)]).await, fates![Lost]);
    assert_eq!(bench.effects().await, [""; 0]);
    assert_eq!(bench.rows("SELECT * FROM ob_held").await, before);
    assert_eq!(bench.verdicts(&[effect(now)]).await, fates![Applied]);
    assert_eq!(bench.effects().await, ["a"]);
}

on_every_store!(a_lost_claim_does_not_take_the_others_of_its_batch_along);
async fn a_lost_claim_does_not_take_the_others_of_its_batch_along() {
    let bench = Bench::new().await;
    park(&bench, &["a", "b"]).await;
    let batch: Vec<Item> = bench.claim(&bench.plain, LEASE).await.into_iter().map(effect).collect();
    // A person's act clears the token.
    bench.run("UPDATE ob_held SET lease_token = NULL WHERE business_key = x'61'").await;
    assert_eq!(bench.verdicts(&batch).await, fates![Lost Applied]);
    assert_eq!(bench.effects().await, ["b"]);
}

on_every_store!(a_claim_that_meets_an_infrastructure_fault_stays_ours_and_uncounted);
async fn a_claim_that_meets_an_infrastructure_fault_stays_ours_and_uncounted() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    let item = over(claim_one(&bench).await, failed(Class::Infrastructure, "no-instance"));
    let before = bench.rows("SELECT * FROM ob_held").await;
    assert_eq!(bench.verdicts(std::slice::from_ref(&item)).await, fates![Again]);
    assert_eq!(bench.rows("SELECT * FROM ob_held").await, before);
    assert_eq!(bench.verdicts(&[effect(item.delivery)]).await, fates![Applied]);
}

on_every_store!(a_claimed_event_may_be_skipped);
async fn a_claimed_event_may_be_skipped() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    let item = over(claim_one(&bench).await, Outcome::Skipped { reason: "too late".into() });
    assert_eq!(bench.verdicts(&[item]).await, fates![Skipped]);
    assert_eq!(bench.texts("SELECT concat(state, code) FROM ob_inbox").await, ["1too late"]);
    assert_eq!(bench.texts("SELECT state FROM ob_held").await, ["5"]);
}

on_every_store!(a_claim_that_is_not_understood_any_more_is_dead_under_its_own_key);
/// The envelope of its source was changed since: it dies as the row that it is, and is not claimed for ever.
async fn a_claim_that_is_not_understood_any_more_is_dead_under_its_own_key() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    let failure = Failure::new(Class::Poison, "envelope", "it is no event");
    let item = Item { delivery: claim_one(&bench).await, ran: Ran::Unrun(failure) };
    assert_eq!(bench.verdicts(&[item]).await, fates![Dead]);
    assert_eq!(bench.texts("SELECT concat(state, code) FROM ob_held").await, ["1envelope"]);
    assert_eq!(bench.texts("SELECT state FROM ob_inbox").await, ["3"]);
}

on_every_store!(a_claim_without_its_key_is_refused);
/// It would be poison beside a row that stays parked: nothing may be committed.
async fn a_claim_without_its_key_is_refused() {
    let bench = Bench::new().await;
    park(&bench, &["a"]).await;
    let mut delivery = claim_one(&bench).await;
    let failure = Failure::new(Class::Poison, "envelope", "it is no event");
    delivery.identity = Err(failure.clone());
    let before = bench.rows("SELECT * FROM ob_held").await;
    let mut connection = bench.store.lane().await.unwrap();
    let item = Item { delivery, ran: Ran::Refused(failure) };
    let error = bench.unit_on(connection.as_mut(), &[item]).await.unwrap_err();
    assert_eq!(error.code(), "store-statement");
    assert_eq!(bench.rows("SELECT * FROM ob_held").await, before);
}
