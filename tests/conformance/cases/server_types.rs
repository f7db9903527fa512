//! Values on their way to a server and back.

use std::{collections::BTreeMap, sync::Arc};

use oncebox::store::{Staged, StagedText, UnitOfWork};
use oncebox_core::{
    failure::Class,
    manifest::{Access, RowExpectation},
    sql::{Declared, Dialect, Purpose, check_text},
    value::Value,
};

use super::statements::together_in;
use crate::bench::Bench;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Type, literal, value; `None`: the server does not have the type.
fn columns(is_mariadb: bool) -> Vec<(&'static str, &'static str, Value)> {
    let mut columns = vec![
        ("TINYINT", "-128", Value::Signed(-128)),
        ("TINYINT UNSIGNED", "255", Value::Unsigned(255)),
        ("BOOLEAN", "2", Value::Signed(2)),
        ("TINYINT(1) UNSIGNED", "255", Value::Unsigned(255)),
        ("SMALLINT", "-32768", Value::Signed(-32768)),
        ("SMALLINT UNSIGNED", "65535", Value::Unsigned(65535)),
        ("MEDIUMINT", "-8388608", Value::Signed(-8_388_608)),
        ("MEDIUMINT UNSIGNED", "16777215", Value::Unsigned(16_777_215)),
        ("INT", "-2147483648", Value::Signed(-2_147_483_648)),
        ("INT UNSIGNED", "4294967295", Value::Unsigned(4_294_967_295)),
        ("BIGINT", "-9223372036854775808", Value::Signed(i64::MIN)),
        ("BIGINT", "9223372036854775807", Value::Signed(i64::MAX)),
        ("BIGINT UNSIGNED", "18446744073709551615", Value::Unsigned(u64::MAX)),
        ("INT(5) UNSIGNED ZEROFILL", "42", Value::Unsigned(42)),
        ("YEAR", "2155", Value::Unsigned(2155)),
        ("BIT(1)", "b'1'", Value::Unsigned(1)),
        (
            "BIT(64)",
            "b'1000000000000000000000000000000000000000000000000000000000000001'",
            Value::Unsigned((1 << 63) + 1),
        ),
        ("FLOAT", "1.1", Value::Float(1.1)),
        ("DOUBLE", "0.1", Value::Float(0.1)),
        ("DOUBLE", "-1.7976931348623157e308", Value::Float(f64::MIN)),
        (
            "DECIMAL(65,30)",
            "-12345678901234567890123456789012345.123456789012345678901234567890",
            Value::Decimal("-12345678901234567890123456789012345.123456789012345678901234567890".into()),
        ),
        ("DECIMAL(10,2)", "5", Value::Decimal("5.00".into())),
        ("DATE", "'9999-12-31'", Value::Date("9999-12-31".into())),
        ("DATETIME", "'2026-11-29 12:00:01'", Value::Datetime("2026-11-29 12:00:01.000000".into())),
        ("DATETIME(6)", "'1000-01-01 00:00:00.000001'", Value::Datetime("1000-01-01 00:00:00.000001".into())),
        ("TIMESTAMP(6)", "'2026-11-29 12:00:00.123456'", Value::Datetime("2026-11-29 12:00:00.123456".into())),
        ("TIME", "'-838:59:59'", Value::Time("-838:59:59.000000".into())),
        ("TIME(6)", "'00:00:00.000001'", Value::Time("00:00:00.000001".into())),
        ("TIME", "'00:00:00'", Value::Time("00:00:00.000000".into())),
        ("CHAR(10)", "'a'", text("a")),
        ("VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "'\u{e1} '", text("\u{e1} ")),
        ("VARCHAR(10) CHARACTER SET latin1", "'\u{e1}'", text("\u{e1}")),
        ("TINYTEXT", "''", text("")),
        ("LONGTEXT CHARACTER SET utf8mb4", "'\u{1f600}'", text("\u{1f600}")),
        ("BINARY(3)", "x'00ff'", Value::Bytes(vec![0, 255, 0])),
        ("VARBINARY(3)", "'ab'", Value::Bytes(b"ab".to_vec())),
        ("BLOB", "x'00'", Value::Bytes(vec![0])),
        ("LONGBLOB", "''", Value::Bytes(vec![])),
        ("ENUM('x','\u{e1}')", "'\u{e1}'", text("\u{e1}")),
        ("SET('x','y')", "'x,y'", text("x,y")),
        ("POINT", "ST_GeomFromText('POINT(1 2)')", Value::Bytes(point())),
        ("INT", "NULL", Value::Null),
        ("DATETIME(6)", "NULL", Value::Null),
        ("LONGTEXT", "NULL", Value::Null),
    ];
    let json = "{\"a\": [1, 1.5, \"x\"]}";
    if is_mariadb {
        // An alias of LONGTEXT.
        columns.push(("JSON", "'{\"a\": [1, 1.5, \"x\"]}'", text(json)));
        columns.push(("INET6", "'2001:db8::1'", text("2001:db8::1")));
        columns.push(("UUID", "'123e4567-e89b-12d3-a456-426655440000'", text("123e4567-e89b-12d3-a456-426655440000")));
    } else {
        columns.push(("JSON", "'{\"a\": [1, 1.5, \"x\"]}'", Value::Json(json.into())));
    }
    columns
}

/// SRID 0, little-endian, a point, 1 and 2.
fn point() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 1, 1, 0, 0, 0];
    bytes.extend(1f64.to_le_bytes());
    bytes.extend(2f64.to_le_bytes());
    bytes
}

