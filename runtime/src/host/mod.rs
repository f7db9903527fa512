//! The host: brings the tenants up, lets the lanes work, and ends in good order.
//!
//! The road of a batch is in `road.rs`, its transaction in `unit_of_work.rs`.

pub mod admission;
mod alone;
mod away;
mod blame;
mod claims;
mod connections;
mod delivery;
mod deployments;
mod gate;
mod handler;
mod health;
mod heartbeat;
mod http;
mod inside;
mod lane;
mod line;
mod link;
mod marks;
mod mistakes;
mod order;
mod prepare;
mod queue;
mod road;
mod rollout;
mod round;
mod run;
mod running;
mod sources;
mod tenant;
mod turns;
mod unit_of_work;
mod writes;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use oncebox_core::{config, ids::BootId};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

pub use self::{
    away::DatabaseAway,
    claims::Calls,
    connections::{Connections, Place},
    delivery::{Claim, Delivery, Kind, Target},
    gate::Gate,
    handler::{BoundDestination, Deployed, Handler, ReadyQuery, ReadyStatement},
    health::Health,
    lane::{LaneContext, LaneKind},
    line::{LineId, Lines, Turn},
    link::Link,
    queue::{BatchLimits, LaneQueue, Waiting},
    rollout::rollout,
    run::{Attempted, Item, Ran, Work},
    sources::{Sources, Surroundings},
    tenant::Tenant,
    turns::{LaneTurn, Turns},
    unit_of_work::{Done, Fate, unit_of_work},
};
use self::{blame::Counter, deployments::Deployments, heartbeat::Heartbeat, prepare::Preparer};
use crate::{
    metrics::Metrics,
    plugin::{Engine, EngineLimits, PluginError},
    store::{Store, StoreError},
};

/// Sources wait for a database as lanes do, under numbers of their own behind those of all lanes that there can be.
const FIRST_SOURCE: u16 = 1_000;

/// The tenants that are served now.
type Tenants = Arc<Mutex<Vec<Arc<Tenant>>>>;

/// A running host.
pub struct Host {
    /// Shared with what is served over HTTP.
    tenants: Tenants,
    boot: BootId,
    name: Arc<str>,
    stop: watch::Sender<bool>,
    /// Set when the last lane has ended: until then this host must not be taken for over.
    over: watch::Sender<bool>,
    heartbeats: JoinSet<()>,
    /// Sources, claims, deployments: they take nothing new once the host stops.
    takers: JoinSet<()>,
    lanes: JoinSet<()>,
    slow_lanes: JoinSet<()>,
    settings: config::Host,
    connections: Arc<Connections>,
    turns: Arc<Turns>,
    health: Arc<Health>,
    listening: Option<std::net::SocketAddr>,
    engine: Arc<Engine>,
    gate: Arc<Gate>,
    metrics: Arc<Metrics>,
    data_dir: PathBuf,
}

/// Why a host does not start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The sandbox cannot be made.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A tenant's database.
    #[error("tenant `{tenant}`: {error}")]
    Store {
        /// The tenant.
        tenant: String,
        /// What is wrong with it.
        error: StoreError,
    },
    /// `host.listen` cannot be had.
    #[error("failed to listen on {address} (host.listen): {error}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's words.
        error: std::io::Error,
    },
    /// A metric that prometheus does not take: a bug.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// A tenant's name, settings and open store.
pub struct OpenTenant {
    /// The name.
    pub name: String,
    /// What the operator says of it.
    pub settings: config::Tenant,
    /// Its database.
    pub store: Arc<dyn Store>,
}

/// What a host that has ended left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Deliveries that were in memory and stay undecided; the database still holds them.
    pub undecided: usize,
    /// The drain time was over before everything that ran was finished.
    pub out_of_time: bool,
}

