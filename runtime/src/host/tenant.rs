//! One tenant on this host: its store, handlers, queues, and how a delivery finds its lane.

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    sync::Arc,
};

use oncebox_core::{
    config::{self, HostLimits},
    failure::{Class, Failure},
    identify::Limits,
    ids::BootId,
};

use super::{
    away::DatabaseAway,
    claims::Calls,
    delivery::{Delivery, Kind, Target},
    gate::Gate,
    handler::Handler,
    health::Health,
    lane::LaneKind,
    line::Lines,
    queue::LaneQueue,
    run::Work,
    sources::Sources,
};
use crate::{
    metrics::Metrics,
    store::{HandlerId, Store},
};

/// One tenant on this host.
pub struct Tenant {
    /// Its name.
    pub name: Arc<str>,
    /// What the operator says of it.
    pub settings: config::Tenant,
    /// Ceilings of the host.
    pub host_limits: HostLimits,
    /// Lifetime of leases.
    pub lease_time: std::time::Duration,
    /// `host.boot_timeout`: a life that was not seen for so long is over.
    pub boot_timeout: std::time::Duration,
    /// What all plugins of the process run through.
    pub gate: Arc<Gate>,
    /// Its database.
    pub store: Arc<dyn Store>,
    /// Handlers by name.
    pub handlers: BTreeMap<String, Arc<Handler>>,
    /// Queues of the lanes.
    pub lanes: Vec<Arc<LaneQueue<Work>>>,
    /// The queue of the lane for what can wait, where there is one: what is claimed, and what comes for handlers that are in
    /// trouble. It is not in the way of the others.
    pub back_lane: Option<Arc<LaneQueue<Work>>>,
    /// Queues of the slow lanes.
    pub slow_lanes: Vec<Arc<LaneQueue<Work>>>,
    /// Lines of ordering keys.
    pub lines: Arc<Lines>,
    /// Held by every delivery that is in memory.
    pub in_hand: Arc<()>,
    /// This host's life.
    pub boot: BootId,
    /// The secret behind its plugins' randomness.
    pub secret: [u8; 32],
    /// What is parked calls its claims.
    pub calls: Calls,
    /// Its sources.
    pub sources: Sources,
    /// Since when its database has been away, for the sources.
    pub database_away: DatabaseAway,
    /// What is missing.
    pub health: Arc<Health>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

impl Tenant {
    /// Gives a delivery to its lane: by hash of handler and key, or ordering key where there is one; to a slow lane if
    /// its handler is slow; to the back lane if it can wait. When too many of a slow handler wait already, it is put aside
    /// uncounted, so that it takes no place from the others; a claimed one is let go, and comes again when its lease is
    /// over.
    pub fn spread(&self, mut delivery: Delivery) {
        let hash = {
            let mut hasher = DefaultHasher::new();
            match delivery.order_key() {
                Some(key) => key.hash(&mut hasher),
                None => delivery.key().hash(&mut hasher),
            }
            hasher.finish()
        };
        if delivery.kind() == Kind::AtRisk {
            // All in one lane, so that one commit is enough for all of them.
            return self.lanes[0].push(Work::from(delivery));
        }
        if is_for_slow_lane(&delivery) {
            let queue = pick(&self.slow_lanes, hash);
            if queue.waiting(delivery.handler_id()) < self.slow_backlog_max() {
                return queue.push(Work::from(delivery));
            }
            if delivery.claim.is_some() {
                return;
            }
            let message = format!(
                "its runs are slower than {} ms (slow_run_ms) and {} of them wait already",
                self.settings.slow_run.as_millis(),
                self.slow_backlog_max()
            );
            delivery.unrun = Some(Failure::new(Class::Unrun, Failure::SLOW_BACKLOG, message));
        }
        let queue = match &self.back_lane {
            // What has an order stays with what stands behind it: both write down how far their line is.
            Some(back) if delivery.can_wait() && delivery.order_key().is_none() => back,
            _ => pick(&self.lanes, hash),
        };
        queue.push(Work::from(delivery));
    }

    /// All lanes, in the order of their numbers.
    pub fn all_lanes(&self) -> impl Iterator<Item = (&Arc<LaneQueue<Work>>, LaneKind)> {
        let all = [(&self.lanes[..], LaneKind::Normal), (self.back_lane.as_slice(), LaneKind::Back)];
        let all = all.into_iter().chain([(&self.slow_lanes[..], LaneKind::Slow)]);
        all.flat_map(|(queues, kind)| queues.iter().map(move |queue| (queue, kind)))
    }

    /// How many deliveries of a slow handler may wait in a slow lane before the next ones are put aside.
    fn slow_backlog_max(&self) -> usize {
        self.settings.batch_max.div_ceil(4)
    }

    /// Lets the sources begin whose handlers are all served, each in order if one of its handlers asks for it.
    pub fn open_sources(&self) {
        let current = |name: &str| self.handlers.get(name).and_then(|handler| handler.current());
        self.sources.begin_where(
            |name| current(name).is_some(),
            |name| current(name).is_some_and(|deployed| deployed.rule.ordering().is_some()),
        );
    }

    /// Limits of keys and payloads.
    #[must_use]
    pub fn identify_limits(&self) -> Limits {
        Limits::from(&self.host_limits)
    }

    /// How many deliveries are in memory: waiting, running, or in a unit of work.
    #[must_use]
    pub fn deliveries_in_hand(&self) -> usize {
        Arc::strong_count(&self.in_hand) - 1
    }

    /// How many deliveries of a handler wait in memory.
    #[must_use]
    pub fn waiting(&self, handler: HandlerId) -> usize {
        self.all_lanes().map(|(queue, _)| queue.waiting(handler)).sum()
    }

    /// The tenant's name for a reason of [`Health`].
    #[must_use]
    pub fn reason(&self, what: &str) -> String {
        format!("tenant {}: {what}", self.name)
    }
}

fn is_for_slow_lane(delivery: &Delivery) -> bool {
    match &delivery.target {
        // A suspect does not leave its lane, however long it takes.
        Target::Handler(handler, _) => {
            handler.is_slow() && delivery.identity.is_ok() && delivery.unrun.is_none() && !delivery.is_suspect()
        }
        Target::Nobody => false,
    }
}

fn pick(queues: &[Arc<LaneQueue<Work>>], hash: u64) -> &Arc<LaneQueue<Work>> {
    let count = queues.len() as u64;
    &queues[usize::try_from(hash % count).unwrap_or(0)]
}
