//! A database, a virtual host and a host of one measurement's own.

#![expect(clippy::unwrap_used, reason = "what measures may stop where something is wrong")]

use std::time::Duration;

use oncebox::clock;
use oncebox_tests::{
    host::{Host, Site},
    latency::Latency,
    pace::{Published, pace},
    patience::pass,
    points::{self, accounts},
    services::{Kind as ServerKind, Server, Vhost},
    tenant_database::TenantDatabase,
};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::{kind::Kind, modules::Modules};

/// The queue that all three handlers take from.
pub(crate) const QUEUE: &str = "orders";

/// Between two looks at the inbox.
const LOOK: Duration = Duration::from_millis(500);

/// How long what was published may take, beyond the time of publishing.
const REST_MAX: Duration = Duration::from_mins(5);

const KINDS: [Kind; 3] = [Kind::Good, Kind::Slow, Kind::Failing];

pub(crate) struct Stage {
    tenant: TenantDatabase,
    vhost: Vhost,
    site: Site,
    host: Host,
    runtime: Runtime,
}

impl Stage {
    /// Makes all of it, and waits until the host is ready.
    pub(crate) fn set(modules: &Modules) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let tenant = TenantDatabase::create(ServerKind::Mysql);
        for table in [
            "CREATE TABLE points_account (user_id BIGINT UNSIGNED PRIMARY KEY, points BIGINT NOT NULL)",
            "CREATE TABLE points_ledger (receipt_no VARCHAR(64) PRIMARY KEY, order_id BIGINT UNSIGNED NOT NULL,
               user_id BIGINT UNSIGNED NOT NULL, points BIGINT NOT NULL)",
        ] {
            tenant.database.execute(table);
        }
        tenant.database.execute(&accounts());
        runtime.block_on(tenant.ready(&["points_account", "points_ledger"])).unwrap();
        let vhost = Vhost::create(&Server::rabbitmq());
        vhost.declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
        let site = Site::new(&config(&tenant.database.runtime_url(), &vhost.url()));
        for (kind, module) in KINDS.iter().zip(&modules.0) {
            site.deploy(module, &format!("shop/{}", kind.handler()));
        }
        let host = site.start().ready();
        Self { tenant, vhost, site, host, runtime }
    }

    /// Publishes, waits until every good event is applied, and measures.
    pub(crate) fn play(self, kinds: &[Kind], rate: f64, time: Duration) -> Latency {
        let types: Vec<&str> = kinds.iter().map(|kind| kind.event_type()).collect();
        let all = self.runtime.block_on(pace(&self.vhost.url(), QUEUE, &types, rate, time));
        let published: Vec<Published> = all.into_iter().filter(|event| kinds[event.kind] == Kind::Good).collect();
        let database = &self.tenant.database;
        let applied = "SELECT COUNT(*) FROM ob_inbox AS i JOIN ob_handler AS h ON h.handler_id = i.handler_id
            WHERE h.name = 'good' AND i.state = 0";
        let began = clock::monotonic();
        while usize::try_from(database.number(applied)).ok() != Some(published.len()) && began.elapsed() < REST_MAX {
            pass(LOOK);
        }
        println!("{}", self.site.ok(&["tally", "shop"]));
        let decided = database.lines(
            "SELECT CONCAT(business_key, ' ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', decided_at))
             FROM ob_inbox AS i JOIN ob_handler AS h ON h.handler_id = i.handler_id WHERE h.name = 'good' AND i.state = 0",
        );
        let measured = Latency::of(&published, &decided, clock::now_us());
        // Not stopped in order: neighbours that are slow would be waited for.
        self.host.kill();
        measured
    }
}

fn config(database: &str, broker: &str) -> String {
    let mut text = points::shop(database, broker, QUEUE) + &points::awards(Kind::Good.handler());
    text +=
        "\n[tenants.shop.handlers.slow]\nlimits = { run_time_ms_max = 30_000 }\n\n[tenants.shop.handlers.failing]\n";
    text.extend(KINDS.map(|kind| points::route(kind.event_type(), kind.handler())));
    text
}
