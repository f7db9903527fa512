//! A store with an empty database of its own, and short ways to look into it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use oncebox::store::{
    DeploymentId, HandlerId, InboxKey, Lane, NewHeld, NewInbox, RuleId, Store, Use, sqlite::SqliteStore,
};
use oncebox_core::{
    failure::Class,
    ids::{BusinessKey, Fingerprint, HeldIdentity, LeaseToken},
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

pub(crate) const LEASE: Duration = Duration::from_secs(3600);
/// A lease that is over as soon as it is given.
pub(crate) const NO_LEASE: Duration = Duration::ZERO;

pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    /// A handler that is there.
    pub(crate) handler: HandlerId,
    /// The embedded store's file.
    pub(crate) path: PathBuf,
    pub(crate) _dir: TempDir,
}

impl Bench {
    /// The embedded store, in a folder of its own.
    pub(crate) async fn sqlite() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("tenant.db");
        let store = SqliteStore::open(&path, Some(SQLITE_SCHEMA), Use::Host).await.unwrap();
        let handler = store.handler_ensure("points").await.unwrap();
        Self { store, handler, path, _dir: dir }
    }

    /// The same database, as a command beside the host sees it.
    pub(crate) async fn beside(&self) -> Arc<dyn Store> {
        SqliteStore::open(&self.path, None, Use::Command).await.unwrap()
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
        answer.rows
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match self.rows(sql).await.as_slice() {
            [row] => match row.as_slice() {
                [Value::Signed(number)] => *number,
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
