//! Rows that are taken under a lease: messages of local sources, parked rows.
//!
//! A claim is a short transaction: rows are locked in the order of an index, others' are skipped, the token and the end
//! of the lease are written, COMMIT. Whatever is large is read afterwards, under the token. The index is forced: a sort
//! would lock every row that it reads, and starve the other hosts.

use std::time::Duration;

use oncebox_core::{
    blame::{Open, START_BYTES, STARTS_MAX, Start},
    ids::{BusinessKey, Fingerprint, LeaseToken},
    message::Message,
};
use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{admin::ended, args::Args, columns::Columns, fleet::micros, many::Many, outgoing, session::Session};
use crate::{
    clock,
    planted::{self, Fault},
    store::{
        ClaimedRow, HandlerId, HeldId, LocalId, LocalMessage, Place, RuleId, StoreError, decode_message,
        encode_headers, starts::starts,
    },
};

static LOCAL_OFFER: Many = Many::insert(
    "INSERT INTO ob_local (source, due_at, headers, payload, received_at) VALUES ",
    "(?, UTC_TIMESTAMP(6), ?, ?, UTC_TIMESTAMP(6))",
    "",
);
static LOCAL_TAKE: Many = Many::new(
    "UPDATE ob_local FORCE INDEX (PRIMARY) SET lease_token = ?, due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
       deliveries = deliveries + 1 WHERE local_id IN (",
    "?",
    ", ",
    ")",
);
static LOCAL_READ: Many = Many::keys(
    "SELECT local_id, headers, payload, hops, deliveries, received_at FROM ob_local FORCE INDEX (PRIMARY) WHERE ",
    "(local_id = ? AND lease_token = ?)",
    "",
);
static LOCAL_RENEW: Many = Many::new(
    "UPDATE ob_local FORCE INDEX (PRIMARY) SET due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE local_id IN (",
    "?",
    ", ",
    ")",
);
/// Each claim is a start; several of one life are one.
static HELD_TAKE: Many = Many::new(
    "UPDATE ob_held FORCE INDEX (PRIMARY) SET lease_token = ?, due_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
       starts = IF(LEFT(RIGHT(starts, ?), 16) = ?, starts, RIGHT(CONCAT(starts, ?), ?))
     WHERE held_id IN (",
    "?",
    ", ",
    ")",
);
static HELD_READ: Many = Many::keys(
    "SELECT h.held_id, h.business_key, h.fingerprint, h.rule_id, h.attempts, h.attempts_short, h.generation,
       h.source, h.hops, h.received_at, b.headers, b.payload, h.ordering_key, h.place,
       h.starts, h.starts_alone
     FROM ob_held AS h FORCE INDEX (PRIMARY) JOIN ob_body AS b ON b.held_id = h.held_id
       AND b.revision = (SELECT MAX(revision) FROM ob_body WHERE held_id = h.held_id)
     WHERE ",
    "(h.held_id = ? AND h.lease_token = ?)",
    "",
);

/// What a claim takes, in the order of the index.
macro_rules! pick {
    ($id:literal from $table:literal where $which:literal) => {
        concat!(
            "SELECT ",
            $id,
            " FROM ",
            $table,
            " FORCE INDEX (claim) WHERE ",
            $which,
            " AND due_at <= UTC_TIMESTAMP(6) ORDER BY due_at, ",
            $id,
            " LIMIT ? FOR UPDATE SKIP LOCKED"
        )
    };
}
const LOCAL_PICK: &str = pick!("local_id" from "ob_local" where "source = ?");
const HELD_PICK: &str = pick!("held_id" from "ob_held" where "handler_id = ? AND state = 0");

pub(super) async fn local_offer(session: &mut Session, source: &str, messages: &[Message]) -> Result<u64, StoreError> {
    let rows: Vec<(Vec<u8>, &[u8])> = messages.iter().map(|m| (encode_headers(m), m.body.as_slice())).collect();
    let bytes = |(headers, body): &(Vec<u8>, &[u8])| headers.len() + body.len();
    session.begin().await?;
    let offered = session.write_many("local offer", &LOCAL_OFFER, &rows, bytes, |args, (headers, body)| {
        args.add(source);
        args.add(headers.as_slice());
        args.add(*body);
    });
    let offered = offered.await.map(|done| done.affected).map_err(StoreError::from);
    ended(session, offered).await
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
    let under_lease = |args: &mut Args| {
        args.add(token.as_bytes());
        args.add(micros(lease));
    };
    let taken = taken(session, LOCAL_PICK, args![source, limit(max)], &LOCAL_TAKE, under_lease).await?;
    let under_token = |args: &mut Args, id: &i64| {
        args.add(*id);
        args.add(token.as_bytes());
    };
    let rows = session.read_keys("local read", &LOCAL_READ, &taken, under_token).await?;
    let mut messages = rows.iter().map(local_message).collect::<Result<Vec<_>, _>>()?;
    messages.sort_by_key(|message| message.id);
    Ok(messages)
}

/// Picks rows and writes the lease, in one short transaction; their numbers.
async fn taken(
    session: &mut Session,
    pick: &'static str,
    which: Args,
    take: &'static Many,
    under_lease: impl Fn(&mut Args) + Send + Sync,
) -> Result<Vec<i64>, StoreError> {
    session.begin().await?;
    let taken = take_picked(session, pick, which, take, under_lease).await;
    ended(session, taken).await
}

async fn take_picked(
    session: &mut Session,
    pick: &'static str,
    which: Args,
    take: &'static Many,
    under_lease: impl Fn(&mut Args) + Send + Sync,
) -> Result<Vec<i64>, StoreError> {
    let ids = picked(session, pick, which).await?;
    session.write_keys("claim", take, &ids, under_lease, |args, id| args.add(*id)).await?;
    Ok(ids)
}

/// The numbers in the first column.
async fn picked(session: &mut Session, pick: &'static str, which: Args) -> Result<Vec<i64>, StoreError> {
    let rows = session.rows("claim", pick, which).await?;
    rows.iter().map(|row| Columns::of("claim", row).integer(0)).collect()
}

fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
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
    for token in tokens {
        let ours = picked(session, pick, args![token.as_bytes()]).await?;
        let for_so_long = |args: &mut Args| args.add(micros(lease));
        session.write_keys("local renew", &LOCAL_RENEW, &ours, for_so_long, |args, id| args.add(*id)).await?;
    }
    Ok(())
}

/// Outside a unit of work; what is no longer ours is left.
pub(super) async fn local_settle(session: &mut Session, messages: &[(LocalId, LeaseToken)]) -> Result<(), StoreError> {
    session.begin().await?;
    let settled = outgoing::local_settle(session, messages).await;
    ended(session, settled).await.map(|_| ())
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
    start: Start,
) -> Result<Vec<ClaimedRow>, StoreError> {
    if planted::is(Fault::HostClockLease) {
        set_clock(session).await?;
    }
    let due = "SELECT 1 FROM ob_held FORCE INDEX (claim)
               WHERE handler_id = ? AND state = 0 AND due_at <= UTC_TIMESTAMP(6) LIMIT 1";
    if session.rows("held due", due, args![handler.0]).await?.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = start.to_bytes();
    let under_lease = |args: &mut Args| {
        args.add(token.as_bytes());
        args.add(micros(lease));
        args.add(START_BYTES as u64);
        args.add(start.boot.as_bytes());
        args.add(bytes.as_slice());
        args.add((START_BYTES * STARTS_MAX) as u64);
    };
    let taken = taken(session, HELD_PICK, args![handler.0, limit(max)], &HELD_TAKE, under_lease).await?;
    let under_token = |args: &mut Args, id: &i64| {
        args.add(*id);
        args.add(token.as_bytes());
    };
    let rows = session.read_keys("held read", &HELD_READ, &taken, under_token).await?;
    let mut claimed = rows.iter().map(claimed_row).collect::<Result<Vec<_>, _>>()?;
    claimed.sort_by_key(|row| row.held);
    Ok(claimed)
}

/// What [`Fault::HostClockLease`] does: from now on this session's clock is the host's.
async fn set_clock(session: &mut Session) -> Result<(), StoreError> {
    let now_us = clock::now_us();
    let sql = format!("SET timestamp = {}.{:06}", now_us / 1_000_000, now_us % 1_000_000);
    session.script("clock", AssertSqlSafe(sql)).await?;
    Ok(())
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
        open: Open { beside: starts("ob_held", row.bytes(14)?)?, alone: starts("ob_held", row.bytes(15)?)? },
    })
}
