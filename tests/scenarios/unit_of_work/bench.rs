//! A tenant on real tables, put together by hand: deliveries go straight into the unit of work.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use oncebox::{
    host::{
        Attempted, BoundDestination, Calls, Claim, DatabaseAway, Delivery, Deployed, Done, Fate, Handler, Health, Item,
        LaneContext, LaneKind, LaneQueue, Ran, ReadyQuery, ReadyStatement, Sources, Target, Tenant, unit_of_work,
    },
    metrics::Metrics,
    plugin::{Compiler, Engine, EngineLimits, Module, Outcome, RunLimits, StagedEvent, StagedWrite},
    source::{Origin, Receipt, Settle},
    store::{
        DeploymentId, HeldId, InboxRow, Lane, RuleId, Store, StoreError, Use,
        mysql::{MysqlLanes, MysqlStore},
        sqlite::SqliteStore,
    },
};
use oncebox_core::{
    blame::Suspicion,
    config::{self, Destination, HandlerLimits, HandlerRetry, HostLimits},
    envelope::{self, EnvelopeRule},
    failure::{Class, Failure},
    fold,
    identify::{Limits, identify, message_hash, outgoing_event_id},
    ids::{BootId, BusinessKey, LeaseToken},
    life::{InboxState, Verdict},
    manifest::{FingerprintSpec, Integers, Reaction, RowExpectation},
    message::{Header, Message},
    retry::{Counted, RetryPolicy},
    rule::Rule,
    sql::Mark,
    value::Value,
};
use oncebox_tests::{
    checker::imbalances,
    services::Kind,
    tenant_database::{TenantDatabase, settings},
    wat::{source, wat_component},
};
use tempfile::TempDir;
use tokio::sync::{OnceCell, Semaphore, watch};

