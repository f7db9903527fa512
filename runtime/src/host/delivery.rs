//! A delivery on its way: one message for one handler, and what it came from.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oncebox_core::{
    envelope::Envelope,
    failure::Failure,
    identify::{Identity, Limits, identify},
    ids::{LeaseToken, MessageHash},
    message::Message,
    retry::Counted,
};

use super::handler::{Deployed, Handler};
use crate::store::{HandlerId, HeldId, InboxKey, InboxRow, LocalId};

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
    /// How the source is told that it is done; `None` for a claim: its message was settled when it was parked.
    pub settle: Option<Settle>,
}

/// How a message of a source is settled.
pub struct Settle {
    /// The row.
    pub id: LocalId,
    /// Our lease on it.
    pub token: LeaseToken,
    /// Deliveries of the message that are not decided yet.
    undecided: AtomicUsize,
    /// Gives the place in the source's prefetch back when the message is gone from memory.
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Settle {
    /// A message with `deliveries` handlers to wait for.
    #[must_use]
    pub fn new(id: LocalId, token: LeaseToken, deliveries: usize, permit: tokio::sync::OwnedSemaphorePermit) -> Self {
        Self { id, token, undecided: AtomicUsize::new(deliveries), _permit: permit }
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

/// Whom a delivery is for.
#[derive(Clone)]
pub enum Target {
    /// A handler, by the deployment that the batch began with.
    Handler(Arc<Handler>, Arc<Deployed>),
    /// Nobody: it was not understood, or has no route.
    Nobody,
}

/// A parked row under our lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The row.
    pub held: HeldId,
    /// Our lease on it.
    pub token: LeaseToken,
    /// Of which generation.
    pub generation: u32,
}

/// One message for one handler.
pub struct Delivery {
    /// Whom it is for.
    pub target: Target,
    /// What it came from.
    pub origin: Arc<Origin>,
    /// Key, fingerprint and ordering key, or why there are none.
    pub identity: Result<Identity, Failure>,
    /// Attempts counted before this one.
    pub counted: Counted,
    /// The parked row that it is, if it is one.
    pub claim: Option<Claim>,
    /// Put aside without a run, uncounted, for this reason.
    pub unrun: Option<Failure>,
    /// Makes it count among what the host has in hand, until it is dropped.
    pub in_hand: Arc<()>,
}

impl Delivery {
    /// The handler's row; `HandlerId::NONE` without one.
    #[must_use]
    pub fn handler_id(&self) -> HandlerId {
        match &self.target {
            Target::Handler(handler, _) => handler.id,
            Target::Nobody => HandlerId::NONE,
        }
    }

    /// The inbox key, if there is one.
    #[must_use]
    pub fn key(&self) -> Option<InboxKey> {
        self.identity.as_ref().ok().map(|identity| (self.handler_id(), identity.key.clone()))
    }

    /// Whether the inbox row says the same fact, compared by the rule that made the row.
    #[must_use]
    pub fn equals(&self, row: &InboxRow, limits: &Limits) -> bool {
        let (Ok(identity), Target::Handler(_, deployed)) = (&self.identity, &self.target) else { return false };
        if row.rule == deployed.rule_id {
            return row.fingerprint == identity.fingerprint;
        }
        let (Some(rule), Some(envelope)) = (deployed.rules.get(&row.rule), &self.origin.envelope) else { return false };
        identify(envelope, &self.origin.message, rule, limits).is_ok_and(|own| own.fingerprint == row.fingerprint)
    }

    /// Bytes of its payload, for the batch's limit.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.origin.message.body.len() as u64
    }

    /// Which deliveries may share a unit of work with it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let runs_inside = match &self.target {
            Target::Handler(_, deployed) => deployed.has_queries(),
            Target::Nobody => false,
        };
        match (self.claim.is_some(), runs_inside) {
            (false, false) => Kind::Deliveries,
            (false, true) => Kind::DeliveriesInside,
            (true, false) => Kind::Claims,
            (true, true) => Kind::ClaimsInside,
        }
    }
}

/// Deliveries of one kind may share a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// From a source, run before the unit.
    Deliveries,
    /// From a source, run inside the unit.
    DeliveriesInside,
    /// Parked rows, run before the unit.
    Claims,
    /// Parked rows, run inside the unit.
    ClaimsInside,
}
