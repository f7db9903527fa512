//! Which deliveries of a channel may be settled now: the tracker of the decided prefix.
//!
//! A multi-ack says "done" of everything up to a tag, so it may only cover the contiguous decided prefix. What is
//! decided beyond a gap is acked singly once the gap is old, so that one slow run does not hold back the settling of
//! all that came after it. No tag is handed out twice: a broker closes the channel at the second ack.
//!
//! One tracker belongs to one channel of one connection; with a new channel begins a new tracker.

use std::collections::VecDeque;

/// The deliveries of one channel that are not settled yet, in the order they came.
#[derive(Debug, Default)]
pub struct PrefixTracker {
    waiting: VecDeque<Delivery>,
    /// Tag of the last delivery ever taken up.
    last: Option<u64>,
    /// Since when something decided has stood behind the undecided head, in milliseconds.
    gap_since_ms: Option<u64>,
    /// Something was given back, so that a multi-ack sent before the release would say "done" of it.
    released: bool,
}

#[derive(Debug, Clone, Copy)]
struct Delivery {
    tag: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Undecided,
    Decided {
        at_ms: u64,
    },
    /// Handed out to be acked singly; it only keeps its place until the prefix has passed it.
    Settled,
}

/// What may be told to the broker, each tag once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settle {
    /// Ack this tag and all before it.
    pub up_to: Option<u64>,
    /// Ack these, one by one.
    pub singly: Vec<u64>,
}

/// A call that does not fit what the tracker knows: a bug in the caller, which settles nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Tags of a channel only grow.
    #[error("delivery tag {tag} comes after {last}")]
    OutOfOrder {
        /// The tag that came.
        tag: u64,
        /// The last one before it.
        last: u64,
    },
    /// Never delivered here, settled or released already.
    #[error("delivery tag {tag} is not waiting to be decided")]
    NotWaiting {
        /// The tag.
        tag: u64,
    },
}

impl PrefixTracker {
    /// A tracker of a new channel.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes up a delivery.
    ///
    /// # Errors
    /// [`PrefixError::OutOfOrder`]: the tag is not above all earlier ones.
    pub fn delivered(&mut self, tag: u64) -> Result<(), PrefixError> {
        if let Some(last) = self.last.filter(|last| tag <= *last) {
            return Err(PrefixError::OutOfOrder { tag, last });
        }
        self.last = Some(tag);
        self.waiting.push_back(Delivery { tag, state: State::Undecided });
        Ok(())
    }

    /// Notes that the verdict of a delivery, for its last handler, is committed.
    ///
    /// # Errors
    /// [`PrefixError::NotWaiting`]: it was decided before, or is not known.
    pub fn decided(&mut self, tag: u64, now_ms: u64) -> Result<(), PrefixError> {
        let place = self.waiting.binary_search_by_key(&tag, |delivery| delivery.tag).ok();
        let delivery = place.and_then(|place| self.waiting.get_mut(place));
        let Some(delivery) = delivery.filter(|delivery| delivery.state == State::Undecided) else {
            return Err(PrefixError::NotWaiting { tag });
        };
        delivery.state = State::Decided { at_ms: now_ms };
        self.gap_since_ms.get_or_insert(now_ms);
        Ok(())
    }

