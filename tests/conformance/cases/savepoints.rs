//! The two savepoints of a unit of work.

use oncebox::store::{InboxMark, Savepoint};
use oncebox_core::{failure::Class, ids::BusinessKey, life::InboxState, value::Value};

use crate::bench::{Bench, token_of};

fn insert(user: i64) -> std::sync::Arc<str> {
    format!("INSERT INTO points (user_id, points) VALUES ({user}, 0)").into()
}

pub(crate) async fn a_savepoint_undoes_writes_and_marks_and_stays_set(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    for _ in 0..2 {
        unit.staged_write(&insert(1), &[]).await.unwrap();
        unit.held_insert(&[bench.new_held(1)]).await.unwrap();
        let mark = InboxMark {
            handler: bench.handler,
            key: BusinessKey::new("k"),
            state: InboxState::Dead,
            deployment: None,
            attempts: 1,
            code: None,
            result: None,
        };
        unit.inbox_mark(&[mark]).await.unwrap();
        unit.rollback_to(Savepoint::Marks).await.unwrap();
    }
    unit.staged_write(&insert(2), &[]).await.unwrap();
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.rows("SELECT state FROM ob_inbox").await, [[Value::Signed(0)]]);
    assert_eq!(bench.rows("SELECT user_id FROM points").await, [[Value::Signed(2)]]);
    assert_eq!(bench.number("SELECT count(*) FROM ob_held").await, 0);
}

pub(crate) async fn a_savepoint_of_one_event_undoes_only_its_writes(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    for (user, stands) in [(1, true), (2, false), (3, true), (4, false)] {
        unit.savepoint(Savepoint::Event).await.unwrap();
        unit.staged_write(&insert(user), &[]).await.unwrap();
        if !stands {
            unit.rollback_to(Savepoint::Event).await.unwrap();
        }
        unit.release(Savepoint::Event).await.unwrap();
    }
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    let users = bench.rows("SELECT user_id FROM points ORDER BY user_id").await;
    assert_eq!(users, [[Value::Signed(1)], [Value::Signed(3)]]);
}

pub(crate) async fn a_statement_that_fails_leaves_the_unit_usable(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    unit.staged_write(&insert(1), &[]).await.unwrap();
    assert_eq!(unit.staged_write(&insert(1), &[]).await.unwrap_err().class, Class::DuplicateKey);
    unit.rollback_to(Savepoint::Marks).await.unwrap();
    unit.staged_write(&insert(2), &[]).await.unwrap();
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.rows("SELECT user_id FROM points").await, [[Value::Signed(2)]]);
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 1);
}
