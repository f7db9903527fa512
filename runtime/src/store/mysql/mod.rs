//! The store on MySQL and MariaDB.
//!
//! Every statement runs on a session (`session.rs`): one connection with the host's own settings, whose calls are never
//! cancelled. The lanes' unit of work is in `unit.rs` and the files that it names; what the host and the command line
//! ask outside of it, one after the other on a session of the store's own, in `admin.rs`, `modules.rs`, `queues.rs` and
//! `stories.rs`.

#[macro_use]
mod args;
mod admin;
mod catalogue;
mod checks;
mod columns;
mod decode;
mod errors;
mod fleet;
mod held;
mod inbox;
mod literal;
mod many;
mod migrate;
mod modules;
mod order;
mod outgoing;
mod packet;
mod queues;
mod server;
mod session;
mod staged;
mod starts;
mod statements;
mod stories;
mod supervisor;
mod unit;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use oncebox_core::{
    blame::{Life, Start},
    config,
    ids::{BootId, BusinessKey, LeaseToken, MessageHash, ModuleDigest},
    life::Verdict,
    message::Message,
    sql::{Catalogue, Dialect},
};
use tokio::sync::{Mutex, MutexGuard, watch};

use self::{catalogue::Elsewhere, checks::Finding, errors::MysqlError, server::Server, session::Session};
use super::{
    BlockedHandler, ClaimedRow, Deployment, DeploymentAnswer, DeploymentId, DeploymentOffer, Gauges, HandlerId,
    HeldFilter, HeldId, HeldRow, HeldStory, KeyStory, Lane, LaneCount, LiveBoot, LocalId, LocalMessage, Migrated,
    StartEnd, StartRow, StatementError, Store, StoreError, StoredRule, Use,
};

/// One tenant's database on a server.
pub struct MysqlStore {
    server: Arc<Server>,
    lanes: LaneCount,
    /// For everything outside lanes. One call after the other; opened anew when it is lost.
    admin: Mutex<Admin>,
    /// Moved after a commit that others in this process may wait for; who waits in another process looks by himself.
    changes: Arc<watch::Sender<u64>>,
}

/// The store's own session.
struct Admin {
    session: Session,
    elsewhere: Elsewhere,
}

/// How many lanes there may be is the configuration's word; each opens its connection when it begins.
#[derive(Debug, Clone, Copy)]
pub struct MysqlLanes {
    /// `lanes`.
    pub lanes: u16,
    /// `slow_lanes`.
    pub slow_lanes: u16,
}

impl MysqlStore {
    /// Opens a tenant's database. A host looks at the server's settings first: with unsafe ones it does not start.
    ///
    /// # Errors
    /// [`StoreError::Away`] when the server cannot be reached; [`StoreError::Denied`] when it does not let the user in;
    /// [`StoreError::Migration`] when a migration is due or the
    /// tables are newer; [`StoreError::Unsafe`] when no promise would hold; [`StoreError::Catalogue`] when the SQL gate
    /// would see nothing.
    pub async fn open(settings: &config::Mysql, lanes: MysqlLanes, usage: Use) -> Result<Arc<Self>, StoreError> {
        Self::open_with(Server::new(settings), settings.durability, lanes, usage).await
    }

    /// The same, with another time limit of one call: for tests.
    ///
    /// # Errors
    /// As [`MysqlStore::open`].
    pub async fn open_impatient(
        settings: &config::Mysql,
        lanes: MysqlLanes,
        usage: Use,
        call_time: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        let server = Server::new(settings).with_call_time(call_time);
        Self::open_with(server, settings.durability, lanes, usage).await
    }

    async fn open_with(
        server: Server,
        durability: config::Durability,
        MysqlLanes { lanes, slow_lanes }: MysqlLanes,
        usage: Use,
    ) -> Result<Arc<Self>, StoreError> {
        let server = Arc::new(server);
        let mut session = Session::first(&server).await?;
        if usage == Use::Host {
            for warning in trusted(&mut session, durability).await? {
                tracing::warn!(%warning, "a setting of the database server");
            }
        } else {
            migrate::up_to_date(&mut session).await?;
        }
        let admin = Mutex::new(Admin { session, elsewhere: Elsewhere::default() });
        let lanes = LaneCount { lanes, slow_lanes, has_back_lane: true };
        Ok(Arc::new(Self { server, lanes, admin, changes: Arc::new(watch::Sender::new(0)) }))
    }

    /// Brings the tables of a database up to date, as the user of `migrate_url`.
    ///
    /// # Errors
    /// [`StoreError::Migration`] when the tables are newer; [`StoreError::Denied`] when the user may not.
    pub async fn migrated(settings: &config::Mysql) -> Result<Migrated, StoreError> {
        migrate::migrate(settings).await
    }