pub(crate) async fn a_column_of_every_type_comes_back_without_loss(bench: Bench) {
    let columns = columns(bench.tenant().is_mariadb());
    let database = &bench.tenant().database;
    let definitions: Vec<String> =
        columns.iter().enumerate().map(|(at, (kind, ..))| format!("c{at} {kind} NULL")).collect();
    database.execute(&format!("CREATE TABLE every (id INT PRIMARY KEY, {}) ENGINE=InnoDB", definitions.join(", ")));
    let literals: Vec<&str> = columns.iter().map(|(_, literal, _)| *literal).collect();
    database.execute(&format!("INSERT INTO every VALUES (1, {})", literals.join(", ")));
    database.grant(&format!("SELECT ON {}.every", database.name));
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let answer = unit.query(&"SELECT * FROM every WHERE id = ?".into(), &[Value::Signed(1)], 1).await.unwrap();
    for ((kind, literal, expected), found) in columns.iter().zip(&answer.rows[0][1..]) {
        assert_eq!(found, expected, "{kind} {literal}");
    }
    let sql = "SELECT SUM(c0), AVG(c8), COUNT(*), c0 / 3, 1 = 1, CONCAT(c29, 'x'), UTC_TIMESTAMP(6) > c24 FROM every";
    let answer = unit.query(&sql.into(), &[], 1).await.unwrap();
    let decimal = |text: &str| Value::Decimal(text.into());
    let expected = [
        decimal("-128"),
        decimal("-2147483648.0000"),
        Value::Signed(1),
        decimal("-42.6667"),
        Value::Signed(1),
        text("ax"),
        Value::Signed(1),
    ];
    assert_eq!(answer.rows[0], expected);
    unit.rollback().await.unwrap();
}

async fn back(unit: &mut dyn UnitOfWork, column: &str) -> Value {
    let answer = unit.query(&format!("SELECT {column} FROM bound WHERE id = 1").into(), &[], 1).await.unwrap();
    answer.rows[0][0].clone()
}

