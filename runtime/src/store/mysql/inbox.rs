//! The inbox: the one arbiter of "first". Its primary key is its only unique one, so that nothing else can mean
//! "duplicate".

use std::collections::HashMap;

use oncebox_core::{
    ids::{BusinessKey, Fingerprint, LeaseToken},
    life::InboxState,
};
use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{
    args::Args,
    columns::{Columns, datetime},
    many::{Many, cut_freely},
    session::Session,
};
use crate::{
    planted::{self, Fault},
    store::{HandlerId, InboxKey, InboxMark, InboxRow, NewInbox, RuleId, StoreError},
};

const TABLE: &str = "ob_inbox";

/// No other form lets waiters go when the one who holds a key is done (`INSERT IGNORE` deadlocks them); a counter tells
/// a row that was there, since the driver counts found rows. A row that was there although no look-up had seen it (its
/// attempts are 1; else none) is told by the last inserted id: with the count that tells what each key has come to, as
/// long as all of them are as they were seen.
static INSERT: Many = Many::insert(
    "INSERT INTO ob_inbox (handler_id, business_key, state, fingerprint, rule_id, token, deployment_id, attempts,
       event_id, source, traceparent, received_at, decided_at) VALUES ",
    "(?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE duplicates = ob_inbox.duplicates + IF({attempts} = 0, 1, LAST_INSERT_ID(1)),
       duplicate_at = UTC_TIMESTAMP(6)",
);

/// What [`Fault::InsertIgnore`] does instead.
static INSERT_IGNORE: Many = Many::insert(
    "INSERT IGNORE INTO ob_inbox (handler_id, business_key, state, fingerprint, rule_id, token, deployment_id, attempts,
       event_id, source, traceparent, received_at, decided_at) VALUES ",
    "(?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    "",
);

const LOOK_UP: &str =
    "SELECT handler_id, business_key, state, fingerprint, rule_id, token, generation FROM ob_inbox WHERE ";

/// For rows of which all were seen: half the work of an insert that never inserts.
const COUNT: &str = "UPDATE ob_inbox FORCE INDEX (PRIMARY)
     SET duplicates = duplicates + 1, duplicate_at = UTC_TIMESTAMP(6) WHERE ";

/// In the order of the key, so that two units never wait for each other crosswise.
const LOCK: &str = "SELECT handler_id, business_key, state, fingerprint, rule_id, token, generation
     FROM ob_inbox FORCE INDEX (PRIMARY) WHERE ";
const LOCKED: &str = " ORDER BY handler_id, business_key FOR UPDATE";

/// A join by key: what a DELETE with a list reads, and locks, is up to the server (MariaDB reads a small table whole).
/// The key's type must be that of the column, VARBINARY(512): a BLOB is not looked for in an index.
static DELETE: Many = Many::new(
    "DELETE i FROM (",
    "SELECT CAST(? AS UNSIGNED) AS handler_id, LEFT(CAST(? AS BINARY), 512) AS business_key",
    " UNION ALL ",
    ") AS own STRAIGHT_JOIN ob_inbox AS i FORCE INDEX (PRIMARY)
     ON i.handler_id = own.handler_id AND i.business_key = own.business_key",
);

static UNCOUNT: Many = Many::keys(
    "UPDATE ob_inbox FORCE INDEX (PRIMARY) SET duplicates = duplicates - 1 WHERE duplicates > 0 AND (",
    "(handler_id = ? AND business_key = ?)",
    ")",
);

/// Each row is there: the insert is never done, and its other values are never seen. `decided_at` moves in any case, so
/// that a row which was there counts twice.
static MARK: Many = Many::insert(
    "INSERT INTO ob_inbox (handler_id, business_key, state, deployment_id, attempts, code, result,
       fingerprint, rule_id, token, event_id, source, received_at, decided_at) VALUES ",
    "(?, ?, ?, ?, ?, ?, ?, '', 0, '', '', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE state = {state}, deployment_id = {deployment_id}, attempts = {attempts}, code = {code},
       result = {result}, decided_at = GREATEST({decided_at}, ob_inbox.decided_at + INTERVAL 1 MICROSECOND)",
);

