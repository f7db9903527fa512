//! Sees that another connection has committed: SQLite's `data_version`, looked at every 5 ms.

use std::time::Duration;

use sqlx::{Row as _, SqliteConnection};
use tokio::sync::watch;

const INTERVAL: Duration = Duration::from_millis(5);

/// Starts the watcher; it ends when the last receiver is gone.
pub(super) fn start(mut connection: SqliteConnection) -> watch::Receiver<u64> {
    let (sender, receiver) = watch::channel(0);
    tokio::spawn(async move {
        let mut seen: i64 = 0;
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !sender.is_closed() {
            interval.tick().await;
            // A failure is no news: whoever uses the database sees it himself.
            let Ok(row) = sqlx::query("PRAGMA data_version").fetch_one(&mut connection).await else { continue };
            let version = row.try_get(0).unwrap_or(seen);
            if version != seen {
                seen = version;
                sender.send_modify(|changes| *changes += 1);
            }
        }
    });
    receiver
}
