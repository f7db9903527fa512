//! What the SQL gate needs to know of the tenant's tables, and SQLite's own opinion of a text.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use oncebox_core::sql::{Catalogue, ForeignKey, ReferentialAction, TableFacts, TableKind};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _, SqlStr, SqliteConnection};

use super::errors::{statement_error, store_error};
use crate::store::{StatementError, StoreError};

/// Moves whenever a table, an index, a view or a trigger is made, changed or dropped.
pub(super) async fn schema_version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    sqlx::query("PRAGMA schema_version")
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| store_error("schema version", &error))
}

pub(super) async fn catalogue(connection: &mut SqliteConnection) -> Result<Catalogue, StoreError> {
    let wrap = |error| store_error("catalogue", &error);
    let mut tables = BTreeMap::new();
    let rows =
        sqlx::query("SELECT name, type, schema = 'temp' FROM pragma_table_list WHERE schema IN ('main', 'temp')")
            .fetch_all(&mut *connection)
            .await
            .map_err(wrap)?;
    for row in &rows {
        let (name, kind): (String, String) = (row.try_get(0).map_err(wrap)?, row.try_get(1).map_err(wrap)?);
        let kind = match kind.as_str() {
            _ if name.starts_with("sqlite_") => TableKind::System,
            _ if row.try_get(2).map_err(wrap)? => TableKind::Temporary,
            "table" => TableKind::Base,
            "view" => TableKind::View,
            "virtual" => TableKind::Virtual,
            // `shadow` tables belong to a virtual one.
            _ => TableKind::System,
        };
        // Keys are not looked for: where no statement crosses a network, nothing is won by folding an UPDATE.
        let facts = TableFacts {
            kind,
            engine: None,
            triggers: Vec::new(),
            referenced_by: Vec::new(),
            primary_key: Vec::new(),
            unique: BTreeSet::new(),
        };
        tables.insert(name, facts);
    }
    let triggers = sqlx::query("SELECT tbl_name, name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")
        .fetch_all(&mut *connection)
        .await
        .map_err(wrap)?;
    for row in &triggers {
        let table: String = row.try_get(0).map_err(wrap)?;
        if let Some(facts) = of_table(&mut tables, &table) {
            facts.triggers.push(row.try_get(1).map_err(wrap)?);
        }
    }
    let keys = sqlx::query(
        "SELECT t.name, f.id, f.\"table\", f.on_delete, f.on_update
         FROM pragma_table_list AS t JOIN pragma_foreign_key_list(t.name) AS f
         WHERE t.schema = 'main' AND t.type = 'table' AND f.seq = 0 ORDER BY t.name, f.id",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(wrap)?;
    for row in &keys {
        let from_table: String = row.try_get(0).map_err(wrap)?;
        let id: i64 = row.try_get(1).map_err(wrap)?;
        let to_table: String = row.try_get(2).map_err(wrap)?;
        let key = ForeignKey {
            name: format!("{from_table} foreign key {id}"),
            on_delete: action(row.try_get(3).map_err(wrap)?),
            on_update: action(row.try_get(4).map_err(wrap)?),
            from_table,
        };
        if let Some(facts) = of_table(&mut tables, &to_table) {
            facts.referenced_by.push(key);
        }
    }
    Ok(Catalogue { tables, complete: true })
}

/// SQLite compares names without regard to case, and keeps in triggers and foreign keys what their author wrote.
fn of_table<'t>(tables: &'t mut BTreeMap<String, TableFacts>, name: &str) -> Option<&'t mut TableFacts> {
    tables.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, facts)| facts)
}

fn action(text: &str) -> ReferentialAction {
    match text {
        "CASCADE" => ReferentialAction::Cascade,
        "SET NULL" => ReferentialAction::SetNull,
        "SET DEFAULT" => ReferentialAction::SetDefault,
        _ => ReferentialAction::Restrict,
    }
}

/// Clauses of a table that would end or bend a unit of work behind the host's back: a rollback of the whole
/// transaction, rows that vanish or are not written without an error, an error that comes only with COMMIT.
const UNFIT_CLAUSES: [&str; 4] =
    ["ON CONFLICT ROLLBACK", "ON CONFLICT IGNORE", "ON CONFLICT REPLACE", "INITIALLY DEFERRED"];

pub(super) async fn unfit_tables(
    connection: &mut SqliteConnection,
    tables: &[&str],
) -> Result<Vec<(String, &'static str)>, StoreError> {
    let wrap = |error| store_error("unfit tables", &error);
    let rows =
        sqlx::query("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL ORDER BY name")
            .fetch_all(connection)
            .await
            .map_err(wrap)?;
    let mut unfit = Vec::new();
    for row in &rows {
        let (name, sql): (String, String) = (row.try_get(0).map_err(wrap)?, row.try_get(1).map_err(wrap)?);
        if tables.iter().any(|table| table.eq_ignore_ascii_case(&name)) {
            let words = sql.to_ascii_uppercase().split_whitespace().collect::<Vec<_>>().join(" ");
            unfit.extend(UNFIT_CLAUSES.into_iter().filter(|clause| words.contains(clause)).map(|c| (name.clone(), c)));
        }
    }
    Ok(unfit)
}

/// Lets SQLite compile the text, as the lanes will: unknown tables, columns and functions are found here.
pub(super) async fn prepare(connection: &mut SqliteConnection, sql: &str) -> Result<(), StatementError> {
    // A statement that was compiled before the tables changed would be given out of the cache as it was.
    connection.clear_cached_statements().await.map_err(|error| statement_error(&error))?;
    let text: SqlStr = sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(Arc::<str>::from(sql)));
    connection.prepare(text).await.map(|_| ()).map_err(|error| statement_error(&error))
}
