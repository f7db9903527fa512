//! What waits for a lane: one queue a handler, taken from in fair turns.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::delivery::{Delivery, Kind};
use crate::store::HandlerId;

/// Something that waits for a lane: a delivery, or (in a slow lane) one whose run has begun elsewhere.
pub trait Waiting {
    /// The delivery itself.
    fn delivery(&self) -> &Delivery;

    /// Whether its run has begun: such a one is finished even when the host stops.
    fn has_begun(&self) -> bool;
}

/// The queue of a lane.
pub struct LaneQueue<T> {
    inner: Mutex<Inner<T>>,
    arrived: Notify,
}

struct Inner<T> {
    by_handler: BTreeMap<(HandlerId, Kind), VecDeque<T>>,
    /// The queue that had the last turn.
    turn: Option<(HandlerId, Kind)>,
    closed: bool,
}

/// How much one batch may hold.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Deliveries.
    pub events: usize,
    /// Payload bytes; one delivery is always taken.
    pub bytes: u64,
}

impl<T: Waiting> Default for LaneQueue<T> {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner { by_handler: BTreeMap::new(), turn: None, closed: false }),
            arrived: Notify::new(),
        }
    }
}

impl<T: Waiting> LaneQueue<T> {
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts one at the end of its handler's queue.
    pub fn push(&self, waiting: T) {
        let at = (waiting.delivery().handler_id(), waiting.delivery().kind());
        self.inner().by_handler.entry(at).or_default().push_back(waiting);
        self.arrived.notify_one();
    }

    /// Puts some back at the front of their queues, in their order: they were taken and not decided.
    pub fn put_back(&self, waiting: Vec<T>) {
        let mut inner = self.inner();
        for one in waiting.into_iter().rev() {
            let at = (one.delivery().handler_id(), one.delivery().kind());
            inner.by_handler.entry(at).or_default().push_front(one);
        }
        drop(inner);
        self.arrived.notify_one();
    }

    /// How many wait for a handler.
    #[must_use]
    pub fn waiting(&self, handler: HandlerId) -> usize {
        self.inner().by_handler.iter().filter(|((own, _), _)| *own == handler).map(|(_, queue)| queue.len()).sum()
    }

    /// Stops: runs that have begun are still given out, then [`LaneQueue::take`] ends. The answer is the number of
    /// those that stay undecided.
    pub fn close(&self) -> usize {
        let mut inner = self.inner();
        inner.closed = true;
        let mut undecided = 0;
        for queue in inner.by_handler.values_mut() {
            let before = queue.len();
            queue.retain(Waiting::has_begun);
            undecided += before - queue.len();
        }
        drop(inner);
        self.arrived.notify_one();
        undecided
    }

    /// How many wait in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner().by_handler.values().map(VecDeque::len).sum()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until something is ready and takes what is ready now, never waiting to fill up. `None`: closed.
    pub async fn take(&self, limits: BatchLimits) -> Option<Vec<T>> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut inner = self.inner();
                let batch = inner.take(limits);
                if !batch.is_empty() {
                    return Some(batch);
                }
                if inner.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }
}

impl<T: Waiting> Inner<T> {
    /// One kind a batch; from its handlers in fair turns; a key at most once, the second waits for the next unit.
    fn take(&mut self, limits: BatchLimits) -> Vec<T> {
        self.by_handler.retain(|_, queue| !queue.is_empty());
        let Some(first) = self.next_turn(None) else { return Vec::new() };
        let kind = first.1;
        let (mut batch, mut bytes, mut keys) = (Vec::new(), 0u64, HashSet::new());
        let mut at = first;
        let mut fruitless = 0;
        let queues = self.by_handler.keys().filter(|(_, own)| *own == kind).count();
        while batch.len() < limits.events && fruitless < queues {
            self.turn = Some(at);
            let taken = self.by_handler.get_mut(&at).and_then(|queue| {
                let fits = |one: &T| batch.is_empty() || bytes + one.delivery().bytes() <= limits.bytes;
                let index = queue
                    .iter()
                    .position(|one| fits(one) && one.delivery().key().is_none_or(|key| !keys.contains(&key)))?;
                queue.remove(index)
            });
            match taken {
                Some(one) => {
                    fruitless = 0;
                    bytes += one.delivery().bytes();
                    keys.extend(one.delivery().key());
                    batch.push(one);
                }
                None => fruitless += 1,
            }
            let Some(next) = self.next_turn(Some(kind)) else { break };
            at = next;
        }
        batch
    }

    /// The queue after the one that had the last turn, round and round; of one kind if given.
    fn next_turn(&self, kind: Option<Kind>) -> Option<(HandlerId, Kind)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let fits = |at: &&(HandlerId, Kind)| kind.is_none_or(|kind| at.1 == kind);
        let after = self
            .turn
            .and_then(|turn| self.by_handler.range((Excluded(turn), Unbounded)).map(|(at, _)| at).find(fits).copied());
        after.or_else(|| self.by_handler.keys().find(fits).copied())
    }
}
