//! A place that holds messages, of one kind, and hosts that take from it.

use std::{
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use lapin::BasicProperties;
use oncebox::{
    clock,
    host::Health,
    source::{
        Conditions, Intake, LocalSource, Origin, RabbitmqSource, RabbitmqSupply, Receipt, Settle, Source, Supply, Taken,
    },
    store::{Store, Use, sqlite::SqliteStore},
};
use oncebox_core::{
    config::{self, Address, Declare, Hidden, Rabbitmq, RabbitmqQueue, Secret, Tls, TlsMode},
    identify::{Limits, message_hash},
    message::Message,
};
use oncebox_tests::{
    patience::PATIENCE,
    services::{Counts, Server, Vhost},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle};

use crate::admin::Admin;

/// What is consumed.
pub(crate) const QUEUE: &str = "orders";

/// Messages in memory, at most, unless a case says otherwise.
pub(crate) const PREFETCH: u16 = 10;

/// Longer than anything takes that is not forbidden; only for what must not happen.
pub(crate) const QUIET: Duration = Duration::from_millis(400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Quorum,
    Classic,
}

pub(crate) struct Bench {
    place: Place,
}

enum Place {
    Local { store: Arc<SqliteStore>, _dir: TempDir },
    Rabbitmq(Box<Rabbit>),
}

/// A queue on a real server.
pub(crate) struct Rabbit {
    // Closed before its virtual host is deleted.
    pub(crate) admin: Admin,
    pub(crate) vhost: Vhost,
}

/// How a host's source differs from the usual.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) prefetch: u16,
    pub(crate) declare: Declare,
    pub(crate) ack_gap: Duration,
    pub(crate) cancel_after: Duration,
    pub(crate) served: bool,
    pub(crate) keeps_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefetch: PREFETCH,
            declare: Declare::Passive,
            ack_gap: Duration::from_millis(100),
            cancel_after: Duration::from_secs(60),
            served: true,
            keeps_order: false,
        }
    }
}

/// One host's side of a source.
pub(crate) struct Host {
    source: Arc<dyn Source>,
    /// The same, where it is one of RabbitMQ.
    rabbitmq: Option<Arc<RabbitmqSource>>,
    keeper: JoinHandle<()>,
    pub(crate) served: watch::Sender<bool>,
    pub(crate) keeps_order: watch::Sender<bool>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) away: watch::Sender<Option<Instant>>,
    pub(crate) health: Arc<Health>,
}

impl Deref for Host {
    type Target = dyn Source;

