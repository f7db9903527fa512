//! Plugins' statements and queries: what their answers and errors mean.

use std::{ops::Range, sync::Arc};

use oncebox::store::{Halted, Savepoint, Staged, StagedText, StatementError, UnitOfWork};
use oncebox_core::{failure::Class, sql::Mark, value::Value};

use crate::bench::Bench;

async fn fails(bench: &Bench, sql: &str, params: &[Value]) -> StatementError {
    bench.run("INSERT INTO points (user_id, points) VALUES (1, 10)").await;
    bench.run("INSERT INTO award (award_id, user_id, code) VALUES (1, 1, 'a')").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let error = unit.staged_write(&sql.into(), params).await.unwrap_err();
    unit.rollback().await.unwrap();
    error
}

pub(crate) async fn a_unique_key_of_a_business_table_is_a_duplicate_key(bench: Bench) {
    let error = fails(&bench, "INSERT INTO award (award_id, user_id, code) VALUES (2, 1, 'a')", &[]).await;
    assert_eq!((error.class, error.number, error.code), (Class::DuplicateKey, Some(1062), "duplicate-key"));
    assert!(error.message.contains("code"), "{error}");
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let primary = unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 0)".into(), &[]).await;
    assert_eq!(primary.unwrap_err().number, Some(1062));
}

pub(crate) async fn a_missing_parent_row_is_a_foreign_key_failure(bench: Bench) {
    let error = fails(&bench, "INSERT INTO award (award_id, user_id, code) VALUES (2, 99, 'b')", &[]).await;
    assert_eq!((error.class, error.number), (Class::ForeignKey, Some(1452)));
}

pub(crate) async fn null_where_none_may_be_is_a_data_failure(bench: Bench) {
    let error = fails(&bench, "INSERT INTO points (user_id, points) VALUES (2, ?)", &[Value::Null]).await;
    assert_eq!((error.class, error.number), (Class::Data, Some(1048)));
}

pub(crate) async fn a_check_that_does_not_hold_is_a_data_failure(bench: Bench) {
    let error = fails(&bench, "UPDATE points SET points = points - 11 WHERE user_id = 1", &[]).await;
    assert_eq!((error.class, error.number), (Class::Data, Some(3819)));
}

pub(crate) async fn a_table_that_is_gone_blocks_the_handler(bench: Bench) {
    let mut lane = bench.lane().await;
    let sql = "UPDATE anything SET v = ? WHERE n = 1".into();
    let mut unit = lane.begin().await.unwrap();
    assert_eq!(unit.staged_write(&sql, &[Value::Signed(1)]).await, Ok(0));
    unit.commit().await.unwrap();
    bench.alter("DROP TABLE anything").await;
    let mut unit = lane.begin().await.unwrap();
    let write = unit.staged_write(&sql, &[Value::Signed(1)]).await.unwrap_err();
    assert_eq!((write.class, write.number), (Class::Blocked, Some(1146)));
    let query = unit.query(&"SELECT nothing FROM points WHERE user_id = 1".into(), &[], 1).await.unwrap_err();
    assert_eq!(query.class, Class::Blocked);
}

pub(crate) async fn a_write_answers_the_rows_that_it_matched(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for (sql, rows) in [
        ("INSERT INTO points (user_id, points) VALUES (1, 5), (2, 5), (3, 6)", 3),
        // Nothing changes, but two rows are found.
        ("UPDATE points SET points = 5 WHERE points = 5", 2),
        ("UPDATE points SET points = 5 WHERE user_id = 99", 0),
        ("DELETE FROM points WHERE user_id = 3", 1),
        ("DELETE FROM points WHERE user_id = 3", 0),
    ] {
        assert_eq!(unit.staged_write(&sql.into(), &[]).await, Ok(rows), "{sql}");
    }
    unit.rollback().await.unwrap();
}