fn key_args(args: &mut Args, (handler, key): &InboxKey) {
    args.add(handler.0);
    args.add(key.as_bytes());
}

/// The rows of these keys as another transaction sees them.
pub(super) async fn look_up(session: &mut Session, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError> {
    read(session, "inbox look-up", keys, LOOK_UP, "").await?.iter().map(inbox_row).collect()
}

async fn read(
    session: &mut Session,
    what: &'static str,
    keys: &[InboxKey],
    head: &str,
    tail: &str,
) -> Result<Vec<MySqlRow>, StoreError> {
    let mut rows = Vec::with_capacity(keys.len());
    for keys in in_texts(what, keys, session)? {
        rows.extend(session.script(what, AssertSqlSafe(by_keys(head, keys, tail))).await?);
    }
    Ok(rows)
}

/// Keys, as many at once as a text may list.
fn in_texts<'k>(
    what: &'static str,
    keys: &'k [InboxKey],
    session: &Session,
) -> Result<impl Iterator<Item = &'k [InboxKey]> + use<'k>, StoreError> {
    let texts = cut_freely(what, keys, session.facts().packet_max, |(_, key)| 2 * key.as_bytes().len())?;
    Ok(texts.into_iter().flat_map(|keys| keys.chunks(LISTED_MAX)))
}

/// A statement about the rows of these keys, listed by handler: for a server that is a third of the work of as many
/// comparisons beside each other, and it steps into the index once a key all the same.
fn by_keys(head: &str, keys: &[InboxKey], tail: &str) -> String {
    let mut keys: Vec<&InboxKey> = keys.iter().collect();
    keys.sort_unstable();
    let mut args = Args::text(head);
    let mut before = "";
    for of_handler in keys.chunk_by(|one, next| one.0 == next.0) {
        let mut key = "(handler_id = ? AND business_key IN (?";
        for (at, (handler, business_key)) in of_handler.iter().enumerate() {
            args.row(before, key);
            if at == 0 {
                args.add(handler.0);
            }
            args.add(business_key.as_bytes());
            (before, key) = ("", ", ?");
        }
        before = ")) OR ";
    }
    args.written("))") + tail
}

/// Keys of one text. MariaDB makes a join of more than a thousand (`in_predicate_conversion_threshold`).
const LISTED_MAX: usize = 512;

/// What a unit has put into the inbox.
#[derive(Debug, Default)]
pub(super) struct Entered {
    /// Keys whose row it inserted.
    pub(super) first: Vec<InboxKey>,
    /// Keys whose row it counted a duplicate on.
    known: Vec<InboxKey>,
}

/// Inserts, or counts a duplicate; the answer holds the rows as they are now, in the order given. `rows` are sorted by
/// key: two units that share keys then never wait for each other crosswise. What stands is noted in `entered`, also
/// when a later part fails.
pub(super) async fn insert(
    session: &mut Session,
    token: LeaseToken,
    rows: &[NewInbox],
    entered: &mut Entered,
) -> Result<Vec<InboxRow>, StoreError> {
    let mut answer = Vec::with_capacity(rows.len());
    for chunk in cut_freely("inbox insert", rows, session.facts().packet_max, weight)? {
        if chunk.iter().all(|new| new.seen.is_some()) && !planted::is(Fault::InsertIgnore) {
            answer.extend(count(session, token, chunk, entered).await?);
        } else {
            answer.extend(enter(session, token, chunk, entered).await?);
        }
    }
    Ok(answer)
}