const SCHEMA: &str = "
    CREATE TABLE effect (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
    CREATE TABLE once (code TEXT PRIMARY KEY) STRICT;
    CREATE TABLE points (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL) STRICT;
    INSERT INTO points (user_id, points) VALUES (1, 0);";

const SERVER_SCHEMA: [&str; 4] = [
    "CREATE TABLE effect (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(255) NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE once (code VARCHAR(64) PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE points (user_id BIGINT PRIMARY KEY, points BIGINT NOT NULL) ENGINE=InnoDB",
    "INSERT INTO points (user_id, points) VALUES (1, 0)",
];

tokio::task_local! {
    /// The server that a test's tenants are on; `None`: the embedded store.
    static SERVER: Option<Kind>;
}

/// Runs a test whose tenants are on a server, or on the embedded store.
pub(crate) fn on<T>(server: Option<Kind>, test: impl AsyncFnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(SERVER.scope(server, async { test().await }))
}

/// Where a tenant's tables are.
enum Place {
    Folder(TempDir),
    Server(Box<TenantDatabase>),
}

/// The store of the host's own user, and of somebody who may do everything.
async fn stores() -> (Arc<dyn Store>, Arc<dyn Store>, Place) {
    let Some(kind) = SERVER.try_with(|server| *server).unwrap_or_default() else {
        let dir = TempDir::new().unwrap();
        let store = SqliteStore::open(&dir.path().join("tenant.db"), Some(SCHEMA), Use::Host).await.unwrap();
        return (store.clone(), store, Place::Folder(dir));
    };
    let tenant = TenantDatabase::create(kind);
    tenant.database.execute(&SERVER_SCHEMA.join("; "));
    tenant.ready(&["effect", "once", "points"]).await.unwrap();
    let store = tenant.open(Use::Host).await.unwrap();
    let lanes = MysqlLanes { lanes: 1, slow_lanes: 1 };
    let root = MysqlStore::open(&settings(&tenant.database.root_url()), lanes, Use::Command).await.unwrap();
    (store, root, Place::Server(Box::new(tenant)))
}

const MANIFEST: &str = r#"
name = "bench"
version = "1.0.0"
contract = "1.0"
description = "Writes effects"
event_types = []
key = "{/id}"
fingerprint = ["/v"]

[tables]
effect = "write"

[queries.count]
sql = "SELECT count(*) FROM effect WHERE id > 0"
params = []
rows_max = 1
bytes_max = 1024

[statements.effect]
sql = "INSERT INTO effect (name) VALUES (?)"
params = [{ name = "name", type = "text" }]
rows = 1
mismatch = "retry"
"#;

pub(crate) const HOPS_MAX: u8 = 3;
/// Counted attempts before dead; of the short classes.
pub(crate) const ATTEMPTS_MAX: u32 = 3;
pub(crate) const SHORT_ATTEMPTS_MAX: u32 = 2;

/// A life that was not seen for so long is over.
pub(crate) const BOOT_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) lane: LaneContext,
    /// Without queries.
    pub(crate) plain: Target,
    /// Another one, of its own keys.
    pub(crate) other: Target,
    /// A third one.
    pub(crate) third: Target,
    /// With a query: runs inside the unit of work.
    pub(crate) inside: Target,
    put_aside: AtomicU64,
    /// The same tables, for who may do everything.
    root: Arc<dyn Store>,
    place: Place,
    _stop: watch::Sender<bool>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_unit_time(Duration::from_secs(60)).await
    }

    pub(crate) async fn with_unit_time(unit_time_max: Duration) -> Self {
        let (store, root, place) = stores().await;
        let mut handlers = BTreeMap::new();
        let mut targets = Vec::new();
        for (name, queries) in [("plain", false), ("other", false), ("third", false), ("inside", true)] {
            let id = store.handler_ensure(name).await.unwrap();
            let handler = Arc::new(Handler::new(name, id, handler_settings()));
            handlers.insert(name.to_owned(), handler.clone());
            targets.push(Target::Handler(handler, Arc::new(deployed(queries).await)));
        }
        let [plain, other, third, inside] = <[Target; 4]>::try_from(targets).ok().unwrap();
        let (stop, stopping) = watch::channel(false);
        let tenant = Tenant {
            name: "acme".into(),
            settings: tenant_settings(unit_time_max),
            host_limits: HOST_LIMITS,
            lease_time: Duration::from_secs(60),
            boot_timeout: BOOT_TIMEOUT,
            gate: Arc::default(),
            store: store.clone(),
            handlers,
            lanes: vec![Arc::new(LaneQueue::default())],
            back_lane: Some(Arc::new(LaneQueue::default())),
            slow_lanes: vec![Arc::new(LaneQueue::default())],
            lines: Arc::default(),
            in_hand: Arc::default(),
            boot: BootId([1; 16]),
            secret: [7; 32],
            calls: Calls::default(),
            sources: Sources::default(),
            database_away: DatabaseAway::default(),
            health: Arc::new(Health::default()),
            metrics: Arc::new(Metrics::new().unwrap()),
        };
        let lane = LaneContext {
            queue: tenant.lanes[0].clone(),
            tenant: Arc::new(tenant),
            number: 0,
            kind: LaneKind::Normal,
            turns: Arc::default(),
            stopping,
        };
        let put_aside = AtomicU64::new(0);
        Self { store, lane, plain, other, third, inside, put_aside, root, place, _stop: stop }
    }

    /// One unit of work on a connection of its own; afterwards the books must balance.
    pub(crate) async fn unit(&self, batch: &[Item]) -> Done {
        let mut connection = self.store.lane().await.unwrap();
        self.unit_on(connection.as_mut(), batch).await.unwrap()
    }

    pub(crate) async fn unit_on(&self, connection: &mut dyn Lane, batch: &[Item]) -> Result<Done, StoreError> {
        let done = unit_of_work(&self.lane, connection, batch).await?;
        assert_eq!(done.fates.len(), batch.len());
        for (item, fate) in batch.iter().zip(&done.fates) {
            if let (Ran::Unrun(_), Fate::Decided(Verdict::Parked | Verdict::Dead)) = (&item.ran, fate) {
                self.put_aside.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.balanced().await;
        Ok(done)
    }

    /// The tables tell one story.
    pub(crate) async fn balanced(&self) {
        let put_aside = self.put_aside.load(Ordering::Relaxed);
        assert_eq!(imbalances(self.store.as_ref(), Some(put_aside)).await.unwrap(), Vec::<String>::new());
    }

    /// Says that so many events of the next units will be held behind others: put aside without a run.
    pub(crate) fn behind(&self, events: u64) {
        self.put_aside.fetch_add(events, Ordering::Relaxed);
    }

    /// The verdicts of one unit.
    pub(crate) async fn verdicts(&self, batch: &[Item]) -> Vec<Fate> {
        self.unit(batch).await.fates
    }

    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let mut lane = self.root.lane().await.unwrap();
        let mut unit = lane.begin().await.unwrap();
        let answer = unit.query(&sql.into(), &[], 10_000).await.unwrap();
        unit.rollback().await.unwrap();
        answer.rows.into_iter().map(|row| row.into_iter().map(plain).collect()).collect()
    }

    pub(crate) async fn run(&self, sql: &str) -> u64 {
        let mut lane = self.root.lane().await.unwrap();
        let mut unit = lane.begin().await.unwrap();
        let rows = unit.staged_write(&sql.into(), &[]).await.unwrap();
        unit.commit().await.unwrap();
        rows
    }

    /// A time of our own tables, given in microseconds since 1970.
    pub(crate) fn at(&self, us: i64) -> String {
        match &self.place {
            Place::Folder(_) => us.to_string(),
            Place::Server(_) => format!("TIMESTAMPADD(MICROSECOND, {us}, '1970-01-01 00:00:00.000000')"),
        }
    }

    /// Takes the embedded store away, until the answer is called: nobody can open it.
    pub(crate) fn take_away(&self) -> impl FnOnce() + use<> {
        let Place::Folder(dir) = &self.place else { panic!("a server is not taken away from others") };
        let (here, there) = (dir.path().to_owned(), dir.path().with_extension("away"));
        std::fs::rename(&here, &there).unwrap();
        move || std::fs::rename(there, here).unwrap()
    }

    /// The database on a server.
    pub(crate) fn tenant(&self) -> &TenantDatabase {
        match &self.place {
            Place::Folder(_) => panic!("the embedded store has no server"),
            Place::Server(tenant) => tenant,
        }
    }

    /// The first column of a query, as texts.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.rows(sql).await;
        let text = |row: &Vec<Value>| match row.as_slice() {
            [Value::Text(text)] => text.clone(),
            [Value::Bytes(bytes)] => String::from_utf8(bytes.clone()).unwrap(),
            [Value::Signed(number)] => number.to_string(),
            other => panic!("{sql}: {other:?}"),
        };
        rows.iter().map(text).collect()
    }

    /// What the handlers have written, in order.
    pub(crate) async fn effects(&self) -> Vec<String> {
        self.texts("SELECT name FROM effect ORDER BY id").await
    }

    /// The number of a verdict of all handlers.
    pub(crate) async fn tally(&self, verdict: Verdict) -> u64 {
        let tallies = self.store.tallies().await.unwrap();
        tallies.iter().filter(|(_, own, _)| *own == verdict).map(|(_, _, n)| n).sum()
    }

    /// Makes everything that is parked due and claims it for a target.
    pub(crate) async fn claim(&self, target: &Target, lease: Duration) -> Vec<Delivery> {
        self.run(&format!("UPDATE ob_held SET due_at = {} WHERE state = 0", self.at(0))).await;
        self.claim_now(target, lease).await
    }

    /// Claims what is due for a target.
    pub(crate) async fn claim_now(&self, target: &Target, lease: Duration) -> Vec<Delivery> {
        let Target::Handler(handler, deployed) = target else { panic!("nobody claims") };
        let token = LeaseToken(rand_token());
        let rows = self.store.held_claim(handler.id, 100, token, lease, self.lane.tenant.start()).await.unwrap();
        rows.into_iter()
            .map(|row| {
                let (ordering_key, place) = row.place.map(|place| (place.ordering_key, place.place)).unzip();
                let mut delivery = delivery_of(target, Arc::new(row.body), &deployed.rule, None, row.hops);
                delivery.counted = Counted { attempts: row.attempts, attempts_short: row.attempts_short };
                delivery.claim = Some(Claim { held: row.held, token, generation: row.generation, place });
                delivery.identity.as_mut().unwrap().ordering_key = ordering_key;
                // No life that these tests know is still there.
                delivery.suspicion = row.open.suspicion(self.lane.tenant.boot, &BTreeMap::new(), BOOT_TIMEOUT);
                delivery
            })
            .collect()
    }

    /// Sends messages to a local source and takes them.
    pub(crate) async fn local(&self, messages: &[Message], lease: Duration) -> Vec<(Arc<Message>, SettleParts)> {
        self.store.local_offer("orders", messages).await.unwrap();
        let token = LeaseToken(rand_token());
        let taken = self.store.local_claim("orders", 100, token, lease).await.unwrap();
        taken.into_iter().map(|local| (Arc::new(local.message), (local.id, token))).collect()
    }

    pub(crate) async fn held(&self) -> Vec<HeldId> {
        let rows = self.rows("SELECT held_id FROM ob_held ORDER BY held_id").await;
        let id = |row: &Vec<Value>| match row.as_slice() {
            [Value::Signed(id)] => HeldId(*id),
            other => panic!("{other:?}"),
        };
        rows.iter().map(id).collect()
    }
}