pub(crate) async fn a_value_of_every_type_arrives_as_it_was_bound(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute(
        "CREATE TABLE bound (id INT PRIMARY KEY, b BOOLEAN, i BIGINT, u BIGINT UNSIGNED, f DOUBLE, d DECIMAL(40,10),
           t LONGTEXT, y LONGBLOB, da DATE, ti TIME(6), dt DATETIME(6), j JSON) ENGINE=InnoDB",
    );
    database.execute("INSERT INTO bound (id) VALUES (1)");
    database.grant(&format!("SELECT, UPDATE ON {}.bound", database.name));
    let decimal = |text: &str| Value::Decimal(text.into());
    let values = [
        ("b", Value::Boolean(true), Value::Signed(1)),
        ("b", Value::Boolean(false), Value::Signed(0)),
        ("i", Value::Signed(i64::MIN), Value::Signed(i64::MIN)),
        ("u", Value::Unsigned(u64::MAX), Value::Unsigned(u64::MAX)),
        ("f", Value::Float(-0.1), Value::Float(-0.1)),
        (
            "d",
            decimal("123456789012345678901234567890.0000000001"),
            decimal("123456789012345678901234567890.0000000001"),
        ),
        ("d", decimal("-5"), decimal("-5.0000000000")),
        ("t", text("a\0\u{e9}'\"\\"), text("a\0\u{e9}'\"\\")),
        ("t", text(""), text("")),
        ("y", Value::Bytes(vec![0, 255]), Value::Bytes(vec![0, 255])),
        ("da", Value::Date("2026-11-29".into()), Value::Date("2026-11-29".into())),
        ("ti", Value::Time("-838:59:59.000000".into()), Value::Time("-838:59:59.000000".into())),
        (
            "dt",
            Value::Datetime("2026-11-29 12:00:00.000001".into()),
            Value::Datetime("2026-11-29 12:00:00.000001".into()),
        ),
        ("dt", Value::Datetime("2026-11-29 12:00:00".into()), Value::Datetime("2026-11-29 12:00:00.000000".into())),
        ("t", Value::Null, Value::Null),
        ("d", Value::Null, Value::Null),
    ];
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for (column, value, expected) in values {
        let sql = format!("UPDATE bound SET {column} = ? WHERE id = 1").into();
        assert_eq!(unit.staged_write(&sql, std::slice::from_ref(&value)).await, Ok(1), "{value:?}");
        assert_eq!(back(unit.as_mut(), column).await, expected, "{value:?}");
        // The same written into the text, as it is among others.
        unit.staged_write(&format!("UPDATE bound SET {column} = NULL WHERE id = 1").into(), &[]).await.unwrap();
        let both = [[value.clone()], [value.clone()]];
        assert_eq!(together_in(unit.as_mut(), &sql, &both).await, Ok(vec![1, 1]), "{value:?}");
        assert_eq!(back(unit.as_mut(), column).await, expected, "{value:?} among others");
    }
    let json = Value::Json("{\"a\":1}".into());
    assert_eq!(unit.staged_write(&"UPDATE bound SET j = ? WHERE id = 1".into(), &[json]).await, Ok(1));
    assert_eq!(back(unit.as_mut(), "JSON_UNQUOTE(JSON_EXTRACT(j, '$.a'))").await, text("1"));
    unit.rollback().await.unwrap();
}

/// After a first float, or a first integer, a text would go through DOUBLE, and nobody would be told.
pub(crate) async fn a_text_is_never_run_with_the_types_of_earlier_values(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE bound (id INT PRIMARY KEY, d DECIMAL(40,10), i BIGINT, t TEXT) ENGINE=InnoDB");
    database.execute("INSERT INTO bound (id) VALUES (1)");
    database.grant(&format!("SELECT, UPDATE ON {}.bound", database.name));
    let long = "123456789012345678901234567890.0000000001";
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let set = "UPDATE bound SET d = ? WHERE id = 1".into();
    let firsts = [Value::Float(1.5), Value::Null, Value::Signed(7), Value::Bytes(b"1".to_vec()), Value::Boolean(true)];
    for first in firsts {
        unit.staged_write(&set, std::slice::from_ref(&first)).await.unwrap();
        for exact in [Value::Decimal(long.into()), text(long)] {
            assert_eq!(unit.staged_write(&set, std::slice::from_ref(&exact)).await, Ok(1));
            assert_eq!(back(unit.as_mut(), "d").await, Value::Decimal(long.into()), "{exact:?} after {first:?}");
            let find = "SELECT COUNT(*) FROM bound WHERE d = ?".into();
            unit.query(&find, std::slice::from_ref(&first), 1).await.unwrap();
            let found = unit.query(&find, &[Value::Decimal(long.into())], 1).await.unwrap();
            assert_eq!(found.rows, [[Value::Signed(1)]], "{exact:?} after {first:?}");
        }
    }
    let set = "UPDATE bound SET i = ? WHERE id = 1".into();
    for value in [Value::Float(1.0), text("9007199254740993")] {
        unit.staged_write(&set, &[value]).await.unwrap();
    }
    assert_eq!(back(unit.as_mut(), "i").await, Value::Signed(9_007_199_254_740_993));
    unit.rollback().await.unwrap();
}

