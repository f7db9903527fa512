//! Held rows: counted, claimed, marked, opened again.

use oncebox::store::{DeploymentId, HandlerId, HeldId, HeldMark, NewAttempt, NewHeld, RuleId, StoreError};
use oncebox_core::{
    blame::Open,
    failure::Class,
    ids::{BootId, BusinessKey, Fingerprint},
    life::HeldState,
    value::Value,
};

use crate::bench::{Bench, LEASE, NO_LEASE, START, message, token_of};

fn mark(held: HeldId, token: u8, state: HeldState, due_us: Option<i64>) -> HeldMark {
    HeldMark {
        held,
        token: token_of(token),
        state,
        due_us,
        attempts: 3,
        attempts_short: 2,
        why: Some((Class::GuestRetry, "again".into(), "not yet".into())),
        deployment: Some(DeploymentId(2)),
        open: Open::default(),
    }
}

async fn mark_all(bench: &Bench, marks: &[HeldMark]) -> Result<(), StoreError> {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.held_mark(marks).await?;
    unit.commit().await
}

pub(crate) async fn a_held_row_of_the_same_identity_is_counted(bench: Bench) {
    let conflict = NewHeld { state: HeldState::Conflict, due_us: None, ..bench.new_held(1) };
    let first = bench.hold(std::slice::from_ref(&conflict)).await;
    let again = NewHeld { code: "other".into(), attempts: 9, ..conflict };
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let ids = unit.held_insert(&[again.clone(), bench.new_held(2), again]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!((ids[0], ids[2]), (first[0], first[0]));
    assert_ne!(ids[1], first[0]);
    let row = bench.store.held_show(first[0]).await.unwrap().unwrap().row;
    // The counters of the row that is there stand; the last reason is shown.
    assert_eq!((row.times, row.attempts, row.state, row.code.as_str()), (3, 2, HeldState::Conflict, "other"));
    assert_eq!(bench.number("SELECT count(*) FROM ob_body").await, 2);
}

pub(crate) async fn a_resolved_row_is_opened_again_with_its_new_body(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    bench.store.held_claim(bench.handler, 1, token_of(1), LEASE, START).await.unwrap();
    mark_all(&bench, &[mark(held, 1, HeldState::Resolved, None)]).await.unwrap();
    let again = NewHeld {
        attempts: 1,
        attempts_short: 0,
        due_us: Some(7),
        source: "other".into(),
        hops: 1,
        event_id: Some("e-2".into()),
        received_us: 2_000_000,
        deployment: Some(DeploymentId(5)),
        body: std::sync::Arc::new(message(b"second")),
        ..bench.new_held(1)
    };
    assert_eq!(bench.hold(&[again]).await, [held]);
    let story = bench.store.held_show(held).await.unwrap().unwrap();
    assert_eq!((story.row.state, story.row.times, story.row.attempts), (HeldState::Parked, 2, 1));
    assert_eq!((story.row.due_us, story.row.source.as_str()), (Some(7), "other"));
    assert_eq!((story.row.event_id.as_deref(), story.row.received_us), (Some("e-2"), 2_000_000));
    assert_eq!(story.body, message(b"second"));
    // What came first is kept as evidence.
    let bodies = bench.rows("SELECT revision, payload FROM ob_body ORDER BY revision").await;
    let body = |revision, payload: &[u8]| [Value::Signed(revision), Value::Bytes(payload.to_vec())];
    assert_eq!(bodies, [body(0, b"first"), body(1, b"second")]);
    let claimed = bench.store.held_claim(bench.handler, 9, token_of(2), LEASE, START).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].body.body.as_slice(), claimed[0].hops), (1, b"second".as_slice(), 1));
}

