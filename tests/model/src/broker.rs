//! The broker's queue and the host's channel to it (`source/rabbitmq`). Which acks are sent is decided by the host's own
//! tracker of the decided prefix.

use oncebox_core::prefix::{PrefixTracker, Settle};

use crate::{
    database::small,
    fault::Fault,
    state::{Place, Tag, TagState},
    world::World,
};

/// A gap that is never old, and one that always is: how old it is the world decides.
const YOUNG_MS: u64 = 1_000;
const OLD_MS: u64 = 0;

impl World<'_> {
    /// Hands a message to a host's channel, behind all others.
    pub(crate) fn deliver(&mut self, host: usize, message: u8) {
        self.state.queue.messages[usize::from(message)] = Place::Unacked { host: small(host) };
        let channel = &mut self.state.hosts[host].channel;
        if let Some(free) = channel.iter_mut().find(|tag| tag.is_none()) {
            *free = Some(Tag { message, state: TagState::Undecided });
        }
    }

    /// `RabbitmqSource::settle`: these are decided; what may be acked is.
    pub(crate) fn settle(&mut self, host: usize, decided: &[u8]) {
        for tag in self.state.hosts[host].channel.iter_mut().flatten() {
            if decided.contains(&tag.message) && tag.state == TagState::Undecided {
                tag.state = TagState::Decided;
            }
        }
        self.ack(host, YOUNG_MS);
    }

    /// What is decided behind an undecided one has waited for `ack_gap_ms`.
    pub(crate) fn gap_is_old(&mut self, host: usize) {
        self.ack(host, OLD_MS);
    }

    /// Whether something decided waits behind something undecided.
    pub(crate) fn has_gap(&self, host: usize) -> bool {
        self.state.hosts[host].channel.iter().flatten().any(|tag| tag.state == TagState::Decided)
    }

    fn ack(&mut self, host: usize, gap_ms: u64) {
        let mut settle = self.tracker(host).settle(0, gap_ms);
        let channel = self.state.hosts[host].channel;
        if self.scenario.has(Fault::AckMultipleOvershoot) {
            let last = channel.iter().rposition(|tag| tag.is_some_and(|tag| tag.state == TagState::Decided));
            settle = Settle { up_to: last.map(number), singly: Vec::new() };
        }
        let (mut acked, mut open) = (Vec::new(), Vec::new());
        for (at, tag) in channel.into_iter().enumerate() {
            let Some(mut tag) = tag else { continue };
            let in_prefix = settle.up_to.is_some_and(|up_to| number(at) <= up_to);
            if tag.state != TagState::Settled && (in_prefix || settle.singly.contains(&number(at))) {
                acked.push(tag.message);
                tag.state = TagState::Settled;
            }
            if !in_prefix {
                open.push(tag);
            }
        }
        // Those settled singly keep their place until the prefix has passed them.
        let passed = open.iter().take_while(|tag| tag.state == TagState::Settled).count();
        let mut open = open.into_iter().skip(passed);
        self.state.hosts[host].channel = std::array::from_fn(|_| open.next());
        for message in acked {
            self.say(|| format!("the broker hears the ack of message {}", message + 1));
            self.state.queue.messages[usize::from(message)] = Place::Acked;
            self.check_ack(message);
        }
    }

    /// The tracker of the channel as it is now.
    fn tracker(&self, host: usize) -> PrefixTracker {
        let channel = self.state.hosts[host].channel;
        let mut tracker = PrefixTracker::new();
        let of = |state: TagState| {
            let tags = channel.into_iter().enumerate();
            tags.filter(move |(_, tag)| tag.is_some_and(|tag| tag.state == state)).map(|(at, _)| number(at))
        };
        let delivered = channel.iter().flatten().count();
        let mut is_right = (0..delivered).all(|at| tracker.delivered(number(at)).is_ok());
        for tag in of(TagState::Settled) {
            is_right &= tracker.decided(tag, 0).is_ok();
        }
        tracker.settle(0, OLD_MS);
        for tag in of(TagState::Decided) {
            is_right &= tracker.decided(tag, 0).is_ok();
        }
        assert!(is_right, "a channel's deliveries are decided once each");
        tracker
    }

    /// The channel is gone: what was not acked is in the queue again, at its old place.
    pub(crate) fn channel_ends(&mut self, host: usize) {
        let own = Place::Unacked { host: small(host) };
        for place in self.state.queue.messages.iter_mut().filter(|place| **place == own) {
            *place = Place::Ready;
        }
        self.state.hosts[host].channel = Default::default();
        if self.state.queue.consumer == Some(small(host)) {
            self.state.queue.consumer = None;
        }
    }
}

/// A delivery tag: from 1.
fn number(at: usize) -> u64 {
    at as u64 + 1
}
