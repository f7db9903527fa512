//! Hosts of their own folders over tenants on MySQL and RabbitMQ, with the probe `ledger` behind every handler.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{fs, net::SocketAddr, os::unix::fs::symlink, time::Duration};

use crate::{
    checker::check_promise,
    database::Tables as _,
    host::{Host, Site},
    patience::eventually,
    probe::{ledger, with_change},
    publisher::Publisher,
    services::{Counts, MysqlDatabase, Server, Session, Vhost},
    tenant_database::TenantDatabase,
};

/// The queue of every tenant.
pub const QUEUE: &str = "in";

/// When nothing is left to do.
pub const NOTHING: (Counts, i64) = (Counts::EMPTY, 0);

/// Tables of the probe, with a counter for each handler. The ledger's index is not unique.
pub const SCHEMA: [&str; 2] = [
    "CREATE TABLE ledger (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, handler VARCHAR(64) NOT NULL,
       entry VARCHAR(255) NOT NULL, amount BIGINT NOT NULL, event_id VARCHAR(255) NOT NULL, version INT NOT NULL,
       KEY by_entry (handler, entry)) ENGINE = InnoDB CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    "CREATE TABLE counter (handler VARCHAR(64) NOT NULL PRIMARY KEY, n BIGINT NOT NULL, total BIGINT NOT NULL,
       CHECK (total < 1000000000)) ENGINE = InnoDB CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
];

/// What all hosts have in common.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Lines of `[host]`.
    pub host: &'static str,
    /// The tenants.
    pub tenants: &'static [TenantPlan],
}

/// A tenant with one source, whose queue the hosts declare.
#[derive(Debug, Clone, Copy)]
pub struct TenantPlan {
    /// Its name.
    pub name: &'static str,
    /// `quorum` or `classic`.
    pub queue: &'static str,
    /// Lines of the tenant itself.
    pub tenant: &'static str,
    /// Lines of its store.
    pub store: &'static str,
    /// Lines of its connection to the broker.
    pub connection: &'static str,
    /// Lines of its source.
    pub source: &'static str,
    /// Each handler's name, the event type that it gets, and lines of its own.
    pub handlers: &'static [(&'static str, &'static str, &'static str)],
}

/// One handler `a` for `entry`, on a quorum queue.
pub const TENANT: TenantPlan = TenantPlan {
    name: "t",
    queue: "quorum",
    tenant: "",
    store: "",
    connection: "",
    source: "",
    handlers: &[("a", "entry", SOON)],
};

/// Tries again soon, so that a test need not wait. A run on a busy or frozen machine may take long by the clock: that is
/// no attempt that failed.
pub const SOON: &str = "retry = { first_ms = 20, delay_ms_max = 50, short_attempts_max = 2 }
limits = { run_time_ms_max = 60_000 }\n";

/// Where a host finds the servers, when it is to go another way than straight.
#[derive(Debug, Clone, Copy, Default)]
pub struct Route {
    /// The broker of all tenants.
    pub broker: Option<SocketAddr>,
    /// The database server of all tenants.
    pub database: Option<SocketAddr>,
}

/// A tenant's own places.
pub struct Tenant {
    /// Its name.
    pub name: &'static str,
    /// Its virtual host.
    pub vhost: Vhost,
    /// Its database, with the documented rights.
    pub database: TenantDatabase,
}

/// A folder with a configuration for each host, and the tenants' places.
pub struct Fleet {
    /// The folder.
    pub site: Site,
    /// The tenants.
    pub tenants: Vec<Tenant>,
    plan: Plan,
}

impl Fleet {
    /// On the servers that all tests share.
    ///
    /// # Panics
    /// There are none.
    #[must_use]
    #[track_caller]
    pub fn shared(plan: Plan) -> Self {
        Self::on(plan, &Server::mysql(), &Server::rabbitmq())
    }

    /// Makes the tables as the page says, and deploys the probe for every handler.
    ///
    /// # Panics
    /// A server refuses something.
    #[must_use]
    #[track_caller]
    pub fn on(plan: Plan, mysql: &Server, rabbitmq: &Server) -> Self {
        let tenant = |plan: &TenantPlan| Tenant {
            name: plan.name,
            vhost: Vhost::create(rabbitmq),
            database: TenantDatabase { database: MysqlDatabase::create(mysql) },
        };
        let fleet = Self { site: Site::new(""), tenants: plan.tenants.iter().map(tenant).collect(), plan };
        fleet.configure("oncebox", Route::default());
        for tenant in &fleet.tenants {
            tenant.database.documented("CREATE DATABASE");
        }
        fleet.site.ok(&["migrate"]);
        for (tenant, plan) in fleet.tenants.iter().zip(plan.tenants) {
            tenant.database.documented("CREATE USER 'shop'@'%'");
            let own = &tenant.database.database;
            SCHEMA.iter().for_each(|sql| own.execute(sql));
            for table in ["ledger", "counter"] {
                own.grant(&format!("SELECT, INSERT, UPDATE, DELETE ON {}.{table}", own.name));
            }
            for (handler, event_type, _) in plan.handlers {
                own.execute(&format!("INSERT INTO counter VALUES ('{handler}', 0, 0)"));
                let takes = format!("event_types = [\"{event_type}\"]");
                let module = with_change(ledger(), "event_types = [\"entry\", \"entered\"]", &takes);
                fleet.site.deploy(&module, &format!("{}/{handler}", plan.name));
            }
        }
        fleet
    }

