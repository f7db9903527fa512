//! Staged writes: those of a batch in as few trips as they fit in, one after the other in one text with their values in it
//! (`literal.rs`). What has a value that cannot stand there goes by itself, prepared.
//!
//! Writes of many events that are one statement: rows of an INSERT side by side, values of an UPDATE in a table that it is
//! joined with.

use std::{fmt::Write as _, ops::Range, sync::Arc};

use oncebox_core::{
    fold::{Column, UpdateForm},
    value::Value,
};
use serde_json::Value as Json;

use super::{
    errors::MysqlError,
    literal, many,
    packet::Stopped,
    session::Session,
    statements::{self, Signatures},
};
use crate::store::{Halted, Staged, StagedText, StatementError};

/// Runs them in order; the answer is the number of rows that each matched.
///
/// # Errors
/// That of the first that fails.
pub(super) async fn write_all(
    session: &mut Session,
    signatures: &mut Signatures,
    writes: &[Staged<'_>],
) -> Result<Vec<u64>, Halted> {
    let mut sent = Sent { matched: vec![0; writes.len()], waiting: Vec::new() };
    for (at, write) in writes.iter().enumerate() {
        // One that would be a trip of its own in any case is prepared already, or will be for the next time.
        let is_alone = writes.len() == 1 && session.waiting() == 0 && matches!(write, Staged::One(..));
        let texts = if is_alone { Ok(None) } else { texts(session, write) };
        match texts {
            Ok(Some(texts)) => {
                for text in texts {
                    sent.later(session, at, &text).await?;
                }
            }
            Ok(None) => {
                sent.send(session).await?;
                match prepared(session, signatures, write).await {
                    Ok(rows) => sent.matched[at] += rows,
                    Err(error) => return Err(sent.halted(at, error)),
                }
            }
            Err(error) => {
                sent.send(session).await?;
                return Err(sent.halted(at, error.of_statement()));
            }
        }
    }
    sent.send(session).await?;
    Ok(sent.matched)
}

/// What came of the writes, and whose texts wait for the next trip: perhaps behind a savepoint.
struct Sent {
    matched: Vec<u64>,
    waiting: Vec<usize>,
}

impl Sent {
    async fn later(&mut self, session: &mut Session, at: usize, text: &str) -> Result<(), Halted> {
        if !session.has_room_beside(text) {
            self.send(session).await?;
        }
        if let Err(error) = session.later("statement", text).await {
            return Err(self.halted(at, error.of_statement()));
        }
        self.waiting.push(at);
        Ok(())
    }

    async fn send(&mut self, session: &mut Session) -> Result<(), Halted> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(first) = waiting.first() else { return Ok(()) };
        let before = session.waiting() - waiting.len();
        let (stood, error) = match session.send().await {
            Ok(answers) => (answers.iter().map(|answer| answer.affected).collect(), None),
            Err(Stopped { stood, error }) => (stood, Some(error)),
        };
        let stood: Vec<u64> = stood.into_iter().skip(before).collect();
        for (at, rows) in waiting.iter().zip(&stood) {
            self.matched[*at] += rows;
        }
        match error {
            None => Ok(()),
            Some(error) => Err(self.halted(*waiting.get(stood.len()).unwrap_or(first), error.of_statement())),
        }
    }

    fn halted(&mut self, at: usize, error: StatementError) -> Halted {
        self.matched.truncate(at);
        Halted { matched: std::mem::take(&mut self.matched), error }
    }
}

/// The texts of a write, each of which fits a packet; `None`: it has to be prepared.
fn texts(session: &Session, write: &Staged<'_>) -> Result<Option<Vec<String>>, MysqlError> {
    let texts = match write {
        Staged::One(text, params) => literal::inlined(text.sql, text.marks, params).map(|text| vec![text]),
        Staged::InsertMany(text, group, rows) => {
            let chunks = many::cut_freely("statement", rows, session.facts().packet_max, literal_bytes)?;
            chunks.into_iter().map(|rows| inserted(text, group, rows)).collect()
        }
        Staged::UpdateMany(text, form, rows) => {
            let chunks = many::cut_freely("statement", rows, session.facts().packet_max, literal_bytes)?;
            let updated = |rows: &[&[Value]]| {
                let mut values = String::new();
                literal::push_text(&mut values, &table(rows)?);
                joined(text.sql, form, &values)
            };
            chunks.into_iter().map(updated).collect()
        }
    };
    Ok(texts.filter(|texts: &Vec<String>| texts.iter().all(|text| session.has_room_for(text))))
}

/// At most: a byte of a text may take two digits, or six of an escape which take twelve.
fn literal_bytes(row: &&[Value]) -> usize {
    row.iter().map(|value| 12 * value.bytes() + 32).sum()
}

