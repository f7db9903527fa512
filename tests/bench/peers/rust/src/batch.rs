//! One transaction for many events.

use std::collections::HashSet;

use anyhow::{Result, ensure};
use sqlx::{MySql, MySqlPool, QueryBuilder, Row as _};

use crate::{DUPLICATE_KEY, Event, HANDLER, by_account, number};

/// Those whose keys are not in the inbox.
///
/// # Errors
/// The database's, or one of them is a conflict.
pub async fn unknown(pool: &MySqlPool, events: &[Event]) -> Result<Vec<Event>> {
    let mut query: QueryBuilder<MySql> =
        QueryBuilder::new("SELECT business_key, fingerprint FROM inbox WHERE handler = ");
    query.push_bind(HANDLER).push(" AND business_key IN (");
    let mut keys = query.separated(", ");
    for event in events {
        keys.push_bind(&event.key);
    }
    query.push(")");
    let mut known = HashSet::new();
    for row in query.build().fetch_all(pool).await? {
        let key = String::from_utf8(row.try_get(0)?)?;
        let fingerprint: Vec<u8> = row.try_get(1)?;
        let same = events.iter().any(|event| event.key == key && event.fingerprint == *fingerprint);
        ensure!(same, "{key}: a conflict");
        known.insert(key);
    }
    Ok(events.iter().filter(|event| !known.contains(&event.key)).cloned().collect())
}

/// Applies all of them, or none: false when one of the keys is there.
///
/// # Errors
/// The database's, or a user has no account.
pub async fn apply(pool: &MySqlPool, events: &[Event]) -> Result<bool> {
    if events.is_empty() {
        return Ok(true);
    }
    let mut unit = pool.begin().await?;
    let mut inbox: QueryBuilder<MySql> =
        QueryBuilder::new("INSERT INTO inbox (handler, business_key, fingerprint, event_id, state, decided_at) ");
    inbox.push_values(events, |mut row, event| {
        row.push_bind(HANDLER).push_bind(&event.key).push_bind(event.fingerprint.as_slice());
        row.push_bind(&event.event_id).push("0").push("UTC_TIMESTAMP(6)");
    });
    match inbox.build().execute(&mut *unit).await {
        Err(error) if number(&error) == Some(DUPLICATE_KEY) => {
            unit.rollback().await?;
            return Ok(false);
        }
        inserted => drop(inserted?),
    }
    let mut ledger: QueryBuilder<MySql> =
        QueryBuilder::new("INSERT INTO points_ledger (receipt_no, order_id, user_id, points) ");
    ledger.push_values(events, |mut row, Event { order, .. }| {
        row.push_bind(&order.receipt_no).push_bind(order.order_id).push_bind(order.user_id).push_bind(order.amount);
    });
    ledger.build().execute(&mut *unit).await?;
    let sums = by_account(events);
    let mut accounts: QueryBuilder<MySql> = QueryBuilder::new("INSERT INTO points_account (user_id, points) ");
    accounts.push_values(&sums, |mut row, (user, points)| {
        row.push_bind(*user).push_bind(*points);
    });
    accounts.push(" AS new ON DUPLICATE KEY UPDATE points = points_account.points + new.points");
    let raised = accounts.build().execute(&mut *unit).await?.rows_affected();
    // Of a row that is there each counts as two, of a new one as one.
    ensure!(raised == 2 * sums.len() as u64, "a user has no account");
    let mut outbox: QueryBuilder<MySql> =
        QueryBuilder::new("INSERT INTO outbox (event_id, event_type, business_key, payload, created_at) ");
    outbox.push_values(events, |mut row, event| {
        row.push_bind(event.out_id()).push("'points.awarded'").push_bind(&event.key);
        row.push_bind(event.payload()).push("UTC_TIMESTAMP(6)");
    });
    outbox.build().execute(&mut *unit).await?;
    unit.commit().await?;
    Ok(true)
}
