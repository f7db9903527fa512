//! A store with an empty database of its own, and short ways to look into it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use oncebox_tests::{services::Kind, tenant_database::TenantDatabase};

use oncebox::store::{
    DeploymentId, HandlerId, InboxKey, Lane, NewHeld, NewInbox, RuleId, Store, UnitOfWork, Use, sqlite::SqliteStore,
};
use oncebox_core::{
    blame::{Open, Start},
    failure::Class,
    ids::{BootId, BusinessKey, Fingerprint, HeldIdentity, LeaseToken},
    life::HeldState,
    message::{Header, Message},
    value::Value,
};
use tempfile::TempDir;

/// Tables of a business, so that there is something to write.
const SQLITE_SCHEMA: &str = "
    CREATE TABLE points (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL CHECK (points >= 0), note TEXT) STRICT;
    CREATE TABLE award (award_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES points (user_id),
      code TEXT UNIQUE) STRICT;
    CREATE TABLE anything (n INTEGER PRIMARY KEY, v ANY) STRICT;";

const MYSQL_SCHEMA: [&str; 3] = [
    "CREATE TABLE points (user_id BIGINT PRIMARY KEY, points BIGINT NOT NULL CHECK (points >= 0), note TEXT)
       ENGINE=InnoDB",
    "CREATE TABLE award (award_id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, code VARCHAR(64) UNIQUE,
       FOREIGN KEY (user_id) REFERENCES points (user_id)) ENGINE=InnoDB",
    "CREATE TABLE anything (n BIGINT PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB",
];

pub(crate) const LEASE: Duration = Duration::from_secs(3600);
/// A lease that is over as soon as it is given.
pub(crate) const NO_LEASE: Duration = Duration::ZERO;

/// By whom and when claims are begun, where that does not matter.
pub(crate) const START: Start = Start { boot: BootId([1; 16]), at_us: 1 };

pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    /// A handler that is there.
    pub(crate) handler: HandlerId,
    pub(crate) place: Place,
}

/// Where the store is.
pub(crate) enum Place {
    File { path: PathBuf, _dir: TempDir },
    Server(Box<TenantDatabase>),
}

