//! Plugins' statements and queries: the author's text, bound values, and what SQLite answers.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use oncebox_core::{failure::Class, value::Value};
use sqlx::{
    AssertSqlSafe, Column as _, Executor as _, Row as _, SqlSafeStr as _, SqliteConnection, Statement as _,
    TypeInfo as _, ValueRef as _,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteRow},
};

use super::errors::{bad_data, is_generic, statement_error};
use crate::store::{QueryAnswer, StatementError};

/// Runs a staged write; the answer is the number of rows that it matched.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    sql: &Arc<str>,
    params: &[Value],
) -> Result<u64, StatementError> {
    match bound(sql, params)?.execute(&mut *connection).await {
        Ok(done) => Ok(done.rows_affected()),
        Err(error) => Err(refused(connection, sql, &error).await),
    }
}

/// Runs a query; at most `rows_max` + 1 rows are read.
pub(super) async fn query(
    connection: &mut SqliteConnection,
    sql: &Arc<str>,
    params: &[Value],
    rows_max: u32,
) -> Result<QueryAnswer, StatementError> {
    let rows = match read(connection, bound(sql, params)?, rows_max).await {
        Ok(rows) => rows,
        Err(error) => return Err(refused(connection, sql, &error).await),
    };
    let columns = match rows.first() {
        Some(row) => row.columns().iter().map(|column| column.name().to_owned()).collect(),
        None => columns(connection, sql).await?,
    };
    let rows = rows.iter().map(|row| (0..row.len()).map(|at| decoded(row, at)).collect());
    Ok(QueryAnswer { columns, rows: rows.collect::<Result<_, _>>()? })
}

async fn read(
    connection: &mut SqliteConnection,
    query: Bound<'_>,
    rows_max: u32,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let wanted = usize::try_from(rows_max).unwrap_or(usize::MAX).saturating_add(1);
    let mut found = Vec::new();
    let mut rows = query.fetch(connection);
    while found.len() < wanted
        && let Some(row) = rows.try_next().await?
    {
        found.push(row);
    }
    Ok(found)
}

/// SQLite has one code for a text that does not compile any more (a table is gone) and for a function that does not
/// take its argument (malformed JSON): whether the text still compiles tells them apart.
async fn refused(connection: &mut SqliteConnection, sql: &str, error: &sqlx::Error) -> StatementError {
    let refused = statement_error(error);
    if !is_generic(error) {
        return refused;
    }
    // Not from the cache of compiled statements: that one was compiled before the change.
    let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN {sql}"))).persistent(false).execute(connection).await;
    if explain.is_ok() { bad_data(refused.message) } else { refused }
}

/// The names of the columns, where no row tells them.
async fn columns(connection: &mut SqliteConnection, sql: &Arc<str>) -> Result<Vec<String>, StatementError> {
    let statement =
        connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await.map_err(|error| statement_error(&error))?;
    Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
}

type Bound<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Binds a plugin's values. What SQLite cannot keep exactly is refused here, by name.
fn bound<'q>(sql: &Arc<str>, params: &'q [Value]) -> Result<Bound<'q>, StatementError> {
    let mut query = sqlx::query(AssertSqlSafe(sql.clone()));
    for (index, value) in params.iter().enumerate() {
        query = match value {
            Value::Null => query.bind(None::<i64>),
            Value::Boolean(flag) => query.bind(*flag),
            Value::Signed(number) => query.bind(*number),
            Value::Unsigned(number) => query.bind(i64::try_from(*number).map_err(|_| {
                inexact(index, format!("{number} is above {}, the largest integer of the embedded store", i64::MAX))
            })?),
            Value::Float(number) => query.bind(*number),
            Value::Decimal(text) => {
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                if digits > 15 {
                    return Err(inexact(index, format!("a decimal of {digits} digits: the embedded store keeps 15")));
                }
                query.bind(text.as_str())
            }
            Value::Text(text) | Value::Date(text) | Value::Time(text) | Value::Datetime(text) | Value::Json(text) => {
                query.bind(text.as_str())
            }
            Value::Bytes(bytes) => query.bind(bytes.as_slice()),
        };
    }
    Ok(query)
}

fn inexact(index: usize, why: String) -> StatementError {
    StatementError {
        class: Class::Data,
        number: Some(1264),
        code: "out-of-range",
        message: format!("parameter {}: {why}", index + 1),
    }
}

fn decoded(row: &SqliteRow, at: usize) -> Result<Value, StatementError> {
    let wrap = |error: sqlx::Error| statement_error(&error);
    let raw = row.try_get_raw(at).map_err(wrap)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    match kind.as_str() {
        "REAL" => row.try_get_unchecked(at).map(Value::Float).map_err(wrap),
        "TEXT" | "DATE" | "TIME" | "DATETIME" => row.try_get_unchecked(at).map(Value::Text).map_err(wrap),
        "BLOB" => row.try_get_unchecked(at).map(Value::Bytes).map_err(wrap),
        _ => row.try_get_unchecked(at).map(Value::Signed).map_err(wrap),
    }
}
