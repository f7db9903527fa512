//! Plugins' statements and queries: the author's text, bound values, and what the server answers.
//!
//! A prepared text keeps the types of its first values; a value of another type then goes through a conversion of the
//! server's, silently (a text through DOUBLE, after a float: 17 digits of an exact decimal). So a text is kept for one
//! set of types only, and NULL fits each.

use std::{collections::HashMap, sync::Arc};

use oncebox_core::value::Value;
use sqlx::{AssertSqlSafe, mysql::MySqlTypeInfo};

use super::{
    args::{Args, Decimal},
    decode::decoded,
    errors::MysqlError,
    session::Session,
};
use crate::store::{QueryAnswer, StatementError};

/// The types that each text of a session was prepared for.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    kinds: HashMap<Arc<str>, Vec<Kind>>,
}

/// Texts whose types are remembered; further ones are prepared with their types named.
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
    /// The text to prepare for these values: the author's own, or one that names their types in a comment where what
    /// his was prepared for does not fit.
    fn text(&mut self, sql: &Arc<str>, params: &[Value]) -> Arc<str> {
        let kinds = params.iter().map(Kind::of);
        let Some(known) = self.kinds.get_mut(sql) else {
            if self.kinds.len() >= TEXTS_MAX {
                return named(sql, kinds);
            }
            self.kinds.insert(sql.clone(), kinds.collect());
            return sql.clone();
        };
        let fits = |(known, new): (&Kind, Kind)| *known == new || *known == Kind::Any || new == Kind::Any;
        if known.len() != params.len() || !known.iter().zip(kinds.clone()).all(fits) {
            return named(sql, kinds);
        }
        for (known, new) in known.iter_mut().zip(kinds) {
            if *known == Kind::Any {
                *known = new;
            }
        }
        sql.clone()
    }
}

/// The text with a comment that says its values' types, a letter each. The gate refuses comments, so that no author's text
/// is taken for it.
fn named(sql: &str, kinds: impl Iterator<Item = Kind>) -> Arc<str> {
    let letters: String = kinds.map(Kind::letter).collect();
    format!("/* {letters} */ {sql}").into()
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

    fn letter(self) -> char {
        match self {
            Self::Any => '-',
            Self::Boolean => 'o',
            Self::Signed => 's',
            Self::Unsigned => 'u',
            Self::Float => 'f',
            Self::Decimal => 'd',
            Self::Text => 't',
            Self::Bytes => 'b',
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
    let sql = signatures.text(sql, params);
    let done = session.execute("statement", AssertSqlSafe(sql), args).await;
    done.map(|done| done.affected).map_err(MysqlError::of_statement)
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
    let sql = signatures.text(sql, params);
    let wanted = usize::try_from(rows_max).unwrap_or(usize::MAX).saturating_add(1);
    let found = session.find("query", AssertSqlSafe(sql), args, wanted).await;
    let found = found.map_err(MysqlError::of_statement)?;
    let width = found.columns.len();
    let rows = found.rows.iter().map(|row| (0..width).map(|at| decoded(row, at)).collect());
    Ok(QueryAnswer { columns: found.columns, rows: rows.collect::<Result<_, _>>()? })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_prepared_apart_for_values_of_other_types() {
        let mut signatures = Signatures::default();
        let sql: Arc<str> = "UPDATE t SET a = ? WHERE b = ?".into();
        let (whole, exact, text) = (Value::Signed(1), Value::Decimal("1.5".to_owned()), Value::Text("x".to_owned()));
        for (params, wanted) in [
            ([Value::Null, whole.clone()], &*sql),
            ([exact.clone(), whole.clone()], &*sql),
            ([exact.clone(), Value::Null], &*sql),
            ([whole, text.clone()], "/* st */ UPDATE t SET a = ? WHERE b = ?"),
            ([Value::Null, text], "/* -t */ UPDATE t SET a = ? WHERE b = ?"),
            ([exact, Value::Null], &*sql),
        ] {
            assert_eq!(&*signatures.text(&sql, &params), wanted, "{params:?}");
        }
    }

    #[test]
    fn a_text_too_many_to_remember_is_prepared_with_its_types_named() {
        let mut signatures = Signatures::default();
        for number in 0..TEXTS_MAX {
            let sql: Arc<str> = format!("SELECT {number} + ?").into();
            assert_eq!(signatures.text(&sql, &[Value::Signed(1)]), sql);
        }
        let text = |signatures: &mut Signatures, value| signatures.text(&"SELECT ?".into(), &[value]);
        assert_eq!(&*text(&mut signatures, Value::Float(0.5)), "/* f */ SELECT ?");
        assert_eq!(&*text(&mut signatures, Value::Bytes(Vec::new())), "/* b */ SELECT ?");
        assert_eq!(&*text(&mut signatures, Value::Null), "/* - */ SELECT ?");
    }
}
