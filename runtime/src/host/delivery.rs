//! A delivery on its way: one message for one handler, and what it came from.

use std::sync::Arc;

use oncebox_core::{
    blame::Suspicion,
    failure::{Class, Failure},
    identify::{Identity, Limits, identify},
    ids::LeaseToken,
    life::Verdict,
    retry::Counted,
};

use super::{
    handler::{Deployed, Handler},
    line::{LineId, Turn},
};
use crate::{
    source::Origin,
    store::{HandlerId, HeldId, InboxKey, InboxRow, LocalId, OrderKey},
};

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
    /// Its place behind others of its ordering key.
    pub place: Option<u64>,
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
    /// Put aside or given up without a run, for this reason.
    pub unrun: Option<Failure>,
    /// What earlier lives of hosts say against it.
    pub suspicion: Suspicion,
    /// How often it was left undecided because a lock was not to be had in time.
    pub lock_waits: u32,
    /// Its place behind others of the same ordering key, if the handler asks for order; a claim has none: its successors
    /// are held by the tables.
    pub turn: Option<Turn>,
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

    /// The ordering key, if the handler asks for order.
    #[must_use]
    pub fn order_key(&self) -> Option<OrderKey> {
        let ordering_key = self.identity.as_ref().ok()?.ordering_key.clone()?;
        Some((self.handler_id(), ordering_key))
    }

    /// One of its statements waited too long for a lock, once more. After `defer_after` times it is put aside, so that
    /// it does not make the others wait with it.
    pub fn waited(&mut self, defer_after: u32) {
        self.lock_waits = self.lock_waits.saturating_add(1);
        if self.lock_waits >= defer_after {
            let message = format!(
                "a statement waited too long for a lock, {} times in a row (defer_after); who holds it?",
                self.lock_waits
            );
            self.unrun = Some(Failure::new(Class::Unrun, "lock-wait", message));
        }
    }

    /// Whether it may take some time more, and shall not be in the way of others: it was parked before, is put aside
    /// because its handler is slow, or its handler does nothing but fail.
    #[must_use]
    pub fn can_wait(&self) -> bool {
        let is_backlog = self.unrun.as_ref().is_some_and(|failure| failure.code == Failure::SLOW_BACKLOG);
        let is_failing = matches!(&self.target, Target::Handler(handler, _) if handler.is_failing());
        self.claim.is_some() || is_backlog || is_failing
    }

    /// Tells its handler what it has come to. What was put aside because its handler is blocked, or behind another of its
    /// ordering key, counts as failed too: nothing came of it.
    pub fn note_end(&self, verdict: Verdict) {
        let Target::Handler(handler, _) = &self.target else { return };
        match verdict {
            Verdict::Applied | Verdict::Skipped => handler.note_end(false),
            Verdict::Parked | Verdict::Dead if self.unrun.is_none() && self.identity.is_ok() => handler.note_end(true),
            Verdict::Parked | Verdict::Dead | Verdict::Duplicate | Verdict::Conflict | Verdict::Late => {}
        }
    }

    /// The line that it stands in.
    #[must_use]
    pub fn line(&self) -> Option<LineId> {
        self.turn.as_ref().map(Turn::line)
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

    /// The row and our lease, if its message lives in the tenant's own database.
    #[must_use]
    pub fn local(&self) -> Option<(LocalId, LeaseToken)> {
        self.origin.settle.as_ref().and_then(|settle| settle.receipt.local())
    }

    /// Bytes of its payload, for the batch's limit.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.origin.message.body.len() as u64
    }

    /// Whether it runs alone.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        let may_run = match &self.target {
            Target::Handler(..) => self.identity.is_ok() && self.unrun.is_none(),
            Target::Nobody => false,
        };
        may_run && !self.suspicion.is_free()
    }

    /// Which deliveries may share a unit of work with it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let runs_inside = match &self.target {
            Target::Handler(_, deployed) => deployed.has_queries(),
            Target::Nobody => false,
        };
        if self.origin.is_at_risk && self.turn.is_none() {
            return Kind::AtRisk;
        }
        if self.is_suspect() {
            return if self.claim.is_some() { Kind::SuspectClaims } else { Kind::Suspects };
        }
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
    /// From a broker that will drop them soon: put aside without a run, before all others, as many as there are.
    AtRisk,
    /// From a source, run before the unit.
    Deliveries,
    /// From a source, run inside the unit.
    DeliveriesInside,
    /// Parked rows, run before the unit.
    Claims,
    /// Parked rows, run inside the unit.
    ClaimsInside,
    /// From a source, one at a time.
    Suspects,
    /// Parked rows, one at a time.
    SuspectClaims,
}

impl Kind {
    /// Whether a batch of them is one event.
    #[must_use]
    pub fn is_alone(self) -> bool {
        match self {
            Self::Suspects | Self::SuspectClaims => true,
            Self::AtRisk | Self::Deliveries | Self::DeliveriesInside | Self::Claims | Self::ClaimsInside => false,
        }
    }
}
