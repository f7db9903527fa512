//! What hosts tell each other: their lives, their answers to deployments, and which handlers are blocked.

use std::time::Duration;

use oncebox_core::ids::BootId;
use sqlx::{Row as _, SqliteConnection};

use super::errors::store_error;
use crate::store::{BlockedHandler, DeploymentAnswer, DeploymentId, HandlerId, LiveBoot, StoreError, cut};

/// `ob_handler.mode` of a handler that runs, and of one that is blocked (1 and 2 belong to probing and paused ones).
const RUNNING: u8 = 0;
const BLOCKED: u8 = 3;

pub(super) async fn boot_insert(connection: &mut SqliteConnection, boot: BootId, host: &str) -> Result<(), StoreError> {
    let sql = concat!(
        "INSERT INTO ob_boot (boot_id, host, version, started_at, seen_at) VALUES (?, ?, ?, ",
        now_us!(),
        ", ",
        now_us!(),
        ")"
    );
    sqlx::query(sql)
        .bind(boot.as_bytes())
        .bind(host)
        .bind(env!("CARGO_PKG_VERSION"))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| store_error("boot insert", &error))
}

pub(super) async fn boot_beat(
    connection: &mut SqliteConnection,
    boot: BootId,
    host: &str,
    is_draining: bool,
) -> Result<(), StoreError> {
    let sql = concat!("UPDATE ob_boot SET draining = ?, seen_at = ", now_us!(), " WHERE boot_id = ?");
    let done = sqlx::query(sql)
        .bind(is_draining)
        .bind(boot.as_bytes())
        .execute(&mut *connection)
        .await
        .map_err(|error| store_error("boot beat", &error))?;
    if done.rows_affected() == 0 { boot_insert(connection, boot, host).await } else { Ok(()) }
}

pub(super) async fn boot_end(connection: &mut SqliteConnection, boot: BootId) -> Result<(), StoreError> {
    sqlx::query(concat!("UPDATE ob_boot SET ended_at = ", now_us!(), " WHERE boot_id = ?"))
        .bind(boot.as_bytes())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| store_error("boot end", &error))
}

pub(super) async fn boots_live(
    connection: &mut SqliteConnection,
    timeout: Duration,
) -> Result<Vec<LiveBoot>, StoreError> {
    let wrap = |error| store_error("boots", &error);
    let sql = concat!(
        "SELECT boot_id, host FROM ob_boot WHERE ended_at IS NULL AND draining = 0 AND seen_at > ",
        now_us!(),
        " - ? ORDER BY started_at, boot_id"
    );
    let rows = sqlx::query(sql)
        .bind(i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await
        .map_err(wrap)?;
    rows.iter()
        .map(|row| Ok(LiveBoot { boot: boot_id(row.try_get(0).map_err(wrap)?)?, host: row.try_get(1).map_err(wrap)? }))
        .collect()
}

fn boot_id(bytes: &[u8]) -> Result<BootId, StoreError> {
    let corrupt = || StoreError::Corrupt { table: "ob_boot", message: "a boot_id is not 16 bytes".to_owned() };
    BootId::from_slice(bytes).ok_or_else(corrupt)
}

pub(super) async fn deployment_answer(
    connection: &mut SqliteConnection,
    deployment: DeploymentId,
    boot: BootId,
    answer: Result<(), &str>,
) -> Result<(), StoreError> {
    let sql = concat!(
        "INSERT INTO ob_ready (deployment_id, boot_id, ready, message, at) VALUES (?, ?, ?, ?, ",
        now_us!(),
        ") ON CONFLICT (deployment_id, boot_id) DO UPDATE SET ready = excluded.ready, message = excluded.message,
           at = excluded.at"
    );
    sqlx::query(sql)
        .bind(deployment.0)
        .bind(boot.as_bytes())
        .bind(answer.is_ok())
        .bind(answer.err().map(|why| cut(why, 4_096)))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| store_error("deployment answer", &error))
}

pub(super) async fn deployment_answers(
    connection: &mut SqliteConnection,
    deployment: DeploymentId,
) -> Result<Vec<DeploymentAnswer>, StoreError> {
    let wrap = |error| store_error("deployment answers", &error);
    let rows = sqlx::query("SELECT boot_id, ready, message FROM ob_ready WHERE deployment_id = ? ORDER BY at, boot_id")
        .bind(deployment.0)
        .fetch_all(connection)
        .await
        .map_err(wrap)?;
    let answer = |ready: bool, why: Option<String>| if ready { Ok(()) } else { Err(why.unwrap_or_default()) };
    rows.iter()
        .map(|row| {
            Ok(DeploymentAnswer {
                boot: boot_id(row.try_get(0).map_err(wrap)?)?,
                answer: answer(row.try_get(1).map_err(wrap)?, row.try_get(2).map_err(wrap)?),
            })
        })
        .collect()
}

pub(super) async fn handler_block(
    connection: &mut SqliteConnection,
    handler: HandlerId,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let sql = concat!(
        "UPDATE ob_handler SET mode = ?, mode_reason = ?, mode_since = ",
        now_us!(),
        " WHERE handler_id = ? AND mode <> ?"
    );
    let mode = if reason.is_some() { BLOCKED } else { RUNNING };
    sqlx::query(sql)
        .bind(mode)
        .bind(reason.map(|why| cut(why, 255)))
        .bind(handler.0)
        .bind(mode)
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| store_error("handler block", &error))
}

pub(super) async fn handlers_blocked(connection: &mut SqliteConnection) -> Result<Vec<BlockedHandler>, StoreError> {
    let wrap = |error| store_error("blocked handlers", &error);
    let sql = "SELECT handler_id, coalesce(mode_reason, ''), coalesce(mode_since, 0) FROM ob_handler WHERE mode = ?
               ORDER BY handler_id";
    let rows = sqlx::query(sql).bind(BLOCKED).fetch_all(connection).await.map_err(wrap)?;
    rows.iter()
        .map(|row| {
            Ok(BlockedHandler {
                handler: HandlerId(row.try_get(0)?),
                reason: row.try_get(1)?,
                since_us: row.try_get(2)?,
            })
        })
        .collect::<Result<_, _>>()
        .map_err(wrap)
}
