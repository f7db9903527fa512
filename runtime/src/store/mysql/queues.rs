//! Rows that are taken under a lease: messages of local sources, parked rows.
//!
//! A claim is a short transaction: rows are locked in the order of an index, others' are skipped, the token and the end
//! of the lease are written, COMMIT. Whatever is large is read afterwards, under the token. The index is forced: a sort
//! would lock every row that it reads, and starve the other hosts.

use std::time::Duration;

use oncebox_core::{
    ids::{BusinessKey, Fingerprint, LeaseToken},
    message::Message,
};
use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{admin::ended, args::Args, columns::Columns, errors::MysqlError, fleet::micros, session::Session};
use crate::store::{
    ClaimedRow, HandlerId, HeldId, LocalId, LocalMessage, Place, RuleId, StoreError, decode_message, encode_headers,
};

/// Numbers of one `IN (…)`. Lists are filled up to a power of two with their last number, so that any number of rows
/// needs few texts.
const LIST_MAX: usize = 256;
/// Bytes of a row's own beside headers and body, generously.
const ROW_BYTES: usize = 4_096;

pub(super) async fn local_offer(session: &mut Session, source: &str, messages: &[Message]) -> Result<u64, StoreError> {
    let max = session.facts().packet_max;
    let mut rows = Vec::with_capacity(messages.len());
    for message in messages {
        let headers = encode_headers(message);
        let bytes = headers.len() + message.body.len() + ROW_BYTES;
        if bytes > max {
            return Err(MysqlError::TooLarge { what: "local offer", bytes, max }.into());
        }
        rows.push((headers, message.body.as_slice()));
    }
    session.begin().await?;
    let offered = offered(session, source, &rows).await;
    ended(session, offered).await?;
    Ok(messages.len() as u64)
}

async fn offered(session: &mut Session, source: &str, rows: &[(Vec<u8>, &[u8])]) -> Result<(), StoreError> {
    let sql = "INSERT INTO ob_local (source, due_at, headers, payload, received_at)
               VALUES (?, UTC_TIMESTAMP(6), ?, ?, UTC_TIMESTAMP(6))";
    for (headers, body) in rows {
        session.execute("local offer", sql, args![source, headers.as_slice(), *body]).await?;
    }
    Ok(())
}

pub(super) async fn local_claim(
    session: &mut Session,
    source: &str,
    max: usize,
    token: LeaseToken,
    lease: Duration,
) -> Result<Vec<LocalMessage>, StoreError> {
    // A read first: an idle look opens no transaction.
    let due = "SELECT 1 FROM ob_local FORCE INDEX (claim) WHERE source = ? AND due_at <= UTC_TIMESTAMP(6) LIMIT 1";
    if session.rows("local due", due, args![source]).await?.is_empty() {
        return Ok(Vec::new());
    }
    session.begin().await?;
    let taken = local_take(session, source, max, token, lease).await;
    let taken = ended(session, taken).await?;
    let sql = |n| {
        format!(
            "SELECT local_id, headers, payload, hops, deliveries, received_at FROM ob_local
             WHERE lease_token = ? AND local_id IN ({})",
            marks(n)
        )
    };
    let mut messages = Vec::with_capacity(taken.len());
    for ids in taken.chunks(LIST_MAX) {
        let (n, args) = listed(args![token.as_bytes()], ids);
        let rows = session.rows("local read", AssertSqlSafe(sql(n)), args).await?;
        messages.extend(rows.iter().map(local_message).collect::<Result<Vec<_>, _>>()?);
    }
    messages.sort_by_key(|message| message.id);
    Ok(messages)
}

async fn local_take(
    session: &mut Session,
    source: &str,
    max: usize,
    token: LeaseToken,
    lease: Duration,
) -> Result<Vec<i64>, StoreError> {
    let pick = "SELECT local_id FROM ob_local FORCE INDEX (claim) WHERE source = ? AND due_at <= UTC_TIMESTAMP(6)
                ORDER BY due_at, local_id LIMIT ? FOR UPDATE SKIP LOCKED";
    let taken = picked(session, "local claim", pick, args![source, limit(max)]).await?;
    let sql = |n| {
        format!(
            "UPDATE ob_local SET lease_token = ?, due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
               deliveries = deliveries + 1 WHERE local_id IN ({})",
            marks(n)
        )
    };
    for ids in taken.chunks(LIST_MAX) {
        let (n, args) = listed(args![token.as_bytes(), micros(lease)], ids);
        session.execute("local claim", AssertSqlSafe(sql(n)), args).await?;
    }
    Ok(taken)
}

fn local_message(row: &MySqlRow) -> Result<LocalMessage, StoreError> {
    let row = Columns::of("ob_local", row);
    let message = decode_message(row.bytes(1)?, row.bytes(2)?.to_vec()).map_err(|message| row.corrupt(message))?;
    Ok(LocalMessage {
        id: LocalId(row.integer(0)?),
        message,
        hops: row.integer(3)?,
        deliveries: row.integer(4)?,
        received_us: row.time(5)?,
    })
}

