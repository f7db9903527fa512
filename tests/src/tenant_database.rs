//! A tenant's database on MySQL or MariaDB, with exactly the rights that `docs/mysql.md` gives.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{sync::Arc, time::Duration};

use oncebox::store::{
    StoreError, Use,
    mysql::{MysqlLanes, MysqlStore},
};
use oncebox_core::config::{Durability, Hidden, Mysql, Secret, Server as ServerKind, ServerUrl, Tls, TlsMode};

use crate::{
    patience::{PATIENCE, eventually, pass},
    proxy::Proxy,
    services::{Kind, MysqlDatabase, Server},
};

/// The rights as the page of the docs gives them.
const PAGE: &str = include_str!("../../docs/mysql.md");

/// A database of one test's own, until it is dropped.
#[derive(Debug)]
pub struct TenantDatabase {
    /// The database and its users.
    pub database: MysqlDatabase,
}

impl TenantDatabase {
    /// An empty one, without rights.
    ///
    /// # Panics
    /// There is no server of that kind.
    #[must_use]
    #[track_caller]
    pub fn create(kind: Kind) -> Self {
        Self::on(&Server::of(kind))
    }

    /// One on a certain server.
    #[must_use]
    pub fn on(server: &Server) -> Self {
        Self { database: MysqlDatabase::create(server) }
    }

    /// Whether the server is a MariaDB.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.database.server().kind == Kind::Mariadb
    }

    /// How a configuration reaches the database: as the host's own user, and to migrate as the other one.
    #[must_use]
    pub fn settings(&self) -> Mysql {
        Mysql {
            migrate_url: Some(Secret::Plain(Hidden(self.database.migrate_url()))),
            ..settings(&self.database.runtime_url())
        }
    }

    /// Runs the documented statements of the block that begins with `begin`, with this database's names.
    ///
    /// # Panics
    /// The page has no such block, or the server refuses a statement.
    pub fn documented(&self, begin: &str) {
        let blocks = PAGE.split("```sql\n").skip(1).filter_map(|block| block.split_once("```").map(|(sql, _)| sql));
        let block = blocks.into_iter().find(|block| block.starts_with(begin));
        let block = block.unwrap_or_else(|| panic!("docs/mysql.md has no block that begins with {begin}"));
        let MysqlDatabase { name, migrate, runtime, .. } = &self.database;
        let grants = block.lines().filter(|line| line.starts_with("GRANT")).map(|statement| {
            let own = statement.replace("'shop_migrate'@", &format!("'{}'@", migrate.name));
            own.replace("'shop'@", &format!("'{}'@", runtime.name)).replace("shop.", &format!("{name}."))
        });
        self.database.execute(&grants.collect::<Vec<_>>().join(" "));
    }

    /// Migrates, and grants what the page says, and all that plugins may do on the business's tables.
    ///
    /// # Errors
    /// The migration's.
    pub async fn ready(&self, tables: &[&str]) -> Result<(), StoreError> {
        self.documented("CREATE DATABASE");
        MysqlStore::migrated(&self.settings()).await?;
        self.documented("CREATE USER 'shop'@'%'");
        let MysqlDatabase { name, runtime, .. } = &self.database;
        let grant = |table| format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.{table} TO '{}'@'%'", runtime.name);
        let grants: Vec<String> = tables.iter().map(grant).collect();
        if !grants.is_empty() {
            self.database.execute(&grants.join("; "));
        }
        Ok(())
    }

    /// The store as a host's own user opens it.
    ///
    /// # Errors
    /// The store's.
    pub async fn open(&self, usage: Use) -> Result<Arc<MysqlStore>, StoreError> {
        MysqlStore::open(&self.settings(), LANES, usage).await
    }

    /// The same with statements that wait long for a lock: where a test lets them wait.
    ///
    /// # Errors
    /// The store's.
    pub async fn open_patient(&self) -> Result<Arc<MysqlStore>, StoreError> {
        let settings = Mysql { lock_wait: Duration::from_secs(20), ..self.settings() };
        MysqlStore::open(&settings, LANES, Use::Command).await
    }

    /// The same through a proxy, with another time limit of one call.
    ///
    /// # Errors
    /// The store's.
    pub async fn open_through(&self, proxy: &Proxy, call_time: Duration) -> Result<Arc<MysqlStore>, StoreError> {
        let mut settings = self.settings();
        settings.address.port = proxy.address().port();
        MysqlStore::open_impatient(&settings, LANES, Use::Command, call_time).await
    }

    /// The same without keeping the test's own thread, where what waits runs in the same task.
    ///
    /// # Panics
    /// They do not.
    pub async fn waiting_soon(&self, statements: i64) {
        let sql = self.waiting_sql();
        let began = oncebox::clock::monotonic();
        loop {
            // Looked at more often, innodb_trx tells the same again: its copy is made anew after 100 ms without a look.
            tokio::time::sleep(Duration::from_millis(120)).await;
            if self.database.number(&sql) >= statements {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "nobody waits for a lock");
        }
    }

    /// Waits until so many statements of the host's own user wait for a lock.
    ///
    /// # Panics
    /// They do not.
    pub fn waiting(&self, statements: i64) {
        let sql = self.waiting_sql();
        eventually("waiting for a lock", PATIENCE, || {
            pass(Duration::from_millis(120));
            (self.database.number(&sql) >= statements).then_some(())
        });
    }

    fn waiting_sql(&self) -> String {
        let user = &self.database.runtime.name;
        if self.is_mariadb() {
            format!(
                "SELECT COUNT(*) FROM information_schema.innodb_trx AS t
                 JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
                 WHERE t.trx_state = 'LOCK WAIT' AND p.user = '{user}'"
            )
        } else {
            format!(
                "SELECT COUNT(DISTINCT w.requesting_thread_id) FROM performance_schema.data_lock_waits AS w
                 JOIN performance_schema.threads AS t ON t.thread_id = w.requesting_thread_id
                 WHERE t.processlist_user = '{user}'"
            )
        }
    }
}

const LANES: MysqlLanes = MysqlLanes { lanes: 4, slow_lanes: 2 };

/// The settings for a URL.
///
/// # Panics
/// It is none.
#[must_use]
pub fn settings(url: &str) -> Mysql {
    let ServerUrl { address, password, .. } = ServerUrl::parse(url, ServerKind::Mysql).unwrap();
    Mysql {
        address,
        password: password.map(Secret::Plain),
        migrate_url: None,
        tls: Tls { mode: TlsMode::Off, ca_file: None, client: None },
        lock_wait: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(30),
        durability: Durability::Strict,
    }
}
