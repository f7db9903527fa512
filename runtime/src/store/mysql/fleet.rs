//! What hosts tell each other: their lives, their answers to deployments, and which handlers are blocked.

use std::time::Duration;

use oncebox_core::ids::BootId;

use super::{admin::only, columns::Columns, session::Session};
use crate::store::{BlockedHandler, DeploymentAnswer, DeploymentId, HandlerId, LiveBoot, StoreError, cut};

/// `ob_handler.mode` of a handler that runs, and of one that is blocked (1 and 2 belong to probing and paused ones).
const RUNNING: u8 = 0;
const BLOCKED: u8 = 3;

/// A host that was not seen for so long is not waited for by a command.
const LIVE: Duration = Duration::from_secs(60);

/// A duration as the statements take it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(super) async fn boot_insert(session: &mut Session, boot: BootId, host: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO ob_boot (boot_id, host, version, started_at, seen_at)
               VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
    let args = args![boot.as_bytes(), cut(host, 255), env!("CARGO_PKG_VERSION")];
    session.execute("boot insert", sql, args).await?;
    Ok(())
}

pub(super) async fn boot_beat(
    session: &mut Session,
    boot: BootId,
    host: &str,
    is_draining: bool,
) -> Result<(), StoreError> {
    let sql = "UPDATE ob_boot SET draining = ?, seen_at = UTC_TIMESTAMP(6) WHERE boot_id = ?";
    let done = session.execute("boot beat", sql, args![is_draining, boot.as_bytes()]).await?;
    if done.affected == 0 { boot_insert(session, boot, host).await } else { Ok(()) }
}

pub(super) async fn boot_end(session: &mut Session, boot: BootId) -> Result<(), StoreError> {
    let sql = "UPDATE ob_boot SET ended_at = UTC_TIMESTAMP(6) WHERE boot_id = ?";
    session.execute("boot end", sql, args![boot.as_bytes()]).await?;
    Ok(())
}

pub(super) async fn boots_live(session: &mut Session, timeout: Duration) -> Result<Vec<LiveBoot>, StoreError> {
    let sql = "SELECT boot_id, host FROM ob_boot WHERE ended_at IS NULL AND draining = 0
                 AND TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(6)) < ? ORDER BY started_at, boot_id";
    let rows = session.rows("boots", sql, args![micros(timeout)]).await?;
    let live = |row| {
        let row = Columns::of("ob_boot", row);
        Ok(LiveBoot { boot: boot_id(&row, 0)?, host: row.text(1)? })
    };
    rows.iter().map(live).collect()
}

/// Whether a host was seen lately that has not ended.
pub(super) async fn host_is_live(session: &mut Session) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM ob_boot
               WHERE ended_at IS NULL AND TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(6)) < ?";
    let rows = session.rows("host is live", sql, args![micros(LIVE)]).await?;
    Ok(only("host is live", &rows)?.integer::<u64>(0)? > 0)
}

fn boot_id(row: &Columns<'_>, at: usize) -> Result<BootId, StoreError> {
    BootId::from_slice(row.bytes(at)?).ok_or_else(|| row.corrupt("a boot_id is not 16 bytes"))
}

pub(super) async fn deployment_answer(
    session: &mut Session,
    deployment: DeploymentId,
    boot: BootId,
    answer: Result<(), &str>,
) -> Result<(), StoreError> {
    // VALUES(…) is deprecated in MySQL and its successor unknown to MariaDB: the values are bound twice.
    let sql = "INSERT INTO ob_ready (deployment_id, boot_id, ready, message, at)
               VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6))
               ON DUPLICATE KEY UPDATE ready = ?, message = ?, at = UTC_TIMESTAMP(6)";
    let (is_ready, why) = (answer.is_ok(), answer.err().map(|why| cut(why, 4_096)));
    let args = args![deployment.0, boot.as_bytes(), is_ready, why, is_ready, why];
    session.execute("deployment answer", sql, args).await?;
    Ok(())
}

pub(super) async fn deployment_answers(
    session: &mut Session,
    deployment: DeploymentId,
) -> Result<Vec<DeploymentAnswer>, StoreError> {
    let sql = "SELECT boot_id, ready, message FROM ob_ready WHERE deployment_id = ? ORDER BY at, boot_id";
    let rows = session.rows("deployment answers", sql, args![deployment.0]).await?;
    let answer = |row| {
        let row = Columns::of("ob_ready", row);
        let answer = match row.integer::<u8>(1)? {
            0 => Err(row.text_or_null(2)?.unwrap_or_default()),
            _ => Ok(()),
        };
        Ok(DeploymentAnswer { boot: boot_id(&row, 0)?, answer })
    };
    rows.iter().map(answer).collect()
}

pub(super) async fn handler_block(
    session: &mut Session,
    handler: HandlerId,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let mode = if reason.is_some() { BLOCKED } else { RUNNING };
    let sql = "UPDATE ob_handler SET mode = ?, mode_reason = ?, mode_since = UTC_TIMESTAMP(6)
               WHERE handler_id = ? AND mode <> ?";
    let args = args![mode, reason.map(|why| cut(why, 255)), handler.0, mode];
    session.execute("handler block", sql, args).await?;
    Ok(())
}

pub(super) async fn handlers_blocked(session: &mut Session) -> Result<Vec<BlockedHandler>, StoreError> {
    let sql = "SELECT handler_id, mode_reason, mode_since FROM ob_handler WHERE mode = ? ORDER BY handler_id";
    let rows = session.rows("blocked handlers", sql, args![BLOCKED]).await?;
    let blocked = |row| {
        let row = Columns::of("ob_handler", row);
        Ok(BlockedHandler {
            handler: HandlerId(row.integer(0)?),
            reason: row.text_or_null(1)?.unwrap_or_default(),
            since_us: row.time_or_null(2)?.unwrap_or_default(),
        })
    };
    rows.iter().map(blocked).collect()
}