/// To a statement that is let go the server does not answer, and the packet behind it can wait for 40 ms: the driver leaves
/// Nagle's algorithm on. So it is never one at a time, neither for values of other types nor for many texts.
pub(crate) async fn prepared_statements_are_let_go_all_at_once(bench: Bench) {
    const KEPT: u64 = 128;
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE bound (id INT PRIMARY KEY) ENGINE=InnoDB");
    database.execute("INSERT INTO bound (id) VALUES (1)");
    database.grant(&format!("SELECT ON {}.bound", database.name));
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let find = "SELECT COUNT(*) FROM bound WHERE id = ?".into();
    for _ in 0..5 {
        for value in [Value::Signed(1), Value::Float(1.0), Value::Decimal("1.0".into()), text("1")] {
            let found = unit.query(&find, std::slice::from_ref(&value), 1).await.unwrap();
            assert_eq!(found.rows, [[Value::Signed(1)]], "{value:?}");
        }
    }
    assert_eq!(let_go(unit.as_mut()).await, 0);
    for number in 0..300 {
        let found = unit.query(&format!("SELECT {number} FROM bound").into(), &[], 1).await.unwrap();
        assert_eq!(found.rows, [[Value::Signed(number)]]);
    }
    let gone = let_go(unit.as_mut()).await;
    assert!(gone > 0 && gone.is_multiple_of(KEPT), "{gone}");
    unit.rollback().await.unwrap();
}

/// Statements that the session has let go so far.
async fn let_go(unit: &mut dyn UnitOfWork) -> u64 {
    let answer = unit.query(&"SHOW SESSION STATUS LIKE 'Com_stmt_close'".into(), &[], 1).await.unwrap();
    let Value::Text(number) = &answer.rows[0][1] else { panic!("{answer:?}") };
    number.parse().unwrap()
}

/// As text it would be added as a DOUBLE.
pub(crate) async fn a_decimal_is_calculated_with_exactly(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE bound (id INT PRIMARY KEY, d DECIMAL(40,10)) ENGINE=InnoDB");
    database.execute("INSERT INTO bound VALUES (1, 123456789012345678901234567890.0000000001)");
    database.grant(&format!("SELECT, UPDATE ON {}.bound", database.name));
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let add = "UPDATE bound SET d = d + ? WHERE id = 1".into();
    for (value, sum) in [
        ("0.0000000001", "123456789012345678901234567890.0000000002"),
        ("-23456789012345678901234567890", "100000000000000000000000000000.0000000002"),
    ] {
        assert_eq!(unit.staged_write(&add, &[Value::Decimal(value.into())]).await, Ok(1));
        assert_eq!(back(unit.as_mut(), "d").await, Value::Decimal(sum.into()));
    }
    let find = "SELECT ? + 0.1, ? = 0.3 FROM bound WHERE id = 1".into();
    let three = [Value::Decimal("0.2".into()), Value::Decimal("0.3".into())];
    let answer = unit.query(&find, &three, 1).await.unwrap();
    // MySQL gives the sum the 30 digits that a parameter may have.
    let Value::Decimal(sum) = &answer.rows[0][0] else { panic!("{answer:?}") };
    assert_eq!((sum.trim_end_matches('0'), &answer.rows[0][1]), ("0.3", &Value::Signed(1)));
    unit.rollback().await.unwrap();
}

