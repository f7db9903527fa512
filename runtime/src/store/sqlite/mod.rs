//! The embedded store: one SQLite file, one host.
//!
//! Every connection is opened here, with the same settings: WAL, `synchronous=FULL`, foreign keys on. The lanes'
//! unit of work is in `unit.rs`, what the host and the command line ask outside of it in `admin.rs`, `modules.rs`,
//! `queues.rs` and `stories.rs`.

/// The database's clock in microseconds; SQLite's has milliseconds.
macro_rules! now_us {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000"
    };
}

/// A column with one more start in it, ?1 the boot, ?2 all of it, ?3 its bytes and ?4 those of
/// the column; several of one life are one. Blobs that are joined
/// are a text to SQLite.
macro_rules! with_start {
    ($column:literal) => {
        concat!(
            "iif(substr(substr(",
            $column,
            ", -?3), 1, 16) = ?1, ",
            $column,
            ", substr(CAST(",
            $column,
            " || ?2 AS BLOB), -?4))"
        )
    };
}

mod admin;
mod catalogue;
mod errors;
mod fleet;
mod held;
mod migrate;
mod modules;
mod order;
mod queues;
mod starts;
mod statements;
mod stories;
mod unit;
mod watch;

use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use oncebox_core::{
    blame::{Life, Start},
    ids::{BootId, BusinessKey, LeaseToken, MessageHash, ModuleDigest},
    life::Verdict,
    message::Message,
    sql::{Catalogue, Dialect},
};
use sqlx::{
    ConnectOptions as _,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous},
};
use tokio::sync::{Mutex, watch as tokio_watch};

use self::errors::{away, is_locked, open_error};
use super::{
    BlockedHandler, ClaimedRow, Deployment, DeploymentAnswer, DeploymentId, DeploymentOffer, Gauges, HandlerId,
    HeldFilter, HeldId, HeldRow, HeldStory, KeyStory, Lane, LaneCount, LiveBoot, LocalId, LocalMessage, StartEnd,
    StartRow, StatementError, Store, StoreError, StoredRule, Use,
};
use crate::clock;

/// One SQLite file.
pub struct SqliteStore {
    options: SqliteConnectOptions,
    /// For everything outside lanes. One at a time: SQLite has one writer anyway.
    admin: Mutex<SqliteConnection>,
    /// Whose turn to write it is in this process, first come, first served: SQLite's own waiting knows no order, and
    /// whoever writes all the time would keep the others out.
    turn: Arc<Mutex<()>>,
    changes: tokio_watch::Receiver<u64>,
    /// Held for the host's life; the operating system lets go of it however the process ends.
    host_lock: Option<File>,
}

impl SqliteStore {
    /// Opens the file, makes it and its tables if they are not there, and runs the migrations that are due.
    /// `schema` is the tenant's own SQL, run once, when the file is made.
    ///
    /// # Errors
    /// [`StoreError::Taken`] for a second host; [`StoreError::Migration`] when the tables are newer than this binary;
    /// [`StoreError::NotADatabase`] or [`StoreError::Away`] when the file cannot be opened.
    pub async fn open(path: &Path, schema: Option<&str>, usage: Use) -> Result<Arc<Self>, StoreError> {
        let host_lock = match usage {
            Use::Host => Some(lock_host_patiently(path).await?),
            Use::Command => None,
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIME)
            .statement_cache_capacity(256)
            .disable_statement_logging();
        let mut admin = connect(&options, path).await?;
        migrate::migrate(&mut admin, schema).await?;
        if usage == Use::Host {
            migrate::void_leases(&mut admin).await?;
        }
        let changes = watch::start(connect(&options, path).await?);
        Ok(Arc::new(Self { options, admin: Mutex::new(admin), turn: Arc::default(), changes, host_lock }))
    }
}

/// How long a connection waits for another process.
const BUSY_TIME: Duration = Duration::from_secs(10);

/// SQLite answers "locked" at once, without waiting, to the one of two who make a file a WAL file at the same time
/// (<https://www.sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode>): a command beside a host that
/// has just started.
async fn connect(options: &SqliteConnectOptions, path: &Path) -> Result<SqliteConnection, StoreError> {
    let began = clock::monotonic();
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_locked(&error) && began.elapsed() < BUSY_TIME => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(open_error(path, &error)),
        }
    }
}

