//! What is promised of the embedded store alone: one file, one host.

use std::path::Path;

use oncebox::store::{Store, StoreError, Use, sqlite::SqliteStore};
use oncebox_core::{failure::Class, ids::BootId, sql::TableKind, value::Value};

use crate::bench::{Bench, LEASE, START, message, token_of};

async fn refused(path: &Path, usage: Use) -> StoreError {
    match SqliteStore::open(path, None, usage).await {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

pub(crate) async fn a_second_host_is_refused_and_a_command_beside_it_works(bench: Bench) {
    let error = refused(bench.path(), Use::Host).await;
    assert!(matches!(error, StoreError::Taken { .. }), "{error}");
    let command = SqliteStore::open(bench.path(), None, Use::Command).await.unwrap();
    command.local_offer("orders", &[message(b"1")]).await.unwrap();
    assert_eq!(bench.store.local_claim("orders", 9, token_of(1), LEASE).await.unwrap().len(), 1);
    let path = bench.path().clone();
    let Bench { store, place: _place, .. } = bench;
    drop(store);
    SqliteStore::open(&path, None, Use::Host).await.unwrap();
}

pub(crate) async fn a_second_host_under_another_name_of_the_file_is_refused(bench: Bench) {
    let link = bench.path().with_file_name("link.db");
    std::os::unix::fs::symlink(bench.path(), &link).unwrap();
    let error = refused(&link, Use::Host).await;
    assert!(matches!(error, StoreError::Taken { .. }), "{error}");
}

pub(crate) async fn leases_are_void_when_a_host_starts(bench: Bench) {
    bench.store.boot_insert(BootId([1; 16]), "here").await.unwrap();
    bench.store.local_offer("orders", &[message(b"1")]).await.unwrap();
    bench.hold(&[bench.new_held(1)]).await;
    bench.store.local_claim("orders", 9, token_of(1), LEASE).await.unwrap();
    bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    // A command leaves them as they are.
    let command = SqliteStore::open(bench.path(), None, Use::Command).await.unwrap();
    assert_eq!(command.local_claim("orders", 9, token_of(2), LEASE).await.unwrap(), []);
    assert_eq!(command.boots_live(LEASE).await.unwrap().len(), 1);
    let path = bench.path().clone();
    let Bench { store, handler, place: _place } = bench;
    drop((store, command));
    let store = SqliteStore::open(&path, None, Use::Host).await.unwrap();
    // There is one host, and it has just begun.
    assert_eq!(store.boots_live(LEASE).await.unwrap(), []);
    assert_eq!(store.local_claim("orders", 9, token_of(3), LEASE).await.unwrap().len(), 1);
    assert_eq!(store.held_claim(handler, 9, token_of(3), LEASE, START).await.unwrap().len(), 1);
}

pub(crate) async fn opening_again_migrates_nothing_and_a_newer_file_is_refused(bench: Bench) {
    let before = bench.store.schema_version().await.unwrap();
    // The schema file is for a new file only: here it would fail.
    let again = SqliteStore::open(bench.path(), Some("CREATE TABLE points (n)"), Use::Command).await.unwrap();
    assert_eq!(again.schema_version().await.unwrap(), before);
    assert_eq!(again.handlers().await.unwrap().len(), 1);
    bench.run("PRAGMA user_version = 99").await;
    let error = refused(bench.path(), Use::Command).await;
    assert!(matches!(error, StoreError::Migration { found: 99, .. }), "{error}");
}

pub(crate) async fn a_schema_that_is_wrong_leaves_no_half_made_file(bench: Bench) {
    let path = bench.path().with_file_name("new.db");
    let wrong = SqliteStore::open(&path, Some("CREATE TABLE a (n); CREATE TABLE a (n);"), Use::Host).await;
    let Err(error) = wrong else { panic!("it was opened") };
    assert!(error.to_string().contains("the tenant's schema file"), "{error}");
    let mended = SqliteStore::open(&path, Some("CREATE TABLE a (n);"), Use::Host).await.unwrap();
    assert!(mended.catalogue().await.unwrap().tables.contains_key("a"));
}

pub(crate) async fn a_decimal_beyond_15_digits_and_a_large_unsigned_are_refused_at_bind(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let insert = "INSERT INTO anything (v) VALUES (?)".into();
    for good in [Value::Decimal("-1234567890123.45".into()), Value::Unsigned(i64::MAX.unsigned_abs())] {
        assert_eq!(unit.staged_write(&insert, std::slice::from_ref(&good)).await, Ok(1), "{good:?}");
    }
    for bad in [Value::Decimal("12345678901234.56".into()), Value::Unsigned(i64::MAX.unsigned_abs() + 1)] {
        let write = unit.staged_write(&insert, std::slice::from_ref(&bad)).await.unwrap_err();
        assert_eq!((write.class, write.number), (Class::Data, Some(1264)), "{bad:?}");
        let query = unit.query(&"SELECT n FROM anything WHERE v = ?".into(), &[bad], 1).await.unwrap_err();
        assert!(query.message.starts_with("parameter 1: "), "{query}");
    }
}

pub(crate) async fn a_text_where_a_strict_table_wants_a_number_is_a_data_failure(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let insert = "INSERT INTO points (user_id, points) VALUES (1, ?)".into();
    let error = unit.staged_write(&insert, &[Value::Text("many".into())]).await.unwrap_err();
    assert_eq!((error.class, error.number), (Class::Data, Some(1366)));
    let error = unit.staged_write(&insert, &[Value::Float(0.5)]).await.unwrap_err();
    assert_eq!((error.class, error.number), (Class::Data, Some(1366)));
}

pub(crate) async fn text_that_is_not_utf_8_is_a_data_failure_and_not_an_absent_database(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points, note) VALUES (1, 0, CAST(x'ff' AS TEXT))").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let error = unit.query(&"SELECT note FROM points WHERE user_id = 1".into(), &[], 1).await.unwrap_err();
    assert_eq!((error.class, error.number), (Class::Data, Some(1366)), "{error}");
}

pub(crate) async fn a_function_that_refuses_its_argument_is_a_data_failure(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points, note) VALUES (1, 0, 'no json')").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for sql in [
        "UPDATE points SET note = json_extract(note, '$.a') WHERE user_id = 1",
        "UPDATE points SET points = abs(-9223372036854775807 - 1) WHERE user_id = 1",
    ] {
        let error = unit.staged_write(&sql.into(), &[]).await.unwrap_err();
        assert_eq!(error.class, Class::Data, "{sql}: {error}");
    }
}

