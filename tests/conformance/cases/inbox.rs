//! The inbox: the one arbiter of "first".

use oncebox::store::{DeploymentId, InboxMark, Savepoint, StoreError};
use oncebox_core::{
    ids::{BusinessKey, Fingerprint},
    life::InboxState,
    value::Value,
};

use crate::bench::{Bench, token_of};

pub(crate) async fn a_row_is_first_only_under_the_token_of_its_own_unit(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let rows = unit.inbox_insert(token_of(7), &[bench.new_inbox("k")]).await.unwrap();
    assert_eq!((rows[0].token, rows[0].state, rows[0].generation), (token_of(7), InboxState::Applied, 0));
    assert_eq!((rows[0].handler, &rows[0].key), (bench.handler, &BusinessKey::new("k")));
    unit.commit().await.unwrap();
    let mut unit = lane.begin().await.unwrap();
    let rows = unit.inbox_insert(token_of(8), &[bench.new_inbox("k")]).await.unwrap();
    assert_eq!(rows[0].token, token_of(7));
    unit.rollback().await.unwrap();
}

pub(crate) async fn a_second_unit_sees_the_row_as_it_is_and_counts_a_duplicate(bench: Bench) {
    bench.insert(1, &["k"]).await;
    let mut lane = bench.lane().await;
    for token in [2, 3] {
        let mut unit = lane.begin().await.unwrap();
        let mut other = bench.new_inbox("k");
        other.fingerprint = Fingerprint([9; 32]);
        other.event_id = "e-2".into();
        let rows = unit.inbox_insert(token_of(token), &[other]).await.unwrap();
        assert_eq!(rows[0].fingerprint, Fingerprint([1; 32]));
        unit.commit().await.unwrap();
    }
    let story = bench.store.trace(bench.handler, &BusinessKey::new("k")).await.unwrap().inbox.unwrap();
    assert_eq!((story.duplicates, story.event_id.as_str(), story.attempts), (2, "e-1", 1));
    assert!(story.duplicate_us >= Some(story.decided_us));
}

