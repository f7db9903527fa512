//! Rows that are taken under a lease: messages of local sources, parked rows.

use std::time::Duration;

use oncebox_core::{
    blame::{Open, START_BYTES, Start},
    ids::{BusinessKey, Fingerprint, LeaseToken},
    message::Message,
};
use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    errors::store_error,
    starts::{COLUMN_BYTES, length},
};
use crate::store::{
    ClaimedRow, HandlerId, HeldId, LocalId, LocalMessage, Place, RuleId, StoreError, decode_message, encode_headers,
    starts::starts,
};

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn count(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

pub(super) async fn local_offer(
    connection: &mut SqliteConnection,
    source: &str,
    messages: &[Message],
) -> Result<u64, StoreError> {
    let wrap = |error| store_error("local offer", &error);
    let sql = concat!(
        "INSERT INTO ob_local (source, due_at, headers, payload, received_at) VALUES (?, ",
        now_us!(),
        ", ?, ?, ",
        now_us!(),
        ")"
    );
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    for message in messages {
        sqlx::query(sql)
            .bind(source)
            .bind(encode_headers(message))
            .bind(&message.body)
            .execute(&mut *tx)
            .await
            .map_err(wrap)?;
    }
    tx.commit().await.map_err(wrap)?;
    Ok(messages.len() as u64)
}

pub(super) async fn local_claim(
    connection: &mut SqliteConnection,
    source: &str,
    max: usize,
    token: LeaseToken,
    lease: Duration,
) -> Result<Vec<LocalMessage>, StoreError> {
    let wrap = |error| store_error("local claim", &error);
    // A read first: an idle look must not take the one writer's place.
    let due = concat!("SELECT 1 FROM ob_local WHERE source = ? AND due_at <= ", now_us!(), " LIMIT 1");
    if sqlx::query(due).bind(source).fetch_optional(&mut *connection).await.map_err(wrap)?.is_none() {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "UPDATE ob_local SET lease_token = ?1, due_at = ",
        now_us!(),
        " + ?2, deliveries = deliveries + 1
         WHERE local_id IN (
           SELECT local_id FROM ob_local WHERE source = ?3 AND due_at <= ",
        now_us!(),
        " ORDER BY due_at, local_id LIMIT ?4)
         RETURNING local_id, headers, payload, hops, deliveries, received_at"
    );
    let rows = sqlx::query(sql)
        .bind(token.as_bytes())
        .bind(micros(lease))
        .bind(source)
        .bind(count(max))
        .fetch_all(connection)
        .await
        .map_err(wrap)?;
    let mut messages = rows.iter().map(local_message).collect::<Result<Vec<_>, _>>()?;
    messages.sort_by_key(|message| message.id);
    Ok(messages)
}

fn local_message(row: &SqliteRow) -> Result<LocalMessage, StoreError> {
    let wrap = |error| store_error("local row", &error);
    let message = decode_message(row.try_get(1).map_err(wrap)?, row.try_get(2).map_err(wrap)?)
        .map_err(|message| StoreError::Corrupt { table: "ob_local", message })?;
    Ok(LocalMessage {
        id: LocalId(row.try_get(0).map_err(wrap)?),
        message,
        hops: row.try_get(3).map_err(wrap)?,
        deliveries: row.try_get(4).map_err(wrap)?,
        received_us: row.try_get(5).map_err(wrap)?,
    })
}

pub(super) async fn local_renew(
    connection: &mut SqliteConnection,
    tokens: &[LeaseToken],
    lease: Duration,
) -> Result<(), StoreError> {
    let wrap = |error| store_error("local renew", &error);
    let sql = concat!("UPDATE ob_local SET due_at = ", now_us!(), " + ? WHERE lease_token = ?");
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    for token in tokens {
        sqlx::query(sql).bind(micros(lease)).bind(token.as_bytes()).execute(&mut *tx).await.map_err(wrap)?;
    }
    tx.commit().await.map_err(wrap)
}

/// The answer names those that were no longer ours.
pub(super) async fn local_settle(
    connection: &mut SqliteConnection,
    messages: &[(LocalId, LeaseToken)],
) -> Result<Vec<LocalId>, StoreError> {
    let mut lost = Vec::new();
    for (id, token) in messages {
        let done = sqlx::query("DELETE FROM ob_local WHERE local_id = ? AND lease_token = ?")
            .bind(id.0)
            .bind(token.as_bytes())
            .execute(&mut *connection)
            .await
            .map_err(|error| store_error("local settle", &error))?;
        if done.rows_affected() != 1 {
            lost.push(*id);
        }
    }
    Ok(lost)
}

pub(super) async fn held_due(connection: &mut SqliteConnection) -> Result<Vec<(HandlerId, i64)>, StoreError> {
    let wrap = |error| store_error("held due", &error);
    // One step into the index a handler, however many rows are parked.
    let rows = sqlx::query(
        "SELECT handler_id, due_at FROM (
           SELECT h.handler_id, (SELECT min(p.due_at) FROM ob_held AS p
             WHERE p.handler_id = h.handler_id AND p.state = 0) AS due_at
           FROM ob_handler AS h)
         WHERE due_at IS NOT NULL ORDER BY handler_id",
    )
    .fetch_all(connection)
    .await
    .map_err(wrap)?;
    rows.iter().map(|row| Ok((HandlerId(row.try_get(0)?), row.try_get(1)?))).collect::<Result<_, _>>().map_err(wrap)
}

pub(super) async fn held_claim(
    connection: &mut SqliteConnection,
    handler: HandlerId,
    max: usize,
    token: LeaseToken,
    lease: Duration,
    start: Start,
) -> Result<Vec<ClaimedRow>, StoreError> {
    let wrap = |error| store_error("held claim", &error);
    let due = concat!("SELECT 1 FROM ob_held WHERE handler_id = ? AND state = 0 AND due_at <= ", now_us!(), " LIMIT 1");
    if sqlx::query(due).bind(handler.0).fetch_optional(&mut *connection).await.map_err(wrap)?.is_none() {
        return Ok(Vec::new());
    }
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(wrap)?;
    let claim = concat!(
        "UPDATE ob_held SET lease_token = ?5, due_at = ",
        now_us!(),
        " + ?6, starts = ",
        with_start!("starts"),
        " WHERE held_id IN (
           SELECT held_id FROM ob_held WHERE handler_id = ?7 AND state = 0 AND due_at <= ",
        now_us!(),
        "
           ORDER BY due_at, held_id LIMIT ?8)
         RETURNING held_id"
    );
    let taken = sqlx::query(claim)
        .bind(start.boot.as_bytes())
        .bind(start.to_bytes().as_slice())
        .bind(length(START_BYTES))
        .bind(length(COLUMN_BYTES))
        .bind(token.as_bytes())
        .bind(micros(lease))
        .bind(handler.0)
        .bind(count(max))
        .fetch_all(&mut *tx)
        .await
        .map_err(wrap)?;
    let taken: Vec<i64> = taken.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(wrap)?;
    let rows = sqlx::query(
        "SELECT h.held_id, h.business_key, h.fingerprint, h.rule_id, h.attempts, h.attempts_short, h.generation,
           h.source, h.hops, h.received_at, b.headers, b.payload, h.ordering_key, h.place,
           h.starts, h.starts_alone
         FROM json_each(?) AS taken
         JOIN ob_held AS h ON h.held_id = taken.value
         JOIN ob_body AS b ON b.held_id = h.held_id
           AND b.revision = (SELECT max(revision) FROM ob_body WHERE held_id = h.held_id)
         ORDER BY h.held_id",
    )
    .bind(serde_json::to_string(&taken).unwrap_or_default())
    .fetch_all(&mut *tx)
    .await
    .map_err(wrap)?;
    tx.commit().await.map_err(wrap)?;
    rows.iter().map(claimed_row).collect()
}

