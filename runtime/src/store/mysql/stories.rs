//! What people ask: held rows, the story of a key, the books.

use oncebox_core::{
    failure::Class,
    ids::{BusinessKey, Fingerprint, ModuleDigest},
    life::{HeldState, InboxState, Verdict},
};
use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{admin::only, columns::Columns, session::Session};
use crate::store::{
    AttemptRow, DeploymentId, Gauges, HandlerId, HeldFilter, HeldId, HeldRow, HeldStory, InboxStory, KeyStory,
    OutboxState, OutgoingStory, StoreError, decode_message,
};

macro_rules! held {
    ($which:literal) => {
        concat!(
            "SELECT held_id, handler_id, state, business_key, due_at, attempts, times, class, code, message,
               fingerprint, source, event_id, event_type, received_at, changed_at
             FROM ob_held WHERE ",
            $which
        )
    };
}

pub(super) async fn held_list(session: &mut Session, filter: &HeldFilter) -> Result<Vec<HeldRow>, StoreError> {
    let wanted = |state: &HeldState| match filter.states.as_slice() {
        [] => *state != HeldState::Resolved,
        states => states.contains(state),
    };
    // Small numbers of our own: they may stand in the text.
    let states = HeldState::ALL.iter().filter(|state| wanted(state)).map(|state| state.number().to_string());
    let states = states.collect::<Vec<_>>().join(", ");
    let sql = format!(
        held!("held_id > ? AND (? IS NULL OR handler_id = ?) AND state IN ({}) ORDER BY held_id LIMIT ?"),
        states
    );
    let handler = filter.handler.map(|handler| handler.0);
    let args = args![filter.after, handler, handler, filter.limit];
    let rows = session.rows("held list", AssertSqlSafe(sql), args).await?;
    rows.iter().map(held_row).collect()
}

fn held_row(row: &MySqlRow) -> Result<HeldRow, StoreError> {
    let row = Columns::of("ob_held", row);
    Ok(HeldRow {
        held: HeldId(row.integer(0)?),
        handler: HandlerId(row.integer(1)?),
        state: HeldState::from_number(row.integer(2)?).ok_or_else(|| row.corrupt("unknown state"))?,
        key: row.bytes_or_null(3)?.map(BusinessKey::new),
        due_us: row.time_or_null(4)?,
        attempts: row.integer(5)?,
        times: row.integer(6)?,
        class: Class::from_number(row.integer(7)?).ok_or_else(|| row.corrupt("unknown class"))?,
        code: row.text(8)?,
        message: row.text(9)?,
        fingerprint: row.bytes_or_null(10)?.and_then(Fingerprint::from_slice),
        source: row.text(11)?,
        event_id: row.text_or_null(12)?,
        event_type: row.text_or_null(13)?,
        received_us: row.time(14)?,
        changed_us: row.time(15)?,
    })
}

pub(super) async fn held_show(session: &mut Session, held: HeldId) -> Result<Option<HeldStory>, StoreError> {
    let rows = session.rows("held show", held!("held_id = ?"), args![held.0]).await?;
    let Some(row) = rows.first().map(held_row).transpose()? else { return Ok(None) };
    let body = "SELECT headers, payload FROM ob_body WHERE held_id = ? ORDER BY revision DESC LIMIT 1";
    let rows = session.rows("held body", body, args![held.0]).await?;
    let body = only("held body", &rows)?;
    let body = decode_message(body.bytes(0)?, body.bytes(1)?.to_vec())
        .map_err(|message| StoreError::Corrupt { table: "ob_body", message })?;
    let attempts = "SELECT a.attempt, a.deployment_id, d.digest, a.started_at, a.ended_at, a.class, a.code, a.message,
                      a.backtrace
                    FROM ob_attempt AS a LEFT JOIN ob_deployment AS d ON d.deployment_id = a.deployment_id
                    WHERE a.held_id = ? ORDER BY a.generation, a.attempt";
    let attempts = session.rows("held attempts", attempts, args![held.0]).await?;
    let attempts = attempts.iter().map(attempt_row).collect::<Result<_, _>>()?;
    Ok(Some(HeldStory { row, body, attempts }))
}

fn deployment_of(row: &Columns<'_>, at: usize) -> Result<Option<(DeploymentId, ModuleDigest)>, StoreError> {
    let digest = row.bytes_or_null(at + 1)?.and_then(ModuleDigest::from_slice);
    Ok(row.integer_or_null(at)?.map(DeploymentId).zip(digest))
}

fn attempt_row(row: &MySqlRow) -> Result<AttemptRow, StoreError> {
    let row = Columns::of("ob_attempt", row);
    Ok(AttemptRow {
        attempt: row.integer(0)?,
        deployment: deployment_of(&row, 1)?,
        started_us: row.time(3)?,
        ended_us: row.time(4)?,
        class: Class::from_number(row.integer(5)?).ok_or_else(|| row.corrupt("unknown class"))?,
        code: row.text(6)?,
        message: row.text(7)?,
        backtrace: row.text_or_null(8)?,
    })
}