pub(super) async fn local_renew(
    session: &mut Session,
    tokens: &[LeaseToken],
    lease: Duration,
) -> Result<(), StoreError> {
    session.begin().await?;
    let renewed = renewed(session, tokens, lease).await;
    ended(session, renewed).await
}

async fn renewed(session: &mut Session, tokens: &[LeaseToken], lease: Duration) -> Result<(), StoreError> {
    // What a unit of work has locked is being settled: it needs no longer lease, and must not be waited for.
    let pick = "SELECT local_id FROM ob_local FORCE INDEX (by_lease) WHERE lease_token = ? FOR UPDATE SKIP LOCKED";
    let sql = |n| {
        format!(
            "UPDATE ob_local SET due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
             WHERE lease_token = ? AND local_id IN ({})",
            marks(n)
        )
    };
    for token in tokens {
        let ours = picked(session, "local renew", pick, args![token.as_bytes()]).await?;
        for ids in ours.chunks(LIST_MAX) {
            let (n, args) = listed(args![micros(lease), token.as_bytes()], ids);
            session.execute("local renew", AssertSqlSafe(sql(n)), args).await?;
        }
    }
    Ok(())
}

/// Outside a unit of work; what is no longer ours is left.
pub(super) async fn local_settle(session: &mut Session, messages: &[(LocalId, LeaseToken)]) -> Result<(), StoreError> {
    session.begin().await?;
    let settled = settled(session, messages).await;
    ended(session, settled).await.map(|_| ())
}

/// Deletes settled messages under their tokens, in the transaction that is open; the answer names those that were no
/// longer ours.
pub(super) async fn settled(
    session: &mut Session,
    messages: &[(LocalId, LeaseToken)],
) -> Result<Vec<LocalId>, StoreError> {
    let mut left: Vec<(LocalId, LeaseToken)> = messages.to_vec();
    // In the order of the primary key, so that two who settle the same rows do not wait for each other crosswise.
    left.sort_by_key(|(id, token)| (*token, *id));
    let mut lost = Vec::new();
    let of_one_token = left.chunk_by(|(_, one), (_, other)| one == other);
    for (token, ids) in of_one_token.map(|same| (same[0].1, same.iter().map(|(id, _)| id.0).collect::<Vec<i64>>())) {
        for ids in ids.chunks(LIST_MAX) {
            lost.extend(settled_of(session, token, ids).await?);
        }
    }
    Ok(lost)
}

async fn settled_of(session: &mut Session, token: LeaseToken, ids: &[i64]) -> Result<Vec<LocalId>, StoreError> {
    let n = list_len(ids.len());
    let pick = format!(
        "SELECT local_id FROM ob_local WHERE local_id IN ({}) AND lease_token = ? ORDER BY local_id FOR UPDATE",
        marks(n)
    );
    let (_, mut args) = listed(args![], ids);
    args.add(token.as_bytes());
    let ours = picked(session, "local settle", AssertSqlSafe(pick), args).await?;
    if !ours.is_empty() {
        let (n, args) = listed(args![], &ours);
        let delete = format!("DELETE FROM ob_local WHERE local_id IN ({})", marks(n));
        session.execute("local settle", AssertSqlSafe(delete), args).await?;
    }
    Ok(ids.iter().filter(|id| !ours.contains(id)).map(|id| LocalId(*id)).collect())
}

pub(super) async fn held_due(session: &mut Session) -> Result<Vec<(HandlerId, i64)>, StoreError> {
    // One step into the index a handler ("Using index for group-by"), however many rows are parked.
    let sql = "SELECT handler_id, MIN(due_at) FROM ob_held FORCE INDEX (claim)
               WHERE state = 0 AND due_at IS NOT NULL GROUP BY handler_id";
    let rows = session.rows("held due", sql, args![]).await?;
    let due = |row| {
        let row = Columns::of("ob_held", row);
        Ok((HandlerId(row.integer(0)?), row.time(1)?))
    };
    let mut due: Vec<_> = rows.iter().map(due).collect::<Result<_, StoreError>>()?;
    due.sort_unstable();
    Ok(due)
}

