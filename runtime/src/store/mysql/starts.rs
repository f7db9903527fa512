//! Starts and their ends. Whatever the number of messages, one statement: a list goes as one JSON text and is taken apart
//! by the server, row by row in the order of the key, so that two of them never lock crosswise.

use std::collections::BTreeMap;

use oncebox_core::{
    blame::{Life, START_BYTES, STARTS_MAX, Start},
    ids::{BootId, MessageHash},
};
use sqlx::mysql::MySqlRow;

use super::{args::Args, columns::Columns, errors::MysqlError, many::Many, session::Session};
use crate::store::{
    HandlerId, StartEnd, StartRow, StoreError, Suspect,
    starts::{ends_listed, listed, starts},
};

/// Days after which the row of a message that never came again may be purged.
macro_rules! keep {
    () => {
        "UTC_TIMESTAMP(6) + INTERVAL 30 DAY"
    };
}

/// One more start of a row that is there; several of one life are one.
macro_rules! once_more {
    () => {
        concat!(
            " ON DUPLICATE KEY UPDATE starts = IF(LEFT(RIGHT(ob_start.starts, ?), 16) = ?, ob_start.starts,
                RIGHT(CONCAT(ob_start.starts, ?), ?)), times = ob_start.times + 1, expire_at = ",
            keep!()
        )
    };
}

const INSERT: &str = concat!(
    "INSERT INTO ob_start (source, message_hash, handler_id, starts, expire_at)
     SELECT ?, UNHEX(m.hash), 0, ?, ",
    keep!(),
    " FROM JSON_TABLE(?, '$[*]' COLUMNS (hash CHAR(64) PATH '$')) AS m",
    once_more!()
);
const READ: &str = "SELECT s.message_hash, s.handler_id, s.starts
     FROM JSON_TABLE(?, '$[*]' COLUMNS (hash CHAR(64) PATH '$')) AS m
     STRAIGHT_JOIN ob_start AS s FORCE INDEX (PRIMARY) ON s.source = ? AND s.message_hash = UNHEX(m.hash)";
const ALONE: &str = concat!(
    "INSERT INTO ob_start (source, message_hash, handler_id, starts, expire_at) VALUES (?, ?, ?, ?, ",
    keep!(),
    ")",
    once_more!()
);
const CLAIM_ALONE: &str = "UPDATE ob_held FORCE INDEX (PRIMARY)
     SET starts_alone = IF(LEFT(RIGHT(starts_alone, ?), 16) = ?, starts_alone, RIGHT(CONCAT(starts_alone, ?), ?))
     WHERE held_id = ? AND lease_token = ? AND state = 0";
const END: &str = "DELETE s
     FROM JSON_TABLE(?, '$[*]' COLUMNS (source VARCHAR(128) PATH '$[0]', hash CHAR(64) PATH '$[1]',
       handler_id BIGINT PATH '$[2]')) AS e
     STRAIGHT_JOIN ob_start AS s FORCE INDEX (PRIMARY) ON s.source = UNHEX(e.source) AND s.message_hash = UNHEX(e.hash)
       AND (e.handler_id IS NULL OR s.handler_id = e.handler_id)";
static LIVES: Many = Many::keys(
    "SELECT b.boot_id, b.ended_at IS NOT NULL,
       EXISTS (SELECT 1 FROM ob_boot AS n WHERE n.host = b.host AND n.started_at > b.started_at),
       GREATEST(TIMESTAMPDIFF(MICROSECOND, b.seen_at, UTC_TIMESTAMP(6)), 0)
     FROM ob_boot AS b WHERE ",
    "b.boot_id = ?",
    "",
);

const COLUMN_BYTES: usize = START_BYTES * STARTS_MAX;
/// Messages of one statement: their list takes less than a quarter of the smallest packet that a server may have.
const LIST_MAX: usize = 4_096;