fn place(row: &SqliteRow) -> Result<Option<Place>, sqlx::Error> {
    let (ordering_key, place): (Option<Vec<u8>>, Option<i64>) = (row.try_get(12)?, row.try_get(13)?);
    Ok(ordering_key.zip(place).map(|(ordering_key, place)| Place { ordering_key, place: place.unsigned_abs() }))
}

fn claimed_row(row: &SqliteRow) -> Result<ClaimedRow, StoreError> {
    let wrap = |error| store_error("held row", &error);
    let corrupt = |message: String| StoreError::Corrupt { table: "ob_held", message };
    let key: Option<Vec<u8>> = row.try_get(1).map_err(wrap)?;
    let fingerprint: Option<&[u8]> = row.try_get(2).map_err(wrap)?;
    let rule: Option<i64> = row.try_get(3).map_err(wrap)?;
    Ok(ClaimedRow {
        held: HeldId(row.try_get(0).map_err(wrap)?),
        key: key.map(BusinessKey::new).ok_or_else(|| corrupt("a parked row has no key".to_owned()))?,
        fingerprint: fingerprint
            .and_then(Fingerprint::from_slice)
            .ok_or_else(|| corrupt("a parked row has no fingerprint".to_owned()))?,
        rule: rule.map(RuleId).ok_or_else(|| corrupt("a parked row has no rule".to_owned()))?,
        attempts: row.try_get(4).map_err(wrap)?,
        attempts_short: row.try_get(5).map_err(wrap)?,
        generation: row.try_get(6).map_err(wrap)?,
        source: row.try_get(7).map_err(wrap)?,
        hops: row.try_get(8).map_err(wrap)?,
        received_us: row.try_get(9).map_err(wrap)?,
        body: decode_message(row.try_get(10).map_err(wrap)?, row.try_get(11).map_err(wrap)?).map_err(corrupt)?,
        place: place(row).map_err(wrap)?,
        open: Open {
            beside: starts("ob_held", row.try_get(14).map_err(wrap)?)?,
            alone: starts("ob_held", row.try_get(15).map_err(wrap)?)?,
        },
    })
}