/// A command that asks whether a host is live holds the lock for a moment.
async fn lock_host_patiently(path: &Path) -> Result<File, StoreError> {
    for _ in 0..20 {
        match lock_host(path) {
            Err(StoreError::Taken { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            decided => return decided,
        }
    }
    lock_host(path)
}

/// The lock stands beside the file, so that commands may open the file itself.
fn lock_host(path: &Path) -> Result<File, StoreError> {
    // A second name of the file is the same file.
    let mut lock_path = path.canonicalize().unwrap_or_else(|_| PathBuf::from(path)).into_os_string();
    lock_path.push(".host");
    let failed = |error: std::io::Error| StoreError::Away {
        message: format!("cannot lock {}: {error}", Path::new(&lock_path).display()),
    };
    let file = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Taken { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn lanes(&self) -> LaneCount {
        LaneCount { lanes: 1, slow_lanes: 1, has_back_lane: false }
    }

    /// Opening has done it: one host, one file.
    async fn migrate(&self) -> Result<i64, StoreError> {
        migrate::number(&mut *self.admin.lock().await).await
    }

    async fn host_is_live(&self) -> Result<bool, StoreError> {
        if self.host_lock.is_some() {
            return Ok(true);
        }
        match lock_host(self.options.get_filename()) {
            Ok(_) => Ok(false),
            Err(StoreError::Taken { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn lane(&self) -> Result<Box<dyn Lane>, StoreError> {
        let connection = self.options.connect().await.map_err(|error| away("connect", &error))?;
        Ok(Box::new(unit::SqliteLane::new(connection, self.turn.clone())))
    }

    fn changes(&self) -> tokio_watch::Receiver<u64> {
        self.changes.clone()
    }

    async fn now_us(&self) -> Result<i64, StoreError> {
        admin::now_us(&mut *self.admin.lock().await).await
    }

    async fn tenant_secret(&self) -> Result<[u8; 32], StoreError> {
        admin::tenant_secret(&mut *self.admin.lock().await).await
    }

    async fn boot_insert(&self, boot: BootId, host: &str) -> Result<(), StoreError> {
        fleet::boot_insert(&mut *self.admin.lock().await, boot, host).await
    }

    async fn boot_beat(&self, boot: BootId, host: &str, is_draining: bool) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        fleet::boot_beat(&mut *self.admin.lock().await, boot, host, is_draining).await
    }

    async fn boot_end(&self, boot: BootId) -> Result<(), StoreError> {
        fleet::boot_end(&mut *self.admin.lock().await, boot).await
    }

    async fn boots_live(&self, timeout: Duration) -> Result<Vec<LiveBoot>, StoreError> {
        fleet::boots_live(&mut *self.admin.lock().await, timeout).await
    }

    async fn boot_lives(&self, boots: &[BootId]) -> Result<BTreeMap<BootId, Life>, StoreError> {
        starts::lives(&mut *self.admin.lock().await, boots).await
    }

    async fn start_insert(
        &self,
        source: &str,
        messages: &[MessageHash],
        start: Start,
    ) -> Result<Vec<StartRow>, StoreError> {
        let _turn = self.turn.lock().await;
        starts::insert(&mut *self.admin.lock().await, source, messages, start).await
    }

    async fn start_end(&self, ends: &[StartEnd]) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        starts::end(&mut *self.admin.lock().await, ends).await
    }

    async fn handler_ensure(&self, name: &str) -> Result<HandlerId, StoreError> {
        admin::handler_ensure(&mut *self.admin.lock().await, name).await
    }

    async fn handlers(&self) -> Result<BTreeMap<String, HandlerId>, StoreError> {
        admin::handlers(&mut *self.admin.lock().await).await
    }

    async fn handler_block(&self, handler: HandlerId, reason: Option<&str>) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        fleet::handler_block(&mut *self.admin.lock().await, handler, reason).await
    }

    async fn handlers_blocked(&self) -> Result<Vec<BlockedHandler>, StoreError> {
        fleet::handlers_blocked(&mut *self.admin.lock().await).await
    }

    async fn rule_current(&self, handler: HandlerId) -> Result<Option<StoredRule>, StoreError> {
        modules::rule_current(&mut *self.admin.lock().await, handler).await
    }

    async fn rules(&self, handler: HandlerId) -> Result<Vec<StoredRule>, StoreError> {
        modules::rules(&mut *self.admin.lock().await, handler).await
    }

    async fn deployment_offer(&self, offer: DeploymentOffer<'_>) -> Result<Deployment, StoreError> {
        modules::deployment_offer(&mut *self.admin.lock().await, offer).await
    }

    async fn deployments(&self) -> Result<Vec<Deployment>, StoreError> {
        modules::deployments(&mut *self.admin.lock().await).await
    }

    async fn deployment_read(&self, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
        modules::deployment_read(&mut *self.admin.lock().await, id).await
    }

    async fn deployment_activate(&self, deployment: &Deployment) -> Result<(), StoreError> {
        modules::deployment_activate(&mut *self.admin.lock().await, deployment).await
    }

    async fn deployment_answer(
        &self,
        deployment: DeploymentId,
        boot: BootId,
        answer: Result<(), &str>,
    ) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        fleet::deployment_answer(&mut *self.admin.lock().await, deployment, boot, answer).await
    }

    async fn deployment_answers(&self, deployment: DeploymentId) -> Result<Vec<DeploymentAnswer>, StoreError> {
        fleet::deployment_answers(&mut *self.admin.lock().await, deployment).await
    }

    async fn deployment_refuse(&self, deployment: &Deployment, reason: &str) -> Result<(), StoreError> {
        modules::deployment_refuse(&mut *self.admin.lock().await, deployment, reason).await
    }

    async fn module_read(&self, digest: ModuleDigest) -> Result<Option<Vec<u8>>, StoreError> {
        modules::module_read(&mut *self.admin.lock().await, digest).await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        catalogue::schema_version(&mut *self.admin.lock().await).await
    }

    async fn catalogue(&self) -> Result<Catalogue, StoreError> {
        catalogue::catalogue(&mut *self.admin.lock().await).await
    }

    async fn unfit_tables(&self, tables: &[&str]) -> Result<Vec<(String, &'static str)>, StoreError> {
        catalogue::unfit_tables(&mut *self.admin.lock().await, tables).await
    }

    async fn prepare(&self, sql: &str) -> Result<(), StatementError> {
        catalogue::prepare(&mut *self.admin.lock().await, sql).await
    }

    async fn local_offer(&self, source: &str, messages: &[Message]) -> Result<u64, StoreError> {
        queues::local_offer(&mut *self.admin.lock().await, source, messages).await
    }

    async fn local_claim(
        &self,
        source: &str,
        max: usize,
        token: LeaseToken,
        lease: Duration,
    ) -> Result<Vec<LocalMessage>, StoreError> {
        let _turn = self.turn.lock().await;
        queues::local_claim(&mut *self.admin.lock().await, source, max, token, lease).await
    }

    async fn local_renew(&self, tokens: &[LeaseToken], lease: Duration) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        queues::local_renew(&mut *self.admin.lock().await, tokens, lease).await
    }

    async fn local_settle(&self, messages: &[(LocalId, LeaseToken)]) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        queues::local_settle(&mut *self.admin.lock().await, messages).await.map(|_| ())
    }

    async fn held_due(&self) -> Result<Vec<(HandlerId, i64)>, StoreError> {
        queues::held_due(&mut *self.admin.lock().await).await
    }

    async fn held_claim(
        &self,
        handler: HandlerId,
        max: usize,
        token: LeaseToken,
        lease: Duration,
        start: Start,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let _turn = self.turn.lock().await;
        queues::held_claim(&mut *self.admin.lock().await, handler, max, token, lease, start).await
    }

    async fn held_list(&self, filter: &HeldFilter) -> Result<Vec<HeldRow>, StoreError> {
        stories::held_list(&mut *self.admin.lock().await, filter).await
    }

    async fn held_show(&self, held: HeldId) -> Result<Option<HeldStory>, StoreError> {
        stories::held_show(&mut *self.admin.lock().await, held).await
    }

    async fn trace(&self, handler: HandlerId, key: &BusinessKey) -> Result<KeyStory, StoreError> {
        stories::trace(&mut *self.admin.lock().await, handler, key).await
    }

    async fn tallies(&self) -> Result<Vec<(HandlerId, Verdict, u64)>, StoreError> {
        stories::tallies(&mut *self.admin.lock().await).await
    }

    async fn gauges(&self) -> Result<Gauges, StoreError> {
        stories::gauges(&mut *self.admin.lock().await).await
    }

    async fn close(&self) {
        let mut admin = self.admin.lock().await;
        // A checkpoint leaves one tidy file behind; without it the next start does it.
        let _ = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *admin).await;
    }
}
