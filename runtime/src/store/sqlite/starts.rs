//! Starts and their ends.

use std::{collections::BTreeMap, time::Duration};

use oncebox_core::{
    blame::{Life, START_BYTES, STARTS_MAX, Start},
    ids::{BootId, MessageHash},
};
use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::errors::store_error;
use crate::store::{
    HandlerId, StartEnd, StartRow, StoreError, Suspect,
    starts::{ends_listed, listed, starts},
};

/// When the row of a message that never came again may be purged: after 30 days.
macro_rules! keep {
    () => {
        concat!(now_us!(), " + 2592000000000")
    };
}

/// Bytes that a column of starts holds.
pub(super) const COLUMN_BYTES: usize = START_BYTES * STARTS_MAX;

/// A number of bytes as the statements take it.
pub(super) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(super) async fn insert(
    connection: &mut SqliteConnection,
    source: &str,
    messages: &[MessageHash],
    start: Start,
) -> Result<Vec<StartRow>, StoreError> {
    let wrap = |error| store_error("start insert", &error);
    let list = listed(messages);
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    let known = sqlx::query(
        "SELECT s.message_hash FROM json_each(?1) AS m
         CROSS JOIN ob_start AS s ON s.source = ?2 AND s.message_hash = unhex(m.value) AND s.handler_id = 0 LIMIT 1",
    )
    .bind(&list)
    .bind(source)
    .fetch_optional(&mut *tx)
    .await
    .map_err(wrap)?;
    let sql = concat!(
        "INSERT INTO ob_start (source, message_hash, handler_id, starts, expire_at)
         SELECT ?5, unhex(m.value), 0, ?2, ",
        keep!(),
        " FROM json_each(?6) AS m WHERE true
         ON CONFLICT (source, message_hash, handler_id) DO UPDATE SET starts = ",
        with_start!("starts"),
        ", times = times + 1, expire_at = excluded.expire_at"
    );
    sqlx::query(sql)
        .bind(start.boot.as_bytes())
        .bind(start.to_bytes().as_slice())
        .bind(length(START_BYTES))
        .bind(length(COLUMN_BYTES))
        .bind(source)
        .bind(&list)
        .execute(&mut *tx)
        .await
        .map_err(wrap)?;
    let rows = match known {
        None => Vec::new(),
        Some(_) => sqlx::query(
            "SELECT s.message_hash, s.handler_id, s.starts FROM json_each(?1) AS m
             CROSS JOIN ob_start AS s ON s.source = ?2 AND s.message_hash = unhex(m.value)",
        )
        .bind(&list)
        .bind(source)
        .fetch_all(&mut *tx)
        .await
        .map_err(wrap)?,
    };
    tx.commit().await.map_err(wrap)?;
    rows.iter().map(start_row).collect()
}

fn start_row(row: &SqliteRow) -> Result<StartRow, StoreError> {
    let wrap = |error| store_error("start row", &error);
    let corrupt = || StoreError::Corrupt { table: "ob_start", message: "message_hash is not 32 bytes".to_owned() };
    Ok(StartRow {
        message: MessageHash::from_slice(row.try_get(0).map_err(wrap)?).ok_or_else(corrupt)?,
        handler: HandlerId(row.try_get(1).map_err(wrap)?),
        starts: starts("ob_start", row.try_get(2).map_err(wrap)?)?,
    })
}

pub(super) async fn alone(
    connection: &mut SqliteConnection,
    suspect: &Suspect,
    start: Start,
) -> Result<bool, StoreError> {
    let bytes = start.to_bytes();
    let delivered = concat!(
        "INSERT INTO ob_start (source, message_hash, handler_id, starts, expire_at) VALUES (?5, ?6, ?7, ?2, ",
        keep!(),
        ") ON CONFLICT (source, message_hash, handler_id) DO UPDATE SET starts = ",
        with_start!("starts"),
        ", times = times + 1, expire_at = excluded.expire_at"
    );
    let claimed = concat!(
        "UPDATE ob_held SET starts_alone = ",
        with_start!("starts_alone"),
        " WHERE held_id = ?5 AND lease_token = ?6 AND state = 0"
    );
    let sql = match suspect {
        Suspect::Delivered(..) => delivered,
        Suspect::Claimed(..) => claimed,
    };
    let query = sqlx::query(sql)
        .bind(start.boot.as_bytes())
        .bind(bytes.as_slice())
        .bind(length(START_BYTES))
        .bind(length(COLUMN_BYTES));
    let query = match suspect {
        Suspect::Delivered((source, hash), handler) => query.bind(&**source).bind(hash.as_bytes()).bind(handler.0),
        Suspect::Claimed(held, token) => query.bind(held.0).bind(token.as_bytes()),
    };
    let done = query.execute(connection).await.map_err(|error| store_error("start alone", &error))?;
    Ok(done.rows_affected() == 1)
}

pub(super) async fn end(connection: &mut SqliteConnection, ends: &[StartEnd]) -> Result<(), StoreError> {
    if ends.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "DELETE FROM ob_start WHERE (source, message_hash, handler_id) IN (
           SELECT s.source, s.message_hash, s.handler_id FROM json_each(?) AS e
           CROSS JOIN ob_start AS s
             ON s.source = CAST(unhex(e.value ->> 0) AS TEXT) AND s.message_hash = unhex(e.value ->> 1)
               AND (e.value ->> 2 IS NULL OR s.handler_id = e.value ->> 2))",
    )
    .bind(ends_listed(ends))
    .execute(connection)
    .await
    .map(|_| ())
    .map_err(|error| store_error("start end", &error))
}

pub(super) async fn lives(
    connection: &mut SqliteConnection,
    boots: &[BootId],
) -> Result<BTreeMap<BootId, Life>, StoreError> {
    let wrap = |error| store_error("boot lives", &error);
    // One that the next life had to end has crashed: there was no other host that could have taken it for over.
    let sql = concat!(
        "SELECT ended_at IS NOT NULL AND crashed = 0, crashed <> 0
           OR EXISTS (SELECT 1 FROM ob_boot AS n WHERE n.host = b.host AND n.started_at > b.started_at),
           max(",
        now_us!(),
        " - seen_at, 0) FROM ob_boot AS b WHERE boot_id = ?"
    );
    let mut lives = BTreeMap::new();
    for boot in boots {
        let row = sqlx::query(sql).bind(boot.as_bytes()).fetch_optional(&mut *connection).await.map_err(wrap)?;
        let Some(row) = row else { continue };
        let unseen: i64 = row.try_get(2).map_err(wrap)?;
        let life = Life {
            has_ended: row.try_get(0).map_err(wrap)?,
            has_successor: row.try_get(1).map_err(wrap)?,
            unseen: Duration::from_micros(unseen.unsigned_abs()),
        };
        lives.insert(*boot, life);
    }
    Ok(lives)
}
