//! The lock rows of ordering keys.

use std::collections::HashMap;

use super::{columns::Columns, many::Many, session::Session};
use crate::store::{HandlerId, OrderKey, OrderRow, StoreError};

const TABLE: &str = "ob_order";

/// An absent row locks nothing: it is made first.
static LOCK: Many = Many::insert(
    "INSERT INTO ob_order (handler_id, ordering_key, used_at) VALUES ",
    "(?, ?, UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE used_at = {used_at}",
);
static READ: Many = Many::keys(
    "SELECT o.handler_id, o.ordering_key, o.held, o.next_place,
       (SELECT h.place FROM ob_held AS h WHERE h.handler_id = o.handler_id AND h.ordering_key = o.ordering_key
          AND h.place IS NOT NULL AND h.state IN (0, 1) ORDER BY h.place LIMIT 1)
     FROM ob_order AS o WHERE ",
    "(o.handler_id = ? AND o.ordering_key = ?)",
    "",
);
/// The row is there: it is never inserted.
static MARK: Many = Many::insert(
    "INSERT INTO ob_order (handler_id, ordering_key, held, next_place, used_at) VALUES ",
    "(?, ?, ?, ?, UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE held = {held}, next_place = {next_place}",
);
/// The first of those that are not over: when that is a dead one, it goes on holding the others. Read under the lock
/// of the order row, which whoever changes one of them has.
const FIRST: &str = "SELECT held_id, state, due_at IS NULL FROM ob_held
    WHERE handler_id = ? AND ordering_key = ? AND place IS NOT NULL AND state IN (0, 1) ORDER BY place LIMIT 1";
const DUE: &str = "UPDATE ob_held SET due_at = UTC_TIMESTAMP(6), changed_at = UTC_TIMESTAMP(6)
    WHERE held_id = ? AND state = 0 AND due_at IS NULL";

fn bytes(key: &OrderKey) -> usize {
    key.1.len()
}

/// Makes and locks the rows; the answer is in the order given.
pub(super) async fn lock(session: &mut Session, keys: &[OrderKey]) -> Result<Vec<OrderRow>, StoreError> {
    session
        .write_many("order lock", &LOCK, keys, bytes, |args, (handler, key): &OrderKey| {
            args.add(handler.0);
            args.add(key.as_slice());
        })
        .await?;
    let rows = session
        .read_keys("order lock", &READ, keys, |args, (handler, key): &OrderKey| {
            args.add(handler.0);
            args.add(key.as_slice());
        })
        .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let row = Columns::of(TABLE, row);
        let key = (HandlerId(row.integer(0)?), row.bytes(1)?.to_vec());
        let (held, next_place, head) = (row.integer(2)?, row.integer(3)?, row.integer_or_null(4)?);
        found.insert(key.clone(), OrderRow { key, held, next_place, head });
    }
    let gone = || StoreError::Corrupt { table: TABLE, message: "a row is gone under its own lock".to_owned() };
    keys.iter().map(|key| found.remove(key).ok_or_else(gone)).collect()
}

/// Writes what has changed of locked rows.
pub(super) async fn mark(session: &mut Session, rows: &[OrderRow]) -> Result<(), StoreError> {
    session
        .write_later(
            "order mark",
            &MARK,
            rows,
            |row| bytes(&row.key),
            |args, row: &OrderRow| {
                args.add(row.key.0.0);
                args.add(row.key.1.as_slice());
                args.add(row.held);
                args.add(row.next_place);
            },
        )
        .await?;
    Ok(())
}

/// Makes the first held row of each key due, if it waits for a predecessor.
pub(super) async fn due(session: &mut Session, keys: &[OrderKey]) -> Result<(), StoreError> {
    for (handler, key) in keys {
        let rows = session.rows("order due", FIRST, args![handler.0, key.as_slice()]).await?;
        let Some(row) = rows.first() else { continue };
        let row = Columns::of("ob_held", row);
        let (held, state, waits): (u64, u8, u8) = (row.integer(0)?, row.integer(1)?, row.integer(2)?);
        if state == 0 && waits == 1 {
            session.execute("order due", DUE, args![held]).await?;
        }
    }
    Ok(())
}
