//! Events that fail in their run or in their SQL, among others that do not.

use oncebox::host::{Fate, Item, Ran};
use oncebox_core::{
    failure::{Class, Failure},
    life::{HeldState, Verdict},
    value::Value,
};

use crate::{
    bench::{Bench, applied, breaks, deliver, effect, failed, over, text, write},
    fates,
};

/// A batch of keys `0`, `1`, …; those named fail in SQL. Their marks are there, and the others' effects, in order.
async fn batch_with_failures(events: usize, failing: &[usize]) {
    let bench = Bench::new().await;
    let item = |at: usize| {
        let delivery = deliver(&bench.plain, &at.to_string(), 1);
        if failing.contains(&at) { breaks(delivery) } else { effect(delivery) }
    };
    let batch: Vec<Item> = (0..events).map(item).collect();
    let verdict = |at| if failing.contains(&at) { Verdict::Dead } else { Verdict::Applied };
    let expected: Vec<Fate> = (0..events).map(|at| Fate::Decided(verdict(at))).collect();
    assert_eq!(bench.verdicts(&batch).await, expected, "{failing:?}");
    let keys = |wanted: bool| -> Vec<String> {
        (0..events).filter(|at| failing.contains(at) == wanted).map(|at| at.to_string()).collect()
    };
    assert_eq!(bench.effects().await, keys(false), "{failing:?}");
    let marked = bench.texts("SELECT business_key FROM ob_inbox WHERE state = 3 ORDER BY business_key").await;
    assert_eq!(marked, keys(true), "{failing:?}");
    // In arrival order.
    assert_eq!(bench.texts("SELECT business_key FROM ob_held ORDER BY held_id").await, keys(true), "{failing:?}");
    let codes = bench.texts("SELECT DISTINCT code FROM ob_held").await;
    assert_eq!(codes, if failing.is_empty() { vec![] } else { vec!["null-refused"] });
}

on_every_store!(one_failing_event_is_taken_out_and_the_rest_stands);
async fn one_failing_event_is_taken_out_and_the_rest_stands() {
    for at in [0, 2, 4] {
        batch_with_failures(5, &[at]).await;
    }
}

on_every_store!(the_marks_of_two_failing_events_are_both_there);
async fn the_marks_of_two_failing_events_are_both_there() {
    for pair in [[0, 1], [0, 4], [1, 3], [3, 4]] {
        batch_with_failures(5, &pair).await;
    }
}

on_every_store!(beyond_three_failures_each_event_has_a_savepoint_of_its_own);
async fn beyond_three_failures_each_event_has_a_savepoint_of_its_own() {
    batch_with_failures(6, &[0, 1, 2]).await;
    batch_with_failures(6, &[0, 1, 2, 3]).await;
    batch_with_failures(7, &[1, 2, 4, 5]).await;
    batch_with_failures(9, &[0, 2, 3, 5, 6, 8]).await;
    batch_with_failures(6, &[0, 1, 2, 3, 4, 5]).await;
}

on_every_store!(an_event_that_built_on_a_failing_one_fails_too);
async fn an_event_that_built_on_a_failing_one_fails_too() {
    let bench = Bench::new().await;
    // The first adds user 2 by way of `once`, which the second needs to be there; the first then fails.
    let first = applied(&[write("once", &[text("x")]), write("effect", &[Value::Null])]);
    let second = applied(&[write("once", &[text("x")])]);
    let third = applied(&[write("once", &[text("x")])]);
    let batch = [first, second, third].into_iter().zip(["a", "b", "c"]);
    let batch: Vec<Item> = batch.map(|(outcome, key)| over(deliver(&bench.plain, key, 1), outcome)).collect();
    // With the first gone, the second is first with `x`; the third finds it there.
    assert_eq!(bench.verdicts(&batch).await, fates![Dead Applied Parked]);
}

on_every_store!(a_duplicate_key_of_a_business_table_is_not_a_duplicate_delivery);
async fn a_duplicate_key_of_a_business_table_is_not_a_duplicate_delivery() {
    let bench = Bench::new().await;
    bench.run("INSERT INTO once (code) VALUES ('x')").await;
    let item = over(deliver(&bench.plain, "a", 1), applied(&[write("once", &[text("x")])]));
    assert_eq!(bench.verdicts(&[item]).await, fates![Parked]);
    let row = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!((row.row.state, row.row.class), (HeldState::Parked, Class::DuplicateKey));
    assert_eq!((row.row.code.as_str(), row.row.attempts, row.attempts.len()), ("duplicate-key", 1, 1));
    assert!(row.row.message.starts_with("statement `once`: "), "{}", row.row.message);
    assert_eq!(bench.texts("SELECT attempts_short FROM ob_held").await, ["1"]);
    assert_eq!(bench.tally(Verdict::Duplicate).await, 0);
}

