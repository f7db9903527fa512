//! What people ask: held rows, the story of a key, the books.

use oncebox_core::{
    failure::Class,
    ids::{BusinessKey, Fingerprint, ModuleDigest},
    life::{HeldState, InboxState, Verdict},
};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::errors::store_error;
use crate::store::{
    AttemptRow, DeploymentId, Gauges, HandlerId, HeldFilter, HeldId, HeldRow, HeldStory, InboxStory, KeyStory,
    OutboxState, OutgoingStory, StoreError, decode_message,
};

const HELD_COLUMNS: &str = "held_id, handler_id, state, business_key, due_at, attempts, times, class, code, message, \
     fingerprint, source, event_id, event_type, received_at, changed_at";

fn corrupt(table: &'static str, message: impl Into<String>) -> StoreError {
    StoreError::Corrupt { table, message: message.into() }
}

pub(super) async fn held_list(
    connection: &mut SqliteConnection,
    filter: &HeldFilter,
) -> Result<Vec<HeldRow>, StoreError> {
    let states: Vec<u8> = if filter.states.is_empty() {
        HeldState::ALL.into_iter().filter(|state| *state != HeldState::Resolved).map(HeldState::number).collect()
    } else {
        filter.states.iter().map(|state| state.number()).collect()
    };
    let sql = format!(
        "SELECT {HELD_COLUMNS} FROM ob_held
         WHERE held_id > ?1 AND (?2 IS NULL OR handler_id = ?2)
           AND state IN (SELECT value FROM json_each(?3)) ORDER BY held_id LIMIT ?4"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(filter.after)
        .bind(filter.handler.map(|handler| handler.0))
        .bind(serde_json::to_string(&states).unwrap_or_default())
        .bind(filter.limit)
        .fetch_all(connection)
        .await
        .map_err(|error| store_error("held list", &error))?;
    rows.iter().map(held_row).collect()
}

fn held_row(row: &SqliteRow) -> Result<HeldRow, StoreError> {
    let wrap = |error| store_error("held row", &error);
    let key: Option<Vec<u8>> = row.try_get(3).map_err(wrap)?;
    let fingerprint: Option<&[u8]> = row.try_get(10).map_err(wrap)?;
    Ok(HeldRow {
        held: HeldId(row.try_get(0).map_err(wrap)?),
        handler: HandlerId(row.try_get(1).map_err(wrap)?),
        state: HeldState::from_number(row.try_get(2).map_err(wrap)?)
            .ok_or_else(|| corrupt("ob_held", "unknown state"))?,
        key: key.map(BusinessKey::new),
        due_us: row.try_get(4).map_err(wrap)?,
        attempts: row.try_get(5).map_err(wrap)?,
        times: row.try_get(6).map_err(wrap)?,
        class: Class::from_number(row.try_get(7).map_err(wrap)?).ok_or_else(|| corrupt("ob_held", "unknown class"))?,
        code: row.try_get(8).map_err(wrap)?,
        message: row.try_get(9).map_err(wrap)?,
        fingerprint: fingerprint.and_then(Fingerprint::from_slice),
        source: row.try_get(11).map_err(wrap)?,
        event_id: row.try_get(12).map_err(wrap)?,
        event_type: row.try_get(13).map_err(wrap)?,
        received_us: row.try_get(14).map_err(wrap)?,
        changed_us: row.try_get(15).map_err(wrap)?,
    })
}

pub(super) async fn held_show(
    connection: &mut SqliteConnection,
    held: HeldId,
) -> Result<Option<HeldStory>, StoreError> {
    let wrap = |error| store_error("held show", &error);
    let sql = format!("SELECT {HELD_COLUMNS} FROM ob_held WHERE held_id = ?");
    let row =
        sqlx::query(sqlx::AssertSqlSafe(sql)).bind(held.0).fetch_optional(&mut *connection).await.map_err(wrap)?;
    let Some(row) = row.as_ref().map(held_row).transpose()? else { return Ok(None) };
    let body = sqlx::query("SELECT headers, payload FROM ob_body WHERE held_id = ? ORDER BY revision DESC LIMIT 1")
        .bind(held.0)
        .fetch_one(&mut *connection)
        .await
        .map_err(wrap)?;
    let body = decode_message(body.try_get(0).map_err(wrap)?, body.try_get(1).map_err(wrap)?)
        .map_err(|message| corrupt("ob_body", message))?;
    let attempts = sqlx::query(
        "SELECT a.attempt, a.deployment_id, d.digest, a.started_at, a.ended_at, a.class, a.code, a.message, a.backtrace
         FROM ob_attempt AS a LEFT JOIN ob_deployment AS d ON d.deployment_id = a.deployment_id
         WHERE a.held_id = ? ORDER BY a.generation, a.attempt",
    )
    .bind(held.0)
    .fetch_all(connection)
    .await
    .map_err(wrap)?;
    let attempts = attempts.iter().map(attempt_row).collect::<Result<_, _>>()?;
    Ok(Some(HeldStory { row, body, attempts }))
}

fn deployment_of(row: &SqliteRow, at: usize) -> Result<Option<(DeploymentId, ModuleDigest)>, sqlx::Error> {
    let id: Option<i64> = row.try_get(at)?;
    let digest: Option<&[u8]> = row.try_get(at + 1)?;
    Ok(id.map(DeploymentId).zip(digest.and_then(ModuleDigest::from_slice)))
}

fn attempt_row(row: &SqliteRow) -> Result<AttemptRow, StoreError> {
    let wrap = |error| store_error("attempt row", &error);
    Ok(AttemptRow {
        attempt: row.try_get(0).map_err(wrap)?,
        deployment: deployment_of(row, 1).map_err(wrap)?,
        started_us: row.try_get(3).map_err(wrap)?,
        ended_us: row.try_get(4).map_err(wrap)?,
        class: Class::from_number(row.try_get(5).map_err(wrap)?)
            .ok_or_else(|| corrupt("ob_attempt", "unknown class"))?,
        code: row.try_get(6).map_err(wrap)?,
        message: row.try_get(7).map_err(wrap)?,
        backtrace: row.try_get(8).map_err(wrap)?,
    })
}

pub(super) async fn trace(
    connection: &mut SqliteConnection,
    handler: HandlerId,
    key: &BusinessKey,
) -> Result<KeyStory, StoreError> {
    let wrap = |error| store_error("trace", &error);
    let inbox = sqlx::query(
        "SELECT i.state, i.generation, i.fingerprint, i.deployment_id, d.digest, i.attempts, i.duplicates,
           i.duplicate_at, i.event_id, i.source, i.traceparent, i.received_at, i.decided_at, i.code, i.result
         FROM ob_inbox AS i LEFT JOIN ob_deployment AS d ON d.deployment_id = i.deployment_id
         WHERE i.handler_id = ? AND i.business_key = ?",
    )
    .bind(handler.0)
    .bind(key.as_bytes())
    .fetch_optional(&mut *connection)
    .await
    .map_err(wrap)?;
    let inbox = inbox.as_ref().map(inbox_story).transpose()?;
    let ids = sqlx::query("SELECT held_id FROM ob_held WHERE handler_id = ? AND business_key = ? ORDER BY held_id")
        .bind(handler.0)
        .bind(key.as_bytes())
        .fetch_all(&mut *connection)
        .await
        .map_err(wrap)?;
    let mut held = Vec::with_capacity(ids.len());
    for id in &ids {
        held.extend(held_show(connection, HeldId(id.try_get(0).map_err(wrap)?)).await?);
    }
    let outgoing = sqlx::query(
        "SELECT event_id, destination, state, event_type, created_at FROM ob_outbox
         WHERE handler_id = ? AND business_key = ? ORDER BY outbox_id",
    )
    .bind(handler.0)
    .bind(key.as_bytes())
    .fetch_all(connection)
    .await
    .map_err(wrap)?;
    let outgoing = outgoing.iter().map(outgoing_story).collect::<Result<_, _>>()?;
    Ok(KeyStory { inbox, held, outgoing })
}

fn inbox_story(row: &SqliteRow) -> Result<InboxStory, StoreError> {
    let wrap = |error| store_error("inbox row", &error);
    Ok(InboxStory {
        state: InboxState::from_number(row.try_get(0).map_err(wrap)?)
            .ok_or_else(|| corrupt("ob_inbox", "unknown state"))?,
        generation: row.try_get(1).map_err(wrap)?,
        fingerprint: Fingerprint::from_slice(row.try_get(2).map_err(wrap)?)
            .ok_or_else(|| corrupt("ob_inbox", "the fingerprint is not 32 bytes"))?,
        deployment: deployment_of(row, 3).map_err(wrap)?,
        attempts: row.try_get(5).map_err(wrap)?,
        duplicates: row.try_get::<i64, _>(6).map(i64::unsigned_abs).map_err(wrap)?,
        duplicate_us: row.try_get(7).map_err(wrap)?,
        event_id: row.try_get(8).map_err(wrap)?,
        source: row.try_get(9).map_err(wrap)?,
        traceparent: row.try_get(10).map_err(wrap)?,
        received_us: row.try_get(11).map_err(wrap)?,
        decided_us: row.try_get(12).map_err(wrap)?,
        code: row.try_get(13).map_err(wrap)?,
        result: row.try_get(14).map_err(wrap)?,
    })
}

fn outgoing_story(row: &SqliteRow) -> Result<OutgoingStory, StoreError> {
    let wrap = |error| store_error("outbox row", &error);
    Ok(OutgoingStory {
        event_id: row.try_get(0).map_err(wrap)?,
        destination: row.try_get(1).map_err(wrap)?,
        state: OutboxState::from_number(row.try_get(2).map_err(wrap)?)
            .ok_or_else(|| corrupt("ob_outbox", "unknown state"))?,
        event_type: row.try_get(3).map_err(wrap)?,
        created_us: row.try_get(4).map_err(wrap)?,
    })
}

pub(super) async fn tallies(connection: &mut SqliteConnection) -> Result<Vec<(HandlerId, Verdict, u64)>, StoreError> {
    let wrap = |error| store_error("tallies", &error);
    let rows = sqlx::query(
        "SELECT handler_id, verdict, sum(n) FROM ob_tally GROUP BY handler_id, verdict ORDER BY handler_id, verdict",
    )
    .fetch_all(connection)
    .await
    .map_err(wrap)?;
    rows.iter()
        .map(|row| {
            let verdict = Verdict::from_number(row.try_get(1).map_err(wrap)?)
                .ok_or_else(|| corrupt("ob_tally", "unknown verdict"))?;
            let n: i64 = row.try_get(2).map_err(wrap)?;
            Ok((HandlerId(row.try_get(0).map_err(wrap)?), verdict, n.unsigned_abs()))
        })
        .collect()
}

pub(super) async fn gauges(connection: &mut SqliteConnection) -> Result<Gauges, StoreError> {
    let wrap = |error| store_error("gauges", &error);
    let held =
        sqlx::query("SELECT handler_id, state, count(*) FROM ob_held WHERE state <> ? GROUP BY handler_id, state")
            .bind(HeldState::Resolved.number())
            .fetch_all(&mut *connection)
            .await
            .map_err(wrap)?;
    let held = held.iter().map(|row| {
        let state =
            HeldState::from_number(row.try_get(1).map_err(wrap)?).ok_or_else(|| corrupt("ob_held", "unknown state"))?;
        let n: i64 = row.try_get(2).map_err(wrap)?;
        Ok((HandlerId(row.try_get(0).map_err(wrap)?), state, n.unsigned_abs()))
    });
    let held = held.collect::<Result<_, StoreError>>()?;
    let oldest_parked_us = sqlx::query("SELECT min(received_at) FROM ob_held WHERE state = ?")
        .bind(HeldState::Parked.number())
        .fetch_one(&mut *connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(wrap)?;
    let local = sqlx::query("SELECT source, count(*) FROM ob_local GROUP BY source ORDER BY source")
        .fetch_all(connection)
        .await
        .map_err(wrap)?;
    let local = local.iter().map(|row| Ok((row.try_get(0)?, row.try_get::<i64, _>(1)?.unsigned_abs())));
    Ok(Gauges { held, oldest_parked_us, local: local.collect::<Result<_, _>>().map_err(wrap)? })
}
