//! What waits for a lane: one queue a handler, taken from in fair turns.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    delivery::{Delivery, Kind},
    line::LineId,
};
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
    /// Told when a line of an ordering key has moved: something that waits here may be taken now.
    moved: Arc<Notify>,
}

struct Inner<T> {
    queues: BTreeMap<(Kind, HandlerId), VecDeque<T>>,
    /// How many wait in all of them: a thousand handlers are not to be gone through for each that comes.
    waiting: usize,
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

/// So many times the bytes of another batch may be in one of deliveries that their broker will drop soon: each batch of
/// them that a crash comes before brings them nearer to that.
const AT_RISK_BYTES: u64 = 16;

/// What a batch holds already, as far as it bears on what may join it.
#[derive(Default)]
struct InBatch {
    keys: HashSet<InboxKey>,
    lines: HashMap<LineId, usize>,
}

impl InBatch {
    fn add(&mut self, delivery: &Delivery) {
        self.keys.extend(delivery.key());
        if let Some(turn) = &delivery.turn {
            *self.lines.entry(turn.line()).or_default() += 1;
        }
    }

    fn admits(&self, delivery: &Delivery) -> bool {
        let ahead = |line| self.lines.get(&line).copied().unwrap_or_default();
        delivery.turn.as_ref().is_none_or(|turn| turn.is_behind(ahead(turn.line())))
            && delivery.key().is_none_or(|key| !self.keys.contains(&key))
    }
}

/// How much one batch may hold.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Deliveries.
    pub events: usize,
    /// Payload bytes; one delivery is always taken.
    pub bytes: u64,
    /// So long a batch that is not full is waited for, from when something is there.
    pub gather: Duration,
}

impl<T: Waiting> Default for LaneQueue<T> {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl<T: Waiting> LaneQueue<T> {
    /// An empty queue; `moved` is told when a line of an ordering key has moved.
    #[must_use]
    pub fn new(moved: Arc<Notify>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                queues: BTreeMap::new(),
                waiting: 0,
                kind: None,
                handlers: BTreeMap::new(),
                closed: false,
            }),
            arrived: Notify::new(),
            moved,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts one at the end of its handler's queue.
    pub fn push(&self, waiting: T) {
        let at = place(&waiting);
        let mut inner = self.inner();
        inner.queues.entry(at).or_default().push_back(waiting);
        inner.waiting += 1;
        drop(inner);
        self.arrived.notify_one();
    }

    /// Puts some back at the front of their queues, in their order: they were taken and not decided.
    pub fn put_back(&self, waiting: Vec<T>) {
        let mut inner = self.inner();
        inner.waiting += waiting.len();
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
        inner.waiting -= undecided;
        drop(inner);
        self.arrived.notify_one();
        undecided
    }

    /// How many wait in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner().waiting
    }

    /// Whether a batch would hold something now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inner().is_ready()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until something is ready and takes what is ready then, waiting to fill up no longer than the limits say.
    /// `None`: closed.
    pub async fn take(&self, limits: BatchLimits) -> Option<Vec<T>> {
        if !limits.gather.is_zero() {
            self.gather(limits, std::future::pending::<()>()).await;
        }
        self.take_ready(limits).await
    }

    /// Waits until something is ready, and takes it. `None`: closed.
    pub async fn take_ready(&self, limits: BatchLimits) -> Option<Vec<T>> {
        loop {
            // Both before the look, so that what happens during it is looked for again.
            let (arrived, moved) = (self.arrived.notified(), self.moved.notified());
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
            tokio::select! {
                () = arrived => {}
                () = moved => {}
            }
        }
    }

    /// Waits until something is ready, and then for more: until `turn` comes, which is then the answer, or the batch is
    /// full, or the time of the limits is over.
    pub async fn gather<P>(&self, limits: BatchLimits, turn: impl Future<Output = P>) -> Option<P> {
        self.until(|inner| inner.closed || inner.is_ready()).await;
        // Suspects go one by one: nothing comes together there, and their leases run meanwhile.
        let is_full = |inner: &Inner<T>| inner.closed || inner.waiting >= limits.events || inner.has_suspects();
        let gathered = async {
            tokio::select! {
                biased;
                turn = turn => Some(turn),
                () = self.until(is_full) => None,
            }
        };
        tokio::time::timeout(limits.gather, gathered).await.ok().flatten()
    }

    /// Waits until it is so; looks whenever something arrives or a line moves.
    async fn until(&self, is_so: impl Fn(&Inner<T>) -> bool) {
        loop {
            let (arrived, moved) = (self.arrived.notified(), self.moved.notified());
            if is_so(&self.inner()) {
                return;
            }
            tokio::select! {
                () = arrived => {}
                () = moved => {}
            }
        }
    }
}

