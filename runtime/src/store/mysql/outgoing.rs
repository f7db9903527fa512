//! What a unit of work sends, settles and counts: the outbox, local sources, the books.

use std::collections::HashSet;

use oncebox_core::{
    ids::{BootId, LeaseToken},
    life::Verdict,
    message::Message,
};

use super::{
    args::Args,
    columns::{Columns, datetime},
    many::Many,
    session::Session,
};
use crate::store::{HandlerId, LocalId, NewLocal, OutboxRow, StoreError, encode_headers};

static OUTBOX: Many = Many::insert(
    "INSERT INTO ob_outbox (event_id, destination, state, handler_id, business_key, generation, position, ordering_key,
       event_type, subject, content_type, data_schema, attributes, headers, payload, traceparent, due_at, created_at)
     VALUES ",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    "",
);
static LOCAL: Many = Many::insert(
    "INSERT INTO ob_local (source, due_at, hops, headers, payload, received_at) VALUES ",
    "(?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    "",
);
/// In the order of the key, and by the key alone: nobody else's message is waited for.
static LOCAL_LOCK: Many = Many::keys(
    "SELECT local_id, lease_token FROM ob_local FORCE INDEX (PRIMARY) WHERE ",
    "local_id = ?",
    " ORDER BY local_id FOR UPDATE",
);
static LOCAL_DELETE: Many = Many::new(
    "DELETE l FROM (",
    "SELECT CAST(? AS UNSIGNED) AS local_id",
    " UNION ALL ",
    ") AS own STRAIGHT_JOIN ob_local AS l ON l.local_id = own.local_id",
);
static TALLY: Many = Many::insert(
    "INSERT INTO ob_tally (boot_id, lane, handler_id, verdict, n, at) VALUES ",
    "(?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE n = ob_tally.n + {n}, at = {at}",
);

/// Inserts outgoing events.
pub(super) async fn outbox_insert(session: &mut Session, rows: &[OutboxRow]) -> Result<(), StoreError> {
    let bytes = |row: &OutboxRow| row.payload.len() + row.event_type.len() + headers_bytes(&row.headers) + 1_024;
    session
        .write_later("outbox insert", &OUTBOX, rows, bytes, |args, row: &OutboxRow| {
            let headers = Message { headers: row.headers.clone(), ..Message::default() };
            args.add(row.event_id.as_str());
            args.add(row.destination.as_str());
            args.add(row.state.number());
            args.add(row.handler.0);
            args.add(row.key.as_bytes());
            args.add(row.generation);
            args.add(row.position);
            args.add(row.ordering_key.as_deref());
            args.add(row.event_type.as_str());
            args.add(row.subject.as_deref());
            args.add(row.content_type.as_deref());
            args.add(row.schema.as_deref());
            args.add(serde_json::to_string(&row.attributes).unwrap_or_default());
            args.add(encode_headers(&headers));
            args.add(row.payload.as_slice());
            args.add(row.traceparent.as_deref());
            args.add(datetime(row.due_us));
        })
        .await?;
    Ok(())
}

fn headers_bytes(headers: &[oncebox_core::message::Header]) -> usize {
    headers.iter().map(|header| 2 * header.value.len() + header.name.len() + 16).sum()
}

/// Puts outgoing events into local sources.
pub(super) async fn local_insert(session: &mut Session, rows: &[NewLocal]) -> Result<(), StoreError> {
    let bytes = |row: &NewLocal| row.message.body.len() + headers_bytes(&row.message.headers);
    session
        .write_later("local insert", &LOCAL, rows, bytes, |args, row: &NewLocal| {
            args.add(row.source.as_str());
            args.add(datetime(row.due_us));
            args.add(row.hops);
            args.add(encode_headers(&row.message));
            args.add(row.message.body.as_slice());
        })
        .await?;
    Ok(())
}

/// Deletes settled messages under their tokens; the answer names those that were no longer ours. Also used outside of
/// a unit of work, in a transaction of its own.
pub(super) async fn local_settle(
    session: &mut Session,
    messages: &[(LocalId, LeaseToken)],
) -> Result<Vec<LocalId>, StoreError> {
    let bind = |args: &mut Args, (id, _): &(LocalId, LeaseToken)| args.add(id.0);
    let rows = session.read_keys("local settle", &LOCAL_LOCK, messages, bind).await?;
    let mut there = HashSet::with_capacity(rows.len());
    for row in &rows {
        let row = Columns::of("ob_local", row);
        let token = row.bytes_or_null(1)?.and_then(LeaseToken::from_slice);
        there.extend(token.map(|token| Ok::<_, StoreError>((LocalId(row.integer(0)?), token))).transpose()?);
    }
    let (ours, lost): (Vec<_>, Vec<_>) = messages.iter().partition(|message| there.contains(message));
    let bind = |args: &mut Args, (id, _): &&(LocalId, LeaseToken)| args.add(id.0);
    session.write_keys("local settle", &LOCAL_DELETE, &ours, |_| (), bind).await?;
    Ok(lost.iter().map(|(id, _)| *id).collect())
}

/// Raises the books.
pub(super) async fn tally_add(
    session: &mut Session,
    boot: BootId,
    lane: u16,
    counts: &[(HandlerId, Verdict, u64)],
) -> Result<(), StoreError> {
    session
        .write_later(
            "tally add",
            &TALLY,
            counts,
            |_| 0,
            |args, (handler, verdict, n): &(HandlerId, Verdict, u64)| {
                args.add(boot.as_bytes());
                args.add(lane);
                args.add(handler.0);
                args.add(verdict.number());
                args.add(*n);
            },
        )
        .await?;
    Ok(())
}
