//! What the operator says: the types of `oncebox.toml` and `tenants.d/*.toml`, all defaults filled in.

mod access;
mod connection;
mod handler;
mod host;
mod keys;
mod read;
mod routes;
mod secrets;
mod server;
mod source;
mod store;
mod tenant;
mod url;

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, time::Duration};

pub use self::{
    access::{Address, Hidden, Secret, Tls, TlsClient, TlsMode},
    keys::reference,
    read::read,
    routes::common_type,
    url::{Server, ServerUrl, UrlError},
};
use crate::{manifest::FingerprintSpec, text::TextError};

/// The whole configuration of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `[host]`.
    pub host: Host,
    /// `[tenants.NAME]`, also from `tenants.d/NAME.toml`.
    pub tenants: BTreeMap<String, Tenant>,
}

/// `[host]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// `name`; `None`: the machine's host name.
    pub name: Option<String>,
    /// `data_dir`: module cache and embedded stores; relative paths start at the configuration file's folder.
    pub data_dir: PathBuf,
    /// `listen`: /livez, /readyz, /metrics; `None` when `""`.
    pub listen: Option<SocketAddr>,
    /// `drain_time_ms`.
    pub drain_time: Duration,
    /// `lease_time_ms`.
    pub lease_time: Duration,
    /// `heartbeat_ms`: how often this host's life is written down.
    pub heartbeat: Duration,
    /// `boot_timeout_ms`: a boot not seen for so long is over.
    pub boot_timeout: Duration,
    /// `log`.
    pub log: LogFormat,
    /// `[host.limits]`.
    pub limits: HostLimits,
}

/// `host.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Human on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// `[host.limits]`: ceilings for every tenant and handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostLimits {
    /// Bytes an instance may have, all memories and tables together.
    pub memory_bytes_max: u64,
    /// Instances alive at the same time.
    pub instances_max: u32,
    /// Bytes of a packed module.
    pub module_bytes_max: u64,
    /// Bytes of a message's body.
    pub payload_bytes_max: u64,
    /// Bytes of a rendered business or ordering key; at most 512.
    pub key_bytes_max: u32,
    /// Handler to handler over `local`.
    pub hops_max: u8,
    /// Connections of lanes to databases, all tenants together; embedded stores have none.
    pub connections_max: u32,
}

/// `[tenants.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// `lanes`: workers with a connection of their own; one on the embedded store.
    pub lanes: u16,
    /// `slow_lanes`: the same, for slow runs.
    pub slow_lanes: u16,
    /// `slow_run_ms`: a run not over by then leaves its batch for a slow lane.
    pub slow_run: Duration,
    /// `unit_time_ms_max`: bounds the unit of work of handlers with queries.
    pub unit_time_max: Duration,
    /// `batch_max`: events in one unit of work.
    pub batch_max: usize,
    /// `batch_bytes_max`: payload bytes in one unit of work.
    pub batch_bytes_max: u64,
    /// `defer_after`: tries of an event whose own statement waits too long for a lock, before it is put aside.
    pub defer_after: u32,
    /// `ack_gap_ms`: what is decided beyond a gap older than that is acked singly.
    pub ack_gap: Duration,
    /// `tables`: what plugins may name.
    pub tables: Vec<String>,
    /// `triggers`: `table.trigger` that the operator allows.
    pub triggers: Vec<String>,
    /// `[store]`.
    pub store: Store,
    /// `[connections.NAME]`: brokers.
    pub connections: BTreeMap<String, Connection>,
    /// `[sources.NAME]`.
    pub sources: BTreeMap<String, Source>,
    /// `[[routes]]`, in order.
    pub routes: Vec<Route>,
    /// `[handlers.NAME]`.
    pub handlers: BTreeMap<String, Handler>,
    /// `[destinations.NAME]`.
    pub destinations: BTreeMap<String, Destination>,
}

impl Tenant {
    /// Events that a slow lane takes at once: more runs of `slow_run` are not over within `unit_time_max`, and what is
    /// taken beyond them would be looked up for nothing.
    #[must_use]
    pub fn slow_batch_max(&self) -> usize {
        let runs = self.unit_time_max.as_millis() / self.slow_run.as_millis().max(1) + 1;
        usize::try_from(runs).unwrap_or(usize::MAX).min(self.batch_max)
    }
}

/// `[tenants.NAME.store]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// `kind = "sqlite"`.
    Sqlite {
        /// `path`, relative to `data_dir`.
        path: PathBuf,
        /// `schema`: run once, when the file is made; relative to the configuration file's folder.
        schema: Option<PathBuf>,
    },
    /// `kind = "mysql"`: MySQL or MariaDB.
    Mysql(Box<Mysql>),
}

/// `[tenants.NAME.store]` with `kind = "mysql"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mysql {
    /// `url`: `mysql://USER@HOST:PORT/DATABASE`.
    pub address: Address,
    /// `password`; from `url` if it stands there.
    pub password: Option<Secret>,
    /// `migrate_url`: the same with the user whom `oncebox migrate` speaks as; a whole url, password included.
    pub migrate_url: Option<Secret>,
    /// `tls`, `ca_file`, `cert_file`, `key_file`.
    pub tls: Tls,
    /// `lock_wait_s`: the longest wait of a statement for a lock.
    pub lock_wait: Duration,
    /// `idle_timeout_s`: the server ends a session that is idle for so long; a lane closes its own before.
    pub idle_timeout: Duration,
    /// `durability`.
    pub durability: Durability,
}