/// A key whose row was purged may come again with the fingerprint of an open conflict, and fail: it must be tried again.
pub(crate) async fn a_conflict_whose_event_is_parked_becomes_claimable(bench: Bench) {
    let conflict = NewHeld { state: HeldState::Conflict, due_us: None, ..bench.new_held(1) };
    let held = bench.hold(&[conflict]).await[0];
    assert_eq!(bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap(), []);
    assert_eq!(bench.hold(&[bench.new_held(1)]).await, [held]);
    let claimed = bench.store.held_claim(bench.handler, 9, token_of(2), LEASE, START).await.unwrap();
    assert_eq!(claimed.iter().map(|row| row.held).collect::<Vec<_>>(), [held]);
}

pub(crate) async fn only_due_parked_rows_of_the_handler_are_claimed_oldest_due_first(bench: Bench) {
    let due = |identity, due_us| NewHeld { due_us, ..bench.new_held(identity) };
    let later = bench.store.now_us().await.unwrap() + 3_600_000_000;
    let rows = [
        due(1, Some(30)),
        due(2, Some(10)),
        due(3, Some(later)),
        due(4, None),
        NewHeld { state: HeldState::Dead, ..due(5, Some(5)) },
        NewHeld { handler: HandlerId(bench.handler.0 + 1), ..due(6, Some(1)) },
        due(7, Some(20)),
    ];
    let ids = bench.hold(&rows).await;
    let mut claimed = Vec::new();
    for (token, max) in [(1, 2), (2, 2), (3, 2)] {
        let rows = bench.store.held_claim(bench.handler, max, token_of(token), LEASE, START).await.unwrap();
        let mut ids: Vec<_> = rows.iter().map(|row| row.held).collect();
        ids.sort();
        claimed.push(ids);
    }
    assert_eq!(claimed, [vec![ids[1], ids[6]], vec![ids[0]], vec![]]);
}

pub(crate) async fn a_claim_carries_all_that_the_next_attempt_needs(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    let claimed = bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    let [row] = claimed.as_slice() else { panic!("{claimed:?}") };
    assert_eq!((row.held, &row.key), (held, &BusinessKey::new([1])));
    assert_eq!((row.fingerprint, row.rule), (Fingerprint([1; 32]), RuleId(1)));
    assert_eq!((row.attempts, row.attempts_short, row.generation), (2, 1, 0));
    assert_eq!((row.source.as_str(), row.hops, row.received_us), ("orders", 3, 1_000_000));
    assert_eq!(row.body, message(b"first"));
}

pub(crate) async fn a_lease_that_is_over_makes_the_row_claimable_again(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    assert_eq!(bench.store.held_claim(bench.handler, 9, token_of(1), NO_LEASE, START).await.unwrap().len(), 1);
    assert_eq!(bench.store.held_claim(bench.handler, 9, token_of(2), LEASE, START).await.unwrap().len(), 1);
    assert_eq!(bench.store.held_claim(bench.handler, 9, token_of(3), LEASE, START).await.unwrap(), []);
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let asked = [(held, token_of(2)), (held, token_of(1)), (HeldId(held.0 + 1), token_of(2))];
    assert_eq!(unit.held_lock(&asked).await.unwrap(), [true, false, false]);
    unit.rollback().await.unwrap();
}

pub(crate) async fn a_write_under_an_old_token_is_lease_lost_and_changes_nothing(bench: Bench) {
    let ids = bench.hold(&[bench.new_held(1), bench.new_held(2)]).await;
    bench.store.held_claim(bench.handler, 9, token_of(1), NO_LEASE, START).await.unwrap();
    bench.store.held_claim(bench.handler, 1, token_of(2), LEASE, START).await.unwrap();
    let before = bench.rows("SELECT * FROM ob_held ORDER BY held_id").await;
    let late = [mark(ids[1], 1, HeldState::Resolved, None), mark(ids[0], 1, HeldState::Resolved, None)];
    let error = mark_all(&bench, &late).await.unwrap_err();
    assert!(matches!(error, StoreError::LeaseLost { held } if held == ids[0].0), "{error}");
    assert_eq!(bench.rows("SELECT * FROM ob_held ORDER BY held_id").await, before);
}