pub(crate) async fn rows_come_back_in_the_order_asked(bench: Bench) {
    bench.insert(1, &["b"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let rows = ["c", "a", "b"].map(|key| bench.new_inbox(key));
    let found = unit.inbox_insert(token_of(2), &rows).await.unwrap();
    let found: Vec<_> = found.iter().map(|row| (row.key.to_string(), row.token)).collect();
    assert_eq!(found, [("c".into(), token_of(2)), ("a".into(), token_of(2)), ("b".into(), token_of(1))]);
    unit.rollback().await.unwrap();
}

pub(crate) async fn a_row_that_was_seen_is_counted_and_one_that_has_gone_is_first(bench: Bench) {
    bench.insert(1, &["a", "b", "c"]).await;
    let mut lane = bench.lane().await;
    let seen = lane.inbox_look_up(&["a", "b", "c"].map(|key| bench.key(key))).await.unwrap();
    let as_seen = |key: &str| {
        let seen = seen.iter().find(|row| row.key == BusinessKey::new(key)).cloned();
        oncebox::store::NewInbox { seen, ..bench.new_inbox(key) }
    };
    // All as they were seen; one has gone since; one is there that was not seen; both, which counts as if neither were.
    let gone = "DELETE FROM ob_inbox WHERE business_key = x'61'";
    for (token, before, keys, first) in [
        (2, None, ["b", "new-1", "c"].map(as_seen), &["new-1"][..]),
        (3, Some(gone), ["a", "b", "new-2"].map(as_seen), &["a", "new-2"]),
        (4, None, [bench.new_inbox("b"), as_seen("c"), as_seen("new-3")], &["new-3"]),
        (5, Some(gone), [as_seen("a"), bench.new_inbox("b"), as_seen("c")], &["a"]),
        (6, None, ["a", "b", "c"].map(as_seen), &["a"]),
    ] {
        if let Some(sql) = before {
            bench.run(sql).await;
        }
        let mut unit = lane.begin().await.unwrap();
        let found = unit.inbox_insert(token_of(token), &keys).await.unwrap();
        assert!(found.iter().zip(&keys).all(|(row, new)| row.key == new.key), "{found:?}");
        let own = found.iter().filter(|row| row.token == token_of(token));
        assert_eq!(own.map(|row| row.key.to_string()).collect::<Vec<_>>(), first);
        unit.inbox_delete(token_of(token), &[bench.key("a")]).await.unwrap();
        unit.commit().await.unwrap();
    }
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 5);
    assert_eq!(bench.number("SELECT duplicates FROM ob_inbox WHERE business_key = x'62'").await, 5);
    assert_eq!(bench.number("SELECT duplicates FROM ob_inbox WHERE business_key = x'63'").await, 4);
    assert_eq!(bench.number("SELECT sum(duplicates) FROM ob_inbox").await, 9);
}

pub(crate) async fn a_rollback_leaves_nothing(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.held_insert(&[bench.new_held(1)]).await.unwrap();
    unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 1)".into(), &[]).await.unwrap();
    unit.rollback().await.unwrap();
    for table in ["ob_inbox", "ob_held", "ob_body", "points"] {
        assert_eq!(bench.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}

pub(crate) async fn a_unit_that_is_given_up_leaves_nothing_and_counts_nothing(bench: Bench) {
    bench.insert(1, &["b"]).await;
    let mut lane = bench.lane().await;
    for has_marks in [false, true] {
        let mut unit = lane.begin().await.unwrap();
        let rows = ["a", "b", "c"].map(|key| bench.new_inbox(key));
        unit.inbox_insert(token_of(2), &rows).await.unwrap();
        if has_marks {
            unit.savepoint(Savepoint::Marks).await.unwrap();
            unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 1)".into(), &[]).await.unwrap();
            unit.held_insert(&[bench.new_held(1)]).await.unwrap();
        }
        unit.give_up().await.unwrap();
        assert_eq!(bench.rows("SELECT business_key FROM ob_inbox").await, [[Value::Bytes(b"b".to_vec())]]);
        assert_eq!(bench.number("SELECT sum(duplicates) FROM ob_inbox").await, 0);
        for table in ["ob_held", "ob_body", "points"] {
            assert_eq!(bench.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
        }
    }
    // Nothing of it is left open.
    bench.insert(3, &["a", "c"]).await;
}

pub(crate) async fn a_unit_that_is_dropped_is_rolled_back_before_the_next_one(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("dropped")]).await.unwrap();
    drop(unit);
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(2), &[bench.new_inbox("kept")]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.rows("SELECT business_key FROM ob_inbox").await, [[Value::Bytes(b"kept".to_vec())]]);
}

pub(crate) async fn a_look_up_after_a_dropped_unit_sees_nothing_of_it(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    drop(unit);
    assert_eq!(lane.inbox_look_up(&[bench.key("k")]).await.unwrap(), []);
    // Nor does it keep others from writing.
    bench.insert(2, &["k"]).await;
    assert_eq!(lane.inbox_look_up(&[bench.key("k")]).await.unwrap()[0].token, token_of(2));
}

pub(crate) async fn keys_are_compared_byte_for_byte(bench: Bench) {
    // Upper case, lower case, a trailing space, a trailing NUL, á composed and decomposed.
    let keys: [&[u8]; 6] = [b"A", b"a", b"a ", b"a\0", "\u{e1}".as_bytes(), "a\u{301}".as_bytes()];
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let rows = keys.map(|key| bench.new_inbox(key));
    let found = unit.inbox_insert(token_of(1), &rows).await.unwrap();
    assert!(found.iter().all(|row| row.token == token_of(1)));
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 6);
    assert_eq!(bench.number("SELECT sum(duplicates) FROM ob_inbox").await, 0);
    for key in keys {
        let asked = (bench.handler, BusinessKey::new(key));
        assert_eq!(lane.inbox_look_up(&[asked]).await.unwrap()[0].key.as_bytes(), key);
    }
}