    /// Hands out what may be acked at `now_ms`: the decided prefix, and what is decided beyond a gap that is
    /// `gap_ms` old (`ack_gap_ms`).
    ///
    /// A gap is as old as the longest wait behind its undecided head.
    pub fn settle(&mut self, now_ms: u64, gap_ms: u64) -> Settle {
        if self.released {
            let singly = self.take_decided();
            self.waiting.retain(|delivery| delivery.state == State::Undecided);
            return Settle { up_to: None, singly };
        }
        let up_to = self.take_prefix();
        let old = self.gap_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= gap_ms);
        Settle { up_to, singly: if old { self.take_decided() } else { Vec::new() } }
    }

    /// When [`PrefixTracker::settle`] will have something to ack singly, if nothing more is decided before.
    #[must_use]
    pub fn due_ms(&self, gap_ms: u64) -> Option<u64> {
        let waits = self.waiting.iter().any(|delivery| matches!(delivery.state, State::Decided { .. }));
        self.gap_since_ms.filter(|_| waits).map(|since| since.saturating_add(gap_ms))
    }

    /// Gives up all undecided deliveries, to be released to the broker, in order.
    ///
    /// Decided ones stay; from now on they are acked singly, so that it does not matter which of acks and releases the
    /// broker hears first.
    pub fn release(&mut self) -> Vec<u64> {
        let undecided = |delivery: &Delivery| delivery.state == State::Undecided;
        let released: Vec<_> = self.waiting.iter().filter(|delivery| undecided(delivery)).map(|d| d.tag).collect();
        self.waiting.retain(|delivery| !undecided(delivery));
        self.released |= !released.is_empty();
        released
    }

    /// Deliveries whose verdict is not known yet.
    #[must_use]
    pub fn undecided(&self) -> usize {
        self.waiting.iter().filter(|delivery| delivery.state == State::Undecided).count()
    }

    /// The last tag of the prefix that was not acked singly before: a broker knows no other one.
    fn take_prefix(&mut self) -> Option<u64> {
        let mut up_to = None;
        let mut passed = false;
        while let Some(delivery) = self.waiting.pop_front_if(|delivery| delivery.state != State::Undecided) {
            passed = true;
            if let State::Decided { .. } = delivery.state {
                up_to = Some(delivery.tag);
            }
        }
        if passed {
            let waits = self.waiting.iter().filter_map(|delivery| match delivery.state {
                State::Decided { at_ms } => Some(at_ms),
                State::Undecided | State::Settled => None,
            });
            self.gap_since_ms = waits.min();
        }
        up_to
    }

    fn take_decided(&mut self) -> Vec<u64> {
        let decided = self.waiting.iter_mut().filter(|delivery| matches!(delivery.state, State::Decided { .. }));
        decided
            .map(|delivery| {
                delivery.state = State::Settled;
                delivery.tag
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GAP_MS: u64 = 100;

    fn tracker(tags: std::ops::RangeInclusive<u64>) -> PrefixTracker {
        let mut tracker = PrefixTracker::new();
        tags.for_each(|tag| tracker.delivered(tag).unwrap());
        tracker
    }

    fn settled(up_to: Option<u64>, singly: &[u64]) -> Settle {
        Settle { up_to, singly: singly.to_vec() }
    }

    #[test]
    fn the_decided_prefix_is_acked_at_once_and_only_once() {
        let mut tracker = tracker(1..=4);
        for tag in [2, 1, 4] {
            tracker.decided(tag, 0).unwrap();
        }
        assert_eq!(tracker.settle(0, GAP_MS), settled(Some(2), &[]));
        assert_eq!(tracker.settle(0, GAP_MS), settled(None, &[]));
        tracker.decided(3, 0).unwrap();
        assert_eq!(tracker.settle(0, GAP_MS), settled(Some(4), &[]));
        assert_eq!(tracker.undecided(), 0);
    }

    #[test]
    fn what_is_decided_beyond_an_old_gap_is_acked_singly() {
        let mut tracker = tracker(1..=4);
        tracker.decided(2, 1_000).unwrap();
        tracker.decided(4, 1_050).unwrap();
        assert_eq!(tracker.due_ms(GAP_MS), Some(1_100));
        assert_eq!(tracker.settle(1_099, GAP_MS), settled(None, &[]));
        assert_eq!(tracker.settle(1_100, GAP_MS), settled(None, &[2, 4]));
        assert_eq!(tracker.due_ms(GAP_MS), None);
        tracker.decided(3, 1_101).unwrap();
        assert_eq!(tracker.settle(1_101, GAP_MS), settled(None, &[3]), "the gap is the same, and still old");
        tracker.decided(1, 1_102).unwrap();
        assert_eq!(tracker.settle(1_102, GAP_MS), settled(Some(1), &[]), "the broker no longer knows 2 to 4");
    }

    #[test]
    fn a_new_gap_is_as_old_as_the_longest_wait_behind_it() {
        let mut tracker = tracker(1..=5);
        tracker.decided(3, 1_000).unwrap();
        tracker.decided(5, 1_050).unwrap();
        tracker.decided(1, 1_090).unwrap();
        assert_eq!(tracker.settle(1_090, GAP_MS), settled(Some(1), &[]));
        tracker.decided(2, 1_099).unwrap();
        assert_eq!(tracker.settle(1_120, GAP_MS), settled(Some(3), &[]));
        assert_eq!(tracker.settle(1_149, GAP_MS), settled(None, &[]));
        assert_eq!(tracker.settle(1_150, GAP_MS), settled(None, &[5]));
    }

    #[test]
    fn what_was_released_is_never_covered_by_an_ack() {
        let mut tracker = tracker(1..=4);
        tracker.decided(1, 0).unwrap();
        tracker.decided(3, 0).unwrap();
        assert_eq!(tracker.release(), [2, 4]);
        assert_eq!(tracker.settle(0, GAP_MS), settled(None, &[1, 3]));
        assert_eq!(tracker.settle(1_000, GAP_MS), settled(None, &[]));
        assert_eq!(tracker.decided(2, 0), Err(PrefixError::NotWaiting { tag: 2 }));
        assert_eq!(tracker.release(), [0; 0]);
    }

    #[test]
    fn a_tag_that_does_not_fit_is_refused() {
        let mut tracker = tracker(3..=4);
        assert_eq!(tracker.delivered(4), Err(PrefixError::OutOfOrder { tag: 4, last: 4 }));
        assert_eq!(tracker.decided(5, 0), Err(PrefixError::NotWaiting { tag: 5 }));
        tracker.decided(3, 0).unwrap();
        assert_eq!(tracker.decided(3, 0), Err(PrefixError::NotWaiting { tag: 3 }));
        tracker.settle(0, GAP_MS);
        assert_eq!(tracker.decided(3, 0), Err(PrefixError::NotWaiting { tag: 3 }));
        assert_eq!(tracker.delivered(3), Err(PrefixError::OutOfOrder { tag: 3, last: 4 }));
    }

    /// All deliveries ever, looked through from the start each time; the broker's and the host's knowledge in one.
    #[derive(Default)]
    struct Model {
        deliveries: Vec<Known>,
        /// The gap's head, and since when something has stood behind it.
        gap: Option<(u64, u64)>,
    }

    struct Known {
        tag: u64,
        decided_ms: Option<u64>,
        acked: bool,
        released: bool,
    }

    impl Model {
        fn ack(&mut self, tag: u64) {
            let known = self.deliveries.iter_mut().find(|known| known.tag == tag).unwrap();
            assert!(known.decided_ms.is_some(), "{tag} is acked before it is decided");
            assert!(!known.acked && !known.released, "{tag} is settled twice");
            known.acked = true;
        }

        fn open(&self, up_to: u64) -> Vec<u64> {
            let open = self.deliveries.iter().filter(|known| known.tag <= up_to && !known.acked && !known.released);
            open.map(|known| known.tag).collect()
        }

        fn waits(&self) -> Vec<u64> {
            self.deliveries.iter().filter(|known| !known.acked).filter_map(|known| known.decided_ms).collect()
        }

        fn head(&self) -> Option<u64> {
            self.deliveries.iter().find(|known| known.decided_ms.is_none() && !known.released).map(|known| known.tag)
        }

        fn check(&mut self, settle: &Settle, now_ms: u64) {
            if let Some(up_to) = settle.up_to {
                assert!(self.open(up_to).contains(&up_to), "the broker does not know {up_to}");
                self.open(up_to).into_iter().for_each(|tag| self.ack(tag));
            }
            if self.deliveries.iter().any(|known| known.released) {
                assert_eq!(settle.up_to, None, "a multi-ack after a release");
                settle.singly.iter().for_each(|tag| self.ack(*tag));
                assert!(self.waits().is_empty());
                return;
            }
            let head = self.head();
            let before_head = self.deliveries.iter().take_while(|known| Some(known.tag) != head);
            assert!(before_head.into_iter().all(|known| known.acked), "the prefix is not acked");
            let since = match (head, self.gap, self.waits().into_iter().min()) {
                (Some(head), Some((old, since)), _) if head == old => Some(since),
                (_, _, wait) => wait,
            };
            self.gap = head.zip(since);
            if since.is_some_and(|since| now_ms - since >= GAP_MS) {
                settle.singly.iter().for_each(|tag| self.ack(*tag));
                assert!(self.waits().is_empty(), "something waits behind an old gap");
            } else {
                assert_eq!(settle.singly, [0; 0], "the gap is not old yet");
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Deliver(u64),
        Decide(prop::sample::Index),
        Settle(u64),
        Release,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            20 => (1u64..3).prop_map(Step::Deliver),
            20 => any::<prop::sample::Index>().prop_map(Step::Decide),
            20 => (0u64..60).prop_map(Step::Settle),
            1 => Just(Step::Release),
        ]
    }

    proptest! {
        #[test]
        fn it_settles_what_a_naive_model_settles(steps in prop::collection::vec(step(), 0..80)) {
            let (mut tracker, mut model) = (PrefixTracker::new(), Model::default());
            let (mut tag, mut now_ms) = (0, 0);
            for step in steps {
                match step {
                    Step::Deliver(distance) => {
                        tag += distance;
                        tracker.delivered(tag).unwrap();
                        model.deliveries.push(Known { tag, decided_ms: None, acked: false, released: false });
                    }
                    Step::Decide(index) => {
                        let mut undecided: Vec<_> =
                            model.deliveries.iter_mut().filter(|k| k.decided_ms.is_none() && !k.released).collect();
                        if !undecided.is_empty() {
                            let place = index.index(undecided.len());
                            let known = &mut undecided[place];
                            known.decided_ms = Some(now_ms);
                            tracker.decided(known.tag, now_ms).unwrap();
                        }
                    }
                    Step::Settle(passed_ms) => {
                        now_ms += passed_ms;
                        let settle = tracker.settle(now_ms, GAP_MS);
                        model.check(&settle, now_ms);
                    }
                    Step::Release => {
                        let released = tracker.release();
                        let undecided = model.deliveries.iter_mut().filter(|k| k.decided_ms.is_none() && !k.released);
                        let expected: Vec<_> = undecided.map(|known| { known.released = true; known.tag }).collect();
                        prop_assert_eq!(released, expected);
                    }
                }
                let undecided = model.deliveries.iter().filter(|k| k.decided_ms.is_none() && !k.released).count();
                prop_assert_eq!(tracker.undecided(), undecided);
            }
        }
    }
}