pub(crate) async fn a_mark_ends_the_lease(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    mark_all(&bench, &[mark(held, 1, HeldState::Parked, Some(2))]).await.unwrap();
    let error = mark_all(&bench, &[mark(held, 1, HeldState::Dead, None)]).await.unwrap_err();
    assert!(matches!(error, StoreError::LeaseLost { .. }), "{error}");
    let again = bench.store.held_claim(bench.handler, 9, token_of(2), LEASE, START).await.unwrap();
    assert_eq!((again[0].attempts, again[0].attempts_short), (3, 2));
}

pub(crate) async fn a_mark_without_a_reason_keeps_the_last_one(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    let over = HeldMark { why: None, deployment: None, ..mark(held, 1, HeldState::Resolved, None) };
    mark_all(&bench, &[over]).await.unwrap();
    let row = bench.store.held_show(held).await.unwrap().unwrap().row;
    assert_eq!((row.state, row.class, row.code.as_str()), (HeldState::Resolved, Class::Trap, "unreachable"));
    assert_eq!((row.message.as_str(), row.due_us, row.attempts), ("the guest trapped", None, 3));
    assert_eq!(bench.number("SELECT deployment_id FROM ob_held").await, 1);
}

pub(crate) async fn attempts_are_numbered_by_generation(bench: Bench) {
    let ids = bench.hold(&[bench.new_held(1), bench.new_held(2)]).await;
    let attempt = |held, generation, code: &str| NewAttempt {
        held,
        generation,
        boot: BootId([1; 16]),
        deployment: Some(DeploymentId(1)),
        started_us: 10,
        ended_us: 20,
        class: Class::Trap,
        code: code.into(),
        message: "m".into(),
        backtrace: Some("b".into()),
    };
    let mut lane = bench.lane().await;
    for rows in [
        vec![attempt(ids[0], 0, "a"), attempt(ids[0], 0, "b"), attempt(ids[1], 0, "c")],
        vec![attempt(ids[0], 0, "d"), attempt(ids[0], 1, "e")],
    ] {
        let mut unit = lane.begin().await.unwrap();
        unit.attempt_insert(&rows).await.unwrap();
        unit.commit().await.unwrap();
    }
    let attempts = bench.store.held_show(ids[0]).await.unwrap().unwrap().attempts;
    let shown: Vec<_> = attempts.iter().map(|a| (a.attempt, a.code.as_str())).collect();
    assert_eq!(shown, [(1, "a"), (2, "b"), (3, "d"), (1, "e")]);
    assert_eq!((attempts[0].started_us, attempts[0].ended_us, attempts[0].class), (10, 20, Class::Trap));
    assert_eq!(attempts[0].backtrace.as_deref(), Some("b"));
}

pub(crate) async fn one_question_tells_which_handlers_have_something_due_and_when(bench: Bench) {
    assert_eq!(bench.store.held_due().await.unwrap(), []);
    let other = bench.store.handler_ensure("other").await.unwrap();
    let dead = NewHeld { state: HeldState::Dead, due_us: Some(1), ..bench.new_held(1) };
    let person = NewHeld { due_us: None, ..bench.new_held(2) };
    bench.hold(&[dead, person]).await;
    assert_eq!(bench.store.held_due().await.unwrap(), []);
    let due = |identity, handler, due_us| NewHeld { handler, due_us: Some(due_us), ..bench.new_held(identity) };
    bench.hold(&[due(3, other, 70), due(4, bench.handler, 60), due(5, bench.handler, 50)]).await;
    assert_eq!(bench.store.held_due().await.unwrap(), [(bench.handler, 50), (other, 70)]);
    // What is claimed is due again at its lease's end.
    let before = bench.store.now_us().await.unwrap();
    bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    let due = bench.store.held_due().await.unwrap();
    assert_eq!((due.len(), due[0].0, due[1]), (2, bench.handler, (other, 70)));
    assert!(due[0].1 >= before + 3_600_000_000, "{}", due[0].1);
}