    /// Writes the configuration of a host.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn configure(&self, host: &str, route: Route) {
        let data = self.site.path(&format!("data-{host}"));
        if !data.exists() {
            fs::create_dir(&data).unwrap();
            symlink(self.site.path("data/modules"), data.join("modules")).unwrap();
        }
        let tenants: String =
            self.tenants.iter().zip(self.plan.tenants).map(|(tenant, plan)| tenant.config(plan, route)).collect();
        let text = format!(
            "[host]\nname = \"{host}\"\ndata_dir = \"data-{host}\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n{}\n{tenants}",
            self.plan.host
        );
        self.site.write(&format!("{host}.toml"), text);
    }

    /// Starts the host of that name. It may not be ready yet.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(&self, host: &str) -> Host {
        self.start_by(host, Route::default())
    }

    /// The same by another way to the servers.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_by(&self, host: &str, route: Route) -> Host {
        self.start_with(host, route, &[])
    }

    /// The same with variables in its environment, as a build for tests knows them.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_with(&self, host: &str, route: Route, variables: &[(&str, &str)]) -> Host {
        self.configure(host, route);
        self.site.start_with_variables(&format!("{host}.toml"), variables)
    }
}

impl Tenant {
    fn config(&self, plan: &TenantPlan, route: Route) -> String {
        let TenantPlan { name, queue, tenant, store, connection, source, handlers } = plan;
        let by = |url: String, server: &str, way: Option<SocketAddr>| match way {
            Some(own) => url.replace(server, &own.to_string()),
            None => url,
        };
        let broker = by(self.vhost.url(), &self.vhost.server().address(), route.broker);
        let own = &self.database.database;
        let database = by(own.runtime_url(), &own.server().address(), route.database);
        let migrate = self.database.database.migrate_url();
        let of_handler = |(handler, event_type, lines): &(&str, &str, &str)| {
            format!(
                "[[tenants.{name}.routes]]
source = \"in\"
event_types = [\"{event_type}\"]
handlers = [\"{handler}\"]
[tenants.{name}.handlers.{handler}]
destinations = {{ out = \"kept\" }}
{lines}
"
            )
        };
        let handlers: String = handlers.iter().map(of_handler).collect();
        format!(
            "[tenants.{name}]
tables = [\"ledger\", \"counter\"]
{tenant}
[tenants.{name}.store]
kind = \"mysql\"
url = \"{database}\"
migrate_url = \"{migrate}\"
{store}
[tenants.{name}.connections.broker]
kind = \"rabbitmq\"
url = \"{broker}\"
{connection}
[tenants.{name}.sources.in]
kind = \"rabbitmq\"
connection = \"broker\"
queue = \"{QUEUE}\"
declare = \"{queue}\"
{source}
[tenants.{name}.destinations.kept]
kind = \"table\"
{handlers}"
        )
    }

    /// A producer of its queue.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher::new(&self.vhost.url(), QUEUE)
    }

    /// A look at its tables.
    #[must_use]
    #[track_caller]
    pub fn session(&self) -> Session {
        self.database.database.session()
    }

    /// What is left to do: messages in its queue, and events that are parked.
    #[must_use]
    pub fn left(&self, session: &Session) -> (Counts, i64) {
        // The queue first: what it held may be parked since then.
        (self.vhost.counts(QUEUE), session.number("SELECT count(*) FROM ob_held WHERE state = 0"))
    }

    /// Waits until nothing is left to do: the queue is empty, nothing is parked.
    ///
    /// # Panics
    /// Something is left at the deadline.
    #[track_caller]
    pub fn drained(&self, deadline: Duration) {
        let session = self.session();
        let mut last = None;
        let look = || {
            let now = self.left(&session);
            (last.replace(now) == Some(now) && now == NOTHING).then_some(())
        };
        eventually(&format!("{} has nothing left to do", self.name), deadline, look);
    }

    /// Waits until its users have no transaction open: what a host that died or hung has left there is undone.
    ///
    /// # Panics
    /// One stays open.
    #[track_caller]
    pub fn nothing_open(&self, deadline: Duration) {
        let session = self.session();
        // `innodb_trx` reads the running texts of everybody, and fails where one has bytes that are no text (3854).
        let open = |whose: &str| {
            session.number(&format!(
                "SELECT count(*) FROM performance_schema.events_transactions_current AS t
                 JOIN performance_schema.threads AS p USING (thread_id) WHERE t.state = 'ACTIVE' AND {whose}"
            ))
        };
        session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        assert_eq!(open("p.processlist_id = CONNECTION_ID()"), 1, "the server does not tell of transactions");
        session.execute("ROLLBACK");
        let own = format!("p.processlist_user = '{}'", self.database.database.runtime.name);
        eventually("no transaction is open", deadline, || (open(&own) == 0).then_some(()));
    }

    /// Holds its tables against the promise.
    ///
    /// # Panics
    /// They break it.
    #[track_caller]
    pub fn check(&self) {
        check_promise(&self.session());
    }
}