    /// What a host would warn of when it opens this database: what `oncebox check store` shows.
    ///
    /// # Errors
    /// As [`MysqlStore::open`] for a host.
    pub async fn warnings(settings: &config::Mysql) -> Result<Vec<String>, StoreError> {
        let mut session = Session::first(&Arc::new(Server::new(settings))).await?;
        let warnings = trusted(&mut session, settings.durability).await?;
        Ok(warnings.iter().map(ToString::to_string).collect())
    }

    /// The store's session, ready for a call of its own: opened anew when the last one is over, and in no transaction.
    async fn admin(&self) -> Result<MutexGuard<'_, Admin>, StoreError> {
        let mut admin = self.admin.lock().await;
        if admin.session.is_over() {
            admin.session = Session::open(&self.server).await?;
        }
        // What a caller that went away in the middle has left open.
        admin.session.rollback().await?;
        Ok(admin)
    }

    /// Tells those in this process who wait for work.
    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

fn away(error: &StoreError) -> StatementError {
    MysqlError::Connection { what: "prepare", message: error.to_string() }.of_statement()
}

/// Looks at all without which no host may start; the answer is what it warns of.
async fn trusted(session: &mut Session, durability: config::Durability) -> Result<Vec<Finding>, StoreError> {
    let facts = checks::facts(session).await?;
    let warnings = checks::judge(checks::findings(&facts), durability)?;
    migrate::up_to_date(session).await?;
    // Without it no module could be served: better said at the start than with every deployment.
    catalogue::usable(session).await?;
    Ok(warnings)
}

#[async_trait]
impl Store for MysqlStore {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn lanes(&self) -> LaneCount {
        self.lanes
    }

    /// Another user does it, with other rights (`oncebox migrate`): here they only must be up to date.
    async fn migrate(&self) -> Result<i64, StoreError> {
        migrate::up_to_date(&mut self.admin().await?.session).await
    }

    async fn host_is_live(&self) -> Result<bool, StoreError> {
        fleet::host_is_live(&mut self.admin().await?.session).await
    }

    fn idle_after(&self) -> Option<Duration> {
        Some(self.server.idle_after())
    }