on_every_store!(an_obsolete_event_is_skipped_and_its_writes_are_undone);
async fn an_obsolete_event_is_skipped_and_its_writes_are_undone() {
    let bench = Bench::new().await;
    let stale = applied(&[write("effect", &[text("undone")]), write("award-or-obsolete", &[Value::Signed(99)])]);
    let batch = [over(deliver(&bench.plain, "a", 1), stale), effect(deliver(&bench.plain, "b", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Skipped Applied]);
    assert_eq!(bench.effects().await, ["b"]);
    assert_eq!(bench.texts("SELECT code FROM ob_inbox WHERE state = 1").await, ["obsolete"]);
    assert_eq!(bench.held().await, []);
}

on_every_store!(a_row_mismatch_is_what_the_manifest_says);
async fn a_row_mismatch_is_what_the_manifest_says() {
    let bench = Bench::new().await;
    let award = |statement: &str| applied(&[write(statement, &[Value::Signed(99)])]);
    let batch = [
        over(deliver(&bench.plain, "a", 1), award("award-or-reject")),
        over(deliver(&bench.plain, "b", 1), award("award-or-retry")),
        over(deliver(&bench.plain, "c", 1), applied(&[write("award-or-reject", &[Value::Signed(1)])])),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Dead Parked Applied]);
    let whys = bench.texts("SELECT concat(code, ': ', message) FROM ob_held ORDER BY held_id").await;
    let expected = [
        "odd: statement `award-or-reject` matched 0 rows, the manifest expects 1",
        "rows-mismatch: statement `award-or-retry` matched 0 rows, the manifest expects 1",
    ];
    assert_eq!(whys, expected);
    assert_eq!(bench.texts("SELECT points FROM points").await, ["1"]);
}

on_every_store!(a_server_error_is_what_the_manifest_says);
async fn a_server_error_is_what_the_manifest_says() {
    let bench = Bench::new().await;
    bench.run("INSERT INTO once (code) VALUES ('x')").await;
    let batch = ["once-or-obsolete", "once-or-reject"]
        .map(|statement| over(deliver(&bench.plain, statement, 1), applied(&[write(statement, &[text("x")])])));
    assert_eq!(bench.verdicts(&batch).await, fates![Skipped Dead]);
    assert_eq!(bench.texts("SELECT code FROM ob_held").await, ["taken"]);
}

on_every_store!(a_table_that_is_gone_parks_the_event_uncounted);
async fn a_table_that_is_gone_parks_the_event_uncounted() {
    let bench = Bench::new().await;
    let item = over(deliver(&bench.plain, "a", 1), applied(&[write("missing-table", &[])]));
    assert_eq!(bench.verdicts(&[item]).await, fates![Parked]);
    let row = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap().row;
    assert_eq!((row.class, row.attempts), (Class::Blocked, 0));
    assert!(row.due_us.is_some());
}

on_every_store!(each_class_of_a_failed_run_ends_as_the_design_says);
async fn each_class_of_a_failed_run_ends_as_the_design_says() {
    let bench = Bench::new().await;
    let run = |key: &str, class| over(deliver(&bench.plain, key, 1), failed(class, "why"));
    let batch = [
        run("retry", Class::GuestRetry),
        run("reject", Class::GuestReject),
        run("trap", Class::Trap),
        run("quota", Class::Quota),
        run("pool", Class::Infrastructure),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Parked Dead Parked Dead Again]);
    let shorts =
        bench.texts("SELECT concat(business_key, attempts, attempts_short) FROM ob_held ORDER BY held_id").await;
    assert_eq!(shorts, ["retry10", "reject10", "trap11", "quota10"]);
    // An infrastructure fault leaves no trace: the key is free.
    assert_eq!(bench.texts("SELECT count(*) FROM ob_inbox WHERE business_key = x'706f6f6c'").await, ["0"]);
}

on_every_store!(an_event_that_is_put_aside_unrun_is_parked_uncounted);
async fn an_event_that_is_put_aside_unrun_is_parked_uncounted() {
    let bench = Bench::new().await;
    let failure = Failure::new(Class::Unrun, "slow-backlog", "too many wait");
    let item = Item { delivery: deliver(&bench.plain, "a", 1), ran: Ran::Unrun(failure) };
    assert_eq!(bench.verdicts(&[item]).await, fates![Parked]);
    let story = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap();
    assert_eq!((story.row.attempts, story.attempts.len(), story.row.code.as_str()), (0, 0, "slow-backlog"));
    let deployments = bench.rows("SELECT deployment_id, attempts FROM ob_inbox").await;
    assert_eq!(deployments, [[Value::Null, Value::Signed(0)]]);
}