pub(crate) async fn a_table_that_rolls_back_by_itself_does_not_wedge_the_lane(bench: Bench) {
    bench.run("CREATE TABLE harsh (n INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)").await;
    bench.run("INSERT INTO harsh (n) VALUES (1)").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.staged_write(&"INSERT INTO harsh (n) VALUES (1)".into(), &[]).await.unwrap_err();
    assert!(unit.commit().await.is_err(), "there is nothing left to commit");
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(2), &[bench.new_inbox("k")]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 1);
}

pub(crate) async fn virtual_tables_are_told_apart_from_tables(bench: Bench) {
    bench.run("CREATE VIRTUAL TABLE words USING fts5 (word)").await;
    let tables = bench.store.catalogue().await.unwrap().tables;
    assert_eq!(tables["words"].kind, TableKind::Virtual);
    // What the virtual table keeps its rows in, and SQLite its own.
    assert_eq!(tables["words_data"].kind, TableKind::System);
    assert_eq!(tables["sqlite_schema"].kind, TableKind::System);
}

pub(crate) async fn the_settings_of_every_connection_are_the_safe_ones(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for (pragma, value) in [
        ("synchronous", Value::Signed(2)),
        ("foreign_keys", Value::Signed(1)),
        ("journal_mode", Value::Text("wal".into())),
    ] {
        let answer = unit.query(&format!("PRAGMA {pragma}").into(), &[], 1).await.unwrap();
        assert_eq!(answer.rows, [[value]], "{pragma}");
    }
}

pub(crate) async fn a_table_that_would_break_a_unit_of_work_is_named_with_its_clause(bench: Bench) {
    bench.run("CREATE TABLE fine (n INTEGER PRIMARY KEY ON CONFLICT ABORT) STRICT").await;
    bench.run("CREATE TABLE gone (n INTEGER PRIMARY KEY on  conflict\n rollback) STRICT").await;
    bench.run("CREATE TABLE late (n INTEGER REFERENCES fine (n) DEFERRABLE INITIALLY DEFERRED) STRICT").await;
    bench.run("CREATE TABLE other (n INTEGER UNIQUE ON CONFLICT REPLACE) STRICT").await;
    let unfit = bench.store.unfit_tables(&["fine", "GONE", "late", "absent"]).await.unwrap();
    assert_eq!(unfit, [("gone".to_owned(), "ON CONFLICT ROLLBACK"), ("late".to_owned(), "INITIALLY DEFERRED")]);
}
