//! The time of a schedule: it stands still while one step takes longer than a step may.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use oncebox::clock;
use oncebox_tests::patience::pass;

/// What a step may take of the time; on a slow machine a server takes longer to come back.
const STEP_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// A clock that the faults and the publishers share, so that neither outruns the other.
pub(crate) struct Pace {
    began: Instant,
    lost_ms: AtomicU64,
}

impl Pace {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        Self { began: clock::monotonic(), lost_ms: AtomicU64::new(0) }
    }

    /// The time of the schedule.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.lost_ms.load(Ordering::SeqCst)))
    }

    /// The time of the machine.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until it is so late.
    pub(crate) fn until(&self, at: Duration) {
        while let Some(left) = at.checked_sub(self.now()).filter(|left| !left.is_zero()) {
            pass(left.min(LOOK));
        }
    }

    /// A step took so long.
    pub(crate) fn took(&self, time: Duration) {
        let lost = u64::try_from(time.saturating_sub(STEP_MAX).as_millis()).unwrap_or(u64::MAX);
        self.lost_ms.fetch_add(lost, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_takes_beyond_its_share_is_no_time_of_the_schedule() {
        let pace = Pace::begin();
        pace.until(Duration::from_millis(60));
        assert!(pace.now() >= Duration::from_millis(60));
        pace.took(Duration::from_secs(9));
        assert!(pace.now() >= Duration::from_millis(60));
        pace.took(STEP_MAX + Duration::from_mins(60));
        assert_eq!(pace.now(), Duration::ZERO);
        assert!(pace.elapsed() >= Duration::from_millis(60));
    }
}
