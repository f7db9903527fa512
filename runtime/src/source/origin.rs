//! A message in memory, from being taken until it is settled.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oncebox_core::{
    envelope::Envelope,
    ids::{LeaseToken, MessageHash},
    message::Message,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::store::LocalId;

/// What a source handed over, shared by the deliveries of all its handlers.
pub struct Origin {
    /// Oncebox's name of the source.
    pub source: Arc<str>,
    /// The message as it came.
    pub message: Arc<Message>,
    /// Its hash.
    pub hash: MessageHash,
    /// What was understood of it; `None`: nothing.
    pub envelope: Option<Envelope>,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// First receipt, microseconds since 1970.
    pub received_us: i64,
    /// It came again, and its start is written down: its end must be, too.
    pub is_begun: bool,
    /// Its broker will drop it soon, see [`super::Taken::at_risk`].
    pub is_at_risk: bool,
    /// How the source is told that it is done; `None` for a claim: its message was settled when it was parked.
    pub settle: Option<Settle>,
}

/// By what a source knows a message that it handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// A row of `ob_local` under our lease: settled by deleting it, in the unit of work where that can be.
    Local {
        /// The row.
        id: LocalId,
        /// Our lease on it.
        token: LeaseToken,
    },
    /// A delivery of a broker's channel: settled by an ack on that channel, and on no other.
    Broker {
        /// Of the connection and channel that it came on.
        generation: u64,
        /// Its delivery tag.
        tag: u64,
    },
}

impl Receipt {
    /// The row and the lease, if the message lives in the tenant's own database.
    #[must_use]
    pub fn local(&self) -> Option<(LocalId, LeaseToken)> {
        match self {
            Self::Local { id, token } => Some((*id, *token)),
            Self::Broker { .. } => None,
        }
    }
}

/// How a message of a source is settled, and how many of its deliveries are not decided yet.
pub struct Settle {
    /// By what the source knows it.
    pub receipt: Receipt,
    undecided: AtomicUsize,
    /// Gives the place in the source's prefetch back when the message is gone from memory.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Settle {
    /// A message with `deliveries` handlers to wait for.
    #[must_use]
    pub fn new(receipt: Receipt, deliveries: usize, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { receipt, undecided: AtomicUsize::new(deliveries), _permit: permit }
    }

    /// Whether `n` more decisions make the message done.
    #[must_use]
    pub fn is_done_by(&self, n: usize) -> bool {
        self.undecided.load(Ordering::Acquire) == n
    }

    /// Notes `n` committed decisions; true for the caller that made the message done.
    #[must_use]
    pub fn decided(&self, n: usize) -> bool {
        self.undecided.fetch_sub(n, Ordering::AcqRel) == n
    }
}