/// What is a whole number is one, whatever a server calls it.
fn plain(value: Value) -> Value {
    let mut number = None;
    if let Value::Unsigned(unsigned) = &value {
        number = i64::try_from(*unsigned).ok();
    }
    if let Value::Decimal(decimal) = &value {
        number = decimal.parse().ok();
    }
    number.map_or(value, Value::Signed)
}

pub(crate) type SettleParts = (oncebox::store::LocalId, LeaseToken);

/// A message of key `id` with the value `v`, which its fingerprint covers.
pub(crate) fn message(id: &str, v: i64) -> Message {
    let header = |name: &str, value: &str| Header::new(name, value);
    Message {
        body: format!("{{\"id\":\"{id}\",\"v\":{v}}}").into_bytes(),
        headers: vec![
            header("ce-specversion", "1.0"),
            header("ce-id", &format!("e-{id}-{v}")),
            header("ce-source", "/tests"),
            header("ce-type", "order.paid"),
        ],
        content_type: Some("application/json".into()),
        ..Message::default()
    }
}

/// A delivery from a source that needs no settlement.
pub(crate) fn deliver(target: &Target, id: &str, v: i64) -> Delivery {
    delivery(target, Arc::new(message(id, v)), None, 0)
}

pub(crate) fn delivery(target: &Target, message: Arc<Message>, settle: Option<Settle>, hops: u8) -> Delivery {
    let Target::Handler(_, deployed) = target else { panic!("nobody gets a delivery") };
    delivery_of(target, message, &deployed.rule, settle, hops)
}

