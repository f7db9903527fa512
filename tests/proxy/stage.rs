//! One tenant on MySQL and a quorum queue, and a host whose ways to both go through proxies.

use std::time::Duration;

use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, Plan, Route, TENANT, Tenant, TenantPlan},
    host::Host,
    proxy::{Protocol, Proxy},
};
use serde_json::json;

/// What a busy machine may need, after the longest wait for an answer of a server is over.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// Hears soon that a broker is gone.
pub(crate) const ALERT: TenantPlan = TenantPlan { connection: "heartbeat_s = 1", ..TENANT };

pub(crate) struct Stage {
    pub(crate) fleet: Fleet,
    pub(crate) database: Proxy,
    pub(crate) broker: Proxy,
}

impl Stage {
    pub(crate) fn new(tenant: &'static [TenantPlan]) -> Self {
        let fleet = Fleet::shared(Plan { host: "", tenants: tenant });
        let database = Proxy::start(&fleet.tenants[0].database.database.server().address(), Protocol::Mysql);
        let broker = Proxy::start(&fleet.tenants[0].vhost.server().address(), Protocol::Amqp);
        Self { fleet, database, broker }
    }

    pub(crate) fn start(&self) -> Host {
        let route = Route { broker: Some(self.broker.address()), database: Some(self.database.address()) };
        self.fleet.start_by("a", route).ready()
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.fleet.tenants[0]
    }

    /// Publishes events of new keys, `NAME-0` and so on.
    pub(crate) fn publish(&self, name: &str, count: usize) {
        self.publish_padded(name, count, 0);
    }

    /// The same with so many bytes more in each.
    pub(crate) fn publish_padded(&self, name: &str, count: usize, bytes: usize) {
        let data = |n: usize| json!({ "key": format!("{name}-{n}"), "amount": 1, "padding": "x".repeat(bytes) });
        let event = |n: usize| event(&format!("e-{name}-{n}"), &data(n));
        self.tenant().publisher().publish(&(0..count).map(event).collect::<Vec<_>>());
    }

    /// The number that a query asks for.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.tenant().session().number(sql)
    }

    /// Keys that are applied.
    pub(crate) fn applied(&self) -> i64 {
        self.number("SELECT count(*) FROM ob_inbox WHERE state = 0")
    }

    /// Deliveries that were found to be duplicates.
    pub(crate) fn duplicates(&self) -> i64 {
        self.number("SELECT CAST(coalesce(sum(duplicates), 0) AS SIGNED) FROM ob_inbox")
    }

    /// Waits until nothing is left to do; then so many keys are applied, each at its first attempt, and all is as
    /// promised.
    #[track_caller]
    pub(crate) fn all_applied(&self, keys: i64) {
        self.tenant().drained(LONG);
        assert_eq!(self.applied(), keys);
        assert_eq!(self.number("SELECT count(*) FROM ob_inbox WHERE attempts <> 1"), 0, "an attempt was counted");
        assert_eq!(self.number("SELECT count(*) FROM ob_held"), 0, "something was held");
        self.tenant().check();
    }
}
