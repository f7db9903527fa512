//! Plugins' statements and queries: the author's text, bound values, and what the server answers.
//!
//! A prepared text keeps the types of its first values; a value of another type then goes through a conversion of the
//! server's, silently (a text through DOUBLE, after a float: 17 digits of an exact decimal). So a text is kept for one
//! set of types only, and NULL fits each.

use std::{collections::HashMap, ops::Range, sync::Arc};

use oncebox_core::value::Value;
use sqlx::{AssertSqlSafe, mysql::MySqlTypeInfo};

use super::{
    args::{Args, Decimal},
    decode::decoded,
    errors::MysqlError,
    literal, many,
    session::{Keep, Session},
};
use crate::store::{QueryAnswer, Staged, StatementError};

/// The types that each text of a session was prepared for.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    kinds: HashMap<Arc<str>, Vec<Kind>>,
}

/// Texts whose types are remembered; further ones are prepared each time.
const TEXTS_MAX: usize = 2_048;

/// How a value is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// NULL, or nothing yet.
    Any,
    Boolean,
    Signed,
    Unsigned,
    Float,
    Decimal,
    Text,
    Bytes,
}

impl Signatures {
    /// Whether the text may be run as it was prepared, or for the first time.
    fn keep(&mut self, sql: &Arc<str>, params: &[Value]) -> Keep {
        let kinds = params.iter().map(Kind::of);
        let Some(known) = self.kinds.get_mut(sql) else {
            if self.kinds.len() >= TEXTS_MAX {
                return Keep::Nothing;
            }
            self.kinds.insert(sql.clone(), kinds.collect());
            return Keep::Prepared;
        };
        let fits = |(known, new): (&Kind, Kind)| *known == new || *known == Kind::Any || new == Kind::Any;
        if known.len() != params.len() || !known.iter().zip(kinds.clone()).all(fits) {
            return Keep::Nothing;
        }
        for (known, new) in known.iter_mut().zip(kinds) {
            if *known == Kind::Any {
                *known = new;
            }
        }
        Keep::Prepared
    }
}

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Any,
            Value::Boolean(_) => Self::Boolean,
            Value::Signed(_) => Self::Signed,
            Value::Unsigned(_) => Self::Unsigned,
            Value::Float(_) => Self::Float,
            Value::Decimal(_) => Self::Decimal,
            Value::Text(_) | Value::Date(_) | Value::Time(_) | Value::Datetime(_) | Value::Json(_) => Self::Text,
            Value::Bytes(_) => Self::Bytes,
        }
    }
}

/// Runs a staged write; the answer is the number of rows that it matched.
pub(super) async fn write(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    params: &[Value],
) -> Result<u64, StatementError> {
    let args = bound(session, params).map_err(MysqlError::of_statement)?;
    let keep = signatures.keep(sql, params);
    let done = session.execute_as("statement", AssertSqlSafe(sql.clone()), args, keep).await;
    done.map(|done| done.affected).map_err(MysqlError::of_statement)
}

/// Runs staged writes one after the other; those that come together go in one text, with their values in it
/// (`literal.rs`). What has a value that cannot stand there goes by itself, prepared.
pub(super) async fn write_all(
    session: &mut Session,
    signatures: &mut Signatures,
    writes: &[Staged<'_>],
) -> Result<Vec<u64>, (usize, StatementError)> {
    let room = session.facts().packet_max / 2;
    let mut matched = Vec::with_capacity(writes.len());
    let mut texts: Vec<String> = Vec::new();
    let mut length = 0;
    for write in writes {
        let text = literal::inlined(write.sql, write.marks, write.params).filter(|text| text.len() < room);
        if text.as_ref().is_none_or(|text| length + text.len() >= room) {
            together(session, signatures, writes, &mut texts, &mut matched).await?;
            length = 0;
        }
        match text {
            Some(text) => {
                length += text.len() + 1;
                texts.push(text);
            }
            None => alone(session, signatures, writes, &mut matched).await?,
        }
    }
    together(session, signatures, writes, &mut texts, &mut matched).await?;
    Ok(matched)
}

/// Sends what has been gathered: the writes behind those that have been `matched`.
async fn together(
    session: &mut Session,
    signatures: &mut Signatures,
    writes: &[Staged<'_>],
    texts: &mut Vec<String>,
    matched: &mut Vec<u64>,
) -> Result<(), (usize, StatementError)> {
    match std::mem::take(texts).as_slice() {
        [] => Ok(()),
        // It is prepared already, or will be for the next time.
        [_] => alone(session, signatures, writes, matched).await,
        texts => {
            let rows = session.texts("statements", texts.join(";"), texts.len()).await;
            let rows = rows.map_err(|(stood, error)| (matched.len() + stood, error.of_statement()))?;
            matched.extend(rows);
            Ok(())
        }
    }
}

/// The next write by itself.
async fn alone(
    session: &mut Session,
    signatures: &mut Signatures,
    writes: &[Staged<'_>],
    matched: &mut Vec<u64>,
) -> Result<(), (usize, StatementError)> {
    let at = matched.len();
    let Some(next) = writes.get(at) else { return Ok(()) };
    matched.push(write(session, signatures, next.sql, next.params).await.map_err(|error| (at, error))?);
    Ok(())
}

/// Runs a query; at most `rows_max` + 1 rows are kept.
pub(super) async fn query(
    session: &mut Session,
    signatures: &mut Signatures,
    sql: &Arc<str>,
    params: &[Value],
    rows_max: u32,
) -> Result<QueryAnswer, StatementError> {
    let args = bound(session, params).map_err(MysqlError::of_statement)?;
    let keep = signatures.keep(sql, params);
    let wanted = usize::try_from(rows_max).unwrap_or(usize::MAX).saturating_add(1);
    let found = session.find("query", AssertSqlSafe(sql.clone()), args, wanted, keep).await;
    let found = found.map_err(MysqlError::of_statement)?;
    let width = found.columns.len();
    let rows = found.rows.iter().map(|row| (0..width).map(|at| decoded(row, at)).collect());
    Ok(QueryAnswer { columns: found.columns, rows: rows.collect::<Result<_, _>>()? })
}

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
            matched += write(session, signatures, &repeated(sql, &group, chunk.len()), &chunk.concat()).await?;
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

/// Binds a plugin's values. What does not fit one packet would cost the connection, and all others their unit.
fn bound(session: &Session, params: &[Value]) -> Result<Args, MysqlError> {
    let (mut args, mut bytes) = (Args::default(), 0);
    for value in params {
        add(&mut args, value, &session.facts().decimal);
        bytes += value.bytes() + 16;
    }
    let max = session.facts().packet_max;
    if bytes + 1_024 > max {
        return Err(MysqlError::TooLarge { what: "statement", bytes, max });
    }
    Ok(args)
}

fn add(args: &mut Args, value: &Value, decimal: &MySqlTypeInfo) {
    match value {
        Value::Null => args.add(None::<&str>),
        Value::Boolean(flag) => args.add(*flag),
        Value::Signed(number) => args.add(*number),
        Value::Unsigned(number) => args.add(*number),
        Value::Float(number) => args.add(*number),
        Value::Decimal(text) => args.add(Decimal { text, kind: decimal }),
        Value::Text(text) | Value::Date(text) | Value::Time(text) | Value::Datetime(text) | Value::Json(text) => {
            args.add(text.as_str());
        }
        Value::Bytes(bytes) => args.add(bytes.as_slice()),
    }
}
