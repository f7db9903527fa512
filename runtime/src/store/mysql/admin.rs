//! Small reads and writes outside the unit of work.

use std::collections::BTreeMap;

use super::{columns::Columns, session::Session};
use crate::store::{HandlerId, StoreError};

/// The one row of an answer that always has one.
pub(super) fn only<'r>(what: &'static str, rows: &'r [sqlx::mysql::MySqlRow]) -> Result<Columns<'r>, StoreError> {
    let none = || StoreError::Statement { what, message: "the answer has no row".to_owned() };
    rows.first().map(|row| Columns::of(what, row)).ok_or_else(none)
}

/// Ends the transaction that `done` was reached in: keeps it, or undoes it and tells why.
pub(super) async fn ended<T>(session: &mut Session, done: Result<T, StoreError>) -> Result<T, StoreError> {
    match done {
        Ok(value) => {
            session.commit().await?;
            Ok(value)
        }
        Err(error) => {
            // A session that cannot be rolled back must not be used again: the next statement would be part of it.
            if let Err(failed) = session.rollback().await {
                session.abandon(failed.to_string());
            }
            Err(error)
        }
    }
}

pub(super) async fn tenant_secret(session: &mut Session) -> Result<[u8; 32], StoreError> {
    let sql = "SELECT value FROM ob_meta WHERE name = 'tenant_secret'";
    let rows = session.rows("tenant secret", sql, args![]).await?;
    let missing = || StoreError::Corrupt { table: "ob_meta", message: "it has no tenant secret".to_owned() };
    let row = rows.first().map(|row| Columns::of("ob_meta", row)).ok_or_else(missing)?;
    let bytes = row.bytes(0)?;
    bytes.try_into().map_err(|_| row.corrupt(format!("the tenant secret has {} bytes, not 32", bytes.len())))
}

pub(super) async fn handler_ensure(session: &mut Session, name: &str) -> Result<HandlerId, StoreError> {
    // Asked first: what is there already uses up no number.
    if let Some(known) = handler(session, name).await? {
        return Ok(known);
    }
    let sql = "INSERT INTO ob_handler (name) VALUES (?) ON DUPLICATE KEY UPDATE name = name";
    session.execute("handler ensure", sql, args![name]).await?;
    let gone = || StoreError::Corrupt { table: "ob_handler", message: format!("handler {name} is gone again") };
    handler(session, name).await?.ok_or_else(gone)
}

async fn handler(session: &mut Session, name: &str) -> Result<Option<HandlerId>, StoreError> {
    let sql = "SELECT handler_id FROM ob_handler WHERE name = ?";
    let rows = session.rows("handler", sql, args![name]).await?;
    rows.first().map(|row| Columns::of("ob_handler", row).integer(0).map(HandlerId)).transpose()
}

pub(super) async fn handlers(session: &mut Session) -> Result<BTreeMap<String, HandlerId>, StoreError> {
    let rows = session.rows("handlers", "SELECT name, handler_id FROM ob_handler", args![]).await?;
    let pair = |row| {
        let row = Columns::of("ob_handler", row);
        Ok((row.text(0)?, HandlerId(row.integer(1)?)))
    };
    rows.iter().map(pair).collect()
}
