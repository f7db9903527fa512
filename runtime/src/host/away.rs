//! Since when a tenant's database has been away, as its lanes see it.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use tokio::sync::watch;

/// Away from the first lane's first failure until every lane that waits for it has been answered.
#[derive(Debug, Default)]
pub struct DatabaseAway {
    /// Lanes that wait for it.
    waiting: Mutex<BTreeSet<u16>>,
    since: watch::Sender<Option<Instant>>,
}

impl DatabaseAway {
    /// A lane has begun to wait, or waits still.
    pub fn missed(&self, lane: u16, now: Instant) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(lane);
        self.since.send_if_modified(|since| since.replace(since.unwrap_or(now)).is_none());
    }

    /// A lane was answered.
    pub fn back(&self, lane: u16) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.remove(&lane) && waiting.is_empty() {
            self.since.send_replace(None);
        }
    }

    /// Follows since when it has been away; `None`: it is there.
    #[must_use]
    pub fn since(&self) -> watch::Receiver<Option<Instant>> {
        self.since.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    #[test]
    fn it_is_away_from_the_first_failure_until_the_last_lane_is_answered() {
        let (away, first) = (DatabaseAway::default(), clock::monotonic());
        let since = away.since();
        away.missed(1, first);
        away.missed(2, first + Duration::from_secs(1));
        away.missed(1, first + Duration::from_secs(2));
        assert_eq!(*since.borrow(), Some(first));
        away.back(1);
        away.back(3);
        assert_eq!(*since.borrow(), Some(first));
        away.back(2);
        assert_eq!(*since.borrow(), None);
        let later = first + Duration::from_secs(3);
        away.missed(2, later);
        assert_eq!(*since.borrow(), Some(later));
    }
}