/// What is refused or calculated differently for a value's type is so among others too.
pub(crate) async fn a_value_among_others_has_the_type_that_it_would_be_bound_with(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE bound (id INT PRIMARY KEY, g BIGINT UNSIGNED, t LONGTEXT, j JSON) ENGINE=InnoDB");
    database.execute("INSERT INTO bound (id, g) VALUES (1, 10)");
    database.grant(&format!("SELECT, UPDATE ON {}.bound", database.name));
    let mut lane = bench.lane().await;
    let values = [
        Value::Boolean(true),
        Value::Signed(-3),
        Value::Signed(3),
        Value::Unsigned(3),
        Value::Float(1.5),
        Value::Decimal("3".into()),
        Value::Decimal("-3.10".into()),
        text("3x"),
        text("\u{c1}"),
        Value::Bytes(b"31".to_vec()),
        Value::Date("2026-11-29".into()),
        Value::Datetime("2026-11-29 12:00:00".into()),
        Value::Null,
    ];
    let tables = BTreeMap::from([("bound".to_owned(), Access::Write)]);
    let purpose = Purpose::Statement { rows: RowExpectation::Any };
    for sql in [
        "UPDATE bound SET t = ? WHERE id = 1",
        "UPDATE bound SET g = ? WHERE id = 1",
        "UPDATE bound SET t = 'found' WHERE id = 1 AND t = ?",
        "UPDATE bound SET t = 'found' WHERE id = 1 AND g > ?",
        "UPDATE bound SET t = 'found' WHERE id = 1 AND t IN (?, '3')",
        "UPDATE bound SET t = CONCAT(?, '') WHERE id = 1",
        "UPDATE bound SET t = 1 - ? WHERE id = 1",
        "UPDATE bound SET t = ? / 7 WHERE id = 1",
        "UPDATE bound SET t = ? = 3 WHERE id = 1",
        "UPDATE bound SET t = ? = '\u{e1}' WHERE id = 1",
        "UPDATE bound SET t = LENGTH(?) WHERE id = 1",
        "UPDATE bound SET t = HEX(?) WHERE id = 1",
        "UPDATE bound SET g = g - ? WHERE id = 1",
        "UPDATE bound SET j = JSON_ARRAY(?) WHERE id = 1",
        "UPDATE bound SET t = COALESCE(?, 'none') WHERE id = 1",
        "UPDATE bound SET t = YEAR(?) WHERE id = 1",
    ] {
        let sql: Arc<str> = sql.into();
        let declared = Declared { tables: &tables, params: 1, purpose };
        let marks = check_text(&sql, Dialect::MySql, &declared).unwrap().marks;
        for value in &values {
            let mut found = Vec::new();
            for is_among_others in [false, true] {
                let mut unit = lane.begin().await.unwrap();
                let ran = if is_among_others {
                    let nothing = "UPDATE bound SET t = NULL WHERE id = 2".into();
                    let first = Staged::One(StagedText { sql: &nothing, marks: &[] }, &[]);
                    let own = Staged::One(StagedText { sql: &sql, marks: &marks }, std::slice::from_ref(value));
                    unit.staged_writes(&[first, own]).await.map(|matched| matched[1]).map_err(|halted| halted.error)
                } else {
                    unit.staged_write(&sql, std::slice::from_ref(value)).await
                };
                let ran = ran.map_err(|error| (error.class, error.number));
                let row = "CONCAT_WS('|', g, t, CAST(j AS CHAR))";
                found.push((ran, back(unit.as_mut(), row).await));
                unit.rollback().await.unwrap();
            }
            assert_eq!(found[0], found[1], "{sql} with {value:?}");
        }
    }
}

pub(crate) async fn nothing_in_a_value_is_read_as_sql(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE raw (n BIGINT PRIMARY KEY, t LONGTEXT, b LONGBLOB) ENGINE=InnoDB CHARSET = utf8mb4");
    database.grant(&format!("SELECT, INSERT, UPDATE, DELETE ON {}.raw", database.name));
    let texts = [
        "'); DROP TABLE points; --",
        "\\'); DELETE FROM points; -- ",
        "\\",
        "'",
        "\"",
        "`",
        "?",
        "x'41'",
        "_utf8mb4 x'41'",
        "/*! DROP TABLE points */",
        "-- \n",
        ";",
        "\0\u{1a}\n\r\t\u{7f}",
        "\u{7e17}\\'\u{7e17}",
        "\u{1f600}'\u{1f600}",
        "NULL",
        "@@version",
    ];
    let mut rows: Vec<[Value; 3]> =
        (0i64..).zip(texts).map(|(n, value)| [Value::Signed(n), text(value), Value::Null]).collect();
    for byte in 0..=u8::MAX {
        let bytes = vec![b'\'', byte, b'\\', byte, b'\'', b';'];
        rows.push([Value::Signed(1_000 + i64::from(byte)), Value::Null, Value::Bytes(bytes)]);
    }
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let insert = "INSERT INTO raw (n, t, b) VALUES (?, ?, ?)".into();
    assert_eq!(together_in(unit.as_mut(), &insert, &rows).await, Ok(vec![1; rows.len()]));
    for [n, t, b] in &rows {
        let answer = unit.query(&"SELECT t, b FROM raw WHERE n = ?".into(), std::slice::from_ref(n), 1).await.unwrap();
        assert_eq!(answer.rows, [[t.clone(), b.clone()]]);
    }
    let left = unit.query(&"SELECT COUNT(*) FROM raw".into(), &[], 1).await.unwrap();
    assert_eq!(left.rows, [[Value::Signed(i64::try_from(rows.len()).unwrap())]]);
    unit.rollback().await.unwrap();
}