/// Of rows that were all seen. One that has gone since is entered anew.
async fn count(
    session: &mut Session,
    token: LeaseToken,
    chunk: &[NewInbox],
    entered: &mut Entered,
) -> Result<Vec<InboxRow>, StoreError> {
    let keys: Vec<InboxKey> = chunk.iter().map(NewInbox::inbox_key).collect();
    let mut counted = 0;
    for keys in in_texts("inbox count", &keys, session)? {
        counted += session.now("inbox count", &by_keys(COUNT, keys, "")).await?.affected;
    }
    if counted == chunk.len() as u64 {
        entered.known.extend(keys);
        return Ok(chunk.iter().filter_map(|new| new.seen.clone()).collect());
    }
    let mut found = by_key(look_up(session, &keys).await?);
    entered.known.extend(found.keys().cloned());
    let gone: Vec<NewInbox> = chunk.iter().filter(|new| !found.contains_key(&new.inbox_key())).cloned().collect();
    // None: another unit has inserted it meanwhile.
    if !gone.is_empty() {
        found.extend(by_key(enter(session, token, &gone, entered).await?));
    }
    keys.into_iter().map(|key| found.remove(&key).ok_or_else(|| missing(&key.1))).collect()
}

async fn enter(
    session: &mut Session,
    token: LeaseToken,
    chunk: &[NewInbox],
    entered: &mut Entered,
) -> Result<Vec<InboxRow>, StoreError> {
    let insert = if planted::is(Fault::InsertIgnore) { &INSERT_IGNORE } else { &INSERT };
    let done = session
        .write_text("inbox insert", insert, chunk, weight, |args, new: &NewInbox| {
            args.add(new.handler.0);
            args.add(new.key.as_bytes());
            args.add(new.fingerprint.as_bytes());
            args.add(new.rule.0);
            args.add(token.as_bytes());
            args.add(new.deployment.0);
            args.add(u32::from(new.seen.is_none()));
            args.add(new.event_id.as_str());
            args.add(&*new.source);
            args.add(new.traceparent.as_deref());
            args.add(datetime(new.received_us));
        })
        .await?;
    // Each new row counts 1, one that was there 2.
    let seen = chunk.iter().filter(|new| new.seen.is_some()).count();
    if done.last_insert_id == 0 && done.affected == (chunk.len() + seen) as u64 {
        let rows = chunk.iter().map(|new| {
            let entered = if new.seen.is_some() { &mut entered.known } else { &mut entered.first };
            entered.push(new.inbox_key());
            new.seen.clone().unwrap_or_else(|| first(token, new))
        });
        return Ok(rows.collect());
    }
    let keys: Vec<InboxKey> = chunk.iter().map(NewInbox::inbox_key).collect();
    let rows = read(session, "inbox look-up", &keys, LOOK_UP, "").await?;
    let (own, known) = rows.iter().partition(|row| is_under(token, row));
    entered.first.extend(keys_of(own)?);
    entered.known.extend(keys_of(known)?);
    let mut found = by_key(rows.iter().map(inbox_row).collect::<Result<_, _>>()?);
    keys.into_iter().map(|key| found.remove(&key).ok_or_else(|| missing(&key.1))).collect()
}

/// By the columns of a look-up. A row that does not read is noted all the same.
fn is_under(token: LeaseToken, row: &MySqlRow) -> bool {
    Columns::of(TABLE, row).bytes(5).is_ok_and(|bytes| bytes == token.as_bytes())
}

fn keys_of(rows: Vec<&MySqlRow>) -> Result<Vec<InboxKey>, StoreError> {
    let key = |row| {
        let row = Columns::of(TABLE, row);
        Ok((HandlerId(row.integer(0)?), BusinessKey::new(row.bytes(1)?)))
    };
    rows.into_iter().map(key).collect()
}

/// Takes back all of it: rows that were inserted are deleted, duplicates are not counted. All these rows are locked by
/// the unit, so that nobody is waited for.
pub(super) async fn leave(session: &mut Session, entered: &Entered) -> Result<(), StoreError> {
    session.write_keys("inbox give up", &UNCOUNT, &entered.known, |_| (), key_args).await?;
    session.write_keys("inbox give up", &DELETE, &entered.first, |_| (), key_args).await?;
    Ok(())
}

