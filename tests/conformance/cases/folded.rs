//! One UPDATE for many events: what it writes is what each of them alone would have written.

use std::sync::Arc;

use oncebox::store::{Savepoint, Staged, StagedText, StatementError, UnitOfWork};
use oncebox_core::{
    fold::{self, Form, UpdateForm},
    manifest::{Access, RowExpectation},
    sql::{Declared, Dialect, KeyColumn, Purpose, check_text},
    value::{ParamType, Value},
};

use crate::bench::Bench;

const ONE: RowExpectation = RowExpectation::Between { min: 1, max: 1 };

/// What the gate, the server's catalogue and the rules of folding make of a text.
async fn form(bench: &Bench, sql: &str, params: &[ParamType]) -> Option<UpdateForm> {
    let catalogue = bench.store.catalogue().await.unwrap();
    let tables = catalogue.tables.keys().map(|name| (name.clone(), Access::Write)).collect();
    let purpose = Purpose::Statement { rows: ONE };
    let declared = Declared { tables: &tables, params: params.len(), purpose };
    let accepted = check_text(sql, Dialect::MySql, &declared).unwrap();
    match fold::facts(&accepted, ONE, params, &catalogue).form? {
        Form::Update(form) => Some(form),
        Form::Insert(_) => panic!("{sql} is no UPDATE"),
    }
}

async fn update(
    unit: &mut dyn UnitOfWork,
    sql: &Arc<str>,
    form: &UpdateForm,
    rows: &[&[Value]],
) -> Result<u64, StatementError> {
    let text = StagedText { sql, marks: &[] };
    let matched = unit.staged_writes(&[Staged::UpdateMany(text, form, rows.to_vec())]).await;
    matched.map(|matched| matched[0]).map_err(|halted| halted.error)
}

pub(crate) async fn the_catalogue_tells_primary_and_unique_keys(bench: Bench) {
    bench.alter("CREATE TABLE pair (Shop INT UNSIGNED, name VARCHAR(9), n INT UNIQUE, PRIMARY KEY (Shop, name))").await;
    bench.alter("CREATE TABLE derived (id INT PRIMARY KEY, n INT, g INT AS (n + 1) STORED UNIQUE)").await;
    bench.tenant().ready(&["pair", "derived"]).await.unwrap();
    let tables = bench.store.catalogue().await.unwrap().tables;
    let key = |name: &str, is_integer| KeyColumn { name: name.into(), is_integer };
    assert_eq!(tables["points"].primary_key, [key("user_id", true)]);
    assert_eq!(tables["pair"].primary_key, [key("shop", true), key("name", false)]);
    assert_eq!(tables["pair"].unique, ["shop", "name", "n"].map(str::to_owned).into());
    assert_eq!(tables["award"].unique, ["award_id", "code"].map(str::to_owned).into());
    assert_eq!(tables["derived"].primary_key, [], "a key over something that is not a plain column");
}

pub(crate) async fn an_update_of_many_rows_changes_each_of_them_and_locks_no_other(bench: Bench) {
    let rows: Vec<String> = (1..=400).map(|id| format!("({id}, {id})")).collect();
    bench.run(&format!("INSERT INTO points (user_id, points) VALUES {}", rows.join(", "))).await;
    let sql: Arc<str> = "UPDATE points AS p SET p.points = points + ?, note = ? WHERE user_id = ?".into();
    let form = form(&bench, &sql, &[ParamType::Signed, ParamType::Text, ParamType::Unsigned]).await.unwrap();
    let values: Vec<[Value; 3]> = (1..=300)
        .map(|id| {
            let note = if id == 2 { Value::Null } else { Value::Text(format!("n{id}")) };
            [Value::Signed(if id == 1 { -1 } else { 5 }), note, Value::Unsigned(id)]
        })
        .collect();
    let rows: Vec<&[Value]> = values.iter().map(<[Value; 3]>::as_slice).collect();
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    assert_eq!(update(unit.as_mut(), &sql, &form, &rows).await, Ok(300));
    // Whoever wants another row does not wait; a wait would end in an error.
    assert_eq!(bench.run("UPDATE points SET points = 0 WHERE user_id = 301").await, 1);
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT sum(points) FROM points WHERE user_id <= 300").await, 45_150 + 299 * 5 - 1);
    assert_eq!(bench.number("SELECT count(*) FROM points WHERE note = CONCAT('n', user_id)").await, 299);
    assert_eq!(bench.number("SELECT points FROM points WHERE user_id = 302").await, 302);
}

pub(crate) async fn an_update_of_many_rows_tells_that_one_is_missing_or_breaks_a_rule(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points) VALUES (1, 1), (2, 2), (3, 3)").await;
    let sql: Arc<str> = "UPDATE points SET points = points + ? WHERE user_id = ?".into();
    let form = form(&bench, &sql, &[ParamType::Signed, ParamType::Signed]).await.unwrap();
    let row = |points, id| [Value::Signed(points), Value::Signed(id)];
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    assert_eq!(update(unit.as_mut(), &sql, &form, &[&row(1, 1), &row(1, 9), &row(1, 3)]).await, Ok(2));
    assert_eq!(update(unit.as_mut(), &sql, &form, &[&row(0, 1), &row(0, 3)]).await, Ok(2), "found, though unchanged");
    assert_eq!(update(unit.as_mut(), &sql, &form, &[&[Value::Signed(1), Value::Null], &row(1, 3)]).await, Ok(1));
    unit.rollback_to(Savepoint::Marks).await.unwrap();
    for bad in [row(-5, 2), row(i64::MAX, 2)] {
        let error = update(unit.as_mut(), &sql, &form, &[&row(1, 1), &bad]).await.unwrap_err();
        assert_eq!(error.class, oncebox_core::failure::Class::Data, "{error:?}");
        unit.rollback_to(Savepoint::Marks).await.unwrap();
    }
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT sum(points) FROM points").await, 6);
}