/// `durability`: what becomes of server settings under which a committed unit of work could be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The host refuses to start.
    Strict,
    /// It warns.
    Warn,
}

/// `[tenants.NAME.connections.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// `kind = "rabbitmq"`.
    Rabbitmq(Box<Rabbitmq>),
}

/// `[tenants.NAME.connections.NAME]` with `kind = "rabbitmq"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rabbitmq {
    /// `url`: `amqp://USER@HOST:PORT/VHOST` or `amqps://…`.
    pub address: Address,
    /// `password`; from `url` if it stands there.
    pub password: Option<Secret>,
    /// By the scheme of `url`, with `ca_file`, `cert_file`, `key_file`.
    pub tls: Tls,
    /// `heartbeat_s`.
    pub heartbeat: Duration,
}

/// `[tenants.NAME.sources.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// `kind` and what belongs to it.
    pub kind: SourceKind,
    /// `prefetch`: messages taken and not settled; default 2 × `batch_max` × lanes.
    pub prefetch: usize,
    /// `unrouted`.
    pub unrouted: Unrouted,
    /// `envelope`.
    pub envelope: crate::envelope::EnvelopeRule,
}

/// The kinds of sources that this version has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// A table of the tenant's own database.
    Local,
    /// A queue of RabbitMQ.
    Rabbitmq(RabbitmqQueue),
}

/// `[tenants.NAME.sources.NAME]` with `kind = "rabbitmq"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RabbitmqQueue {
    /// `connection`: a name of `[connections]`.
    pub connection: String,
    /// `queue`.
    pub queue: String,
    /// `declare`.
    pub declare: Declare,
    /// `cancel_after_ms`: with the database away so long, the consumer is cancelled; its deliveries are kept.
    pub cancel_after: Duration,
}

/// `declare`: whether the host makes the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declare {
    /// It must be there.
    Passive,
    /// Made as a quorum queue if it is not there.
    Quorum,
    /// Made as a durable classic queue if it is not there.
    Classic,
}

/// `unrouted`: what becomes of a message that no route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrouted {
    /// A dead letter.
    Dead,
    /// Settled and counted.
    Ignore,
}

/// `[[tenants.NAME.routes]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name of the source.
    pub source: String,
    /// Event types that it takes; empty: all; a trailing `*` matches any rest.
    pub event_types: Vec<String>,
    /// Handlers that get the event.
    pub handlers: Vec<String>,
}

/// `[tenants.NAME.handlers.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    /// `owner`: shown with every dead letter.
    pub owner: Option<String>,
    /// `config`: values for the plugin.
    pub config: BTreeMap<String, String>,
    /// `destinations`: the manifest's name → the tenant's destination.
    pub destinations: BTreeMap<String, String>,
    /// `key`: overrides the manifest's template.
    pub key: Option<String>,
    /// `fingerprint`: overrides the manifest's.
    pub fingerprint: Option<FingerprintSpec>,
    /// `ordering`: overrides the manifest's template.
    pub ordering: Option<String>,
    /// `[limits]`.
    pub limits: HandlerLimits,
    /// `[retry]`.
    pub retry: HandlerRetry,
}

/// `[tenants.NAME.handlers.NAME.limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandlerLimits {
    /// Wall time of one run; `None`: the manifest's, else 1 s.
    pub run_time_max: Option<Duration>,
    /// Bytes of an instance; `None`: the manifest's, else 16 MiB.
    pub memory_bytes_max: Option<u64>,
    /// Staged writes of one event.
    pub staged_rows_max: u32,
    /// Bytes of staged values, emitted events included.
    pub staged_bytes_max: u64,
    /// Emitted events.
    pub events_max: u32,
    /// Host calls of one run.
    pub host_calls_max: u32,
    /// Log lines of one run.
    pub log_lines_max: u32,
    /// Bytes of the result kept with the inbox row.
    pub result_bytes_max: u32,
}

/// `[tenants.NAME.handlers.NAME.retry]`; `None`: the manifest's, else the default of [`crate::retry::RetryPolicy`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandlerRetry {
    /// Counted attempts before dead.
    pub attempts_max: Option<u32>,
    /// First delay.
    pub first: Option<Duration>,
    /// Growth from one delay to the next.
    pub factor: Option<f64>,
    /// Longest delay.
    pub delay_max: Option<Duration>,
    /// From the first receipt on.
    pub deadline: Option<Duration>,
    /// Counted attempts of traps, limits and 1062.
    pub short_attempts_max: Option<u32>,
    /// Ends of the host's process with nothing but the event running; `None`: 2.
    pub deaths_max: Option<u32>,
}

/// `[tenants.NAME.destinations.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// `kind = "local"`: another source of this tenant, in the same transaction.
    Local {
        /// The source's name.
        source: String,
    },
    /// `kind = "table"`: a row of `ob_outbox` in state `kept`.
    Table,
}

/// What would not stop a host from starting, and is most likely not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(pub TextError);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("warning", f)
    }
}

#[cfg(test)]
mod tests;

/// Whether an event type is meant by a pattern: equal, or with a trailing `*` that matches any rest.
#[must_use]
pub fn type_matches(pattern: &str, event_type: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == event_type, |start| event_type.starts_with(start))
}