pub(super) async fn trace(
    session: &mut Session,
    handler: HandlerId,
    key: &BusinessKey,
) -> Result<KeyStory, StoreError> {
    let of_key = || args![handler.0, key.as_bytes()];
    let inbox = "SELECT i.state, i.generation, i.fingerprint, i.deployment_id, d.digest, i.attempts, i.duplicates,
                   i.duplicate_at, i.event_id, i.source, i.traceparent, i.received_at, i.decided_at, i.code, i.result
                 FROM ob_inbox AS i LEFT JOIN ob_deployment AS d ON d.deployment_id = i.deployment_id
                 WHERE i.handler_id = ? AND i.business_key = ?";
    let inbox = session.rows("trace inbox", inbox, of_key()).await?;
    let inbox = inbox.first().map(inbox_story).transpose()?;
    let ids = "SELECT held_id FROM ob_held WHERE handler_id = ? AND business_key = ? ORDER BY held_id";
    let ids = session.rows("trace held", ids, of_key()).await?;
    let mut held = Vec::with_capacity(ids.len());
    for id in &ids {
        held.extend(held_show(session, HeldId(Columns::of("ob_held", id).integer(0)?)).await?);
    }
    let outgoing = "SELECT event_id, destination, state, event_type, created_at FROM ob_outbox
                    WHERE handler_id = ? AND business_key = ? ORDER BY outbox_id";
    let outgoing = session.rows("trace outbox", outgoing, of_key()).await?;
    let outgoing = outgoing.iter().map(outgoing_story).collect::<Result<_, _>>()?;
    Ok(KeyStory { inbox, held, outgoing })
}

fn inbox_story(row: &MySqlRow) -> Result<InboxStory, StoreError> {
    let row = Columns::of("ob_inbox", row);
    let fingerprint = Fingerprint::from_slice(row.bytes(2)?);
    Ok(InboxStory {
        state: InboxState::from_number(row.integer(0)?).ok_or_else(|| row.corrupt("unknown state"))?,
        generation: row.integer(1)?,
        fingerprint: fingerprint.ok_or_else(|| row.corrupt("the fingerprint is not 32 bytes"))?,
        deployment: deployment_of(&row, 3)?,
        attempts: row.integer(5)?,
        duplicates: row.integer(6)?,
        duplicate_us: row.time_or_null(7)?,
        event_id: row.text(8)?,
        source: row.text(9)?,
        traceparent: row.text_or_null(10)?,
        received_us: row.time(11)?,
        decided_us: row.time(12)?,
        code: row.text_or_null(13)?,
        result: row.bytes_or_null(14)?.map(<[u8]>::to_vec),
    })
}

fn outgoing_story(row: &MySqlRow) -> Result<OutgoingStory, StoreError> {
    let row = Columns::of("ob_outbox", row);
    Ok(OutgoingStory {
        event_id: row.text(0)?,
        destination: row.text(1)?,
        state: OutboxState::from_number(row.integer(2)?).ok_or_else(|| row.corrupt("unknown state"))?,
        event_type: row.text(3)?,
        created_us: row.time(4)?,
    })
}

pub(super) async fn tallies(session: &mut Session) -> Result<Vec<(HandlerId, Verdict, u64)>, StoreError> {
    // A sum is a DECIMAL unless it is cast.
    let sql = "SELECT handler_id, verdict, CAST(SUM(n) AS UNSIGNED) FROM ob_tally GROUP BY handler_id, verdict
               ORDER BY handler_id, verdict";
    let rows = session.rows("tallies", sql, args![]).await?;
    let tally = |row| {
        let row = Columns::of("ob_tally", row);
        let verdict = Verdict::from_number(row.integer(1)?).ok_or_else(|| row.corrupt("unknown verdict"))?;
        Ok((HandlerId(row.integer(0)?), verdict, row.integer(2)?))
    };
    rows.iter().map(tally).collect()
}

pub(super) async fn gauges(session: &mut Session) -> Result<Gauges, StoreError> {
    let held = "SELECT handler_id, state, COUNT(*) FROM ob_held WHERE state <> ? GROUP BY handler_id, state
                ORDER BY handler_id, state";
    let held = session.rows("gauges held", held, args![HeldState::Resolved.number()]).await?;
    let of_state = |row| {
        let row = Columns::of("ob_held", row);
        let state = HeldState::from_number(row.integer(1)?).ok_or_else(|| row.corrupt("unknown state"))?;
        Ok((HandlerId(row.integer(0)?), state, row.integer(2)?))
    };
    let held = held.iter().map(of_state).collect::<Result<_, StoreError>>()?;
    let oldest = "SELECT MIN(received_at) FROM ob_held WHERE state = ?";
    let oldest = session.rows("gauges oldest", oldest, args![HeldState::Parked.number()]).await?;
    let oldest_parked_us = only("gauges oldest", &oldest)?.time_or_null(0)?;
    let local = "SELECT source, COUNT(*) FROM ob_local GROUP BY source ORDER BY source";
    let local = session.rows("gauges local", local, args![]).await?;
    let of_source = |row| {
        let row = Columns::of("ob_local", row);
        Ok((row.text(0)?, row.integer(1)?))
    };
    Ok(Gauges { held, oldest_parked_us, local: local.iter().map(of_source).collect::<Result<_, StoreError>>()? })
}
