//! A database of a test's own, and the store on it.

use std::{ops::Deref, sync::Arc, time::Duration};

use oncebox::store::{
    Deployment, DeploymentOffer, HandlerId, Migrated, Store, StoreError, Use,
    mysql::{MysqlLanes, MysqlStore},
};
use oncebox_core::{
    config::Mysql,
    ids::ModuleDigest,
    manifest::{FingerprintSpec, Manifest},
    message::{Header, Message},
    rule::Rule,
};
use oncebox_tests::{
    patience::PATIENCE,
    services::{Kind, MysqlDatabase, Server},
    tenant_database::{TenantDatabase, settings},
};
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, Row as _};

pub(crate) struct Bench {
    tenant: TenantDatabase,
}

impl Deref for Bench {
    type Target = TenantDatabase;

    fn deref(&self) -> &TenantDatabase {
        &self.tenant
    }
}

impl Bench {
    pub(crate) fn run<F: Future<Output = ()>>(kind: Kind, case: fn(Self) -> F) {
        let bench = Self { tenant: TenantDatabase::create(kind) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(case(bench));
    }

    /// A database on this server.
    pub(crate) fn on(server: &Server) -> Self {
        Self { tenant: TenantDatabase { database: MysqlDatabase::create(server) } }
    }

    /// The same as somebody who may do everything.
    pub(crate) fn root(&self) -> Mysql {
        settings(&self.database.root_url())
    }

    pub(crate) async fn migrate(&self) -> Result<Migrated, StoreError> {
        MysqlStore::migrated(&self.settings()).await
    }

    /// Takes all rights away from the one who migrates, and grants the documented ones.
    pub(crate) fn grant_migrate_rights(&self) {
        let MysqlDatabase { name, migrate, .. } = &self.database;
        self.database.execute(&format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM '{}'@'%'", migrate.name));
        assert!(!name.contains("shop"));
        self.documented("CREATE DATABASE");
    }

    /// Migrated and granted as the page says.
    pub(crate) async fn ready(&self) {
        self.grant_migrate_rights();
        self.migrate().await.unwrap();
        self.documented("CREATE USER 'shop'@'%'");
    }

    /// What the host's own user is answered: each row's texts, or the server's error.
    pub(crate) async fn as_runtime(&self, sql: &str) -> Result<Vec<String>, String> {
        answered(&self.database.runtime_url(), sql).await
    }

    /// What root is answered.
    pub(crate) async fn as_root(&self, sql: &str) -> Result<Vec<String>, String> {
        answered(&self.database.root_url(), sql).await
    }

    /// Waits until a count is more than none.
    pub(crate) async fn becomes(&self, count: &str) {
        let began = oncebox::clock::monotonic();
        while self.database.number(count) == 0 {
            assert!(began.elapsed() < PATIENCE, "still none: {count}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The store as a host opens it, as the host's own user.
    pub(crate) async fn host(&self) -> Arc<dyn Store> {
        open(&self.settings(), Use::Host).await.unwrap()
    }

    /// As a command does.
    pub(crate) async fn command(&self) -> Result<Arc<dyn Store>, StoreError> {
        open(&self.settings(), Use::Command).await
    }
}

async fn answered(url: &str, sql: &str) -> Result<Vec<String>, String> {
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
    let rows = rows.map_err(|error| error.to_string())?;
    let text = |row: &sqlx::mysql::MySqlRow, at: usize| {
        let bytes: Option<&[u8]> = row.try_get_unchecked(at).unwrap();
        bytes.map_or_else(|| "NULL".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let line = |row| (0..sqlx::Row::columns(row).len()).map(|at| text(row, at)).collect::<Vec<_>>().join(" ");
    Ok(rows.iter().map(line).collect())
}

pub(crate) async fn open(settings: &Mysql, usage: Use) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = MysqlStore::open(settings, MysqlLanes { lanes: 1, slow_lanes: 1 }, usage).await?;
    Ok(store)
}

pub(crate) fn message(body: &[u8]) -> Message {
    Message { body: body.to_vec(), headers: vec![Header::new("h", b"1".to_vec())], ..Message::default() }
}

const MANIFEST: &str = r#"
name = "points"
version = "1.2.3"
contract = "1.0"
description = "Awards points"
event_types = []
key = "order:{/orderId}"
fingerprint = "payload"
"#;

/// Offers a module of that digest.
pub(crate) async fn offer(
    store: &dyn Store,
    handler: HandlerId,
    digest: u8,
    module: &[u8],
) -> Result<Deployment, StoreError> {
    let manifest = Manifest::parse(MANIFEST, "handler.toml").unwrap();
    let rule = Rule::parse("{/id}", &FingerprintSpec::Payload, None).unwrap();
    let offer = DeploymentOffer {
        handler,
        module,
        digest: ModuleDigest([digest; 32]),
        manifest: &manifest,
        manifest_text: MANIFEST,
        rule: &rule,
        actor: "ann",
        action: "deploy",
    };
    store.deployment_offer(offer).await
}