fn place<T: Waiting>(waiting: &T) -> (Kind, HandlerId) {
    (waiting.delivery().kind(), waiting.delivery().handler_id())
}

impl<T: Waiting> Inner<T> {
    /// One kind a batch; from its handlers in fair turns; a key at most once, the second waits for the next unit; with
    /// an ordering key only behind all that are ahead of it in its line.
    fn take(&mut self, mut limits: BatchLimits) -> Vec<T> {
        self.queues.retain(|_, queue| !queue.is_empty());
        let mut batch = Vec::new();
        let Some(kind) = self.next_kind() else { return batch };
        self.kind = Some(kind);
        let (mut room, mut taken, mut fruitless) = (limits.bytes, InBatch::default(), 0);
        let handlers = self.queues.keys().filter(|(own, _)| *own == kind).count();
        if kind == Kind::AtRisk {
            (limits.events, room) = (usize::MAX, room.saturating_mul(AT_RISK_BYTES));
        }
        if kind.is_alone() {
            limits.events = 1;
        }
        while batch.len() < limits.events && fruitless < handlers {
            let Some(handler) = self.next_handler(kind) else { break };
            // One delivery is always taken, however large.
            match self.give(kind, handler, &taken, if batch.is_empty() { u64::MAX } else { room }) {
                Given::One(one) => {
                    fruitless = 0;
                    room = room.saturating_sub(one.delivery().bytes());
                    taken.add(one.delivery());
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

    /// Whether something waits that goes alone; such kinds are the last ones.
    fn has_suspects(&self) -> bool {
        self.queues.range((Kind::Suspects, HandlerId::NONE)..).any(|(_, queue)| !queue.is_empty())
    }

    fn is_ready(&self) -> bool {
        let empty = InBatch::default();
        let may = |one: &T| (!self.closed || one.has_begun()) && empty.admits(one.delivery());
        self.queues.values().flatten().any(may)
    }

    fn give(&mut self, kind: Kind, handler: HandlerId, taken: &InBatch, room: u64) -> Given<T> {
        let closed = self.closed;
        let Some(queue) = self.queues.get_mut(&(kind, handler)) else { return Given::Nothing };
        let may = |one: &&T| (!closed || one.has_begun()) && taken.admits(one.delivery());
        let mut may = queue.iter().enumerate().filter(|(_, one)| may(one));
        // Of suspects, those with the fewest deaths: neighbours go free before the killer's next turn, and a host that is
        // killed again and again by somebody else does not lay it to the same event each time.
        let first = if kind.is_alone() {
            may.min_by_key(|(_, one)| one.delivery().suspicion.deaths.0.len())
        } else {
            may.next()
        };
        let Some((at, _)) = first else { return Given::Nothing };
        if queue[at].delivery().bytes() > room {
            return Given::TooLarge;
        }
        self.waiting -= 1;
        queue.remove(at).map_or(Given::Nothing, Given::One)
    }

    /// Those at risk before all others; else the kind after that of the last batch, round and round, of those that wait.
    fn next_kind(&self) -> Option<Kind> {
        let closed = self.closed;
        let waiting = |queue: &VecDeque<T>| !closed || queue.iter().any(Waiting::has_begun);
        let kinds = || self.queues.iter().filter(|(_, queue)| waiting(queue)).map(|((kind, _), _)| *kind);
        if kinds().any(|kind| kind == Kind::AtRisk) {
            return Some(Kind::AtRisk);
        }
        kinds().find(|kind| self.kind.is_some_and(|last| *kind > last)).or_else(|| kinds().next())
    }

    /// The handler after the one that had the last turn in batches of this kind, round and round.
    fn next_handler(&self, kind: Kind) -> Option<HandlerId> {
        let first = |after: Bound<(Kind, HandlerId)>| {
            let mut later = self.queues.range((after, Bound::Unbounded)).map(|(place, _)| *place);
            later.next().filter(|(own, _)| *own == kind).map(|(_, handler)| handler)
        };
        let after_last = self.handlers.get(&kind).and_then(|last| first(Bound::Excluded((kind, *last))));
        after_last.or_else(|| first(Bound::Included((kind, HandlerId::NONE))))
    }
}
