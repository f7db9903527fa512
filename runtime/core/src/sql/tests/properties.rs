//! What holds of any text at all.

use proptest::prelude::*;

use super::super::Rule;
use super::{ANY, Dialect, L, LITE, MY, Purpose, Q, World, marks};

/// Words and signs that texts are made of, the dangerous ones among them.
const PIECES: &[&str] = &[
    "SELECT",
    "INSERT",
    "INTO",
    "UPDATE",
    "DELETE",
    "FROM",
    "WHERE",
    "SET",
    "VALUES",
    "account",
    "level",
    "id",
    "ob_inbox",
    "`OB_held`",
    "`account`",
    "?",
    "1",
    "'x'",
    "'it''s'",
    r"'\'",
    "(",
    ")",
    ",",
    "=",
    ".",
    "*",
    "AND",
    "OR",
    "NOT",
    "IN",
    "/*",
    "*/",
    "/*! COMMIT */",
    "--",
    "#",
    ";",
    "@a",
    ":=",
    "TABLE",
    "UNION",
    "FOR UPDATE",
    "AS",
    "JOIN",
    "ON",
    "CASE",
    "WHEN",
    "END",
    "COUNT",
    "SLEEP",
    "CAST",
    "\n",
    "\0",
    "é",
    "\"",
    "LIMIT",
    "ORDER BY",
    "INTERVAL",
    "EXISTS",
    "-",
    "||",
    "DUPLICATE KEY UPDATE",
    "CONFLICT",
    "DO",
    "IGNORE",
    "RETURNING",
    "->",
    "<=>",
    "BETWEEN",
    "LIKE",
    "IS NULL",
];

fn any_case() -> impl Strategy<Value = (Purpose, Dialect)> {
    (prop::sample::select(vec![ANY, Q, L]), prop::sample::select(vec![MY, LITE]))
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    prop::collection::vec((piece, prop::sample::select(vec![" ", ""])), 0..24)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, space)| format!("{piece}{space}")).collect())
}

/// A good statement with one piece set in somewhere, or some bytes taken out.
fn damaged() -> impl Strategy<Value = String> {
    let good = prop::sample::select(vec![
        "UPDATE account SET points = points + ? WHERE id = ? AND note = 'x'",
        "SELECT a.id, COUNT(*) FROM account a JOIN level l ON l.id = a.id WHERE a.id IN (?, ?) GROUP BY a.id",
        "INSERT INTO account (id, points) VALUES (?, ?) ON DUPLICATE KEY UPDATE points = VALUES(points)",
        "DELETE FROM account WHERE id IN (SELECT id FROM level WHERE name = ?) ORDER BY id LIMIT 1",
    ]);
    (good, any::<prop::sample::Index>(), prop::sample::select(PIECES), 0_usize..3).prop_map(|(good, at, piece, cut)| {
        let at = at.index(good.len());
        let rest = good.get(at + cut..).unwrap_or_default();
        format!("{}{piece}{rest}", &good[..at])
    })
}

/// The text with its literals taken out, by a reading that has nothing in common with the gate's.
fn without_literals(sql: &str, dialect: Dialect) -> String {
    let mut outside = String::new();
    let mut chars = sql.chars();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                inside = !inside;
                outside.push(' ');
            }
            '\\' if inside && dialect == MY => drop(chars.next()),
            c if !inside => outside.push(c),
            _ => {}
        }
    }
    outside
}

fn holds(purpose: Purpose, dialect: Dialect, sql: &str) -> Result<(), TestCaseError> {
    let world = World::plain();
    match world.check(purpose, dialect, sql, marks(sql)) {
        Err(refusal) => prop_assert!(Rule::ALL.contains(&refusal.rule)),
        Ok(accepted) => {
            let outside = without_literals(sql, dialect);
            for forbidden in ["--", "#", "/*", "*/", ";", "@", ":", "\0", "\""] {
                prop_assert!(!outside.contains(forbidden), "{forbidden} in {sql}");
            }
            prop_assert!(outside.is_ascii());
            let lower = outside.to_ascii_lowercase();
            let mut names = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            prop_assert!(!names.any(|name| name.starts_with("ob_")), "a table of the host in {}", sql);
            for table in accepted.table.iter().chain(&accepted.tables_read) {
                prop_assert!(["account", "stock", "level"].contains(&table.as_str()));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_string_is_judged_without_a_panic(sql in any::<String>(), (purpose, dialect) in any_case()) {
        holds(purpose, dialect, &sql)?;
    }

    #[test]
    fn any_heap_of_words_is_judged_without_a_panic(sql in pieces(), (purpose, dialect) in any_case()) {
        holds(purpose, dialect, &sql)?;
    }

    #[test]
    fn a_damaged_statement_never_gains_a_comment_or_a_table_of_the_host(
        sql in damaged(),
        (purpose, dialect) in any_case(),
    ) {
        holds(purpose, dialect, &sql)?;
    }
}
