//! Writing held rows: a new one, one more of the same, or one that is opened again.

use oncebox_core::{
    ids::{BusinessKey, Fingerprint},
    life::HeldState,
};
use sqlx::{Row as _, SqliteConnection};

use crate::store::{HeldId, NewHeld, encode_headers, starts::columns};

/// A row of the same identity is counted; one whose event begins anew is opened again, with its new state and body.
pub(super) async fn insert(connection: &mut SqliteConnection, row: &NewHeld) -> Result<HeldId, sqlx::Error> {
    let known = sqlx::query("SELECT held_id, state FROM ob_held WHERE identity = ?")
        .bind(row.identity.as_bytes())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(known) = known else { return insert_new(connection, row).await };
    let (held, state): (i64, u8) = (known.try_get(0)?, known.try_get(1)?);
    if begins_anew(state, row.state) {
        open_again(connection, held, row).await?;
    } else {
        count(connection, held, row).await?;
    }
    Ok(HeldId(held))
}

/// A parked, dead or late event has a new inbox row: whatever is held of an earlier life of its key says nothing of it.
fn begins_anew(known: u8, new: HeldState) -> bool {
    match new {
        HeldState::Parked | HeldState::Dead | HeldState::Late => true,
        HeldState::Conflict | HeldState::Poison | HeldState::Resolved => known == HeldState::Resolved.number(),
    }
}

async fn insert_new(connection: &mut SqliteConnection, row: &NewHeld) -> Result<HeldId, sqlx::Error> {
    let sql = concat!(
        "INSERT INTO ob_held (identity, handler_id, state, business_key, due_at, attempts, attempts_short, class, code,
           message, fingerprint, rule_id, deployment_id, source, hops, event_id, event_type, event_time, received_at,
           ordering_key, place, starts, starts_alone, changed_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ",
        now_us!(),
        ") RETURNING held_id"
    );
    let (starts, starts_alone) = columns(&row.open);
    let held: i64 = sqlx::query(sql)
        .bind(row.identity.as_bytes())
        .bind(row.handler.0)
        .bind(row.state.number())
        .bind(row.key.as_ref().map(BusinessKey::as_bytes))
        .bind(row.due_us)
        .bind(row.attempts)
        .bind(row.attempts_short)
        .bind(row.class.number())
        .bind(&row.code)
        .bind(&row.message)
        .bind(row.fingerprint.as_ref().map(Fingerprint::as_bytes))
        .bind(row.rule.map(|rule| rule.0))
        .bind(row.deployment.map(|d| d.0))
        .bind(&*row.source)
        .bind(row.hops)
        .bind(row.event_id.as_deref())
        .bind(row.event_type.as_deref())
        .bind(row.event_time_us)
        .bind(row.received_us)
        .bind(row.place.as_ref().map(|place| place.ordering_key.as_slice()))
        .bind(place(row))
        .bind(starts)
        .bind(starts_alone)
        .fetch_one(&mut *connection)
        .await?
        .try_get(0)?;
    body_insert(connection, held, row).await?;
    Ok(HeldId(held))
}

/// Identity, handler, key and fingerprint are what they were: they are what the row was found by.
async fn open_again(connection: &mut SqliteConnection, held: i64, row: &NewHeld) -> Result<(), sqlx::Error> {
    let sql = concat!(
        "UPDATE ob_held SET times = times + 1, state = ?, due_at = ?, lease_token = NULL, attempts = ?,
           attempts_short = ?, class = ?, code = ?, message = ?, rule_id = ?, deployment_id = ?, generation = 0,
           source = ?, hops = ?, event_id = ?, event_type = ?, event_time = ?, received_at = ?, ordering_key = ?, place = ?,
           starts = ?, starts_alone = ?, changed_at = ",
        now_us!(),
        " WHERE held_id = ?"
    );
    let (starts, starts_alone) = columns(&row.open);
    sqlx::query(sql)
        .bind(row.state.number())
        .bind(row.due_us)
        .bind(row.attempts)
        .bind(row.attempts_short)
        .bind(row.class.number())
        .bind(&row.code)
        .bind(&row.message)
        .bind(row.rule.map(|rule| rule.0))
        .bind(row.deployment.map(|d| d.0))
        .bind(&*row.source)
        .bind(row.hops)
        .bind(row.event_id.as_deref())
        .bind(row.event_type.as_deref())
        .bind(row.event_time_us)
        .bind(row.received_us)
        .bind(row.place.as_ref().map(|place| place.ordering_key.as_slice()))
        .bind(place(row))
        .bind(starts)
        .bind(starts_alone)
        .bind(held)
        .execute(&mut *connection)
        .await?;
    body_insert(connection, held, row).await
}

fn place(row: &NewHeld) -> Option<i64> {
    row.place.as_ref().map(|place| i64::try_from(place.place).unwrap_or(i64::MAX))
}

async fn count(connection: &mut SqliteConnection, held: i64, row: &NewHeld) -> Result<(), sqlx::Error> {
    let sql = concat!(
        "UPDATE ob_held SET times = times + 1, class = ?, code = ?, message = ?, changed_at = ",
        now_us!(),
        " WHERE held_id = ?"
    );
    sqlx::query(sql)
        .bind(row.class.number())
        .bind(&row.code)
        .bind(&row.message)
        .bind(held)
        .execute(connection)
        .await
        .map(|_| ())
}

/// The message as it came: revision 0, and a further one each time the row is opened again.
async fn body_insert(connection: &mut SqliteConnection, held: i64, row: &NewHeld) -> Result<(), sqlx::Error> {
    let sql = concat!(
        "INSERT INTO ob_body (held_id, revision, headers, payload, at)
         SELECT ?1, coalesce(max(revision) + 1, 0), ?2, ?3, ",
        now_us!(),
        " FROM ob_body WHERE held_id = ?1"
    );
    sqlx::query(sql)
        .bind(held)
        .bind(encode_headers(&row.body))
        .bind(&row.body.body)
        .execute(connection)
        .await
        .map(|_| ())
}