    async fn lane(&self) -> Result<Box<dyn Lane>, StoreError> {
        Ok(Box::new(unit::MysqlLane::open(&self.server, self.changes.clone()).await?))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn now_us(&self) -> Result<i64, StoreError> {
        unit::now_us(&mut self.admin().await?.session).await
    }

    async fn tenant_secret(&self) -> Result<[u8; 32], StoreError> {
        admin::tenant_secret(&mut self.admin().await?.session).await
    }

    async fn boot_insert(&self, boot: BootId, host: &str) -> Result<(), StoreError> {
        fleet::boot_insert(&mut self.admin().await?.session, boot, host).await
    }

    async fn boot_beat(&self, boot: BootId, host: &str, is_draining: bool) -> Result<(), StoreError> {
        fleet::boot_beat(&mut self.admin().await?.session, boot, host, is_draining).await
    }

    async fn boot_end(&self, boot: BootId) -> Result<(), StoreError> {
        fleet::boot_end(&mut self.admin().await?.session, boot).await
    }

    async fn boots_live(&self, timeout: Duration) -> Result<Vec<LiveBoot>, StoreError> {
        fleet::boots_live(&mut self.admin().await?.session, timeout).await
    }

    async fn boot_lives(&self, boots: &[BootId]) -> Result<BTreeMap<BootId, Life>, StoreError> {
        starts::lives(&mut self.admin().await?.session, boots).await
    }

    async fn start_insert(
        &self,
        source: &str,
        messages: &[MessageHash],
        start: Start,
    ) -> Result<Vec<StartRow>, StoreError> {
        starts::insert(&mut self.admin().await?.session, source, messages, start).await
    }

    async fn start_end(&self, ends: &[StartEnd]) -> Result<(), StoreError> {
        starts::end_at_once(&mut self.admin().await?.session, ends).await
    }

    async fn handler_ensure(&self, name: &str) -> Result<HandlerId, StoreError> {
        admin::handler_ensure(&mut self.admin().await?.session, name).await
    }

    async fn handlers(&self) -> Result<BTreeMap<String, HandlerId>, StoreError> {
        admin::handlers(&mut self.admin().await?.session).await
    }

    async fn handler_block(&self, handler: HandlerId, reason: Option<&str>) -> Result<(), StoreError> {
        fleet::handler_block(&mut self.admin().await?.session, handler, reason).await
    }

    async fn handlers_blocked(&self) -> Result<Vec<BlockedHandler>, StoreError> {
        fleet::handlers_blocked(&mut self.admin().await?.session).await
    }

    async fn rule_current(&self, handler: HandlerId) -> Result<Option<StoredRule>, StoreError> {
        modules::rule_current(&mut self.admin().await?.session, handler).await
    }

    async fn rules(&self, handler: HandlerId) -> Result<Vec<StoredRule>, StoreError> {
        modules::rules(&mut self.admin().await?.session, handler).await
    }

    async fn deployment_offer(&self, offer: DeploymentOffer<'_>) -> Result<Deployment, StoreError> {
        let offered = modules::deployment_offer(&mut self.admin().await?.session, offer).await?;
        self.changed();
        Ok(offered)
    }

    async fn deployments(&self) -> Result<Vec<Deployment>, StoreError> {
        modules::deployments(&mut self.admin().await?.session).await
    }

    async fn deployment_read(&self, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
        modules::deployment_read(&mut self.admin().await?.session, id).await
    }

    async fn deployment_activate(&self, deployment: &Deployment) -> Result<(), StoreError> {
        modules::deployment_activate(&mut self.admin().await?.session, deployment).await?;
        self.changed();
        Ok(())
    }

    async fn deployment_answer(
        &self,
        deployment: DeploymentId,
        boot: BootId,
        answer: Result<(), &str>,
    ) -> Result<(), StoreError> {
        fleet::deployment_answer(&mut self.admin().await?.session, deployment, boot, answer).await
    }

    async fn deployment_answers(&self, deployment: DeploymentId) -> Result<Vec<DeploymentAnswer>, StoreError> {
        fleet::deployment_answers(&mut self.admin().await?.session, deployment).await
    }

    async fn deployment_refuse(&self, deployment: &Deployment, reason: &str) -> Result<(), StoreError> {
        modules::deployment_refuse(&mut self.admin().await?.session, deployment, reason).await
    }

    async fn module_read(&self, digest: ModuleDigest) -> Result<Option<Vec<u8>>, StoreError> {
        modules::module_read(&mut self.admin().await?.session, digest).await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        let mut admin = self.admin().await?;
        let Admin { session, elsewhere } = &mut *admin;
        catalogue::schema_version(session, elsewhere).await
    }

    async fn catalogue(&self) -> Result<Catalogue, StoreError> {
        catalogue::catalogue(&mut self.admin().await?.session).await
    }

    /// None: what would break a unit here (another engine, a view, a trigger) is in the catalogue.
    async fn unfit_tables(&self, _tables: &[&str]) -> Result<Vec<(String, &'static str)>, StoreError> {
        Ok(Vec::new())
    }

    async fn prepare(&self, sql: &str) -> Result<(), StatementError> {
        let mut admin = self.admin().await.map_err(|error| away(&error))?;
        catalogue::prepare(&mut admin.session, sql).await
    }

    async fn local_offer(&self, source: &str, messages: &[Message]) -> Result<u64, StoreError> {
        let offered = queues::local_offer(&mut self.admin().await?.session, source, messages).await?;
        self.changed();
        Ok(offered)
    }

    async fn local_claim(
        &self,
        source: &str,
        max: usize,
        token: LeaseToken,
        lease: Duration,
    ) -> Result<Vec<LocalMessage>, StoreError> {
        queues::local_claim(&mut self.admin().await?.session, source, max, token, lease).await
    }

    async fn local_renew(&self, tokens: &[LeaseToken], lease: Duration) -> Result<(), StoreError> {
        queues::local_renew(&mut self.admin().await?.session, tokens, lease).await
    }

    async fn local_settle(&self, messages: &[(LocalId, LeaseToken)]) -> Result<(), StoreError> {
        queues::local_settle(&mut self.admin().await?.session, messages).await
    }

    async fn held_due(&self) -> Result<Vec<(HandlerId, i64)>, StoreError> {
        queues::held_due(&mut self.admin().await?.session).await
    }

    async fn held_claim(
        &self,
        handler: HandlerId,
        max: usize,
        token: LeaseToken,
        lease: Duration,
        start: Start,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        queues::held_claim(&mut self.admin().await?.session, handler, max, token, lease, start).await
    }

    async fn held_list(&self, filter: &HeldFilter) -> Result<Vec<HeldRow>, StoreError> {
        stories::held_list(&mut self.admin().await?.session, filter).await
    }

    async fn held_show(&self, held: HeldId) -> Result<Option<HeldStory>, StoreError> {
        stories::held_show(&mut self.admin().await?.session, held).await
    }

    async fn trace(&self, handler: HandlerId, key: &BusinessKey) -> Result<KeyStory, StoreError> {
        stories::trace(&mut self.admin().await?.session, handler, key).await
    }

    async fn tallies(&self) -> Result<Vec<(HandlerId, Verdict, u64)>, StoreError> {
        stories::tallies(&mut self.admin().await?.session).await
    }

    async fn gauges(&self) -> Result<Gauges, StoreError> {
        stories::gauges(&mut self.admin().await?.session).await
    }

    /// The server ends a session when its connection is closed; nothing is left to be done.
    async fn close(&self) {
        self.admin.lock().await.session.close().await;
    }
}
