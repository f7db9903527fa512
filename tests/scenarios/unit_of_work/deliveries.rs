//! First deliveries, duplicates, conflicts.

use oncebox::{
    host::{Item, Ran, Target},
    plugin::Outcome,
};
use oncebox_core::{
    failure::{Class, Failure},
    life::{HeldState, InboxState, Verdict},
};

use crate::{
    bench::{Bench, applied, deliver, effect, known, over, text, write},
    fates,
};

on_every_store!(a_batch_of_new_keys_is_applied_in_event_order);
async fn a_batch_of_new_keys_is_applied_in_event_order() {
    let bench = Bench::new().await;
    // Not in the order of the keys.
    let batch = ["c", "a", "b"].map(|key| effect(deliver(&bench.plain, key, 1)));
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Applied Applied]);
    assert_eq!(bench.effects().await, ["c", "a", "b"]);
    assert_eq!(bench.tally(Verdict::Applied).await, 3);
    let Target::Handler(handler, _) = &bench.plain else { panic!() };
    let story = bench.store.trace(handler.id, &oncebox_core::ids::BusinessKey::new("a")).await.unwrap();
    let inbox = story.inbox.unwrap();
    assert_eq!((inbox.state, inbox.attempts, inbox.event_id.as_str()), (InboxState::Applied, 1, "e-a-1"));
    assert_eq!((inbox.source.as_str(), inbox.code, inbox.result), ("orders", None, None));
    assert_eq!((story.held.len(), story.outgoing.len()), (0, 0));
}

on_every_store!(the_result_of_a_plugin_stands_with_the_inbox_row);
async fn the_result_of_a_plugin_stands_with_the_inbox_row() {
    let bench = Bench::new().await;
    let outcome = Outcome::Applied { result: Some(vec![1, 255]), writes: vec![], events: vec![] };
    assert_eq!(bench.verdicts(&[over(deliver(&bench.plain, "a", 1), outcome)]).await, fates![Applied]);
    let rows = bench.rows("SELECT result, state, attempts, deployment_id FROM ob_inbox").await;
    use oncebox_core::value::Value::{Bytes, Signed};
    assert_eq!(rows, [[Bytes(vec![1, 255]), Signed(0), Signed(1), Signed(1)]]);
}

on_every_store!(the_same_key_of_two_handlers_is_two_keys);
async fn the_same_key_of_two_handlers_is_two_keys() {
    let bench = Bench::new().await;
    let batch = [effect(deliver(&bench.plain, "a", 1)), effect(deliver(&bench.other, "a", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Applied]);
    assert_eq!(bench.effects().await, ["a", "a"]);
}

on_every_store!(a_duplicate_is_counted_and_its_run_leaves_nothing);
async fn a_duplicate_is_counted_and_its_run_leaves_nothing() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 1))]).await;
    // One that the look-up found, and one that had run before the first was committed.
    assert_eq!(bench.verdicts(&[known(deliver(&bench.plain, "a", 1))]).await, fates![Duplicate]);
    let batch = [effect(deliver(&bench.plain, "a", 1)), effect(deliver(&bench.plain, "b", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Duplicate Applied]);
    assert_eq!(bench.effects().await, ["a", "b"]);
    assert_eq!(bench.texts("SELECT duplicates FROM ob_inbox ORDER BY business_key").await, ["2", "0"]);
    assert_eq!(bench.tally(Verdict::Duplicate).await, 2);
}

on_every_store!(a_conflict_is_kept_with_its_message_and_counted);
async fn a_conflict_is_kept_with_its_message_and_counted() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 1))]).await;
    for _ in 0..2 {
        assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 2))]).await, fates![Conflict]);
    }
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 3))]).await, fates![Conflict]);
    assert_eq!(bench.effects().await, ["a"]);
    let held = bench.held().await;
    assert_eq!(held.len(), 2);
    let story = bench.store.held_show(held[0]).await.unwrap().unwrap();
    assert_eq!((story.row.state, story.row.times, story.row.due_us), (HeldState::Conflict, 2, None));
    assert_eq!((story.row.class, story.row.code.as_str()), (Class::Conflict, "conflict"));
    assert!(story.row.message.starts_with("key a is applied with fingerprint "), "{}", story.row.message);
    assert_eq!(story.body, crate::bench::message("a", 2));
    assert_eq!(bench.tally(Verdict::Conflict).await, 3);
    // What the row itself says is not changed by any of it.
    assert_eq!(bench.texts("SELECT state FROM ob_inbox").await, ["0"]);
}