pub(super) async fn insert(
    session: &mut Session,
    source: &str,
    messages: &[MessageHash],
    start: Start,
) -> Result<Vec<StartRow>, StoreError> {
    let mut rows = Vec::new();
    for chunk in messages.chunks(LIST_MAX) {
        rows.extend(insert_chunk(session, source, chunk, start).await?);
    }
    Ok(rows)
}

async fn insert_chunk(
    session: &mut Session,
    source: &str,
    messages: &[MessageHash],
    start: Start,
) -> Result<Vec<StartRow>, StoreError> {
    let (list, bytes) = (listed(messages), start.to_bytes());
    let args = args![
        source,
        bytes.as_slice(),
        list.as_str(),
        length(START_BYTES),
        start.boot.as_bytes(),
        bytes.as_slice(),
        length(COLUMN_BYTES),
    ];
    // A new row counts once, one that was there twice.
    if session.execute("start insert", INSERT, args).await?.affected == messages.len() as u64 {
        return Ok(Vec::new());
    }
    let rows = session.rows("start insert", READ, args![list.as_str(), source]).await?;
    rows.iter().map(start_row).collect()
}

fn length(bytes: usize) -> u64 {
    bytes as u64
}

fn start_row(row: &MySqlRow) -> Result<StartRow, StoreError> {
    let row = Columns::of("ob_start", row);
    let message = MessageHash::from_slice(row.bytes(0)?);
    Ok(StartRow {
        message: message.ok_or_else(|| row.corrupt("message_hash is not 32 bytes"))?,
        handler: HandlerId(row.integer(1)?),
        starts: starts("ob_start", row.bytes(2)?)?,
    })
}

pub(super) async fn alone(session: &mut Session, suspect: &Suspect, start: Start) -> Result<bool, StoreError> {
    let bytes = start.to_bytes();
    match suspect {
        Suspect::Delivered((source, hash), handler) => {
            let args = args![
                &**source,
                hash.as_bytes(),
                handler.0,
                bytes.as_slice(),
                length(START_BYTES),
                start.boot.as_bytes(),
                bytes.as_slice(),
                length(COLUMN_BYTES),
            ];
            session.execute("start alone", ALONE, args).await?;
            Ok(true)
        }
        Suspect::Claimed(held, token) => {
            let args = args![
                length(START_BYTES),
                start.boot.as_bytes(),
                bytes.as_slice(),
                length(COLUMN_BYTES),
                held.0,
                token.as_bytes(),
            ];
            Ok(session.execute("start alone", CLAIM_ALONE, args).await?.affected == 1)
        }
    }
}

/// Outside of a unit of work, where nothing comes next.
pub(super) async fn end_at_once(session: &mut Session, ends: &[StartEnd]) -> Result<(), StoreError> {
    end(session, ends).await?;
    session.send().await.map_err(MysqlError::from)?;
    Ok(())
}

/// Sorted by the caller; goes with the next trip.
pub(super) async fn end(session: &mut Session, ends: &[StartEnd]) -> Result<(), StoreError> {
    for chunk in ends.chunks(LIST_MAX) {
        let mut args = Args::text("");
        args.row("", END);
        args.add(ends_listed(chunk));
        session.later("start end", &args.written("")).await?;
    }
    Ok(())
}

pub(super) async fn lives(session: &mut Session, boots: &[BootId]) -> Result<BTreeMap<BootId, Life>, StoreError> {
    let rows = session.read_keys("boot lives", &LIVES, boots, |args, boot| args.add(boot.as_bytes())).await?;
    let life = |row| {
        let row = Columns::of("ob_boot", row);
        let boot = BootId::from_slice(row.bytes(0)?).ok_or_else(|| row.corrupt("a boot_id is not 16 bytes"))?;
        let life = Life {
            has_ended: row.integer::<u8>(1)? != 0,
            has_successor: row.integer::<u8>(2)? != 0,
            unseen: std::time::Duration::from_micros(row.integer(3)?),
        };
        Ok((boot, life))
    };
    rows.iter().map(life).collect()
}
