//! The embedded store's own migrations: numbered, forward only, each in one transaction with its number.

use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

use super::errors::{store_error, words};
use crate::store::StoreError;

/// Migrations in order; the n-th brings the tables to number n (from 1), kept in `PRAGMA user_version`.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../../migrations/sqlite/0001_base.sql"),
    include_str!("../../../../migrations/sqlite/0002_order_and_fleet.sql"),
    include_str!("../../../../migrations/sqlite/0003_blame.sql"),
];

/// Brings the tables up to date. `schema` is run with the first migration, in the same transaction.
pub(super) async fn migrate(connection: &mut SqliteConnection, schema: Option<&str>) -> Result<(), StoreError> {
    let wrap = |error| store_error("migrate", &error);
    // Immediate: two processes that open a new file at once do it one after the other.
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    let found = number(&mut tx).await?;
    let needed = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > needed {
        return Err(StoreError::Migration {
            found,
            needed,
            mend: "the file was written by a newer oncebox: use that one",
        });
    }
    for (number, migration) in (1i64..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        sqlx::raw_sql(migration).execute(&mut *tx).await.map_err(wrap)?;
        if number == 1 {
            let secret: [u8; 32] = rand::random();
            sqlx::query("INSERT INTO ob_meta (name, value) VALUES ('tenant_secret', ?)")
                .bind(secret.as_slice())
                .execute(&mut *tx)
                .await
                .map_err(wrap)?;
            if let Some(schema) = schema {
                sqlx::raw_sql(AssertSqlSafe(schema))
                    .execute(&mut *tx)
                    .await
                    .map_err(|error| StoreError::Schema { message: words(&error) })?;
            }
        }
    }
    if found < needed {
        sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA user_version = {needed}")))
            .execute(&mut *tx)
            .await
            .map_err(wrap)?;
    }
    tx.commit().await.map_err(wrap)
}

/// The number that the file's tables are at.
pub(super) async fn number(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    sqlx::query("PRAGMA user_version")
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| store_error("migrate", &error))
}

/// Leases of an earlier life are void, and it is over: there is one host, and it has just begun.
pub(super) async fn void_leases(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let sql = "BEGIN IMMEDIATE;
        UPDATE ob_local SET lease_token = NULL, due_at = received_at WHERE lease_token IS NOT NULL;
        UPDATE ob_held SET lease_token = NULL, due_at = changed_at WHERE lease_token IS NOT NULL AND state = 0;
        UPDATE ob_boot SET ended_at = seen_at, crashed = 1 WHERE ended_at IS NULL;
        COMMIT;";
    sqlx::raw_sql(sql).execute(connection).await.map(|_| ()).map_err(|error| store_error("void leases", &error))
}