pub(crate) async fn a_delete_takes_back_only_what_this_unit_inserted(bench: Bench) {
    bench.insert(1, &["old"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(2), &[bench.new_inbox("new"), bench.new_inbox("old")]).await.unwrap();
    unit.inbox_delete(token_of(2), &[bench.key("new"), bench.key("old"), bench.key("absent")]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.rows("SELECT business_key FROM ob_inbox").await, [[Value::Bytes(b"old".to_vec())]]);
}

fn parked(bench: &Bench, key: &str) -> InboxMark {
    InboxMark {
        handler: bench.handler,
        key: BusinessKey::new(key),
        state: InboxState::Parked,
        deployment: None,
        attempts: 3,
        code: Some("later".into()),
        result: Some(vec![0, 255]),
    }
}

pub(crate) async fn a_mark_writes_the_outcome(bench: Bench) {
    bench.insert(1, &["k", "other"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_mark(&[parked(&bench, "k")]).await.unwrap();
    unit.commit().await.unwrap();
    let story = bench.store.trace(bench.handler, &BusinessKey::new("k")).await.unwrap().inbox.unwrap();
    assert_eq!((story.state, story.attempts, story.deployment), (InboxState::Parked, 3, None));
    assert_eq!((story.code.as_deref(), story.result), (Some("later"), Some(vec![0, 255])));
    assert_eq!((story.source.as_str(), story.traceparent.as_deref()), ("orders", Some("00-a-b-01")));
    let other = bench.store.trace(bench.handler, &BusinessKey::new("other")).await.unwrap().inbox.unwrap();
    assert_eq!(other.state, InboxState::Applied);
    let mut unit = lane.begin().await.unwrap();
    let again = InboxMark { deployment: Some(DeploymentId(4)), code: None, result: None, ..parked(&bench, "k") };
    unit.inbox_mark(&[again]).await.unwrap();
    unit.commit().await.unwrap();
    let columns = bench.rows("SELECT deployment_id, code, result FROM ob_inbox WHERE state = 2").await;
    assert_eq!(columns, [[Value::Signed(4), Value::Null, Value::Null]]);
}

pub(crate) async fn a_mark_of_a_row_that_is_not_there_is_an_error(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    // What has no answer may go with the next call, and is known before anything is committed.
    let error = match unit.inbox_mark(&[parked(&bench, "k")]).await {
        Ok(()) => unit.commit().await.unwrap_err(),
        Err(error) => {
            unit.rollback().await.unwrap();
            error
        }
    };
    assert!(matches!(error, StoreError::Corrupt { table: "ob_inbox", .. }), "{error}");
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 0);
}

pub(crate) async fn a_look_up_finds_the_rows_there_are_and_no_others(bench: Bench) {
    bench.insert(1, &["a", "b", "c"]).await;
    let mut lane = bench.lane().await;
    assert_eq!(lane.inbox_look_up(&[]).await.unwrap(), []);
    let other_handler = (oncebox::store::HandlerId(bench.handler.0 + 1), BusinessKey::new("a"));
    let asked = [bench.key("c"), bench.key("absent"), other_handler, bench.key("a")];
    let mut found: Vec<_> = lane.inbox_look_up(&asked).await.unwrap().iter().map(|row| row.key.to_string()).collect();
    found.sort();
    assert_eq!(found, ["a", "c"]);
}

pub(crate) async fn a_lock_answers_in_the_order_asked(bench: Bench) {
    bench.insert(1, &["a", "b"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let found = unit.inbox_lock(&[bench.key("b"), bench.key("absent"), bench.key("a")]).await.unwrap();
    let found: Vec<_> = found.iter().map(|row| row.as_ref().map(|row| row.key.to_string())).collect();
    assert_eq!(found, [Some("b".into()), None, Some("a".into())]);
    unit.rollback().await.unwrap();
}