/// Locks and reads, in the order given.
pub(super) async fn lock(session: &mut Session, keys: &[InboxKey]) -> Result<Vec<Option<InboxRow>>, StoreError> {
    let rows = read(session, "inbox lock", keys, LOCK, LOCKED).await?;
    let mut found = by_key(rows.iter().map(inbox_row).collect::<Result<_, _>>()?);
    Ok(keys.iter().map(|key| found.remove(key)).collect())
}

/// Takes back the unit's own rows. They are looked for first: a key that somebody else holds, perhaps the very one that
/// this unit has waited for in vain, must not be waited for once more.
pub(super) async fn delete(session: &mut Session, token: LeaseToken, keys: &[InboxKey]) -> Result<(), StoreError> {
    let rows = look_up(session, keys).await?;
    let own: Vec<InboxKey> =
        rows.into_iter().filter(|row| row.token == token).map(|row| (row.handler, row.key)).collect();
    session.write_keys("inbox delete", &DELETE, &own, |_| (), key_args).await?;
    Ok(())
}

/// Writes the outcome into rows that are there.
pub(super) async fn mark(session: &mut Session, marks: &[InboxMark]) -> Result<(), StoreError> {
    let bytes = |mark: &InboxMark| mark.key.as_bytes().len() + mark.result.as_ref().map_or(0, Vec::len);
    let bind = |args: &mut Args, mark: &InboxMark| {
        args.add(mark.handler.0);
        args.add(mark.key.as_bytes());
        args.add(mark.state.number());
        args.add(mark.deployment.map(|deployment| deployment.0));
        args.add(mark.attempts);
        args.add(mark.code.as_deref());
        args.add(mark.result.as_deref());
    };
    for chunk in cut_freely("inbox mark", marks, session.facts().packet_max, bytes)? {
        let (text, wanted) = (MARK.with_values(session.flavour(), chunk, bind), 2 * chunk.len() as u64);
        if session.has_room_for(&text) {
            session.later_exactly("inbox mark", &text, wanted, TABLE).await?;
        } else if session.write_many("inbox mark", &MARK, chunk, bytes, bind).await?.affected != wanted {
            let message = format!("of {} rows to mark some are gone inside their own unit of work", chunk.len());
            return Err(StoreError::Corrupt { table: TABLE, message });
        }
    }
    Ok(())
}

fn weight(new: &NewInbox) -> usize {
    new.key.as_bytes().len() + new.event_id.len() + new.source.len()
}

fn first(token: LeaseToken, new: &NewInbox) -> InboxRow {
    InboxRow {
        handler: new.handler,
        key: new.key.clone(),
        state: InboxState::Applied,
        fingerprint: new.fingerprint,
        rule: new.rule,
        token,
        generation: 0,
    }
}

fn by_key(rows: Vec<InboxRow>) -> HashMap<InboxKey, InboxRow> {
    rows.into_iter().map(|row| ((row.handler, row.key.clone()), row)).collect()
}

fn missing(key: &BusinessKey) -> StoreError {
    StoreError::Corrupt { table: TABLE, message: format!("the row of key {key} is gone after its own insert") }
}

fn inbox_row(row: &MySqlRow) -> Result<InboxRow, StoreError> {
    let row = Columns::of(TABLE, row);
    let state = InboxState::from_number(row.integer(2)?).ok_or_else(|| row.corrupt("unknown state"))?;
    let fingerprint = Fingerprint::from_slice(row.bytes(3)?);
    Ok(InboxRow {
        handler: HandlerId(row.integer(0)?),
        key: BusinessKey::new(row.bytes(1)?),
        state,
        fingerprint: fingerprint.ok_or_else(|| row.corrupt("fingerprint is not 32 bytes"))?,
        rule: RuleId(row.integer(4)?),
        token: LeaseToken::from_slice(row.bytes(5)?).ok_or_else(|| row.corrupt("token is not 16 bytes"))?,
        generation: row.integer(6)?,
    })
}
