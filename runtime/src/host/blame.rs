//! What is written down so that an event which ends the process is found out: starts of messages that came again, before
//! anything is understood of them, and their ends. What it means is `oncebox_core::blame`'s; how a suspect runs is in
//! `alone.rs`.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use oncebox_core::{
    blame::{Judgement, Life, Open, Start, Starts, Suspicion},
    identify::message_hash,
    ids::{BootId, MessageHash},
};
use tokio::sync::watch;

use super::{
    delivery::{Delivery, Target},
    lane::Patience,
    run::Item,
    tenant::Tenant,
    unit_of_work::Fate,
};
use crate::{
    clock,
    source::{Origin, Receipt, Settle, Taken},
    store::{HandlerId, StartEnd, StartRow, StoreError},
};

/// A message that was taken and counted.
pub(super) struct Begun {
    /// The message.
    pub(super) taken: Taken,
    /// Its hash.
    pub(super) hash: MessageHash,
    /// What speaks against it.
    pub(super) against: Against,
}

/// Starts without an end by handler, `HandlerId::NONE` those beside others, and what is known of their lives.
#[derive(Debug, Default)]
pub(super) struct Against {
    starts: BTreeMap<HandlerId, Starts>,
    lives: Arc<BTreeMap<BootId, Life>>,
}

impl Against {
    /// What speaks against the message as one handler's.
    pub(super) fn suspicion(&self, tenant: &Tenant, handler: HandlerId) -> Suspicion {
        let of = |handler| self.starts.get(&handler).cloned().unwrap_or_default();
        let open = Open { beside: of(HandlerId::NONE), alone: of(handler) };
        open.suspicion(tenant.boot, &self.lives, tenant.boot_timeout)
    }
}

/// Counts what a source gives.
pub(super) struct Counter {
    /// Whose source it is.
    pub(super) tenant: Arc<Tenant>,
    /// Oncebox's name of the source.
    pub(super) source: Arc<str>,
    /// Its number among those that wait for the database.
    pub(super) number: u16,
    /// Whether the host stops.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Counter {
    /// Writes down the starts of those that came again, in one statement; first deliveries cost nothing. `None`: the
    /// host stops while the database is away.
    pub(super) async fn count(&self, taken: Vec<Taken>) -> Option<Vec<Begun>> {
        let taken: Vec<_> = taken.into_iter().map(|taken| (message_hash(&taken.message), taken)).collect();
        let again: BTreeSet<MessageHash> =
            taken.iter().filter(|(_, taken)| taken.is_redelivered).map(|(hash, _)| *hash).collect();
        let mut against = if again.is_empty() { HashMap::new() } else { self.write_down(again).await? };
        let begun = |(hash, taken): (MessageHash, Taken)| {
            // Of a message that is there twice only one can be first: the other one is its duplicate.
            let against =
                if taken.is_redelivered { against.remove(&hash).unwrap_or_default() } else { Against::default() };
            Begun { taken, hash, against }
        };
        let begun: Vec<Begun> = taken.into_iter().map(begun).collect();
        self.tell_suspects(&begun);
        Some(begun)
    }

    fn tell_suspects(&self, begun: &[Begun]) {
        let of_message = |begun: &&Begun| !begun.against.suspicion(&self.tenant, HandlerId::NONE).is_free();
        let suspects = begun.iter().filter(of_message).count();
        if suspects > 0 {
            tracing::warn!(tenant = %self.tenant.name, source = %self.source, suspects,
                "lives of hosts have begun these messages and crashed: each runs alone");
        }
    }

    async fn write_down(&self, again: BTreeSet<MessageHash>) -> Option<HashMap<MessageHash, Against>> {
        let again: Vec<MessageHash> = again.into_iter().collect();
        let name = format!("source {}", self.source);
        let mut patience = Patience::of(&self.tenant, self.number, &name, &self.stopping);
        let found = loop {
            match self.found(&again).await {
                Ok(found) => break found,
                Err(error) => patience.wait(&error).await?,
            }
        };
        patience.over();
        Some(found)
    }

    async fn found(&self, again: &[MessageHash]) -> Result<HashMap<MessageHash, Against>, StoreError> {
        let rows = self.tenant.store.start_insert(&self.source, again, self.tenant.start()).await?;
        let lives = Arc::new(lives(&self.tenant, rows.iter().map(|row| &row.starts)).await?);
        let mut found: HashMap<MessageHash, Against> = HashMap::new();
        for StartRow { message, handler, starts } in rows {
            let none = || Against { starts: BTreeMap::new(), lives: lives.clone() };
            found.entry(message).or_insert_with(none).starts.insert(handler, starts);
        }
        Ok(found)
    }
}