impl Bench {
    /// The embedded store, in a folder of its own.
    pub(crate) async fn sqlite() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("tenant.db");
        let store = SqliteStore::open(&path, Some(SQLITE_SCHEMA), Use::Host).await.unwrap();
        let handler = store.handler_ensure("points").await.unwrap();
        Self { store, handler, place: Place::File { path, _dir: dir } }
    }

    /// A database of its own on a server, as the host's own user with the documented rights.
    pub(crate) async fn server(kind: Kind) -> Self {
        let tenant = TenantDatabase::create(kind);
        tenant.database.execute(&MYSQL_SCHEMA.join("; "));
        tenant.ready(&["points", "award", "anything"]).await.unwrap();
        let store = tenant.open(Use::Host).await.unwrap();
        let handler = store.handler_ensure("points").await.unwrap();
        Self { store, handler, place: Place::Server(Box::new(tenant)) }
    }

    /// The embedded store's file.
    pub(crate) fn path(&self) -> &PathBuf {
        match &self.place {
            Place::File { path, .. } => path,
            Place::Server(_) => panic!("a server has no file"),
        }
    }

    /// The database on a server.
    pub(crate) fn tenant(&self) -> &TenantDatabase {
        match &self.place {
            Place::File { .. } => panic!("the embedded store has no server"),
            Place::Server(tenant) => tenant,
        }
    }

    /// The same database, as a command beside the host sees it.
    pub(crate) async fn beside(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::File { path, .. } => SqliteStore::open(path, None, Use::Command).await.unwrap(),
            Place::Server(tenant) => tenant.open(Use::Command).await.unwrap(),
        }
    }

    pub(crate) async fn lane(&self) -> Box<dyn Lane> {
        self.store.lane().await.unwrap()
    }

    /// Rows as another connection sees them.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let mut lane = self.lane().await;
        let mut unit = lane.begin().await.unwrap();
        let answer = unit.query(&sql.into(), &[], 10_000).await.unwrap();
        unit.rollback().await.unwrap();
        answer.rows.into_iter().map(|row| row.into_iter().map(plain).collect()).collect()
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match self.rows(sql).await.as_slice() {
            [row] => match row.as_slice() {
                [Value::Signed(number)] => *number,
                // What a server calls a sum.
                [Value::Decimal(number)] => number.parse().unwrap(),
                other => panic!("{sql}: {other:?}"),
            },
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Runs a text and commits it.
    pub(crate) async fn run(&self, sql: &str) -> u64 {
        let mut lane = self.lane().await;
        let mut unit = lane.begin().await.unwrap();
        let rows = unit.staged_write(&sql.into(), &[]).await.unwrap();
        unit.commit().await.unwrap();
        rows
    }

    /// Changes a table; on a server as somebody else, since the host's own user may not.
    pub(crate) async fn alter(&self, sql: &str) {
        match &self.place {
            Place::File { .. } => drop(self.run(sql).await),
            Place::Server(tenant) => tenant.database.execute(sql),
        }
    }

    /// The server's number of the session that a unit runs on.
    pub(crate) async fn session_of(&self, unit: &mut dyn UnitOfWork) -> String {
        let answer = unit.query(&"SELECT CONNECTION_ID()".into(), &[], 1).await.unwrap();
        match answer.rows[0].as_slice() {
            [Value::Signed(id)] => id.to_string(),
            [Value::Unsigned(id)] => id.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// A time column of our own tables, as microseconds since 1970.
    pub(crate) fn micros(&self, column: &str) -> String {
        match &self.place {
            Place::File { .. } => column.to_owned(),
            Place::Server(_) => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column})"),
        }
    }

    /// A time of our own tables, given in microseconds since 1970.
    pub(crate) fn at(&self, us: i64) -> String {
        match &self.place {
            Place::File { .. } => us.to_string(),
            Place::Server(_) => format!("TIMESTAMPADD(MICROSECOND, {us}, '1970-01-01 00:00:00.000000')"),
        }
    }

    pub(crate) fn key(&self, key: &str) -> InboxKey {
        (self.handler, BusinessKey::new(key))
    }

    /// A row to insert, fingerprint 1, rule 1, deployment 1.
    pub(crate) fn new_inbox(&self, key: impl Into<Vec<u8>>) -> NewInbox {
        NewInbox {
            handler: self.handler,
            key: BusinessKey::new(key),
            fingerprint: Fingerprint([1; 32]),
            rule: RuleId(1),
            deployment: DeploymentId(1),
            event_id: "e-1".into(),
            source: "orders".into(),
            traceparent: Some("00-a-b-01".into()),
            received_us: 1_000_000,
            seen: None,
        }
    }

    /// A parked row that is due since 1970, with the given byte in its identity and as its key.
    pub(crate) fn new_held(&self, identity: u8) -> NewHeld {
        NewHeld {
            identity: HeldIdentity([identity; 32]),
            handler: self.handler,
            state: HeldState::Parked,
            key: Some(BusinessKey::new([identity])),
            due_us: Some(1),
            attempts: 2,
            attempts_short: 1,
            class: Class::Trap,
            code: "unreachable".into(),
            message: "the guest trapped".into(),
            fingerprint: Some(Fingerprint([1; 32])),
            rule: Some(RuleId(1)),
            deployment: Some(DeploymentId(1)),
            source: "orders".into(),
            hops: 3,
            event_id: Some("e-1".into()),
            event_type: Some("order.paid".into()),
            event_time_us: Some(5),
            received_us: 1_000_000,
            body: Arc::new(message(b"first")),
            place: None,
            open: Open::default(),
        }
    }

    /// Writes and commits held rows; the answer is their numbers.
    pub(crate) async fn hold(&self, rows: &[NewHeld]) -> Vec<oncebox::store::HeldId> {
        let mut lane = self.lane().await;
        let mut unit = lane.begin().await.unwrap();
        let ids = unit.held_insert(rows).await.unwrap();
        unit.commit().await.unwrap();
        ids
    }

    /// Inserts and commits inbox rows under a token.
    pub(crate) async fn insert(&self, token: u8, keys: &[&str]) {
        let rows: Vec<_> = keys.iter().map(|key| self.new_inbox(*key)).collect();
        let mut lane = self.lane().await;
        let mut unit = lane.begin().await.unwrap();
        unit.inbox_insert(token_of(token), &rows).await.unwrap();
        unit.commit().await.unwrap();
    }
}

/// A number without its sign's name: on a server our own numbers are unsigned.
fn plain(value: Value) -> Value {
    let Value::Unsigned(number) = value else { return value };
    i64::try_from(number).map_or(Value::Unsigned(number), Value::Signed)
}

pub(crate) fn token_of(byte: u8) -> LeaseToken {
    LeaseToken([byte; 16])
}

/// A message with all that one can have.
pub(crate) fn message(body: &[u8]) -> Message {
    Message {
        body: body.to_vec(),
        headers: vec![Header::new("h", b"1".to_vec()), Header::new("h", vec![0xff, 0])],
        content_type: Some("application/json".into()),
        properties: vec![("amqp:message-id".into(), b"m".to_vec())],
        position: vec![("queue".into(), "q".into())],
    }
}