/// A column's type, the type of its parameter, and the value.
fn stored() -> Vec<(&'static str, ParamType, Value)> {
    let text = |text: &str| Value::Text(text.into());
    vec![
        ("TINYINT", ParamType::Signed, Value::Signed(-128)),
        ("TINYINT", ParamType::Signed, Value::Signed(128)),
        ("TINYINT", ParamType::Boolean, Value::Boolean(true)),
        ("BIGINT", ParamType::Signed, Value::Signed(i64::MIN)),
        ("BIGINT UNSIGNED", ParamType::Unsigned, Value::Unsigned(u64::MAX)),
        ("BIGINT", ParamType::Unsigned, Value::Unsigned(u64::MAX)),
        ("DECIMAL(30, 3)", ParamType::Unsigned, Value::Unsigned(u64::MAX)),
        ("DOUBLE", ParamType::Signed, Value::Signed(i64::MAX)),
        ("VARCHAR(40)", ParamType::Signed, Value::Signed(-7)),
        ("VARCHAR(40)", ParamType::Text, text("a'\"\\\u{0}\u{1}\u{1f}\n\u{7f} ?; -- \u{e9}\u{1f600} ")),
        ("VARCHAR(3)", ParamType::Text, text("abcd")),
        ("VARCHAR(3)", ParamType::Text, text("abc   ")),
        ("CHAR(5)", ParamType::Text, text("")),
        ("VARCHAR(9) CHARACTER SET latin1", ParamType::Text, text("\u{e9}")),
        ("VARCHAR(9) CHARACTER SET latin1", ParamType::Text, text("\u{1f600}")),
        ("VARBINARY(40)", ParamType::Text, text("\u{e9}\u{0}")),
        ("LONGTEXT", ParamType::Text, text(&"long ".repeat(40_000))),
        ("INT", ParamType::Text, text("12")),
        ("INT", ParamType::Text, text("12x")),
        ("DECIMAL(10, 2)", ParamType::Text, text("1.005")),
        ("ENUM('new', 'paid')", ParamType::Text, text("paid")),
        ("ENUM('new', 'paid')", ParamType::Text, text("gone")),
        ("DATE", ParamType::Date, Value::Date("2026-11-29".into())),
        ("DATE", ParamType::Date, Value::Date("2026-02-30".into())),
        ("TIME(6)", ParamType::Time, Value::Time("-838:59:59.000000".into())),
        ("DATETIME(3)", ParamType::Datetime, Value::Datetime("2026-11-29 12:00:00.123567".into())),
        ("TIMESTAMP(6) NULL", ParamType::Datetime, Value::Datetime("2026-11-29 12:00:00.123456".into())),
        ("JSON", ParamType::Json, Value::Json("{\"a\": [1, \"\\u00e9\", null], \"b\": \"\\\"\"}".into())),
        ("JSON", ParamType::Json, Value::Json("{".into())),
    ]
}

pub(crate) async fn a_value_from_a_table_of_them_is_stored_as_it_would_be_alone(bench: Bench) {
    for (at, (kind, param, value)) in stored().into_iter().enumerate() {
        let table = format!("stored_{at}");
        bench.alter(&format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, v {kind}) ENGINE=InnoDB")).await;
        bench.alter(&format!("INSERT INTO {table} (id) VALUES (1), (2), (3)")).await;
        bench.tenant().ready(&[&table]).await.unwrap();
        let sql: Arc<str> = format!("UPDATE {table} SET v = ? WHERE id = ?").into();
        let form = form(&bench, &sql, &[param, ParamType::Signed]).await.unwrap();
        let row = |id| [value.clone(), Value::Signed(id)];
        let mut lane = bench.lane().await;
        let mut unit = lane.begin().await.unwrap();
        let alone = unit.staged_write(&sql, &row(1)).await;
        let many = update(unit.as_mut(), &sql, &form, &[&row(2), &row(3)]).await;
        let what = format!("{kind} {value:?}");
        match (alone, many) {
            (Ok(1), Ok(2)) => {}
            (Err(alone), Err(many)) => assert_eq!(class(&alone), class(&many), "{what}: {alone:?}, {many:?}"),
            (alone, many) => panic!("{what}: alone {alone:?}, of many {many:?}"),
        }
        let select = format!("SELECT v FROM {table} ORDER BY id").into();
        let answer = unit.query(&select, &[], 9).await.unwrap().rows;
        assert!(answer.iter().all(|row| *row == answer[0]), "{what}: {answer:?}");
        unit.rollback().await.unwrap();
    }
}

fn class(error: &StatementError) -> oncebox_core::failure::Class {
    error.class
}
