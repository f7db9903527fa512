//! Writing held rows inside a unit of work: a new one, one more of the same, or one that is opened again; and the
//! marks and attempts of claims.

use std::collections::{HashMap, HashSet};

use oncebox_core::{
    ids::{BusinessKey, HeldIdentity, LeaseToken},
    life::HeldState,
};
use sqlx::mysql::MySqlRow;

use super::{
    args::Args,
    columns::{Columns, datetime},
    errors::MysqlError,
    many::{Many, cut_freely},
    session::Session,
};
use crate::{
    planted::{self, Fault},
    store::{HeldId, HeldMark, NewAttempt, NewHeld, StoreError, encode_headers, starts::columns},
};

const TABLE: &str = "ob_held";

/// Two units may bring the same identity at once (a poison letter has no inbox row that would lock it): whoever comes
/// second waits here, and counts. Another key error than that of `identity` cannot come: there is no other unique one.
static INSERT: Many = Many::insert(
    "INSERT INTO ob_held (identity, handler_id, state, business_key, due_at, attempts, attempts_short, class, code,
       message, fingerprint, rule_id, deployment_id, source, hops, event_id, event_type, event_time, received_at,
       ordering_key, place, starts, starts_alone, changed_at) VALUES ",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))",
    " ON DUPLICATE KEY UPDATE times = times + 1, changed_at = UTC_TIMESTAMP(6)",
);
static READ: Many = Many::list("SELECT identity, held_id, state, times FROM ob_held WHERE identity IN (", "?", ")");
static BODY: Many = Many::insert(
    "INSERT INTO ob_body (held_id, revision, headers, payload, at) VALUES ",
    "(?, ?, ?, ?, UTC_TIMESTAMP(6))",
    "",
);
const LAST_REVISION: &str = "SELECT MAX(revision) FROM ob_body WHERE held_id = ?";
/// Identity, handler, key and fingerprint are what they were: they are what the row was found by.
const OPEN_AGAIN: &str = "UPDATE ob_held SET state = ?, due_at = ?, lease_token = NULL, attempts = ?,
       attempts_short = ?, class = ?, code = ?, message = ?, rule_id = ?, deployment_id = ?, generation = 0,
       source = ?, hops = ?, event_id = ?, event_type = ?, event_time = ?, received_at = ?, ordering_key = ?, place = ?,
       starts = ?, starts_alone = ? WHERE held_id = ?";
const COUNT: &str = "UPDATE ob_held SET class = ?, code = ?, message = ? WHERE held_id = ?";

static LOCK: Many = Many::list(
    "SELECT held_id, lease_token FROM ob_held FORCE INDEX (PRIMARY) WHERE state = 0 AND held_id IN (",
    "?",
    ") ORDER BY held_id FOR UPDATE",
);
/// Each row becomes something else, and one statement does for all: the casts say the types that a union of parameters
/// does not have. `$ours` is what makes a row ours.
macro_rules! mark {
    ($ours:literal) => {
        Many::new(
            "UPDATE (",
            "SELECT CAST(? AS UNSIGNED) AS held_id, CAST(? AS BINARY(16)) AS token, CAST(? AS UNSIGNED) AS state,
               CAST(? AS DATETIME(6)) AS due_at, CAST(? AS UNSIGNED) AS attempts, CAST(? AS UNSIGNED) AS attempts_short,
               CAST(? AS UNSIGNED) AS class, CAST(? AS CHAR) AS code, CAST(? AS CHAR) AS message,
               CAST(? AS UNSIGNED) AS deployment_id, CAST(? AS UNSIGNED) AS is_over, CAST(? AS BINARY) AS starts,
               CAST(? AS BINARY) AS starts_alone",
            " UNION ALL ",
            concat!(
                ") AS m STRAIGHT_JOIN ob_held AS h FORCE INDEX (PRIMARY) ON h.held_id = m.held_id AND ",
                $ours,
                " SET h.state = m.state, h.due_at = m.due_at, h.lease_token = NULL, h.attempts = m.attempts,
                   h.attempts_short = m.attempts_short, h.class = COALESCE(m.class, h.class),
                   h.code = COALESCE(m.code, h.code), h.message = COALESCE(m.message, h.message),
                   h.deployment_id = COALESCE(m.deployment_id, h.deployment_id), h.place = IF(m.is_over, NULL, h.place),
                   h.starts = m.starts, h.starts_alone = m.starts_alone, h.changed_at = UTC_TIMESTAMP(6)"
            ),
        )
    };
}
static MARK: Many = mark!("h.lease_token = m.token");
/// What [`Fault::UnfencedClaim`] does instead.
static MARK_UNFENCED: Many = mark!("m.token IS NOT NULL");

