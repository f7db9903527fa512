//! The servers, the tenants and the hosts of a run, and what is done to them.

#![expect(clippy::unwrap_used, reason = "what tries a host may stop where something is wrong with the trial")]

use std::{sync::Arc, time::Duration};

use oncebox_tests::{
    fleet::{Fleet, Plan, Route, TENANT, TenantPlan},
    host::{Footprint, Host},
    patience::{PATIENCE, eventually, pass},
    probe::ledger_of_version,
    proxy::{Protocol, Proxy, Treatment},
    services::PrivateServer,
};

use crate::schedule::{Disturbance, Fault, HOSTS, To};

const HEARTBEAT: &str = "heartbeat_s = 2";
const ORDERED: &str = "ordering = \"{/line}\"
retry = { first_ms = 100, delay_ms_max = 300 }
limits = { run_time_ms_max = 60_000 }\n";

/// Leases and boots end soon, so that a run of minutes sees many of them.
const PLAN: Plan = Plan {
    host: "heartbeat_ms = 1_000\nboot_timeout_ms = 5_000\nlease_time_ms = 5_000",
    tenants: &[
        TenantPlan { name: "t", connection: HEARTBEAT, ..TENANT },
        TenantPlan { name: "u", queue: "classic", connection: HEARTBEAT, ..TENANT },
        TenantPlan { name: "v", connection: HEARTBEAT, handlers: &[("a", "entry", ORDERED)], ..TENANT },
    ],
};
/// The tenant whose handler keeps order.
pub(crate) const ORDERED_TENANT: &str = "v";
/// Of the handlers that keep none.
pub(crate) const SHORT_ATTEMPTS_MAX: u32 = 2;

/// How often something was done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) kills: usize,
    pub(crate) stops: usize,
    pub(crate) freezes: usize,
    pub(crate) database: usize,
    pub(crate) broker: usize,
    pub(crate) connections: usize,
    pub(crate) at_messages: usize,
    pub(crate) deployments: usize,
}

struct Ways {
    database: Proxy,
    broker: Proxy,
}

/// One of the hosts.
struct One {
    host: Option<Host>,
    ways: Ways,
    samples: Vec<Footprint>,
}

pub(crate) struct Stage {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) done: Done,
    hosts: Vec<One>,
    mysql: PrivateServer,
    rabbitmq: PrivateServer,
    version: u32,
    failpoints: Option<String>,
}

impl Stage {
    /// Brings all of it up, and waits until both hosts are ready.
    pub(crate) fn set(failpoints: Option<String>) -> Self {
        let (mysql, mut rabbitmq) = (PrivateServer::mysql(), PrivateServer::rabbitmq());
        let fleet = Arc::new(Fleet::on(PLAN, &mysql.server, &rabbitmq.server));
        let one = |_: &&str| One {
            host: None,
            ways: Ways {
                database: Proxy::start(&mysql.server.address(), Protocol::Mysql),
                broker: Proxy::start(&rabbitmq.server.address(), Protocol::Amqp),
            },
            samples: Vec::new(),
        };
        let hosts = HOSTS.iter().map(one).collect();
        // A host declares the queues. A node forgets what a new quorum queue holds if it is killed before it has noted the
        // queue's name, which it does at its end (RabbitMQ 4.3.6).
        fleet.start(HOSTS[0]).ready().stop();
        rabbitmq.stop();
        rabbitmq.start_again();
        let mut stage = Self { fleet, done: Done::default(), hosts, mysql, rabbitmq, version: 1, failpoints };
        for host in 0..HOSTS.len() {
            stage.start(host);
        }
        for one in &mut stage.hosts {
            one.host = one.host.take().map(Host::ready);
        }
        stage
    }

    fn start(&mut self, host: usize) {
        let One { ways, .. } = &self.hosts[host];
        let route = Route { database: Some(ways.database.address()), broker: Some(ways.broker.address()) };
        let failpoints = self.failpoints.as_deref().map(|spec| ("ONCEBOX_FAILPOINTS", spec));
        self.hosts[host].host = Some(self.fleet.start_with(HOSTS[host], route, failpoints.as_slice()));
    }

