//! Order inside this process: deliveries with the same ordering key stand in a line, and none is taken up before those
//! ahead of it are decided or in the same batch. What is held in the tables is `unit_of_work.rs`'s.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Notify;

use crate::store::OrderKey;

/// The lines of a tenant: one an ordering key that has deliveries in memory.
#[derive(Default)]
pub struct Lines {
    by_key: Mutex<HashMap<OrderKey, Weak<Line>>>,
    /// Told when a line has moved: whoever waited behind may be taken up now.
    moved: Arc<Notify>,
}

/// The deliveries of one ordering key that are in memory.
struct Line {
    key: OrderKey,
    lines: Weak<Lines>,
    places: Mutex<Places>,
    moved: Arc<Notify>,
}

#[derive(Default)]
struct Places {
    next: u64,
    taken: BTreeSet<u64>,
    /// One was let go without a decision: it comes again some time, so nothing behind it may be taken up any more.
    is_broken: bool,
}

/// A delivery's place in its line.
pub struct Turn {
    line: Arc<Line>,
    number: u64,
    is_decided: bool,
}

/// Which line a turn is in, as long as the turn lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineId(usize);

impl Lines {
    /// The place at the end of the line of a key.
    #[must_use]
    pub fn enter(self: &Arc<Self>, key: OrderKey) -> Turn {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let line = by_key.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let line = Arc::new(Line {
                key: key.clone(),
                lines: Arc::downgrade(self),
                places: Mutex::default(),
                moved: self.moved.clone(),
            });
            by_key.insert(key, Arc::downgrade(&line));
            line
        });
        drop(by_key);
        let mut places = line.places();
        let number = places.next;
        places.next += 1;
        places.taken.insert(number);
        drop(places);
        Turn { line, number, is_decided: false }
    }

    /// Told when a line has moved.
    #[must_use]
    pub fn moved(&self) -> Arc<Notify> {
        self.moved.clone()
    }
}

impl Line {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(lines) = self.lines.upgrade() else { return };
        let mut by_key = lines.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        // Another line of the key may have begun meanwhile.
        if by_key.get(&self.key).is_some_and(|line| line.strong_count() == 0) {
            by_key.remove(&self.key);
        }
    }
}

impl Turn {
    /// Its line.
    #[must_use]
    pub fn line(&self) -> LineId {
        LineId(Arc::as_ptr(&self.line).addr())
    }

    /// Whether exactly `n` are ahead of it.
    #[must_use]
    pub fn is_behind(&self, n: usize) -> bool {
        let places = self.line.places();
        !places.is_broken && places.taken.range(..self.number).take(n + 1).count() == n
    }

    /// Notes that its delivery is decided: the line moves on when it is let go.
    pub fn decided(&mut self) {
        self.is_decided = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = self.line.places();
        places.taken.remove(&self.number);
        places.is_broken |= !self.is_decided;
        drop(places);
        self.line.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::HandlerId;

    fn key(name: &str) -> OrderKey {
        (HandlerId(1), name.as_bytes().to_vec())
    }

    #[test]
    fn each_waits_for_those_ahead_of_it_in_its_own_line() {
        let lines = Arc::new(Lines::default());
        let (mut first, second, other) = (lines.enter(key("a")), lines.enter(key("a")), lines.enter(key("b")));
        assert!(first.is_behind(0) && other.is_behind(0));
        assert!(!second.is_behind(0) && second.is_behind(1) && !second.is_behind(2));
        assert_eq!((first.line() == second.line(), first.line() == other.line()), (true, false));
        first.decided();
        drop(first);
        assert!(second.is_behind(0));
    }

    #[test]
    fn nothing_passes_one_that_was_let_go_undecided() {
        let lines = Arc::new(Lines::default());
        let (first, second) = (lines.enter(key("a")), lines.enter(key("a")));
        drop(first);
        assert!(!second.is_behind(0), "the first comes again, and the second must not be before it");
        drop(second);
        assert!(lines.enter(key("a")).is_behind(0), "an empty line is forgotten: what comes then comes in order");
    }

    #[test]
    fn a_line_without_deliveries_is_forgotten() {
        let lines = Arc::new(Lines::default());
        let mut turn = lines.enter(key("a"));
        turn.decided();
        drop(turn);
        assert!(lines.by_key.lock().unwrap().is_empty());
    }
}