impl Host {
    /// Starts a host with these tenants; others may come later, and `health` says so: it is asked from now on, and who
    /// finds nothing missing takes the host for ready.
    ///
    /// # Errors
    /// [`HostError`], when the host cannot do its work at all.
    pub async fn start(
        settings: config::Host,
        data_dir: &Path,
        tenants: Vec<OpenTenant>,
        health: Arc<Health>,
    ) -> Result<Self, HostError> {
        let engine = Engine::new(&EngineLimits {
            memory_bytes_max: settings.limits.memory_bytes_max,
            instances_max: settings.limits.instances_max,
            module_bytes_max: settings.limits.module_bytes_max,
        })?;
        let metrics = Arc::new(Metrics::new()?);
        let boot = BootId(rand::random());
        let (stop, stopping) = watch::channel(false);
        let mut host = Self {
            tenants: Tenants::default(),
            boot,
            name: host_name(&settings).into(),
            stop,
            over: watch::Sender::new(false),
            heartbeats: JoinSet::new(),
            takers: JoinSet::new(),
            lanes: JoinSet::new(),
            slow_lanes: JoinSet::new(),
            connections: Connections::new(settings.limits.connections_max),
            turns: Arc::default(),
            settings,
            health: health.clone(),
            listening: None,
            engine,
            gate: Arc::default(),
            metrics: metrics.clone(),
            data_dir: data_dir.to_owned(),
        };
        for open in tenants {
            host.add(open).await?;
        }
        if let Some(address) = host.settings.listen {
            let listener = TcpListener::bind(address).await.map_err(|error| HostError::Listen { address, error })?;
            host.listening = listener.local_addr().ok();
            host.takers.spawn(http::serve(listener, host.tenants.clone(), health, metrics, stopping));
        }
        Ok(host)
    }

    /// Lets a tenant work from now on.
    ///
    /// # Errors
    /// [`HostError::Store`]: the tenant is not served, the others are.
    pub async fn add(&mut self, open: OpenTenant) -> Result<(), HostError> {
        let name = open.name.clone();
        match self.bring_up(open).await {
            Ok(tenant) => {
                self.begin(tenant);
                Ok(())
            }
            Err(error) => Err(HostError::Store { tenant: name, error }),
        }
    }

    async fn bring_up(&self, open: OpenTenant) -> Result<Tenant, StoreError> {
        let OpenTenant { name, settings: own, store } = open;
        let live = store.boots_live(self.settings.boot_timeout).await?;
        if live.iter().any(|live| *live.host == *self.name) {
            tracing::warn!(tenant = name, host = %self.name,
                "a host of this name was alive just now; if it still is, give each one a name of its own (host.name): of \
                 hosts with one name only the newest is asked whether a deployment may serve");
        }
        store.boot_insert(self.boot, &self.name).await?;
        let mut handlers = BTreeMap::new();
        for (handler, its) in &own.handlers {
            let id = store.handler_ensure(handler).await?;
            handlers.insert(handler.clone(), Arc::new(Handler::new(handler, id, its.clone())));
        }
        let count = store.lanes();
        let lines = Arc::new(Lines::default());
        let queues = |n: u16| (0..n).map(|_| Arc::new(LaneQueue::new(lines.moved()))).collect();
        let name: Arc<str> = name.into();
        let database_away = DatabaseAway::default();
        let stopping = &self.stop.subscribe();
        let surroundings = Surroundings { stopping, database_away: &database_away, health: &self.health };
        let sources = Sources::open(&name, &own, &self.settings, &store, &surroundings);
        let tenant = Tenant {
            name,
            host_limits: self.settings.limits,
            lease_time: self.settings.lease_time,
            boot_timeout: self.settings.boot_timeout,
            gate: self.gate.clone(),
            secret: store.tenant_secret().await?,
            in_hand: Arc::new(()),
            handlers,
            lanes: queues(count.lanes),
            back_lane: queues(count.has_back_lane.into()).pop(),
            slow_lanes: queues(count.slow_lanes),
            lines,
            boot: self.boot,
            calls: Calls::default(),
            sources,
            database_away,
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            settings: own,
            store,
        };
        tenant.open_sources();
        for handler in tenant.handlers.values() {
            // Until the first look at the deployments is over, nobody may take this host for ready.
            tenant.health.missing(tenant.reason(&format!("handler {}", handler.name)), "is being looked for");
        }
        Ok(tenant)
    }