pub(super) async fn held_claim(
    session: &mut Session,
    handler: HandlerId,
    max: usize,
    token: LeaseToken,
    lease: Duration,
) -> Result<Vec<ClaimedRow>, StoreError> {
    let due = "SELECT 1 FROM ob_held FORCE INDEX (claim)
               WHERE handler_id = ? AND state = 0 AND due_at <= UTC_TIMESTAMP(6) LIMIT 1";
    if session.rows("held due", due, args![handler.0]).await?.is_empty() {
        return Ok(Vec::new());
    }
    session.begin().await?;
    let taken = held_take(session, handler, max, token, lease).await;
    let taken = ended(session, taken).await?;
    let sql = |n| {
        format!(
            "SELECT h.held_id, h.business_key, h.fingerprint, h.rule_id, h.attempts, h.attempts_short, h.generation,
               h.source, h.hops, h.received_at, b.headers, b.payload, h.ordering_key, h.place
             FROM ob_held AS h JOIN ob_body AS b ON b.held_id = h.held_id
               AND b.revision = (SELECT MAX(revision) FROM ob_body WHERE held_id = h.held_id)
             WHERE h.lease_token = ? AND h.held_id IN ({})",
            marks(n)
        )
    };
    let mut claimed = Vec::with_capacity(taken.len());
    for ids in taken.chunks(LIST_MAX) {
        let (n, args) = listed(args![token.as_bytes()], ids);
        let rows = session.rows("held read", AssertSqlSafe(sql(n)), args).await?;
        claimed.extend(rows.iter().map(claimed_row).collect::<Result<Vec<_>, _>>()?);
    }
    claimed.sort_by_key(|row| row.held);
    Ok(claimed)
}

async fn held_take(
    session: &mut Session,
    handler: HandlerId,
    max: usize,
    token: LeaseToken,
    lease: Duration,
) -> Result<Vec<i64>, StoreError> {
    let pick = "SELECT held_id FROM ob_held FORCE INDEX (claim)
                WHERE handler_id = ? AND state = 0 AND due_at <= UTC_TIMESTAMP(6)
                ORDER BY due_at, held_id LIMIT ? FOR UPDATE SKIP LOCKED";
    let taken = picked(session, "held claim", pick, args![handler.0, limit(max)]).await?;
    let sql = |n| {
        format!(
            "UPDATE ob_held SET lease_token = ?, due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
             WHERE held_id IN ({})",
            marks(n)
        )
    };
    for ids in taken.chunks(LIST_MAX) {
        let (n, args) = listed(args![token.as_bytes(), micros(lease)], ids);
        session.execute("held claim", AssertSqlSafe(sql(n)), args).await?;
    }
    Ok(taken)
}

fn claimed_row(row: &MySqlRow) -> Result<ClaimedRow, StoreError> {
    let row = Columns::of("ob_held", row);
    let key = row.bytes_or_null(1)?.ok_or_else(|| row.corrupt("a parked row has no key"))?;
    let fingerprint = row.bytes_or_null(2)?.and_then(Fingerprint::from_slice);
    let rule = row.integer_or_null(3)?.ok_or_else(|| row.corrupt("a parked row has no rule"))?;
    let body = decode_message(row.bytes(10)?, row.bytes(11)?.to_vec()).map_err(|message| row.corrupt(message))?;
    let (ordering_key, place) = (row.bytes_or_null(12)?, row.integer_or_null(13)?);
    Ok(ClaimedRow {
        held: HeldId(row.integer(0)?),
        key: BusinessKey::new(key),
        fingerprint: fingerprint.ok_or_else(|| row.corrupt("a parked row has no fingerprint"))?,
        rule: RuleId(rule),
        attempts: row.integer(4)?,
        attempts_short: row.integer(5)?,
        generation: row.integer(6)?,
        source: row.text(7)?,
        hops: row.integer(8)?,
        received_us: row.time(9)?,
        body,
        place: ordering_key.zip(place).map(|(key, place)| Place { ordering_key: key.to_vec(), place }),
    })
}

/// The numbers in the first column.
async fn picked(
    session: &mut Session,
    what: &'static str,
    sql: impl sqlx::SqlSafeStr,
    args: Args,
) -> Result<Vec<i64>, StoreError> {
    let rows = session.rows(what, sql, args).await?;
    rows.iter().map(|row| Columns::of(what, row).integer(0)).collect()
}

fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

/// How long the list of so many numbers is.
fn list_len(ids: usize) -> usize {
    ids.max(1).next_power_of_two()
}

/// `?, ?, …`
fn marks(n: usize) -> String {
    let mut marks = "?, ".repeat(n);
    marks.truncate(marks.len().saturating_sub(2));
    marks
}

/// The numbers behind the other values, filled up with the last one; the first of the answer is how many they are.
fn listed(mut args: Args, ids: &[i64]) -> (usize, Args) {
    let n = list_len(ids.len());
    let last = ids.last().copied().unwrap_or_default();
    for id in ids.iter().copied().chain(std::iter::repeat(last)).take(n) {
        args.add(id);
    }
    (n, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_few_lengths() {
        for (ids, len) in [(0, 1), (1, 1), (2, 2), (3, 4), (5, 8), (129, 256), (LIST_MAX, 256)] {
            assert_eq!(list_len(ids), len, "{ids}");
            assert_eq!(marks(len).matches('?').count(), len, "{ids}");
        }
        assert_eq!(marks(1), "?");
        assert_eq!(marks(3), "?, ?, ?");
    }
}
