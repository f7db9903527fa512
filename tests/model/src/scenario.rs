//! What is sent, to how many hosts, and what may go wrong meanwhile.

use crate::{
    database::small,
    fault::Fault,
    state::{Budget, HELD, HOSTS, KEYS, MESSAGES},
};

/// A message in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its business key.
    pub key: u8,
    /// Its fingerprint.
    pub fingerprint: u8,
    /// Its event time: above any purge mark, or below.
    pub is_newer: bool,
}

/// How the run and the staged writes of an event may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All of them stand.
    Applied,
    /// One waited too long for a lock (1205).
    Waited,
    /// Failed, may be tried again.
    Retry,
    /// Failed for good.
    Reject,
    /// Put aside without a run.
    Unrun,
}

/// One world to explore.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// For the command line.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// At most three, in the order they came.
    pub messages: Vec<Message>,
    /// Two or three.
    pub hosts: usize,
    /// All messages have one ordering key, and one host at a time consumes the queue.
    pub is_ordered: bool,
    /// Deliveries in a batch: one or two.
    pub batch: usize,
    /// Deliveries may be at risk: put aside without a run.
    pub at_risk: bool,
    /// How an event may end, the first one first.
    pub outcomes: Vec<Outcome>,
    /// What may go wrong.
    pub budget: Budget,
    /// What is wrong with the protocol.
    pub fault: Option<Fault>,
}

const A: Message = Message { key: 0, fingerprint: 0, is_newer: false };
const B: Message = Message { key: 1, fingerprint: 0, is_newer: false };
const C: Message = Message { key: 2, fingerprint: 0, is_newer: false };
const A_OTHER: Message = Message { fingerprint: 1, ..A };
const A_NEWER: Message = Message { is_newer: true, ..A };
const B_NEWER: Message = Message { is_newer: true, ..B };

/// What any scenario begins with.
fn base() -> Scenario {
    Scenario {
        name: "",
        about: "",
        messages: Vec::new(),
        hosts: 2,
        is_ordered: false,
        batch: 1,
        at_risk: false,
        outcomes: vec![Outcome::Applied, Outcome::Waited, Outcome::Retry, Outcome::Reject],
        budget: Budget::default(),
        fault: None,
    }
}

/// First, duplicate or conflict; alone and in batches.
fn once() -> Vec<Scenario> {
    use Outcome::{Applied, Retry, Waited};
    vec![
        Scenario {
            name: "duplicates",
            about: "one event, sent twice",
            messages: vec![A, A],
            budget: Budget { crashes: 1, lost: 1, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "reconnect",
            about: "one event, sent twice, over a connection to the broker that breaks",
            messages: vec![A, A],
            outcomes: vec![Applied, Retry],
            budget: Budget { lost: 1, broker: 1, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "conflict",
            about: "two events of one key that say different things",
            messages: vec![A, A_OTHER],
            budget: Budget { lost: 1, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "batch",
            about: "two events in one unit of work",
            messages: vec![A, B],
            batch: 2,
            outcomes: vec![Applied, Waited, Retry],
            budget: Budget { lost: 1, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "mixed",
            about: "an event, its duplicate and another one, in any batches",
            messages: vec![A, B, A],
            batch: 2,
            outcomes: vec![Applied, Retry],
            ..base()
        },
        Scenario {
            name: "waiters",
            about: "one event, sent to three hosts at once: two wait for the third",
            messages: vec![A, A, A],
            hosts: 3,
            outcomes: vec![Applied, Waited],
            budget: Budget { lost: 1, ..Budget::default() },
            ..base()
        },
    ]
}

/// One ordering key.
fn in_order() -> Vec<Scenario> {
    use Outcome::{Applied, Reject, Retry, Unrun, Waited};
    let ordered = Scenario { is_ordered: true, batch: 2, ..base() };
    vec![
        Scenario {
            name: "order",
            about: "two events of one ordering key",
            messages: vec![A, B],
            outcomes: vec![Applied, Waited, Retry, Reject, Unrun],
            budget: Budget { lost: 1, ..Budget::default() },
            ..ordered.clone()
        },
        Scenario {
            name: "order-consumers",
            about: "two events of one ordering key, and a queue that changes its consumer",
            messages: vec![A, B],
            at_risk: true,
            outcomes: vec![Applied, Retry],
            budget: Budget { crashes: 1, broker: 1, ..Budget::default() },
            ..ordered.clone()
        },
        Scenario {
            name: "order-three",
            about: "three events of one ordering key, and a person who decides",
            messages: vec![A, B, C],
            outcomes: vec![Applied, Retry, Reject],
            budget: Budget { person: 1, ..Budget::default() },
            ..ordered
        },
    ]
}

/// A person and the purge.
fn afterwards() -> Vec<Scenario> {
    use Outcome::{Applied, Reject, Retry};
    vec![
        Scenario {
            name: "person",
            about: "a dead event and a conflict, and a person who decides twice",
            messages: vec![A, A_OTHER],
            outcomes: vec![Applied, Retry, Reject],
            budget: Budget { broker: 1, person: 2, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "purge",
            about: "an event, sent again when it is older than the horizon, and with a newer time",
            messages: vec![A, A_NEWER],
            outcomes: vec![Applied, Retry],
            budget: Budget { broker: 1, purge: 1, ..Budget::default() },
            ..base()
        },
        Scenario {
            name: "purge-order",
            about: "an event that was purged is sent again before another one of its ordering key",
            messages: vec![A, A_NEWER, B_NEWER],
            is_ordered: true,
            batch: 2,
            outcomes: vec![Applied],
            budget: Budget { purge: 1, ..Budget::default() },
            ..base()
        },
    ]
}

impl Scenario {
    /// All that have a name, in the order in which they are run.
    #[must_use]
    pub fn all() -> Vec<Self> {
        [once(), in_order(), afterwards()].concat()
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|scenario| scenario.name == name)
    }

    /// The same with a planted fault.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Which pairs of key and fingerprint there are: each may be held once.
    pub(crate) fn identities(&self) -> Vec<(u8, u8)> {
        let mut all = Vec::new();
        for message in &self.messages {
            if !all.contains(&(message.key, message.fingerprint)) {
                all.push((message.key, message.fingerprint));
            }
        }
        all
    }

    /// The number of a pair of key and fingerprint.
    pub(crate) fn identity(&self, key: u8, fingerprint: u8) -> Option<u8> {
        self.identities().iter().position(|pair| *pair == (key, fingerprint)).map(small)
    }

    /// Whether the model has room for it.
    pub(crate) fn fits(&self) -> bool {
        self.messages.len() <= MESSAGES
            && self.identities().len() <= HELD
            && self.hosts <= HOSTS
            && self.messages.iter().all(|message| usize::from(message.key) < KEYS)
    }
}
