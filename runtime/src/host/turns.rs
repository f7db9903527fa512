//! Whose turn it is where more lanes have something to do than there are processors.
//!
//! Together on their way they would only be in each other's way, each with a small batch and a commit of its own. So a lane
//! whose batch is not full waits for its turn, and what comes meanwhile joins the batch. It waits no longer than
//! `TURN_WAIT`: whoever has a turn may itself wait, for a lock or for a database that is slow.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One a host: as many turns at once as there are processors, two at least.
#[derive(Debug)]
pub struct Turns(Arc<Semaphore>);

/// Held from before a batch is taken until it is settled.
#[derive(Debug)]
pub struct LaneTurn {
    _permit: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self(Arc::new(Semaphore::new(processors.max(2))))
    }
}

impl Turns {
    /// Waits for a turn; they go to those who wait in their order.
    pub async fn turn(&self) -> Option<LaneTurn> {
        // Nobody closes it.
        let permit = self.0.clone().acquire_owned().await.ok()?;
        Some(LaneTurn { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn there_are_two_turns_at_least_and_one_that_is_over_goes_to_who_waits() {
        let turns = Turns::default();
        let mut taken: Vec<_> = std::iter::from_fn(|| turns.turn().now_or_never()).collect();
        assert!(taken.len() >= 2);
        let mut next = Box::pin(turns.turn());
        assert!(next.as_mut().now_or_never().is_none());
        taken.pop();
        assert!(next.now_or_never().flatten().is_some());
    }
}