/// The same by statements that are prepared.
async fn prepared(
    session: &mut Session,
    signatures: &mut Signatures,
    write: &Staged<'_>,
) -> Result<u64, StatementError> {
    match write {
        Staged::One(text, params) => statements::write(session, signatures, text.sql, params).await,
        Staged::InsertMany(text, group, rows) => insert_many(session, signatures, text.sql, group, rows).await,
        Staged::UpdateMany(text, form, rows) => update_many(session, signatures, text.sql, form, rows).await,
    }
}

/// The author's text for many rows, with their values in it.
fn inserted(StagedText { sql, marks }: &StagedText<'_>, group: &Range<usize>, rows: &[&[Value]]) -> Option<String> {
    let mut text = sql.get(..group.start)?.to_owned();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        literal::push_inlined(&mut text, sql, group.clone(), marks, row)?;
    }
    text.push_str(sql.get(group.end..)?);
    Some(text)
}

/// As few statements as packets and few texts allow.
async fn insert_many(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    group: &Range<usize>,
    rows: &[&[Value]],
) -> Result<u64, StatementError> {
    let bytes = |row: &&[Value]| row.iter().map(|value| value.bytes() + 16).sum();
    let values_max = rows.first().map_or(1, |row| row.len()).max(1);
    let rows_max = 1 << (VALUES_MAX / values_max).max(1).ilog2();
    let mut matched = 0;
    for chunk in many::cut("statement", rows, session.facts().packet_max, bytes).map_err(MysqlError::of_statement)? {
        for chunk in chunk.chunks(rows_max) {
            let text = repeated(sql, group, chunk.len());
            matched += statements::write(session, signatures, &text, &chunk.concat()).await?;
        }
    }
    Ok(matched)
}

/// Values that one statement may have (of the protocol: two bytes).
const VALUES_MAX: usize = 65_535;

/// The author's text with its group of values repeated.
fn repeated(sql: &Arc<str>, group: &Range<usize>, rows: usize) -> Arc<str> {
    let (Some(head), Some(row), Some(tail), 2..) =
        (sql.get(..group.start), sql.get(group.clone()), sql.get(group.end..), rows)
    else {
        return sql.clone();
    };
    [head, &vec![row; rows].join(", "), tail].concat().into()
}

/// Each row's UPDATE concerns another row of the table. The text is the same for any number of them.
async fn update_many(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    form: &UpdateForm,
    rows: &[&[Value]],
) -> Result<u64, StatementError> {
    let what = "statement";
    let unwritten = || MysqlError::Answer { what, message: "the text has another form".to_owned() }.of_statement();
    let text: Arc<str> = joined(sql, form, "?").ok_or_else(unwritten)?.into();
    let mut matched = 0;
    let chunks = many::cut_freely(what, rows, session.facts().packet_max, literal_bytes);
    for chunk in chunks.map_err(MysqlError::of_statement)? {
        let values = Value::Json(table(chunk).ok_or_else(unwritten)?);
        matched += statements::write(session, signatures, &text, &[values]).await?;
    }
    Ok(matched)
}

/// The author's text as an UPDATE of a join: the table of values comes first, and the rows are found by the primary key,
/// so that no other row is read or locked. A name that begins with `ob_` is no column of a business table.
fn joined(sql: &str, form: &UpdateForm, values: &str) -> Option<String> {
    let mut text = format!("{} JSON_TABLE({values}, '$[*]' COLUMNS (", sql.get(..form.behind_verb)?);
    for (at, (_, column)) in form.marks.iter().enumerate() {
        let kind = match column {
            Column::Signed => "BIGINT",
            Column::Unsigned => "BIGINT UNSIGNED",
            // Else it would have the database's own character set, which may not have all letters.
            Column::Text => "LONGTEXT CHARACTER SET utf8mb4",
        };
        let comma = if at > 0 { ", " } else { "" };
        write!(text, "{comma}ob_{at} {kind} PATH '$[{at}]' ERROR ON ERROR").ok()?;
    }
    let table = sql.get(form.behind_verb..form.set)?;
    write!(text, ")) AS ob_staged STRAIGHT_JOIN{table}FORCE INDEX (PRIMARY) ").ok()?;
    let mut from = form.set;
    for (at, (mark, _)) in form.marks.iter().enumerate() {
        write!(text, "{}ob_staged.ob_{at}", sql.get(from..*mark)?).ok()?;
        from = mark + 1;
    }
    text.push_str(sql.get(from..)?);
    Some(text)
}

/// The values of many rows, as JSON.
fn table(rows: &[&[Value]]) -> Option<String> {
    let rows: Vec<Vec<Json>> = rows.iter().map(|row| row.iter().map(json).collect()).collect::<Option<_>>()?;
    serde_json::to_string(&rows).ok()
}

fn json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Boolean(flag) => i64::from(*flag).into(),
        Value::Signed(number) => (*number).into(),
        Value::Unsigned(number) => (*number).into(),
        Value::Text(text) | Value::Date(text) | Value::Time(text) | Value::Datetime(text) | Value::Json(text) => {
            text.as_str().into()
        }
        // No UPDATE with one of these has a form.
        Value::Float(_) | Value::Decimal(_) | Value::Bytes(_) => return None,
    })
}
