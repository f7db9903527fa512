//! Ends sessions whose call is over its time, through a connection of its own that is opened when it is needed.

use std::time::Duration;

use sqlx::{AssertSqlSafe, mysql::MySqlConnection};

use super::{
    errors::{NO_SUCH_THREAD, server_error},
    server::{Facts, Server},
};

/// What has become of a session that was to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The server does not know it any more: what it had not committed is undone.
    Gone,
    /// The server cannot be asked, or has not let go of it: what it does is unknown.
    Unknown,
}

/// Tries to see it gone; with the waits between them, about as long as one call may take.
const TRIES: u32 = 60;
const WAIT: Duration = Duration::from_millis(250);
/// The answer to one KILL.
const KILL_TIME: Duration = Duration::from_secs(5);

impl Server {
    /// Kills a session and waits until the server has let go of it, its transaction undone.
    pub(super) async fn end(&self, session: &Facts) -> Ended {
        let _turn = self.turn.lock().await;
        let began = crate::clock::monotonic();
        let mut own: Option<MySqlConnection> = None;
        for _ in 0..TRIES {
            if began.elapsed() > self.call_time().max(KILL_TIME) {
                break;
            }
            if own.is_none() {
                own = self.connect().await.ok().and_then(|(connection, facts)| {
                    // Behind the address is another server now: the number means another session there.
                    (facts.place == session.place).then_some(connection)
                });
            }
            if let Some(mut connection) = own.take() {
                // Nothing is lost with this connection: it may be given up in the middle of a call.
                let text = AssertSqlSafe(format!("KILL CONNECTION {}", session.id));
                match tokio::time::timeout(KILL_TIME, sqlx::raw_sql(text).execute(&mut connection)).await {
                    Ok(Err(error)) if server_error(&error).is_some_and(|error| error.number() == NO_SUCH_THREAD) => {
                        return Ended::Gone;
                    }
                    // Told to end, or ending: it is there until its transaction is undone.
                    Ok(Ok(_)) => own = Some(connection),
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            tokio::time::sleep(WAIT).await;
        }
        Ended::Unknown
    }
}