    fn deref(&self) -> &Self::Target {
        self.source.as_ref()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// A message in memory, as the road has it.
pub(crate) struct Held {
    pub(crate) receipt: Receipt,
    pub(crate) message: Arc<Message>,
    pub(crate) at_risk: Option<String>,
    _origin: Arc<Origin>,
}

impl Held {
    pub(crate) fn body(&self) -> String {
        String::from_utf8_lossy(&self.message.body).into_owned()
    }
}

/// The bodies, in order.
pub(crate) fn bodies(held: &[Held]) -> Vec<String> {
    held.iter().map(Held::body).collect()
}

/// The receipts, in order.
pub(crate) fn receipts(held: &[Held]) -> Vec<Receipt> {
    held.iter().map(|held| held.receipt).collect()
}

impl Bench {
    pub(crate) async fn new(kind: Kind) -> Self {
        let place = match kind {
            Kind::Local => {
                let dir = TempDir::new().unwrap();
                let store = SqliteStore::open(&dir.path().join("tenant.db"), None, Use::Host).await.unwrap();
                Place::Local { store, _dir: dir }
            }
            Kind::Quorum | Kind::Classic => {
                let vhost = Vhost::create(&Server::rabbitmq());
                vhost.declare_queue(QUEUE, &kind.arguments());
                Place::Rabbitmq(Box::new(Rabbit { admin: Admin::open(&vhost).await, vhost }))
            }
        };
        Self { place }
    }

    /// Where the queue is.
    pub(crate) fn rabbit(&self) -> &Rabbit {
        match &self.place {
            Place::Rabbitmq(rabbit) => rabbit,
            Place::Local { .. } => panic!("a case of RabbitMQ"),
        }
    }

    pub(crate) fn vhost(&self) -> &Vhost {
        &self.rabbit().vhost
    }

    pub(crate) fn vhost_mut(&mut self) -> &mut Vhost {
        match &mut self.place {
            Place::Rabbitmq(rabbit) => &mut rabbit.vhost,
            Place::Local { .. } => panic!("a case of RabbitMQ"),
        }
    }

    /// Waits until the place holds nothing any more.
    pub(crate) fn all_settled(&self) {
        if let Place::Rabbitmq(rabbit) = &self.place {
            rabbit.vhost.wait_for(QUEUE, Counts { ready: 0, unacked: 0 });
        }
    }

    /// Whom the broker has seen a certificate of.
    pub(crate) async fn peer_certificate(&self) -> String {
        let path = format!("/vhosts/{}/connections", self.vhost().name);
        let ask = async || {
            let answer = self.vhost().api().ask("GET", &path, None);
            let subjects = answer.as_array()?.iter().find_map(|c| c["peer_cert_subject"].as_str().map(str::to_owned));
            subjects.filter(|subject| !subject.is_empty())
        };
        eventually("a connection with a certificate", ask).await
    }

    /// Sends texts, so that the place has them when this returns.
    pub(crate) async fn send(&self, bodies: &[&str]) {
        match &self.place {
            Place::Local { store, .. } => {
                let message = |body: &&str| Message { body: body.as_bytes().to_vec(), ..Message::default() };
                let messages: Vec<_> = bodies.iter().map(message).collect();
                assert_eq!(store.local_offer(QUEUE, &messages).await.unwrap(), bodies.len() as u64);
            }
            Place::Rabbitmq(rabbit) => rabbit.admin.publish(QUEUE, bodies, BasicProperties::default()).await,
        }
    }

    /// How many messages the place has handed to nobody.
    pub(crate) async fn waiting(&self) -> u32 {
        match &self.place {
            // A look that takes nothing but what is free; the leases are over at once.
            Place::Local { store, .. } => {
                let token = oncebox_core::ids::LeaseToken([9; 16]);
                let free = store.local_claim(QUEUE, 1_000, token, Duration::ZERO).await.unwrap();
                u32::try_from(free.len()).unwrap()
            }
            Place::Rabbitmq(rabbit) => rabbit.admin.look(QUEUE).await.map_or(0, |(messages, _)| messages),
        }
    }

    /// Waits until the place has handed out all but so many.
    pub(crate) async fn wait_for_waiting(&self, count: u32) {
        eventually(&format!("{count} waiting"), async || (self.waiting().await == count).then_some(())).await;
    }

    /// A host with the usual settings.
    pub(crate) fn host(&self) -> Host {
        self.host_with(&Settings::default())
    }

    pub(crate) fn host_with(&self, settings: &Settings) -> Host {
        let connection = match &self.place {
            Place::Local { .. } => None,
            Place::Rabbitmq(rabbit) => Some(connection(&rabbit.vhost.url())),
        };
        self.host_at(connection, settings)
    }

    /// A host that reaches the broker in a way of its own.
    pub(crate) fn host_at(&self, connection: Option<Rabbitmq>, settings: &Settings) -> Host {
        let (served, is_served) = watch::channel(settings.served);
        let (keeps_order, order_is_kept) = watch::channel(settings.keeps_order);
        let (stop, stopping) = watch::channel(false);
        let (away, database_away) = watch::channel(None);
        let health = Arc::new(Health::default());
        let conditions = Conditions {
            served: is_served,
            keeps_order: order_is_kept,
            stopping,
            database_away,
            health: health.clone(),
        };
        let (source, rabbitmq) = match (&self.place, connection) {
            (Place::Rabbitmq(_), Some(connection)) => {
                let source = Arc::new(RabbitmqSource::new(intake(), supply(connection, settings, conditions)));
                (source.clone() as Arc<dyn Source>, Some(source))
            }
            (Place::Local { store, .. }, _) => {
                let supply = Supply {
                    store: store.clone(),
                    prefetch: settings.prefetch.into(),
                    batch_max: 1_000,
                    lease_time: Duration::from_secs(2),
                    served: conditions.served,
                    stopping: conditions.stopping,
                };
                (Arc::new(LocalSource::new(intake(), supply)) as Arc<dyn Source>, None)
            }
            (Place::Rabbitmq(_), None) => panic!("a broker is reached somehow"),
        };
        let kept = source.clone();
        let keeper = tokio::spawn(async move { kept.keep().await });
        Host { source, rabbitmq, keeper, served, keeps_order, stop, away, health }
    }
}

impl Kind {
    fn arguments(self) -> Value {
        match self {
            Self::Quorum => json!({ "x-queue-type": "quorum" }),
            Self::Classic | Self::Local => json!({ "x-queue-type": "classic" }),
        }
    }
}

impl Host {
    pub(crate) fn rabbitmq(&self) -> &RabbitmqSource {
        self.rabbitmq.as_deref().unwrap()
    }

    /// Takes what the source gives next.
    #[track_caller]
    pub(crate) fn take(&self) -> impl Future<Output = Vec<Held>> {
        let taken = tokio::time::timeout(PATIENCE, self.source.take());
        async {
            let taken = taken.await.unwrap_or_else(|_| panic!("nothing is handed over: {:?}", self.reason()));
            let taken = taken.expect("the source has ended");
            taken.into_iter().map(|taken| self.held(taken)).collect()
        }
    }

    /// Takes until there are so many.
    pub(crate) async fn take_all(&self, count: usize) -> Vec<Held> {
        let mut held = Vec::new();
        while held.len() < count {
            held.extend(self.take().await);
        }
        assert_eq!(held.len(), count, "{:?}", bodies(&held));
        held
    }

    /// Nothing is handed over for some time.
    pub(crate) async fn takes_nothing(&self) {
        if let Ok(taken) = tokio::time::timeout(QUIET, self.source.take()).await {
            panic!("{:?} were handed over", taken.map(|taken| taken.len()));
        }
    }

    fn held(&self, taken: Taken) -> Held {
        let Taken { receipt, message, hops, received_us, permit, is_redelivered, at_risk } = taken;
        let origin = Arc::new(Origin {
            source: QUEUE.into(),
            hash: message_hash(&message),
            message: message.clone(),
            envelope: None,
            hops,
            received_us,
            is_begun: is_redelivered,
            is_at_risk: at_risk.is_some(),
            settle: Some(Settle::new(receipt, 1, permit)),
        });
        self.source.watch(&origin);
        let at_risk = at_risk.map(|failure| failure.code);
        Held { receipt, message, at_risk, _origin: origin }
    }

    /// The process is gone, with all that it had in memory.
    pub(crate) async fn crash(mut self) {
        self.keeper.abort();
        let _ = (&mut self.keeper).await;
    }

    /// Ends in good order, with nothing in the lanes.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        (&mut self.keeper).await.unwrap();
        self.source.close().await;
    }

    /// Waits until the keeper has ended.
    pub(crate) async fn kept(&mut self) {
        tokio::time::timeout(PATIENCE, &mut self.keeper).await.expect("the keeper goes on").unwrap();
    }

    /// Why it does not consume; `None` when it does.
    pub(crate) fn reason(&self) -> Option<String> {
        let reasons = self.health.reasons();
        assert!(reasons.keys().all(|name| name == "tenant acme: source orders"), "{reasons:?}");
        reasons.into_values().next()
    }

    /// Waits until it says why it does not consume.
    #[track_caller]
    pub(crate) fn wait_for_reason(&self, part: &str) -> impl Future<Output = String> {
        let part = part.to_owned();
        async move {
            let asked = async || self.reason().filter(|reason| reason.contains(&part));
            eventually(&format!("the reason {part:?} (last: {:?})", self.reason()), asked).await
        }
    }

    /// Waits until it consumes.
    pub(crate) async fn consumes(&self) {
        eventually("consuming", async || self.reason().is_none().then_some(())).await;
    }
}

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    let (what, began) = (what.to_owned(), clock::monotonic());
    let caller = std::panic::Location::caller();
    async move {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(began.elapsed() < PATIENCE, "{caller}: not {what} in {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// How a URL of a test is reached, with the password in it.
pub(crate) fn connection(url: &str) -> Rabbitmq {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (login, rest) = rest.rsplit_once('@').unwrap();
    let (user, password) = login.split_once(':').unwrap();
    let (address, space) = rest.split_once('/').unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    Rabbitmq {
        address: Address {
            host: host.to_owned(),
            port: port.parse().unwrap(),
            user: user.to_owned(),
            space: space.to_owned(),
        },
        password: Some(Secret::Plain(Hidden(password.to_owned()))),
        tls: Tls {
            mode: if scheme == "amqps" { TlsMode::VerifyIdentity } else { TlsMode::Off },
            ca_file: None,
            client: None,
        },
        heartbeat: Duration::from_secs(10),
    }
}

fn supply(connection: Rabbitmq, settings: &Settings, conditions: Conditions) -> RabbitmqSupply {
    RabbitmqSupply {
        connection,
        queue: RabbitmqQueue {
            connection: "broker".into(),
            queue: QUEUE.into(),
            declare: settings.declare,
            cancel_after: settings.cancel_after,
        },
        prefetch: settings.prefetch,
        ack_gap: settings.ack_gap,
        conditions,
    }
}

fn intake() -> Intake {
    let text = r#"
        [tenants.acme]
        store = { kind = "sqlite", path = "acme.db" }
        tables = ["points"]
        [tenants.acme.sources.orders]
        kind = "local"
        [tenants.acme.handlers.points]
        [[tenants.acme.routes]]
        source = "orders"
        handlers = ["points"]
    "#;
    let (config, _) = config::read(&[("oncebox.toml".to_owned(), text.to_owned())]).unwrap();
    let tenant = &config.tenants["acme"];
    Intake::new(&"acme".into(), tenant, QUEUE, &tenant.sources[QUEUE], Limits::from(&config.host.limits))
}