on_every_store!(a_key_that_was_purged_after_its_look_up_runs_in_the_next_unit);
async fn a_key_that_was_purged_after_its_look_up_runs_in_the_next_unit() {
    let bench = Bench::new().await;
    let batch = [known(deliver(&bench.plain, "a", 1)), effect(deliver(&bench.plain, "b", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Again Applied]);
    assert_eq!(bench.texts("SELECT business_key FROM ob_inbox").await, ["b"]);
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 1))]).await, fates![Applied]);
    assert_eq!(bench.effects().await, ["b", "a"]);
}

on_every_store!(a_purged_key_and_a_new_duplicate_are_not_taken_for_each_other);
async fn a_purged_key_and_a_new_duplicate_are_not_taken_for_each_other() {
    let bench = Bench::new().await;
    // What the look-up has seen of one key and not of another is no longer so: together they count as if it were.
    bench.unit(&[effect(deliver(&bench.plain, "b", 1)), effect(deliver(&bench.plain, "c", 1))]).await;
    let (purged, there) = (known(deliver(&bench.plain, "a", 1)), known(deliver(&bench.plain, "b", 1)));
    let batch = [purged, there, effect(deliver(&bench.plain, "c", 1)), effect(deliver(&bench.plain, "d", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Again Duplicate Duplicate Applied]);
    assert_eq!(bench.effects().await, ["b", "c", "d"]);
    let rows = "SELECT CONCAT(CAST(business_key AS CHAR), ' ', duplicates) FROM ob_inbox ORDER BY business_key";
    assert_eq!(bench.texts(rows).await, ["b 1", "c 1", "d 0"]);
}

on_every_store!(an_unrouted_or_undecodable_message_is_poison_once_and_counted);
async fn an_unrouted_or_undecodable_message_is_poison_once_and_counted() {
    let bench = Bench::new().await;
    let poison = |body: &[u8], code: &str| {
        let mut delivery = deliver(&bench.plain, "a", 1);
        let message = oncebox_core::message::Message { body: body.to_vec(), ..Default::default() };
        delivery.origin = crate::bench::origin(message.into(), None, 0);
        delivery.target = Target::Nobody;
        let failure = Failure::new(Class::Poison, code, "not understood");
        delivery.identity = Err(failure.clone());
        Item { delivery, ran: Ran::Refused(failure) }
    };
    let batch = [poison(b"x", "bad"), poison(b"y", "bad"), poison(b"x", "bad"), poison(b"z", Failure::IGNORED)];
    assert_eq!(bench.verdicts(&batch).await, fates![Dead Dead Dead Skipped]);
    assert_eq!(bench.verdicts(&[poison(b"x", "bad")]).await, fates![Dead]);
    assert_eq!(bench.texts("SELECT times FROM ob_held ORDER BY held_id").await, ["3", "1"]);
    let story = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!(
        (story.row.state, story.body.body.as_slice(), story.row.key),
        (HeldState::Poison, b"x".as_slice(), None)
    );
    assert_eq!(bench.texts("SELECT count(*) FROM ob_inbox").await, ["0"]);
}

on_every_store!(a_skipped_event_stays_skipped_with_its_reason);
async fn a_skipped_event_stays_skipped_with_its_reason() {
    let bench = Bench::new().await;
    let skip = || over(deliver(&bench.plain, "a", 1), Outcome::Skipped { reason: "too old".into() });
    assert_eq!(bench.verdicts(&[skip()]).await, fates![Skipped]);
    assert_eq!(bench.verdicts(&[effect(deliver(&bench.plain, "a", 1))]).await, fates![Duplicate]);
    assert_eq!(bench.texts("SELECT code FROM ob_inbox WHERE state = 1 AND attempts = 1").await, ["too old"]);
    assert_eq!(bench.effects().await, [""; 0]);
}

on_every_store!(two_events_of_a_batch_may_build_on_each_other);
async fn two_events_of_a_batch_may_build_on_each_other() {
    let bench = Bench::new().await;
    let first = applied(&[write("once", &[text("x")])]);
    let second = applied(&[write("once-or-obsolete", &[text("x")])]);
    let batch = [over(deliver(&bench.plain, "b", 1), first), over(deliver(&bench.plain, "a", 1), second)];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Skipped]);
}
