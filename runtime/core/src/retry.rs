//! From attempt to delay.

use std::time::Duration;

/// A handler's retry policy, all defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Counted attempts before dead.
    pub attempts_max: u32,
    /// First delay.
    pub first: Duration,
    /// Growth from one delay to the next.
    pub factor: f64,
    /// Longest delay.
    pub delay_max: Duration,
    /// From the first failure on; past it the event is dead.
    pub deadline: Duration,
    /// Counted attempts of traps, limits and 1062.
    pub short_attempts_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 12,
            first: Duration::from_secs(1),
            factor: 3.0,
            delay_max: Duration::from_hours(1),
            deadline: Duration::from_hours(24),
            short_attempts_max: 3,
        }
    }
}