fn delivery_of(target: &Target, message: Arc<Message>, rule: &Rule, settle: Option<Settle>, hops: u8) -> Delivery {
    delivery_from(target, &origin(message, settle, hops), rule)
}

/// What a source handed over, to be shared by the deliveries of several handlers.
pub(crate) fn origin(message: Arc<Message>, settle: Option<Settle>, hops: u8) -> Arc<Origin> {
    let envelope = envelope::open(&message, &EnvelopeRule::default(), &limits()).ok();
    let hash = message_hash(&message);
    // Long before the deadline of any retry.
    let received_us = oncebox::clock::now_us();
    Arc::new(Origin {
        source: "orders".into(),
        message,
        hash,
        envelope,
        hops,
        received_us,
        is_begun: false,
        is_at_risk: false,
        settle,
    })
}

pub(crate) fn shared(target: &Target, origin: &Arc<Origin>) -> Delivery {
    let Target::Handler(_, deployed) = target else { panic!("nobody gets a delivery") };
    delivery_from(target, origin, &deployed.rule)
}

fn delivery_from(target: &Target, origin: &Arc<Origin>, rule: &Rule) -> Delivery {
    let identity = match &origin.envelope {
        Some(envelope) => identify(envelope, &origin.message, rule, &limits()).map_err(Failure::from),
        None => Err(Failure::new(Class::Poison, "envelope", "it is no event")),
    };
    Delivery {
        target: target.clone(),
        origin: origin.clone(),
        identity,
        counted: Counted::default(),
        claim: None,
        unrun: None,
        suspicion: Suspicion::default(),
        lock_waits: 0,
        turn: None,
        in_hand: Arc::new(()),
    }
}

/// A settlement for `deliveries` handlers.
pub(crate) fn settle((id, token): SettleParts, deliveries: usize) -> Settle {
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    Settle::new(Receipt::Local { id, token }, deliveries, Some(permit))
}

fn rand_token() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut token = [0; 16];
    token[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    token
}

/// A run that is over.
pub(crate) fn over(delivery: Delivery, outcome: Outcome) -> Item {
    Item { delivery, ran: Ran::Over(Attempted { outcome, started_us: 10, ended_us: 20 }) }
}

pub(crate) fn write(statement: &str, params: &[Value]) -> StagedWrite {
    StagedWrite { statement: statement.into(), params: params.to_vec() }
}

pub(crate) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// It is applied, with these writes.
pub(crate) fn applied(writes: &[StagedWrite]) -> Outcome {
    Outcome::Applied { result: None, writes: writes.to_vec(), events: Vec::new() }
}