static LAST_ATTEMPT: Many = Many::keys(
    "SELECT held_id, generation, MAX(attempt) FROM ob_attempt WHERE ",
    "(held_id = ? AND generation = ?)",
    " GROUP BY held_id, generation",
);
static ATTEMPT: Many = Many::insert(
    "INSERT INTO ob_attempt (held_id, generation, attempt, boot_id, deployment_id, started_at, ended_at, class, code,
       message, backtrace) VALUES ",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "",
);

/// A held row of an identity, as it is after the insert.
struct Known {
    held: HeldId,
    state: u8,
    /// 1: this insert has made it.
    times: u64,
}

/// Writes held rows; a row of the same identity is counted, one whose event begins anew is opened again, with its new
/// state and body. The numbers are in the order given.
pub(super) async fn insert(session: &mut Session, rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError> {
    let mut ids = Vec::with_capacity(rows.len());
    let mut rest = rows;
    while !rest.is_empty() {
        // The same identity twice (a message delivered twice in a batch): the second finds the first.
        let mut seen = HashSet::new();
        let distinct = rest.iter().take_while(|row| seen.insert(row.identity)).count();
        let (rows, after) = rest.split_at(distinct);
        for chunk in cut_freely("held insert", rows, session.facts().packet_max, held_bytes)? {
            ids.extend(insert_chunk(session, chunk).await?);
        }
        rest = after;
    }
    Ok(ids)
}

async fn insert_chunk(session: &mut Session, rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError> {
    let text = INSERT.with_values(session.flavour(), rows, bind_new);
    let known = if session.has_room_for(&text) {
        // In one trip, with what waits.
        session.later("held insert", &text).await?;
        let read = READ.with_values(session.flavour(), rows, bind_identity);
        session.later("held insert", &read).await?;
        let answers = session.send().await.map_err(MysqlError::from)?;
        known(answers.last().map_or(&[][..], |answer| &answer.rows))?
    } else {
        session.write_many("held insert", &INSERT, rows, held_bytes, bind_new).await?;
        known(&session.read_keys("held insert", &READ, rows, bind_identity).await?)?
    };
    let (mut ids, mut bodies) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let gone = || StoreError::Corrupt { table: TABLE, message: "a row is gone after its own insert".to_owned() };
        let known = known.get(&row.identity).ok_or_else(gone)?;
        ids.push(known.held);
        if known.times == 1 {
            bodies.push((known.held, 0, row));
        } else if begins_anew(known.state, row.state) {
            open_again(session, known.held, row).await?;
            bodies.push((known.held, next_revision(session, known.held).await?, row));
        } else {
            let args = args![row.class.number(), row.code.as_str(), row.message.as_str(), known.held.0];
            session.execute("held insert", COUNT, args).await?;
        }
    }
    let bytes = |(_, _, row): &(HeldId, u32, &NewHeld)| row.body.body.len() + headers_bytes(row);
    session
        .write_later("body insert", &BODY, &bodies, bytes, |args, (held, revision, row): &(HeldId, u32, &NewHeld)| {
            args.add(held.0);
            args.add(*revision);
            args.add(encode_headers(&row.body));
            args.add(row.body.body.as_slice());
        })
        .await?;
    Ok(ids)
}

fn headers_bytes(row: &NewHeld) -> usize {
    // Values that are not text are written in hexadecimal.
    row.body.headers.iter().map(|header| 2 * header.value.len() + header.name.len() + 16).sum()
}

fn held_bytes(row: &NewHeld) -> usize {
    row.message.len() + 1_024
}

fn bind_identity(args: &mut Args, row: &NewHeld) {
    args.add(row.identity.as_bytes());
}

fn known(found: &[MySqlRow]) -> Result<HashMap<HeldIdentity, Known>, StoreError> {
    let mut known = HashMap::with_capacity(found.len());
    for row in found {
        let row = Columns::of(TABLE, row);
        let identity = HeldIdentity::from_slice(row.bytes(0)?);
        known.insert(
            identity.ok_or_else(|| row.corrupt("identity is not 32 bytes"))?,
            Known { held: HeldId(row.integer(1)?), state: row.integer(2)?, times: row.integer(3)? },
        );
    }
    Ok(known)
}

/// A parked, dead or late event has a new inbox row: whatever is held of an earlier life of its key says nothing of it.
fn begins_anew(known: u8, new: HeldState) -> bool {
    match new {
        HeldState::Parked | HeldState::Dead | HeldState::Late => true,
        HeldState::Conflict | HeldState::Poison | HeldState::Resolved => known == HeldState::Resolved.number(),
    }
}

fn bind_new(args: &mut Args, row: &NewHeld) {
    args.add(row.identity.as_bytes());
    args.add(row.handler.0);
    args.add(row.state.number());
    args.add(row.key.as_ref().map(BusinessKey::as_bytes));
    args.add(row.due_us.map(datetime));
    args.add(row.attempts);
    args.add(row.attempts_short);
    args.add(row.class.number());
    args.add(row.code.as_str());
    args.add(row.message.as_str());
    args.add(row.fingerprint.as_ref().map(|fingerprint| fingerprint.as_bytes()));
    args.add(row.rule.map(|rule| rule.0));
    args.add(row.deployment.map(|deployment| deployment.0));
    args.add(&*row.source);
    args.add(row.hops);
    args.add(row.event_id.as_deref());
    args.add(row.event_type.as_deref());
    args.add(row.event_time_us.map(datetime));
    args.add(datetime(row.received_us));
    args.add(row.place.as_ref().map(|place| place.ordering_key.as_slice()));
    args.add(row.place.as_ref().map(|place| place.place));
    let (starts, starts_alone) = columns(&row.open);
    args.add(starts);
    args.add(starts_alone);
}

async fn open_again(session: &mut Session, held: HeldId, row: &NewHeld) -> Result<(), StoreError> {
    let (starts, starts_alone) = columns(&row.open);
    let args = args![
        row.state.number(),
        row.due_us.map(datetime),
        row.attempts,
        row.attempts_short,
        row.class.number(),
        row.code.as_str(),
        row.message.as_str(),
        row.rule.map(|rule| rule.0),
        row.deployment.map(|deployment| deployment.0),
        &*row.source,
        row.hops,
        row.event_id.as_deref(),
        row.event_type.as_deref(),
        row.event_time_us.map(datetime),
        datetime(row.received_us),
        row.place.as_ref().map(|place| place.ordering_key.as_slice()),
        row.place.as_ref().map(|place| place.place),
        starts,
        starts_alone,
        held.0,
    ];
    session.execute("held insert", OPEN_AGAIN, args).await?;
    Ok(())
}

/// The message as it came: revision 0, and a further one each time the row is opened again.
async fn next_revision(session: &mut Session, held: HeldId) -> Result<u32, StoreError> {
    let rows = session.rows("body insert", LAST_REVISION, args![held.0]).await?;
    let last: Option<u32> = match rows.first() {
        Some(row) => Columns::of("ob_body", row).integer_or_null(0)?,
        None => None,
    };
    Ok(last.map_or(0, |last| last.saturating_add(1)))
}

/// Locks the rows of claims; the answer tells, in the order given, whether the row is parked and still under the
/// claim's token.
pub(super) async fn lock(session: &mut Session, claims: &[(HeldId, LeaseToken)]) -> Result<Vec<bool>, StoreError> {
    let bind = |args: &mut Args, (held, _): &(HeldId, LeaseToken)| args.add(held.0);
    let rows = session.read_keys("held lock", &LOCK, claims, bind).await?;
    let mut tokens = HashMap::with_capacity(rows.len());
    for row in &rows {
        let row = Columns::of(TABLE, row);
        let token = row.bytes_or_null(1)?.and_then(LeaseToken::from_slice);
        tokens.insert(HeldId(row.integer(0)?), token);
    }
    Ok(claims.iter().map(|(held, token)| tokens.get(held) == Some(&Some(*token))).collect())
}

/// Brings claimed rows up to date under their tokens.
pub(super) async fn mark(session: &mut Session, marks: &[HeldMark]) -> Result<(), StoreError> {
    let bytes = |mark: &HeldMark| mark.why.as_ref().map_or(0, |(_, code, message)| code.len() + message.len());
    let text = if planted::is(Fault::UnfencedClaim) { &MARK_UNFENCED } else { &MARK };
    let done = session.write_many("held mark", text, marks, bytes, bind_mark).await?;
    if done.affected == marks.len() as u64 {
        return Ok(());
    }
    Err(StoreError::LeaseLost { held: lost(session, marks).await?.0 })
}

fn bind_mark(args: &mut Args, mark: &HeldMark) {
    let why = mark.why.as_ref();
    args.add(mark.held.0);
    args.add(mark.token.as_bytes());
    args.add(mark.state.number());
    args.add(mark.due_us.map(datetime));
    args.add(mark.attempts);
    args.add(mark.attempts_short);
    args.add(why.map(|(class, _, _)| class.number()));
    args.add(why.map(|(_, code, _)| code.as_str()));
    args.add(why.map(|(_, _, message)| message.as_str()));
    args.add(mark.deployment.map(|deployment| deployment.0));
    args.add(mark.state == HeldState::Resolved);
    let (starts, starts_alone) = columns(&mark.open);
    args.add(starts);
    args.add(starts_alone);
}

/// The one that was not written: its row has another number of marks than this unit gave it. Those written
/// have no token any more, so that one with a token, or without a row, is it.
async fn lost(session: &mut Session, marks: &[HeldMark]) -> Result<HeldId, StoreError> {
    static TOKENS: Many =
        Many::list("SELECT held_id FROM ob_held WHERE lease_token IS NULL AND held_id IN (", "?", ")");
    let rows = session.read_keys("held mark", &TOKENS, marks, |args, mark: &HeldMark| args.add(mark.held.0)).await?;
    let written: HashSet<i64> = rows.iter().map(|row| Columns::of(TABLE, row).integer(0)).collect::<Result<_, _>>()?;
    let lost = marks.iter().find(|mark| !written.contains(&mark.held.0)).or(marks.first());
    Ok(lost.map_or(HeldId(0), |mark| mark.held))
}

/// Records runs that did not apply, numbered from 1 by row and generation; the held row's lock keeps others out.
pub(super) async fn attempt_insert(session: &mut Session, rows: &[NewAttempt]) -> Result<(), StoreError> {
    let bind = |args: &mut Args, row: &NewAttempt| {
        args.add(row.held.0);
        args.add(row.generation);
    };
    let mut last: HashMap<(i64, u32), u32> = HashMap::new();
    for row in &session.read_keys("attempt insert", &LAST_ATTEMPT, rows, bind).await? {
        let row = Columns::of("ob_attempt", row);
        last.insert((row.integer(0)?, row.integer(1)?), row.integer(2)?);
    }
    let mut numbered = Vec::with_capacity(rows.len());
    for row in rows {
        let number = last.entry((row.held.0, row.generation)).or_default();
        *number += 1;
        numbered.push((*number, row));
    }
    let bytes = |(_, row): &(u32, &NewAttempt)| row.message.len() + row.backtrace.as_ref().map_or(0, String::len);
    session
        .write_later("attempt insert", &ATTEMPT, &numbered, bytes, |args, (number, row): &(u32, &NewAttempt)| {
            args.add(row.held.0);
            args.add(row.generation);
            args.add(*number);
            args.add(row.boot.as_bytes());
            args.add(row.deployment.map(|deployment| deployment.0));
            args.add(datetime(row.started_us));
            args.add(datetime(row.ended_us));
            args.add(row.class.number());
            args.add(row.code.as_str());
            args.add(row.message.as_str());
            args.add(row.backtrace.as_deref());
        })
        .await?;
    Ok(())
}
