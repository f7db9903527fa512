//! Small reads and writes outside the unit of work.

use std::collections::BTreeMap;

use sqlx::{Row as _, SqliteConnection};

use super::errors::store_error;
use crate::store::{HandlerId, StoreError};

pub(super) async fn now_us(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    sqlx::query(concat!("SELECT ", now_us!(), ""))
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| store_error("clock", &error))
}

pub(super) async fn tenant_secret(connection: &mut SqliteConnection) -> Result<[u8; 32], StoreError> {
    let bytes: Vec<u8> = sqlx::query("SELECT value FROM ob_meta WHERE name = 'tenant_secret'")
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| store_error("tenant secret", &error))?;
    bytes.try_into().map_err(|bytes: Vec<u8>| StoreError::Corrupt {
        table: "ob_meta",
        message: format!("the tenant secret has {} bytes, not 32", bytes.len()),
    })
}

pub(super) async fn handler_ensure(connection: &mut SqliteConnection, name: &str) -> Result<HandlerId, StoreError> {
    let wrap = |error| store_error("handler ensure", &error);
    sqlx::query("INSERT INTO ob_handler (name) VALUES (?) ON CONFLICT (name) DO NOTHING")
        .bind(name)
        .execute(&mut *connection)
        .await
        .map_err(wrap)?;
    sqlx::query("SELECT handler_id FROM ob_handler WHERE name = ?")
        .bind(name)
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map(HandlerId)
        .map_err(wrap)
}

pub(super) async fn handlers(connection: &mut SqliteConnection) -> Result<BTreeMap<String, HandlerId>, StoreError> {
    let wrap = |error| store_error("handlers", &error);
    let rows = sqlx::query("SELECT name, handler_id FROM ob_handler").fetch_all(connection).await.map_err(wrap)?;
    rows.iter().map(|row| Ok((row.try_get(0)?, HandlerId(row.try_get(1)?)))).collect::<Result<_, _>>().map_err(wrap)
}