    /// Does it, and says nothing.
    pub(crate) fn apply(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(host) => self.kill(host),
            Fault::KillAll => (0..HOSTS.len()).for_each(|host| self.kill(host)),
            Fault::Stop(host) => self.stop(host),
            Fault::Freeze(host) => {
                self.done.freezes += 1;
                self.hosts[host].host.as_ref().unwrap().freeze();
            }
            Fault::KillDatabase => {
                self.done.database += 1;
                self.mysql.kill9();
                self.mysql.start_again();
            }
            Fault::FreezeDatabase(time) => {
                self.done.database += 1;
                self.mysql.freeze();
                pass(time);
                self.mysql.thaw();
            }
            Fault::KillBroker => {
                self.done.broker += 1;
                self.rabbitmq.kill9();
                self.rabbitmq.start_again();
            }
            Fault::RestartBroker => {
                self.done.broker += 1;
                self.rabbitmq.stop();
                self.rabbitmq.start_again();
            }
            Fault::Disturb(disturbance) => {
                self.done.connections += 1;
                self.disturb(disturbance);
            }
            Fault::At(host, plan) => {
                self.done.at_messages += 1;
                let ways = &self.hosts[host].ways;
                let proxy = if plan.at.protocol() == Protocol::Mysql { &ways.database } else { &ways.broker };
                proxy.forget_plan();
                proxy.plan(plan);
            }
            Fault::Deploy(tenant) => self.deploy(tenant),
            Fault::Mend(host) => self.mend(host),
        }
    }

    fn disturb(&self, disturbance: Disturbance) {
        let proxy = |host: usize, to: To| match to {
            To::Database => &self.hosts[host].ways.database,
            To::Broker => &self.hosts[host].ways.broker,
        };
        let both = |host: usize, treatment: Treatment| {
            proxy(host, To::Database).treat_all(treatment);
            proxy(host, To::Broker).treat_all(treatment);
        };
        match disturbance {
            Disturbance::Cut(host, to) => proxy(host, to).cut(),
            Disturbance::HalfOpen(host, to) => proxy(host, to).lose_all(),
            Disturbance::Deaf(host, to, way) => proxy(host, to).lose(way),
            Disturbance::Close(host, to) => proxy(host, to).close(),
            Disturbance::Slow(host, time) => both(host, Treatment::Slow(time)),
            Disturbance::Slices(host) => both(host, Treatment::Slices),
            Disturbance::KillSessions(tenant) => {
                let database = &self.fleet.tenants[tenant].database.database;
                database.kill_sessions_of(&database.runtime);
            }
            Disturbance::CloseConnections(tenant) => self.fleet.tenants[tenant].vhost.close_connections(),
        }
    }

    fn kill(&mut self, host: usize) {
        self.done.kills += 1;
        // One that a failpoint has killed is gone already.
        if let Some(host) = self.hosts[host].host.take().filter(|_| self.failpoints.is_none()) {
            host.kill();
        }
        self.start(host);
    }

    fn stop(&mut self, host: usize) {
        self.done.stops += 1;
        self.mend(host);
        let mut ending = self.hosts[host].host.take().unwrap();
        eventually("heeding SIGTERM", PATIENCE, || ending.heeds_terminate().then_some(()));
        ending.terminate();
        assert_eq!(ending.ended_within(PATIENCE * 2), 0, "host {} did not end in good order", HOSTS[host]);
        self.start(host);
    }

    /// A host that is gone, or cannot serve it in time, does not keep it from being offered.
    fn deploy(&mut self, tenant: usize) {
        self.done.deployments += 1;
        self.version += 1;
        let site = &self.fleet.site;
        site.write("module.wasm", ledger_of_version(self.version));
        let place = format!("{}/a", self.fleet.tenants[tenant].name);
        let ended = site.run(&["deploy", "--no-wait", "module.wasm", &place]);
        assert!(ended.code != Some(1), "oncebox deploy\n{}{}", ended.out, ended.err);
    }

    fn mend(&self, host: usize) {
        let One { host, ways, .. } = &self.hosts[host];
        if let Some(host) = host {
            host.thaw();
        }
        for proxy in [&ways.database, &ways.broker] {
            proxy.let_go();
            proxy.heal();
        }
    }

    /// Looks at what the hosts hold of the machine; one that was killed by a failpoint is started again.
    pub(crate) fn sample(&mut self) {
        for (number, name) in HOSTS.into_iter().enumerate() {
            if self.hosts[number].host.as_mut().is_some_and(Host::has_ended) {
                assert!(self.failpoints.is_some(), "host {name} has ended by itself");
                self.done.kills += 1;
                self.start(number);
            }
            let One { host: Some(host), samples, .. } = &mut self.hosts[number] else { continue };
            samples.push(host.footprint());
        }
    }

    /// Nothing is wrong any more, and both hosts are ready. From here on they are killed by nothing.
    pub(crate) fn heal(&mut self) {
        self.failpoints = None;
        for host in 0..HOSTS.len() {
            self.mend(host);
            if self.hosts[host].host.as_mut().is_some_and(Host::has_ended) {
                self.start(host);
            }
        }
    }

    pub(crate) fn ready(&mut self) {
        for one in &mut self.hosts {
            one.host = one.host.take().map(Host::ready);
        }
    }

    /// What each host held, in the order of the looks.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&'static str, &[Footprint])> {
        HOSTS.iter().copied().zip(self.hosts.iter().map(|one| one.samples.as_slice()))
    }

    /// The hosts' own counts.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.hosts.iter().filter_map(|one| one.host.as_ref()).map(|host| host.get("/metrics").1).collect()
    }

    /// Ends the hosts in good order.
    pub(crate) fn end(&mut self) {
        for one in &mut self.hosts {
            if let Some(mut host) = one.host.take() {
                host.terminate();
                assert_eq!(host.ended_within(Duration::from_secs(60)), 0);
            }
        }
    }
}