/// It is applied and writes its own key as an effect.
pub(crate) fn effect(delivery: Delivery) -> Item {
    let name = delivery.key().unwrap().1.to_string();
    over(delivery, applied(&[write("effect", &[text(&name)])]))
}

/// A look-up has seen its key's row, equal to it.
pub(crate) fn known(delivery: Delivery) -> Item {
    let Target::Handler(_, deployed) = &delivery.target else { panic!("a key has a handler") };
    let (handler, key) = delivery.key().unwrap();
    let seen = InboxRow {
        handler,
        key,
        state: InboxState::Applied,
        fingerprint: delivery.identity.as_ref().unwrap().fingerprint,
        rule: deployed.rule_id,
        token: LeaseToken([255; 16]),
        generation: 0,
    };
    Item { delivery, ran: Ran::Known(seen) }
}

/// It writes its key as an effect, and then fails in SQL.
pub(crate) fn breaks(delivery: Delivery) -> Item {
    let name = delivery.key().unwrap().1.to_string();
    over(delivery, applied(&[write("effect", &[text(&name)]), write("effect", &[Value::Null])]))
}

pub(crate) fn failed(class: Class, code: &str) -> Outcome {
    Outcome::Failed(Failure::new(class, code, "it failed"))
}

/// The n-th outgoing event of a key.
pub(crate) fn outgoing(handler: &str, key: &str, destination: &str, position: u32) -> StagedEvent {
    StagedEvent {
        event_id: outgoing_event_id("acme", handler, &BusinessKey::new(key), 0, position),
        destination: destination.into(),
        position,
        event_type: "points.awarded".into(),
        subject: Some("user 1".into()),
        content_type: Some("text/plain".into()),
        schema: None,
        ordering_key: None,
        delay_ms: None,
        attributes: Vec::new(),
        headers: vec![Header::new("h", "1")],
        payload: b"hello".to_vec(),
    }
}

fn limits() -> Limits {
    Limits::from(&HOST_LIMITS)
}

const HOST_LIMITS: HostLimits = HostLimits {
    memory_bytes_max: 4 << 20,
    instances_max: 4,
    module_bytes_max: 1 << 20,
    payload_bytes_max: 1 << 20,
    key_bytes_max: 512,
    hops_max: HOPS_MAX,
    connections_max: 64,
};

fn handler_settings() -> config::Handler {
    config::Handler {
        owner: None,
        config: BTreeMap::new(),
        destinations: BTreeMap::new(),
        key: None,
        fingerprint: None,
        ordering: None,
        limits: HandlerLimits {
            run_time_max: None,
            memory_bytes_max: None,
            staged_rows_max: 100,
            staged_bytes_max: 1 << 20,
            events_max: 100,
            host_calls_max: 1000,
            log_lines_max: 10,
            result_bytes_max: 1024,
        },
        retry: HandlerRetry {
            attempts_max: None,
            first: None,
            factor: None,
            delay_max: None,
            deadline: None,
            short_attempts_max: None,
            deaths_max: None,
        },
    }
}

fn tenant_settings(unit_time_max: Duration) -> config::Tenant {
    config::Tenant {
        lanes: 4,
        slow_lanes: 2,
        slow_run: Duration::from_secs(60),
        unit_time_max,
        batch_max: 64,
        batch_bytes_max: 1 << 20,
        defer_after: 3,
        ack_gap: Duration::from_millis(100),
        tables: vec!["effect".into(), "once".into(), "points".into()],
        triggers: Vec::new(),
        store: config::Store::Sqlite { path: PathBuf::new(), schema: None },
        connections: BTreeMap::new(),
        sources: BTreeMap::new(),
        routes: Vec::new(),
        handlers: BTreeMap::new(),
        destinations: BTreeMap::new(),
    }
}

/// The same handler on its next version, one of whose statements has changed.
pub(crate) async fn next_version(target: &Target, statement: &str, sql: &str, group: &str) -> Target {
    let Target::Handler(handler, current) = target else { panic!("nobody has a version") };
    let mut next = deployed(false).await;
    next.id = DeploymentId(current.id.0 + 1);
    let ready = next.statements.get_mut(statement).unwrap();
    ready.sql = sql.into();
    ready.fold.form = sql.find(group).map(|at| fold::Form::Insert(at..at + group.len()));
    Target::Handler(handler.clone(), Arc::new(next))
}

