//! What waits for a lane: one queue a handler, taken from in fair turns.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::delivery::{Delivery, Kind};
use crate::store::{HandlerId, InboxKey};

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
    queues: BTreeMap<(Kind, HandlerId), VecDeque<T>>,
    /// The kind of the last batch: kinds take turns, so that none waits for another one's backlog.
    kind: Option<Kind>,
    /// The handler that had the last turn in batches of each kind.
    handlers: BTreeMap<Kind, HandlerId>,
    closed: bool,
}

/// What a handler's queue gives to a batch.
enum Given<T> {
    One(T),
    /// Nothing that may be in this batch.
    Nothing,
    /// One that has no room in it any more.
    TooLarge,
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
            inner: Mutex::new(Inner { queues: BTreeMap::new(), kind: None, handlers: BTreeMap::new(), closed: false }),
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
        let at = place(&waiting);
        self.inner().queues.entry(at).or_default().push_back(waiting);
        self.arrived.notify_one();
    }

    /// Puts some back at the front of their queues, in their order: they were taken and not decided.
    pub fn put_back(&self, waiting: Vec<T>) {
        let mut inner = self.inner();
        for one in waiting.into_iter().rev() {
            inner.queues.entry(place(&one)).or_default().push_front(one);
        }
        drop(inner);
        self.arrived.notify_one();
    }

    /// How many wait for a handler.
    #[must_use]
    pub fn waiting(&self, handler: HandlerId) -> usize {
        self.inner().queues.iter().filter(|((_, own), _)| *own == handler).map(|(_, queue)| queue.len()).sum()
    }

    /// Stops: runs that have begun are still given out, then [`LaneQueue::take`] ends. The answer is the number of
    /// those that stay undecided; what is put back later stays undecided too, and is told by [`LaneQueue::len`].
    pub fn close(&self) -> usize {
        let mut inner = self.inner();
        inner.closed = true;
        let mut undecided = 0;
        for queue in inner.queues.values_mut() {
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
        self.inner().queues.values().map(VecDeque::len).sum()
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

fn place<T: Waiting>(waiting: &T) -> (Kind, HandlerId) {
    (waiting.delivery().kind(), waiting.delivery().handler_id())
}

impl<T: Waiting> Inner<T> {
    /// One kind a batch; from its handlers in fair turns; a key at most once, the second waits for the next unit.
    fn take(&mut self, limits: BatchLimits) -> Vec<T> {
        self.queues.retain(|_, queue| !queue.is_empty());
        let mut batch = Vec::new();
        let Some(kind) = self.next_kind() else { return batch };
        self.kind = Some(kind);
        let (mut room, mut keys, mut fruitless) = (limits.bytes, HashSet::new(), 0);
        let handlers = self.queues.keys().filter(|(own, _)| *own == kind).count();
        while batch.len() < limits.events && fruitless < handlers {
            let Some(handler) = self.next_handler(kind) else { break };
            // One delivery is always taken, however large.
            match self.give(kind, handler, &keys, if batch.is_empty() { u64::MAX } else { room }) {
                Given::One(one) => {
                    fruitless = 0;
                    room = room.saturating_sub(one.delivery().bytes());
                    keys.extend(one.delivery().key());
                    batch.push(one);
                }
                Given::Nothing => fruitless += 1,
                // Its turn is not over: it begins the next batch. Smaller ones behind it could else keep it for ever.
                Given::TooLarge => break,
            }
            self.handlers.insert(kind, handler);
        }
        batch
    }

    fn give(&mut self, kind: Kind, handler: HandlerId, keys: &HashSet<InboxKey>, room: u64) -> Given<T> {
        let closed = self.closed;
        let Some(queue) = self.queues.get_mut(&(kind, handler)) else { return Given::Nothing };
        let may = |one: &T| (!closed || one.has_begun()) && one.delivery().key().is_none_or(|key| !keys.contains(&key));
        let Some(at) = queue.iter().position(may) else { return Given::Nothing };
        if queue[at].delivery().bytes() > room {
            return Given::TooLarge;
        }
        queue.remove(at).map_or(Given::Nothing, Given::One)
    }

    /// The kind after that of the last batch, round and round, of those that wait.
    fn next_kind(&self) -> Option<Kind> {
        let closed = self.closed;
        let waiting = |queue: &VecDeque<T>| !closed || queue.iter().any(Waiting::has_begun);
        let kinds = || self.queues.iter().filter(|(_, queue)| waiting(queue)).map(|((kind, _), _)| *kind);
        kinds().find(|kind| self.kind.is_some_and(|last| *kind > last)).or_else(|| kinds().next())
    }

    /// The handler after the one that had the last turn in batches of this kind, round and round.
    fn next_handler(&self, kind: Kind) -> Option<HandlerId> {
        let handlers = || self.queues.keys().filter(|(own, _)| *own == kind).map(|(_, handler)| *handler);
        let last = self.handlers.get(&kind).copied();
        handlers().find(|handler| last.is_some_and(|last| *handler > last)).or_else(|| handlers().next())
    }
}