    fn begin(&mut self, tenant: Tenant) {
        let tenant = Arc::new(tenant);
        let stopping = self.stop.subscribe();
        let heartbeat = Heartbeat::new(tenant.clone(), self.name.clone(), &self.settings);
        self.heartbeats.spawn(heartbeat.beat(stopping.clone(), self.over.subscribe()));
        let preparer = Preparer::new(tenant.clone(), self.engine.clone(), self.data_dir.join("modules"));
        let deployments = Deployments::new(tenant.clone(), preparer, self.settings.boot_timeout);
        self.takers.spawn(deployments.follow(stopping.clone()));
        self.takers.spawn(claims::claims(tenant.clone(), stopping.clone()));
        for (number, source) in (FIRST_SOURCE..).zip(tenant.sources.iter().cloned()) {
            let kept = source.clone();
            self.takers.spawn(async move { kept.keep().await });
            let name = source.intake().name.clone();
            let counter = Counter { tenant: tenant.clone(), source: name, number, stopping: stopping.clone() };
            self.takers.spawn(road::intake(tenant.clone(), source, counter));
        }
        for (number, (queue, kind)) in (0u16..).zip(tenant.all_lanes()) {
            let lane = LaneContext {
                tenant: tenant.clone(),
                number,
                kind,
                queue: queue.clone(),
                turns: self.turns.clone(),
                stopping: stopping.clone(),
            };
            let lanes = if kind == LaneKind::Slow { &mut self.slow_lanes } else { &mut self.lanes };
            let counted = tenant.store.idle_after().map(|_| self.connections.clone());
            lanes.spawn(road::lane(lane, Link::new(counted)));
        }
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).push(tenant);
    }

    /// Where `/livez`, `/readyz` and `/metrics` are served.
    #[must_use]
    pub fn listening(&self) -> Option<std::net::SocketAddr> {
        self.listening
    }

    /// Waits until a task of the host ends by itself: that is a bug, and the host must not go on without it.
    pub async fn broken(&mut self) -> String {
        let ended = tokio::select! {
            Some(ended) = self.takers.join_next() => ended,
            Some(ended) = self.lanes.join_next() => ended,
            Some(ended) = self.slow_lanes.join_next() => ended,
            Some(ended) = self.heartbeats.join_next() => ended,
            // No tenant yet, and nothing to listen for.
            else => return std::future::pending().await,
        };
        match ended {
            Ok(()) => "a task of the host ended".to_owned(),
            Err(error) => format!("a task of the host broke: {error}"),
        }
    }

    /// Ends in good order: takes nothing new, finishes what runs, within the drain time. What is left stays undecided,
    /// and the database still holds it.
    pub async fn stop(mut self) -> Ended {
        self.health.missing("host", "is stopping");
        let _ = self.stop.send(true);
        let tenants = std::mem::take(&mut *self.tenants.lock().unwrap_or_else(PoisonError::into_inner));
        // What a queue lets go when it is closed counts too, also when the time is over before the lanes have ended.
        let let_go = AtomicUsize::new(0);
        let close = |(queue, _): (&Arc<LaneQueue<Work>>, LaneKind)| {
            let_go.fetch_add(queue.close(), Ordering::Relaxed);
        };
        let drained = tokio::time::timeout(self.settings.drain_time, async {
            while self.takers.join_next().await.is_some() {}
            let queues = || tenants.iter().flat_map(|tenant| tenant.all_lanes());
            queues().filter(|(_, kind)| *kind != LaneKind::Slow).for_each(close);
            while self.lanes.join_next().await.is_some() {}
            queues().filter(|(_, kind)| *kind == LaneKind::Slow).for_each(close);
            while self.slow_lanes.join_next().await.is_some() {}
            let _ = self.over.send(true);
            while self.heartbeats.join_next().await.is_some() {}
        });
        let out_of_time = drained.await.is_err();
        for source in tenants.iter().flat_map(|tenant| tenant.sources.iter()) {
            source.close().await;
        }
        let in_hand: usize = tenants.iter().map(|tenant| tenant.deliveries_in_hand()).sum();
        let ended = Ended { undecided: let_go.load(Ordering::Relaxed) + in_hand, out_of_time };
        if !ended.out_of_time {
            for tenant in &tenants {
                if let Err(error) = tenant.store.boot_end(self.boot).await {
                    tracing::warn!(tenant = %tenant.name, %error, "cannot note the end of this boot");
                }
                tenant.store.close().await;
            }
        }
        ended
    }
}

fn host_name(settings: &config::Host) -> String {
    let machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    settings.name.clone().or_else(|| machine().ok()).unwrap_or_else(|| "localhost".to_owned())
}