async fn deployed(queries: bool) -> Deployed {
    let rule = Rule::parse("{/id}", &FingerprintSpec::Pointers(vec!["/v".into()]), None).unwrap();
    let settings = handler_settings();
    let module = module().await;
    let limits = RunLimits::of(&settings.limits, &module.manifest().limits);
    let destination =
        |name: &str, kind| BoundDestination { name: name.into(), kind, source_uri: "/oncebox/acme/plain".into() };
    let local = Destination::Local { source: "next".into() };
    let query = ReadyQuery {
        last_insert_id: false,
        sql: "SELECT count(*) FROM effect WHERE id > 0".into(),
        rows_max: 1,
        bytes_max: 1024,
        integers: Integers::Text,
    };
    Deployed {
        id: DeploymentId(1),
        module,
        rule_id: RuleId(1),
        rules: BTreeMap::from([(RuleId(1), rule.clone())]),
        rule,
        limits: Arc::new(limits),
        retry: RetryPolicy {
            attempts_max: ATTEMPTS_MAX,
            short_attempts_max: SHORT_ATTEMPTS_MAX,
            ..RetryPolicy::default()
        },
        config: Arc::default(),
        statements: statements(),
        queries: if queries { BTreeMap::from([("count".into(), query)]) } else { BTreeMap::new() },
        destinations: BTreeMap::from([
            ("next".into(), destination("to-next", local)),
            ("cdc".into(), destination("to-cdc", Destination::Table)),
        ]),
    }
}

fn statements() -> BTreeMap<String, ReadyStatement> {
    let statement = |sql: &str, mismatch, errors: &[(u32, Reaction)]| ReadyStatement {
        marks: marks(sql),
        last_insert_id: false,
        sql: sql.into(),
        rows: RowExpectation::Between { min: 1, max: 1 },
        mismatch,
        errors: errors.iter().cloned().collect(),
        fold: facts(sql),
    };
    let reject = || Reaction::Reject("odd".into());
    let once = "INSERT INTO once (code) VALUES (?)";
    let award = "UPDATE points SET points = points + 1 WHERE user_id = ?";
    BTreeMap::from([
        ("effect".into(), statement("INSERT INTO effect (name) VALUES (?)", Reaction::Retry, &[])),
        ("once".into(), statement(once, reject(), &[])),
        ("once-or-obsolete".into(), statement(once, reject(), &[(1062, Reaction::Obsolete)])),
        ("once-or-reject".into(), statement(once, reject(), &[(1062, Reaction::Reject("taken".into()))])),
        ("award-or-reject".into(), statement(award, reject(), &[])),
        ("award-or-retry".into(), statement(award, Reaction::Retry, &[])),
        ("award-or-obsolete".into(), statement(award, Reaction::Obsolete, &[])),
        ("missing-table".into(), statement("INSERT INTO absent (n) VALUES (1)", reject(), &[])),
    ])
}

/// What the gate would tell of a statement: the INSERTs with one row, and the UPDATEs of one, may be folded.
fn facts(sql: &str) -> fold::Facts {
    let table = sql.split_whitespace().nth(if sql.starts_with("INSERT") { 2 } else { 1 }).unwrap();
    let update = |mark| fold::UpdateForm {
        behind_verb: "UPDATE".len(),
        set: sql.find("SET").unwrap(),
        marks: vec![(mark, fold::Column::Signed)],
        keys: vec![0],
    };
    let form = match sql.find("(?)") {
        Some(at) => Some(fold::Form::Insert(at..at + 3)),
        None => sql.find('?').map(|mark| fold::Form::Update(update(mark))),
    };
    fold::Facts { touches: Some([table.to_owned()].into()), form, rows: fold::RowsOfAll::OneEach }
}

/// One engine and one module for all tests.
async fn module() -> Arc<Module> {
    static MODULE: OnceCell<(Arc<Module>, TempDir)> = OnceCell::const_new();
    let load = async || {
        let compiler = Compiler::new(env!("CARGO_BIN_EXE_compile-child"), [] as [&str; 0]);
        let engine = Engine::with_compiler(&EngineLimits::from(&HOST_LIMITS), compiler).unwrap();
        let cache = TempDir::new().unwrap();
        let module = engine.load(&wat_component(&source("probes/count"), MANIFEST), cache.path()).await.unwrap();
        (module, cache)
    };
    MODULE.get_or_init(load).await.0.clone()
}

/// Each `?` of a text in which all of them stand by themselves.
fn marks(sql: &str) -> Vec<Mark> {
    sql.match_indices('?').map(|(at, _)| Mark { at, is_alone: true }).collect()
}
