//! A database, a virtual host and a full queue for one drain; and the handler that Oncebox runs.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lapin::{Connection, ConnectionProperties, options::QueueDeclareOptions, types::FieldTable};
use oncebox::{
    clock,
    plugin::{Engine, EngineLimits, Outcome},
};
use oncebox_tests::{
    host::Site,
    pace::{Published, pace},
    points::{self, attempt, points_award},
    services::{Kind, Server, Session, Vhost},
    tenant_database::TenantDatabase,
};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// The queue.
pub const QUEUE: &str = "orders";

/// What the contestants find in the database, as `peers/README.md` has it.
const PAGE: &str = include_str!("../peers/README.md");

/// What is made once.
pub struct Kit {
    /// The example `points-award`, packed.
    pub module: Vec<u8>,
    /// For what is async.
    pub runtime: Runtime,
}

impl Kit {
    /// Builds the handler as its author builds it.
    ///
    /// # Errors
    /// There is no thread for what is async.
    pub fn build() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { module: points_award(), runtime })
    }

    /// How long an attempt of the handler takes in a fresh instance, with nothing around it: the median of so many,
    /// microseconds.
    ///
    /// # Errors
    /// The handler does not apply.
    pub fn handler_us(&self, tries: usize) -> Result<f64> {
        self.runtime.block_on(async {
            let cache = tempfile::tempdir()?;
            let limits = EngineLimits { memory_bytes_max: 64 << 20, instances_max: 4, module_bytes_max: 16 << 20 };
            let module = Engine::new(&limits)?.load(&self.module, cache.path()).await?;
            let mut took = Vec::with_capacity(tries);
            for n in (0..).take(tries) {
                let attempt = attempt(n);
                let began = clock::monotonic();
                let outcome = module.run(attempt).await;
                took.push(began.elapsed().as_secs_f64() * 1e6);
                ensure!(matches!(outcome, Outcome::Applied { .. }), "the handler does not apply: {outcome:?}");
            }
            crate::statistics::median(&took).context("nothing was run")
        })
    }
}

/// Where one drain takes place; gone when it is dropped.
pub struct Stage {
    /// The database, with the tables.
    pub tenant: TenantDatabase,
    /// The virtual host, with the queue.
    pub vhost: Vhost,
}

impl Stage {
    /// A database with the tables, and an empty queue.
    ///
    /// # Errors
    /// A server's.
    pub fn set(kit: &Kit) -> Result<Self> {
        let tenant = TenantDatabase::create(Kind::Mysql);
        let tables = PAGE.split("```sql\n").nth(1).and_then(|rest| rest.split_once("```")).context("no tables")?.0;
        for table in tables.split(';').map(str::trim).filter(|table| !table.is_empty()) {
            tenant.database.execute(table);
        }
        tenant.database.execute(&points::accounts());
        kit.runtime.block_on(tenant.ready(&["points_account", "points_ledger", "inbox", "outbox"]))?;
        let vhost = Vhost::create(&Server::rabbitmq());
        vhost.declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
        Ok(Self { tenant, vhost })
    }

    /// Puts so many events into the queue.
    ///
    /// # Errors
    /// The broker's.
    pub fn fill(&self, kit: &Kit, events: u32) -> Result<()> {
        Ok(kit.runtime.block_on(points::preload(&self.vhost.url(), QUEUE, 0..events))?)
    }

    /// Publishes events at a steady pace, `rate` a second, for a time.
    #[must_use]
    pub fn publish(&self, kit: &Kit, rate: f64, time: Duration) -> Vec<Published> {
        kit.runtime.block_on(pace(&self.vhost.url(), QUEUE, &["order.paid"], rate, time))
    }

    /// Messages that wait in the queue.
    ///
    /// # Errors
    /// The broker's.
    pub fn waiting(&self, kit: &Kit) -> Result<u32> {
        kit.runtime.block_on(async {
            let connection = Connection::connect(&self.vhost.url(), ConnectionProperties::default()).await?;
            let channel = connection.create_channel().await?;
            let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
            let queue = channel.queue_declare(QUEUE.into(), options, FieldTable::default()).await?;
            connection.close(200, "OK".into()).await?;
            Ok(queue.message_count())
        })
    }

    /// A place for Oncebox on its defaults, with the handler deployed.
    #[must_use]
    pub fn site(&self, kit: &Kit) -> Site {
        let shop = points::shop(&self.tenant.database.runtime_url(), &self.vhost.url(), QUEUE);
        let site = Site::new(&(shop + &points::awards("points") + &points::route("order.paid", "points")));
        site.deploy(&kit.module, "shop/points");
        site
    }

    /// A look at the tables and the server's counters.
    #[must_use]
    pub fn session(&self) -> Session {
        self.tenant.database.session()
    }
}