impl Tenant {
    /// A start of now, in this host's life.
    #[must_use]
    pub fn start(&self) -> Start {
        Start { boot: self.boot, at_us: clock::now_us() }
    }
}

/// What the tables say of the lives that these starts name; this one's own is not asked for.
pub(super) async fn lives<'a>(
    tenant: &Tenant,
    starts: impl Iterator<Item = &'a Starts>,
) -> Result<BTreeMap<BootId, Life>, StoreError> {
    let boots: BTreeSet<BootId> = starts.flat_map(|starts| &starts.0).map(|start| start.boot).collect();
    let boots: Vec<BootId> = boots.into_iter().filter(|boot| *boot != tenant.boot).collect();
    if boots.is_empty() { Ok(BTreeMap::new()) } else { tenant.store.boot_lives(&boots).await }
}

/// Takes up what speaks against a delivery: it runs alone, or is given up without a run.
pub(super) fn charge(tenant: &Tenant, delivery: &mut Delivery, suspicion: Suspicion) {
    let Target::Handler(handler, deployed) = &delivery.target else { return };
    let deaths_max = deployed.retry.deaths_max;
    let deaths = suspicion.deaths.0.len();
    match suspicion.judgement(deaths_max) {
        Judgement::Free | Judgement::Suspect => {}
        Judgement::Dead => {
            // Each of them was an attempt; the verdict counts one.
            let further = u32::try_from(deaths.saturating_sub(1)).unwrap_or(u32::MAX);
            delivery.counted.attempts = delivery.counted.attempts.saturating_add(further);
            delivery.unrun = Some(suspicion.failure(deaths_max));
        }
    }
    if deaths > 0 {
        let key = delivery.key().map_or_else(String::new, |(_, key)| key.to_string());
        tracing::error!(tenant = %tenant.name, handler = %handler.name, %key, deaths, deaths_max,
            "the host's process has ended while nothing but this event ran");
        tenant.metrics.death_found(&tenant.name, &handler.name);
    }
    delivery.suspicion = suspicion;
}

/// The ends that a unit of work writes: of messages that it decides for good, and of a run alone whose message has other
/// handlers to wait for. Sorted, so that two units never lock them crosswise.
pub(super) fn ends(batch: &[Item], fates: &[Fate]) -> Vec<(Receipt, StartEnd)> {
    let mut decided: HashMap<Receipt, (&Settle, Vec<&Delivery>)> = HashMap::new();
    for (Item { delivery, .. }, fate) in batch.iter().zip(fates) {
        if let (Fate::Decided(_), true, Some(settle)) = (fate, delivery.origin.is_begun, &delivery.origin.settle) {
            decided.entry(settle.receipt).or_insert((settle, Vec::new())).1.push(delivery);
        }
    }
    let mut ends = Vec::new();
    for (receipt, (settle, deliveries)) in decided {
        if settle.is_done_by(deliveries.len()) {
            ends.extend(deliveries.first().map(|delivery| (receipt, end(&delivery.origin, None))));
        } else {
            let alone = deliveries.iter().filter(|delivery| !delivery.suspicion.is_free());
            ends.extend(alone.map(|delivery| (receipt, end(&delivery.origin, Some(delivery.handler_id())))));
        }
    }
    ends.sort_unstable_by(|(_, one), (_, other)| one.cmp(other));
    ends
}

fn end(origin: &Origin, handler: Option<HandlerId>) -> StartEnd {
    StartEnd { message: (origin.source.clone(), origin.hash), handler }
}

/// Writes the ends of messages that two units have decided together: neither of them knew that it was the last. Should
/// it fail, the messages are settled and come no more.
pub(super) async fn end_late(tenant: &Tenant, origins: &[Arc<Origin>]) {
    let mut ends: Vec<StartEnd> = origins.iter().map(|origin| end(origin, None)).collect();
    ends.sort_unstable();
    if ends.is_empty() {
        return;
    }
    if let Err(error) = tenant.store.start_end(&ends).await {
        tracing::warn!(tenant = %tenant.name, code = error.code(), %error, "could not write the end of a start");
    }
}
