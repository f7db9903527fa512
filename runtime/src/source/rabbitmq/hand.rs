//! The deliveries of one channel in memory: which wait to be handed over, and which may be acked.
//!
//! It says what is to be done and does nothing itself; with a new channel begins a new one.

use std::collections::{BTreeSet, VecDeque};

use oncebox_core::{
    hand_over::{HandOver, InMemory, Sequence, hand_over},
    prefix::{PrefixError, PrefixTracker, Settle},
};

use crate::{
    planted::{self, Fault},
    source::Taken,
};

/// The deliveries of one channel.
pub(super) struct Hand {
    prefetch: usize,
    tracker: PrefixTracker,
    /// Came and not handed over yet, in the order they came.
    waiting: VecDeque<(u64, Taken)>,
    /// Of these: at risk.
    at_risk: usize,
    /// At risk, handed over and not decided.
    out_at_risk: BTreeSet<u64>,
    /// When at risk ones were handed over last.
    out_ms: u64,
    came_ms: u64,
    last_tag: u64,
    undecided: usize,
}

/// What is handed over.
pub(super) enum Handed {
    /// These.
    Now(Vec<Taken>),
    /// Nothing yet; after so many milliseconds it is to be asked again, or when something comes or is decided.
    Later(Option<u64>),
}

impl Hand {
    /// Of a new channel.
    pub(super) fn new(prefetch: u16) -> Self {
        Self {
            prefetch: prefetch.into(),
            tracker: PrefixTracker::new(),
            waiting: VecDeque::new(),
            at_risk: 0,
            out_at_risk: BTreeSet::new(),
            out_ms: 0,
            came_ms: 0,
            last_tag: 0,
            undecided: 0,
        }
    }

    /// Takes up a delivery; false if one before it never came here. Tags of a channel have no gaps, and a multi-ack would
    /// cover what nobody has seen: such a channel must not be used any more.
    #[must_use]
    pub(super) fn came(&mut self, tag: u64, taken: Taken, now_ms: u64) -> bool {
        if tag != self.last_tag + 1 || self.tracker.delivered(tag).is_err() {
            return false;
        }
        self.last_tag = tag;
        self.came_ms = now_ms;
        self.undecided += 1;
        self.at_risk += usize::from(taken.at_risk.is_some());
        self.waiting.push_back((tag, taken));
        true
    }

    /// What is handed over now; of what is not at risk, `max` at most.
    pub(super) fn hand_over(&mut self, sequence: Sequence, max: usize, now_ms: u64) -> Handed {
        let memory = InMemory {
            sequence,
            waiting: self.waiting.len(),
            at_risk: self.at_risk,
            room: self.prefetch.saturating_sub(self.undecided),
            quiet_ms: now_ms.saturating_sub(self.came_ms),
            undecided_at_risk_ms: (!self.out_at_risk.is_empty()).then(|| now_ms.saturating_sub(self.out_ms)),
        };
        let given: Vec<_> = match hand_over(&memory) {
            HandOver::Nothing => return Handed::Later(None),
            HandOver::Later { ms } => return Handed::Later(Some(ms)),
            HandOver::All => self.waiting.drain(..max.min(self.waiting.len())).collect(),
            HandOver::AtRisk => {
                let (at_risk, others): (VecDeque<_>, _) =
                    self.waiting.drain(..).partition(|(_, taken)| taken.at_risk.is_some());
                self.waiting = others;
                at_risk.into()
            }
        };
        for (tag, _) in given.iter().filter(|(_, taken)| taken.at_risk.is_some()) {
            self.at_risk -= 1;
            self.out_ms = now_ms;
            self.out_at_risk.insert(*tag);
        }
        Handed::Now(given.into_iter().map(|(_, taken)| taken).collect())
    }

    /// Whether something at risk waits or is undecided.
    pub(super) fn has_at_risk(&self) -> bool {
        self.at_risk > 0 || !self.out_at_risk.is_empty()
    }

    /// Notes that a delivery's last verdict is committed.
    pub(super) fn decided(&mut self, tag: u64, now_ms: u64) -> Result<(), PrefixError> {
        self.tracker.decided(tag, now_ms)?;
        self.undecided -= 1;
        self.out_at_risk.remove(&tag);
        Ok(())
    }