pub(crate) async fn values_of_every_type_come_back(bench: Bench) {
    let text = |text: &str| Value::Text(text.into());
    let pairs = [
        (Value::Null, Value::Null),
        (Value::Boolean(true), Value::Signed(1)),
        (Value::Boolean(false), Value::Signed(0)),
        (Value::Signed(i64::MIN), Value::Signed(i64::MIN)),
        (Value::Signed(i64::MAX), Value::Signed(i64::MAX)),
        (Value::Unsigned(1 << 62), Value::Signed(1 << 62)),
        (Value::Float(-0.1), Value::Float(-0.1)),
        (Value::Float(3.0), Value::Float(3.0)),
        (Value::Decimal("-12.340".into()), text("-12.340")),
        (Value::Text("a\0é'\"".into()), text("a\0é'\"")),
        (Value::Text(String::new()), text("")),
        (Value::Bytes(vec![0, 255]), Value::Bytes(vec![0, 255])),
        (Value::Bytes(Vec::new()), Value::Bytes(Vec::new())),
        (Value::Date("2026-11-29".into()), text("2026-11-29")),
        (Value::Time("-838:59:59.000001".into()), text("-838:59:59.000001")),
        (Value::Datetime("2026-11-29 12:00:00.000001".into()), text("2026-11-29 12:00:00.000001")),
        (Value::Json("{\"a\":1}".into()), text("{\"a\":1}")),
    ];
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for (n, (bound, read)) in (0i64..).zip(pairs) {
        let insert = "INSERT INTO anything (n, v) VALUES (?, ?)".into();
        assert_eq!(unit.staged_write(&insert, &[Value::Signed(n), bound.clone()]).await, Ok(1), "{bound:?}");
        let select = "SELECT v FROM anything WHERE n = ?".into();
        let answer = unit.query(&select, &[Value::Signed(n)], 1).await.unwrap();
        assert_eq!(answer.rows, [[read]], "{bound:?}");
    }
    unit.rollback().await.unwrap();
}

/// Each `?` of a text in which all of them stand by themselves.
pub(crate) fn marks(sql: &str) -> Vec<Mark> {
    sql.match_indices('?').map(|(at, _)| Mark { at, is_alone: true }).collect()
}

/// Runs one text several times, with other values each time, as writes that come together.
pub(crate) async fn together_in<const N: usize>(
    unit: &mut dyn UnitOfWork,
    sql: &Arc<str>,
    values: &[[Value; N]],
) -> Result<Vec<u64>, Halted> {
    let marks = marks(sql);
    let text = StagedText { sql, marks: &marks };
    let staged: Vec<Staged<'_>> = values.iter().map(|params| Staged::One(text, params)).collect();
    unit.staged_writes(&staged).await
}

pub(crate) async fn writes_that_come_together_answer_one_by_one(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let insert = "INSERT INTO points (user_id, points) VALUES (?, ?)".into();
    let rows: Vec<[Value; 2]> = (1..=500).map(|n| [Value::Unsigned(n), Value::Signed(1)]).collect();
    assert_eq!(together_in(unit.as_mut(), &insert, &rows).await, Ok(vec![1; 500]));
    let raise = "UPDATE points SET points = points + ? WHERE user_id <= ?".into();
    let steps = [(2, 3), (0, 2), (-1, 0), (5, 1)].map(|(by, to)| [Value::Signed(by), Value::Unsigned(to)]);
    // Rows that are found count, changed or not.
    assert_eq!(together_in(unit.as_mut(), &raise, &steps).await, Ok(vec![3, 2, 0, 1]));
    let points = unit.query(&"SELECT points FROM points WHERE user_id = 1".into(), &[], 1).await.unwrap();
    assert_eq!(points.rows, [[Value::Signed(8)]]);
    assert_eq!(unit.staged_writes(&[]).await, Ok(Vec::new()));
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM points").await, 500);
}