pub(crate) async fn what_a_column_does_not_take_is_a_data_failure(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute(
        "CREATE TABLE bound (id INT PRIMARY KEY, v VARCHAR(3), s TINYINT, n INT NOT NULL, dt DATETIME, j JSON,
           e ENUM('x'), g BIGINT UNSIGNED) ENGINE=InnoDB",
    );
    database.execute("INSERT INTO bound (id, n, g) VALUES (1, 1, 1)");
    database.grant(&format!("SELECT, INSERT, UPDATE ON {}.bound", database.name));
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    for (set, value, code) in [
        ("v = ?", text("abcd"), "too-long"),
        ("s = ?", Value::Signed(128), "out-of-range"),
        ("g = g - ?", Value::Signed(2), "out-of-range"),
        ("s = ?", text("x"), "wrong-type"),
        ("n = ?", Value::Null, "null-refused"),
        ("dt = ?", text("2026-02-30 00:00:00"), "wrong-type"),
        ("dt = ?", Value::Datetime("0000-00-00 00:00:00".into()), "wrong-type"),
        ("e = ?", text("y"), "wrong-type"),
    ] {
        let sql = format!("UPDATE bound SET {set} WHERE id = 1").into();
        let error = unit.staged_write(&sql, std::slice::from_ref(&value)).await.unwrap_err();
        assert_eq!((error.class, error.code), (Class::Data, code), "{set} {value:?}: {error}");
    }
    let error = unit.staged_write(&"INSERT INTO bound (id) VALUES (2)".into(), &[]).await.unwrap_err();
    assert_eq!((error.class, error.code), (Class::Data, "null-refused"), "{error}");
    let json = unit.staged_write(&"UPDATE bound SET j = ? WHERE id = 1".into(), &[text("{")]).await.unwrap_err();
    assert_eq!(json.class, Class::Data, "{json}");
    // MariaDB refuses it as a CHECK.
    assert!(["wrong-type", "constraint"].contains(&json.code), "{json}");
    unit.rollback().await.unwrap();
}

pub(crate) async fn a_column_that_is_gone_blocks_a_statement_that_was_prepared(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points, note) VALUES (1, 1, 'n')").await;
    let mut lane = bench.lane().await;
    let set = "UPDATE points SET note = ? WHERE user_id = 1".into();
    let get = "SELECT user_id, note FROM points WHERE user_id = 1".into();
    for is_gone in [false, true] {
        if is_gone {
            bench.alter("ALTER TABLE points DROP COLUMN note").await;
        }
        let mut unit = lane.begin().await.unwrap();
        let write = unit.staged_write(&set, &[text("x")]).await;
        let query = unit.query(&get, &[], 1).await;
        if is_gone {
            let (write, query) = (write.unwrap_err(), query.unwrap_err());
            assert_eq!((write.class, write.number, write.code), (Class::Blocked, Some(1054), "schema-changed"));
            assert_eq!((query.class, query.number), (Class::Blocked, Some(1054)));
        } else {
            assert_eq!((write, query.map(|answer| answer.rows)), (Ok(1), Ok(vec![vec![Value::Signed(1), text("x")]])));
        }
        unit.commit().await.unwrap();
    }
}

pub(crate) async fn an_event_does_not_see_the_number_that_an_earlier_one_was_given(bench: Bench) {
    let database = &bench.tenant().database;
    database.execute("CREATE TABLE parent (id BIGINT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=InnoDB");
    database.execute("CREATE TABLE child (id BIGINT PRIMARY KEY AUTO_INCREMENT, parent BIGINT) ENGINE=InnoDB");
    database.grant(&format!("SELECT, INSERT ON {}.parent", database.name));
    database.grant(&format!("SELECT, INSERT ON {}.child", database.name));
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let child = "INSERT INTO child (parent) VALUES (LAST_INSERT_ID())".into();
    unit.staged_write(&"INSERT INTO parent (id, n) VALUES (NULL, 5)".into(), &[]).await.unwrap();
    unit.staged_write(&child, &[]).await.unwrap();
    unit.last_insert_id_reset().await.unwrap();
    unit.staged_write(&child, &[]).await.unwrap();
    let answer = unit.query(&"SELECT parent FROM child ORDER BY id".into(), &[], 9).await.unwrap();
    assert_eq!(answer.rows, [[Value::Signed(1)], [Value::Signed(0)]]);
    unit.rollback().await.unwrap();
}