    /// What may be acked now.
    pub(super) fn settle(&mut self, now_ms: u64, gap_ms: u64) -> Settle {
        if planted::is(Fault::AckMultipleOvershoot) {
            let Settle { up_to, singly } = self.tracker.settle(now_ms, 0);
            return Settle { up_to: singly.last().copied().or(up_to), singly: Vec::new() };
        }
        self.tracker.settle(now_ms, gap_ms)
    }

    /// When there will be something to ack singly.
    pub(super) fn due_ms(&self, gap_ms: u64) -> Option<u64> {
        self.tracker.due_ms(gap_ms)
    }

    /// Gives up all that is undecided; a release of all up to this tag gives it back to the broker, once everything
    /// decided has been acked.
    pub(super) fn release(&mut self) -> Option<u64> {
        self.waiting.clear();
        self.at_risk = 0;
        self.out_at_risk.clear();
        self.undecided = 0;
        self.tracker.release().last().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use oncebox_core::{
        failure::{Class, Failure},
        message::Message,
    };

    use super::*;
    use crate::source::Receipt;

    fn taken(tag: u64, at_risk: bool) -> Taken {
        Taken {
            receipt: Receipt::Broker { generation: 1, tag },
            message: Arc::new(Message::default()),
            hops: 0,
            received_us: 0,
            permit: None,
            is_redelivered: at_risk,
            at_risk: at_risk.then(|| Failure::new(Class::Unrun, "redelivered", "")),
        }
    }

    fn hand(prefetch: u16, at_risk: &[bool]) -> Hand {
        let mut hand = Hand::new(prefetch);
        for (tag, at_risk) in (1..).zip(at_risk) {
            assert!(hand.came(tag, taken(tag, *at_risk), 0));
        }
        hand
    }

    fn tags(handed: Handed) -> Result<Vec<u64>, Option<u64>> {
        match handed {
            Handed::Now(given) => Ok(given
                .iter()
                .map(|taken| match taken.receipt {
                    Receipt::Broker { tag, .. } => tag,
                    Receipt::Local { .. } => 0,
                })
                .collect()),
            Handed::Later(ms) => Err(ms),
        }
    }

    #[test]
    fn the_others_wait_until_what_was_at_risk_is_decided() {
        let mut hand = hand(10, &[true, false, true, false]);
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 99)), Err(Some(1)));
        assert_eq!(tags(hand.hand_over(Sequence::Free, 1, 100)), Ok(vec![1, 3]), "all of them, whatever the batch");
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 100)), Err(Some(60_000)));
        hand.decided(3, 101).unwrap();
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 102)), Err(Some(59_998)));
        hand.decided(1, 103).unwrap();
        assert_eq!(tags(hand.hand_over(Sequence::Free, 1, 103)), Ok(vec![2]));
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 103)), Ok(vec![4]));
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 103)), Err(None));
    }

    #[test]
    fn something_is_at_risk_from_its_coming_to_its_decision() {
        let mut hand = hand(1, &[true]);
        assert!(hand.has_at_risk());
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 0)), Ok(vec![1]));
        assert!(hand.has_at_risk());
        hand.decided(1, 0).unwrap();
        assert!(!hand.has_at_risk());
    }

    #[test]
    fn a_full_prefetch_ends_the_gathering_at_once() {
        let mut hand = hand(2, &[true, true]);
        assert_eq!(tags(hand.hand_over(Sequence::Free, 9, 0)), Ok(vec![1, 2]));
    }

    #[test]
    fn where_order_is_kept_what_is_at_risk_keeps_its_place() {
        let mut hand = hand(10, &[false, true, false]);
        assert_eq!(tags(hand.hand_over(Sequence::Kept, 2, 0)), Ok(vec![1, 2]));
        assert_eq!(tags(hand.hand_over(Sequence::Kept, 2, 0)), Ok(vec![3]));
    }

    #[test]
    fn a_tag_that_was_skipped_is_noticed() {
        let mut hand = hand(10, &[false]);
        assert!(!hand.came(3, taken(3, false), 0));
    }

    #[test]
    fn a_release_covers_what_is_undecided_and_nothing_is_left() {
        let mut hand = hand(10, &[false, true, false]);
        assert_eq!(tags(hand.hand_over(Sequence::Kept, 1, 0)), Ok(vec![1]));
        hand.decided(1, 0).unwrap();
        assert_eq!(hand.settle(0, 0), Settle { up_to: Some(1), singly: vec![] });
        assert_eq!(hand.release(), Some(3));
        assert_eq!(tags(hand.hand_over(Sequence::Kept, 9, 0)), Err(None));
        assert_eq!(hand.release(), None);
    }
}