pub(crate) async fn the_first_of_them_that_fails_is_named_and_the_savepoint_undoes_what_stands(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    let insert = "INSERT INTO points (user_id, points) VALUES (?, ?)".into();
    let rows = [1, 2, 3, 2, 4].map(|n| [Value::Unsigned(n), Value::Signed(1)]);
    let halted = together_in(unit.as_mut(), &insert, &rows).await.unwrap_err();
    assert_eq!(halted.matched, [1, 1, 1]);
    assert_eq!((halted.error.class, halted.error.number), (Class::DuplicateKey, Some(1062)), "{halted:?}");
    unit.rollback_to(Savepoint::Marks).await.unwrap();
    let rows = [7, 8].map(|n| [Value::Unsigned(n), Value::Signed(1)]);
    assert_eq!(together_in(unit.as_mut(), &insert, &rows).await, Ok(vec![1, 1]));
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT sum(user_id) FROM points").await, 15);
}

pub(crate) async fn a_query_reads_one_row_more_than_its_limit(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let five = "INSERT INTO points (user_id, points) VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)".into();
    unit.staged_write(&five, &[]).await.unwrap();
    let all = "SELECT user_id, points AS p FROM points ORDER BY user_id".into();
    for (rows_max, read) in [(0, 1), (2, 3), (4, 5), (5, 5), (100, 5)] {
        let answer = unit.query(&all, &[], rows_max).await.unwrap();
        assert_eq!((answer.rows.len(), answer.columns), (read, vec!["user_id".to_owned(), "p".into()]));
    }
    // What was left unread does not hinder the next statement.
    assert_eq!(unit.staged_write(&"DELETE FROM points WHERE user_id > 0".into(), &[]).await, Ok(5));
    unit.commit().await.unwrap();
}

pub(crate) async fn a_query_without_rows_names_its_columns(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let answer = unit.query(&"SELECT user_id, points AS p FROM points WHERE user_id = 1".into(), &[], 9).await.unwrap();
    assert_eq!((answer.columns, answer.rows), (vec!["user_id".to_owned(), "p".into()], vec![]));
}

async fn inserted(
    unit: &mut dyn UnitOfWork,
    sql: &Arc<str>,
    group: &Range<usize>,
    rows: &[&[Value]],
) -> Result<Vec<u64>, Halted> {
    let marks = marks(sql);
    unit.staged_writes(&[Staged::InsertMany(StagedText { sql, marks: &marks }, group.clone(), rows.to_vec())]).await
}

pub(crate) async fn one_insert_of_many_rows_writes_each_of_them_or_fails(bench: Bench) {
    let sql: Arc<str> = "INSERT INTO points (user_id, points) VALUES (?, ?)".into();
    let group = sql.find("(?").unwrap()..sql.len();
    let values: Vec<[Value; 2]> = (1..=300).map(|n| [Value::Unsigned(n), Value::Signed(5)]).collect();
    let rows: Vec<&[Value]> = values.iter().map(<[Value; 2]>::as_slice).collect();
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    assert_eq!(inserted(unit.as_mut(), &sql, &group, &rows).await, Ok(vec![300]));
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT sum(points) FROM points WHERE user_id BETWEEN 1 AND 300").await, 1_500);
    // One of them is there already: the whole is said to fail, and the savepoint undoes what stands of it.
    let mut unit = lane.begin().await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    let values: Vec<[Value; 2]> = (290..=310).map(|n| [Value::Unsigned(n), Value::Signed(5)]).collect();
    let rows: Vec<&[Value]> = values.iter().rev().map(<[Value; 2]>::as_slice).collect();
    let halted = inserted(unit.as_mut(), &sql, &group, &rows).await.unwrap_err();
    assert_eq!((halted.matched, halted.error.number), (vec![], Some(1062)));
    unit.rollback_to(Savepoint::Marks).await.unwrap();
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM points WHERE user_id > 300").await, 0);
}
