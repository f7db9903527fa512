//! Staged writes of many events as one statement: rows of an INSERT side by side, values of an UPDATE in a table that it
//! is joined with.

use std::{ops::Range, sync::Arc};

use oncebox_core::{
    fold::{Column, UpdateForm},
    value::Value,
};
use serde_json::Value as Json;

use super::{
    errors::MysqlError,
    many,
    session::Session,
    statements::{self, Signatures},
};
use crate::store::StatementError;

/// Runs a staged INSERT for many events, `group` of its text repeated a row, in as few statements as packets and few
/// texts allow; the answer is the number of rows that all together matched.
pub(super) async fn insert_many(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    group: Range<usize>,
    rows: &[&[Value]],
) -> Result<u64, StatementError> {
    let bytes = |row: &&[Value]| row.iter().map(|value| value.bytes() + 16).sum();
    let values_max = rows.first().map_or(1, |row| row.len()).max(1);
    let rows_max = 1 << (VALUES_MAX / values_max).max(1).ilog2();
    let mut matched = 0;
    for chunk in many::cut("statement", rows, session.facts().packet_max, bytes).map_err(MysqlError::of_statement)? {
        for chunk in chunk.chunks(rows_max) {
            matched +=
                statements::write(session, signatures, &repeated(sql, &group, chunk.len()), &chunk.concat()).await?;
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

/// Runs a staged UPDATE for many events, each of which concerns another row; the answer is the number of rows that all
/// together matched. The text is the same for any number of them.
pub(super) async fn update_many(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    form: &UpdateForm,
    rows: &[&[Value]],
) -> Result<u64, StatementError> {
    let what = "statement";
    let unwritten = || MysqlError::Answer { what, message: "the text has another form".to_owned() }.of_statement();
    let text: Arc<str> = joined(sql, form).ok_or_else(unwritten)?.into();
    let mut matched = 0;
    for chunk in many::cut_freely(what, rows, session.facts().packet_max, |row| row.iter().map(json_bytes).sum())
        .map_err(MysqlError::of_statement)?
    {
        let values: Vec<Vec<Json>> = chunk.iter().map(|row| row.iter().map(json).collect()).collect();
        let values = serde_json::to_string(&values).map_err(|_| unwritten())?;
        matched += statements::write(session, signatures, &text, &[Value::Json(values)]).await?;
    }
    Ok(matched)
}

/// The author's text as an UPDATE of a join: the table of values comes first, and the rows are found by the primary key,
/// so that no other row is read or locked. A name that begins with `ob_` is no column of a business table.
fn joined(sql: &str, form: &UpdateForm) -> Option<String> {
    let mut columns = String::new();
    for (at, (_, column)) in form.marks.iter().enumerate() {
        let kind = match column {
            Column::Signed => "BIGINT",
            Column::Unsigned => "BIGINT UNSIGNED",
            Column::Text => "LONGTEXT CHARACTER SET utf8mb4",
        };
        let comma = if at > 0 { ", " } else { "" };
        columns.push_str(&format!("{comma}ob_{at} {kind} PATH '$[{at}]' ERROR ON ERROR"));
    }
    let mut text = format!(
        "{} JSON_TABLE(?, '$[*]' COLUMNS ({columns})) AS ob_staged STRAIGHT_JOIN{}FORCE INDEX (PRIMARY) ",
        sql.get(..form.behind_verb)?,
        sql.get(form.behind_verb..form.set)?,
    );
    let mut from = form.set;
    for (at, (mark, _)) in form.marks.iter().enumerate() {
        text.push_str(sql.get(from..*mark)?);
        text.push_str(&format!("ob_staged.ob_{at}"));
        from = mark + 1;
    }
    text.push_str(sql.get(from..)?);
    Some(text)
}

/// At most: a byte of a text may take six.
fn json_bytes(value: &Value) -> usize {
    6 * value.bytes() + 16
}

fn json(value: &Value) -> Json {
    match value {
        Value::Null | Value::Float(_) | Value::Decimal(_) | Value::Bytes(_) => Json::Null,
        Value::Boolean(flag) => i64::from(*flag).into(),
        Value::Signed(number) => (*number).into(),
        Value::Unsigned(number) => (*number).into(),
        Value::Text(text) | Value::Date(text) | Value::Time(text) | Value::Datetime(text) | Value::Json(text) => {
            text.as_str().into()
        }
    }
}
