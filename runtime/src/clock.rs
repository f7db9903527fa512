//! The only place where the host's clocks are read. Leases and due times go by the database's clock instead.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::planted;

/// The host's wall clock, microseconds since 1970: for records of when something was seen here.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
        .saturating_add(planted::clock_ahead_us())
}

/// The host's monotonic clock: for limits and delays.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Microseconds since 1970 as `2026-11-29 12:00:00.000000Z`.
#[must_use]
pub fn shown(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us)
        .map_or_else(|_| us.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S%.6fZ").to_string())
}
