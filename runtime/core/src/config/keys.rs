//! The keys of `oncebox.toml` and `tenants.d/NAME.toml`: what the reader accepts and the reference page prints.

use super::{
    LogFormat, Unrouted,
    source::{Format, TimeForm},
};
use crate::{
    document::{
        form::{self, EVENT_TYPE, HOST_NAME, LINE, NAME, PATH, TABLE_NAME, TEMPLATE, TRIGGER},
        key::{Key, Nested, Section},
        page,
        shape::{Absent, Form, Integer, Kind, MaybeFloat, MaybeInteger, MaybeText, OneOf, Text, Texts},
    },
    manifest::{ATTEMPTS, DEADLINE, MEMORY_BYTES, MaybeFingerprint, RUN_TIME_MS},
};

static LISTEN_FORM: Form = Form {
    shown: "address and port, such as `127.0.0.1:8420`, or `\"\"`",
    check: |text| match text.is_empty() || text.parse::<std::net::SocketAddr>().is_ok() {
        true => Ok(()),
        false => Err(format!("is {}, which is no address and port", crate::text::quoted(text))),
    },
};

/// SQLite takes some names for something else than a file (sqlite.org, "In-Memory Databases", "URI Filenames").
static STORE_PATH_FORM: Form = Form {
    shown: "path of a file, 1 to 4_096 bytes",
    check: |text| {
        (PATH.check)(text)?;
        match text.starts_with(':') || text.starts_with("file:") {
            true => Err(format!("is {}, which names no file", crate::text::quoted(text))),
            false => Ok(()),
        }
    },
};

pub(super) static HOST: Nested =
    Nested { name: "host", shape: "table", absent: "the defaults", means: "what holds for the whole host" };
pub(super) static TENANTS: Nested = Nested {
    name: "tenants",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the tenants; each may stand in a file of its own, `tenants.d/NAME.toml`, with the same keys",
};

/// The whole file.
pub(super) static FILE: Section =
    Section { path: "", about: "The configuration of one host.", keys: &[&HOST, &TENANTS] };

pub(super) static HOST_NAME_KEY: Key<MaybeText> = Key {
    name: "name",
    shape: MaybeText { form: &HOST_NAME, absent: "the machine's host name" },
    means: "the name under which this host is seen",
};
pub(super) static DATA_DIR: Key<Text> = Key {
    name: "data_dir",
    shape: Text { form: &PATH, default: Some("./data") },
    means: "module cache and embedded stores; a relative path starts at the configuration file's folder",
};
pub(super) static LISTEN: Key<Text> = Key {
    name: "listen",
    shape: Text { form: &LISTEN_FORM, default: Some("127.0.0.1:8420") },
    means: "where /livez, /readyz and /metrics are served; `\"\"`: nowhere",
};
pub(super) static DRAIN_TIME_MS: Key<Integer<u64>> = Key {
    name: "drain_time_ms",
    shape: Integer { min: 1, max: 600_000, default: 25_000 },
    means: "milliseconds that a host which is told to stop gives to what is in flight",
};
pub(super) static LEASE_TIME_MS: Key<Integer<u64>> = Key {
    name: "lease_time_ms",
    shape: Integer { min: 100, max: 3_600_000, default: 30_000 },
    means: "milliseconds for which a host may work on a row that it has claimed",
};
pub(super) static LOG: Key<OneOf<LogFormat>> = Key {
    name: "log",
    shape: OneOf {
        choices: &[("auto", LogFormat::Auto), ("human", LogFormat::Human), ("json", LogFormat::Json)],
        absent: Absent::Default(LogFormat::Auto),
    },
    means: "the form of log lines; `\"auto\"`: for people on a terminal, JSON otherwise",
};
pub(super) static HOST_LIMITS: Nested =
    Nested { name: "limits", shape: "table", absent: "the defaults", means: "ceilings for every tenant and handler" };

/// `[host]`.
pub(super) static HOST_SECTION: Section = Section {
    path: "host",
    about: "What holds for the whole host.",
    keys: &[&HOST_NAME_KEY, &DATA_DIR, &LISTEN, &DRAIN_TIME_MS, &LEASE_TIME_MS, &LOG, &HOST_LIMITS],
};

pub(super) static HOST_MEMORY_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "memory_bytes_max",
    shape: Integer { min: MEMORY_BYTES.min, max: MEMORY_BYTES.max, default: 67_108_864 },
    means: "bytes that an instance may have, all memories and tables together",
};
pub(super) static INSTANCES_MAX: Key<Integer<u32>> = Key {
    name: "instances_max",
    shape: Integer { min: 1, max: 10_000, default: 64 },
    means: "instances alive at the same time",
};
pub(super) static MODULE_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "module_bytes_max",
    shape: Integer { min: 1, max: 268_435_456, default: 33_554_432 },
    means: "bytes of a packed module",
};
pub(super) static PAYLOAD_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "payload_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 4_194_304 },
    means: "bytes of a message's body",
};
pub(super) static KEY_BYTES_MAX: Key<Integer<u32>> = Key {
    name: "key_bytes_max",
    shape: Integer { min: 1, max: 512, default: 512 },
    means: "bytes of a rendered business or ordering key",
};
pub(super) static HOPS_MAX: Key<Integer<u8>> = Key {
    name: "hops_max",
    shape: Integer { min: 1, max: 255, default: 16 },
    means: "hops from handler to handler over `local`",
};

/// `[host.limits]`.
pub(super) static HOST_LIMITS_SECTION: Section = Section {
    path: "host.limits",
    about: "Ceilings for every tenant and handler.",
    keys: &[&HOST_MEMORY_BYTES_MAX, &INSTANCES_MAX, &MODULE_BYTES_MAX, &PAYLOAD_BYTES_MAX, &KEY_BYTES_MAX, &HOPS_MAX],
};

pub(super) static SLOW_RUN_MS: Key<Integer<u64>> = Key {
    name: "slow_run_ms",
    shape: Integer { min: 1, max: 60_000, default: 20 },
    means: "milliseconds after which a run leaves its batch and finishes in a slow lane",
};
pub(super) static UNIT_TIME_MS_MAX: Key<Integer<u64>> = Key {
    name: "unit_time_ms_max",
    shape: Integer { min: 1, max: 60_000, default: 100 },
    means: "milliseconds after which the unit of work of handlers with queries takes no further event",
};
pub(super) static BATCH_MAX: Key<Integer<u16>> =
    Key { name: "batch_max", shape: Integer { min: 1, max: 4_096, default: 256 }, means: "events in one unit of work" };
pub(super) static BATCH_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "batch_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 4_194_304 },
    means: "payload bytes in one unit of work",
};
pub(super) static TABLES: Key<Texts> = Key {
    name: "tables",
    shape: Texts { form: &TABLE_NAME, items_min: 0, absent: "none" },
    means: "the business tables that plugins may name",
};
pub(super) static TRIGGERS: Key<Texts> = Key {
    name: "triggers",
    shape: Texts { form: &TRIGGER, items_min: 0, absent: "none" },
    means: "the triggers that the operator allows on those tables",
};
pub(super) static STORE: Nested = Nested {
    name: "store",
    shape: "table",
    absent: "required",
    means: "the tenant's database, with its business tables and those of Oncebox",
};
pub(super) static SOURCES: Nested = Nested {
    name: "sources",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "where events come from",
};
pub(super) static ROUTES: Nested = Nested {
    name: "routes",
    shape: "array of tables",
    absent: "none",
    means: "which handlers get which events of a source",
};
pub(super) static HANDLERS: Nested = Nested {
    name: "handlers",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the tenant's handlers; which module one runs is a deployment",
};
pub(super) static DESTINATIONS: Nested = Nested {
    name: "destinations",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "where handlers may emit events to",
};

/// `[tenants.NAME]`.
pub(super) static TENANT: Section = Section {
    path: "tenants.NAME",
    about: "One tenant. In `tenants.d/NAME.toml` the same keys stand at the top.",
    keys: &[
        &SLOW_RUN_MS,
        &UNIT_TIME_MS_MAX,
        &BATCH_MAX,
        &BATCH_BYTES_MAX,
        &TABLES,
        &TRIGGERS,
        &STORE,
        &SOURCES,
        &ROUTES,
        &HANDLERS,
        &DESTINATIONS,
    ],
};

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    Sqlite,
}

pub(super) static STORE_KIND: Key<Kind<StoreKind>> = Key {
    name: "kind",
    shape: Kind { known: &[("sqlite", StoreKind::Sqlite)], elsewhere: &["mysql"] },
    means: "what the store is; `\"sqlite\"` is the embedded one, for one host",
};
pub(super) static STORE_PATH: Key<Text> = Key {
    name: "path",
    shape: Text { form: &STORE_PATH_FORM, default: None },
    means: "the database's file, relative to `host.data_dir`; no two tenants have the same",
};
pub(super) static SCHEMA: Key<MaybeText> = Key {
    name: "schema",
    shape: MaybeText { form: &PATH, absent: "none" },
    means: "a file of SQL that is run once, when the database's file is made; relative to the configuration file's folder",
};

/// `[tenants.NAME.store]`.
pub(super) static STORE_SECTION: Section = Section {
    path: "tenants.NAME.store",
    about: "The tenant's own database.",
    keys: &[&STORE_KIND, &STORE_PATH, &SCHEMA],
};

pub(super) static SOURCE_KIND: Key<Kind<super::SourceKind>> = Key {
    name: "kind",
    shape: Kind { known: &[("local", super::SourceKind::Local)], elsewhere: &["rabbitmq", "kafka", "http"] },
    means: "what the source is; `\"local\"` is a table of the tenant's own database",
};
pub(super) static PREFETCH: Key<MaybeInteger<u16>> = Key {
    name: "prefetch",
    shape: MaybeInteger { min: 1, max: 65_535, absent: "8 × `batch_max`" },
    means: "messages taken and not settled",
};
pub(super) static UNROUTED: Key<OneOf<Unrouted>> = Key {
    name: "unrouted",
    shape: OneOf {
        choices: &[("dead", Unrouted::Dead), ("ignore", Unrouted::Ignore)],
        absent: Absent::Default(Unrouted::Dead),
    },
    means: "what becomes of a message that no route takes: a dead letter, or settled and counted",
};
pub(super) static ENVELOPE: Nested = Nested {
    name: "envelope",
    shape: "table",
    absent: "CloudEvents",
    means: "where type, id and time of an event come from",
};

/// `[tenants.NAME.sources.NAME]`.
pub(super) static SOURCE: Section = Section {
    path: "tenants.NAME.sources.NAME",
    about: "A queue, topic, endpoint or table that events come from.",
    keys: &[&SOURCE_KIND, &PREFETCH, &UNROUTED, &ENVELOPE],
};

pub(super) static FORMAT: Key<OneOf<Format>> = Key {
    name: "format",
    shape: OneOf {
        choices: &[
            ("auto", Format::Auto),
            ("structured", Format::Structured),
            ("binary", Format::Binary),
            ("raw", Format::Raw),
        ],
        absent: Absent::Default(Format::Auto),
    },
    means: "CloudEvents in structured or binary mode, or a body without an envelope; `\"auto\"` tells by the message",
};
pub(super) static ENVELOPE_EVENT_TYPE: Key<MaybeText> = Key {
    name: "event_type",
    shape: MaybeText { form: &TEMPLATE, absent: "none" },
    means: "template of the event type",
};
pub(super) static ENVELOPE_ID: Key<MaybeText> =
    Key { name: "id", shape: MaybeText { form: &TEMPLATE, absent: "none" }, means: "template of the event id" };
pub(super) static ENVELOPE_TIME: Key<MaybeText> =
    Key { name: "time", shape: MaybeText { form: &TEMPLATE, absent: "none" }, means: "template of the event time" };
pub(super) static TIME_FORMAT: Key<OneOf<TimeForm>> = Key {
    name: "time_format",
    shape: OneOf {
        choices: &[("rfc3339", TimeForm::Rfc3339), ("unix-s", TimeForm::UnixS), ("unix-ms", TimeForm::UnixMs)],
        absent: Absent::Default(TimeForm::Rfc3339),
    },
    means: "how `time` is written; refused without `time`, where it would do nothing",
};

/// `[tenants.NAME.sources.NAME.envelope]`.
pub(super) static ENVELOPE_SECTION: Section = Section {
    path: "tenants.NAME.sources.NAME.envelope",
    about: "Where type, id and time of an event come from, for messages that are no CloudEvents.",
    keys: &[&FORMAT, &ENVELOPE_EVENT_TYPE, &ENVELOPE_ID, &ENVELOPE_TIME, &TIME_FORMAT],
};

pub(super) static ROUTE_SOURCE: Key<Text> =
    Key { name: "source", shape: Text { form: &NAME, default: None }, means: "the name of the source" };
pub(super) static ROUTE_EVENT_TYPES: Key<Texts> = Key {
    name: "event_types",
    shape: Texts { form: &EVENT_TYPE, items_min: 0, absent: "all" },
    means: "the event types that it takes",
};
pub(super) static ROUTE_HANDLERS: Key<Texts> = Key {
    name: "handlers",
    shape: Texts { form: &NAME, items_min: 1, absent: "" },
    means: "the handlers that get the event; a handler gets an event of a source by one route only",
};

/// `[[tenants.NAME.routes]]`.
pub(super) static ROUTE: Section = Section {
    path: "tenants.NAME.routes[]",
    about: "Which handlers get which events of a source. A message is settled when all its handlers have decided.",
    keys: &[&ROUTE_SOURCE, &ROUTE_EVENT_TYPES, &ROUTE_HANDLERS],
};

pub(super) static OWNER: Key<MaybeText> = Key {
    name: "owner",
    shape: MaybeText { form: &LINE, absent: "none" },
    means: "whom to ask; shown with every dead letter",
};
pub(super) static CONFIG: Nested = Nested {
    name: "config",
    shape: "table of texts by name, `[a-z0-9_-]{1,64}`",
    absent: "none",
    means: "the values that the plugin may read",
};
pub(super) static BINDINGS: Nested = Nested {
    name: "destinations",
    shape: "table: the manifest's name = the tenant's destination",
    absent: "none",
    means: "what the manifest's destinations are bound to",
};
pub(super) static KEY_OVERRIDE: Key<MaybeText> = Key {
    name: "key",
    shape: MaybeText { form: &TEMPLATE, absent: "the manifest's" },
    means: "overrides the manifest's template of the business key",
};
pub(super) static FINGERPRINT_OVERRIDE: Key<MaybeFingerprint> = Key {
    name: "fingerprint",
    shape: MaybeFingerprint { required: false, absent: "the manifest's" },
    means: "overrides the manifest's fingerprint",
};
pub(super) static LIMITS: Nested =
    Nested { name: "limits", shape: "table", absent: "the defaults", means: "limits of one event or instance" };
pub(super) static RETRY: Nested =
    Nested { name: "retry", shape: "table", absent: "the manifest's", means: "when a failed event is tried again" };

/// `[tenants.NAME.handlers.NAME]`.
pub(super) static HANDLER: Section = Section {
    path: "tenants.NAME.handlers.NAME",
    about: "What a handler is bound to.",
    keys: &[&OWNER, &CONFIG, &BINDINGS, &KEY_OVERRIDE, &FINGERPRINT_OVERRIDE, &LIMITS, &RETRY],
};

pub(super) static RUN_TIME_MS_MAX: Key<MaybeInteger<u64>> = Key {
    name: "run_time_ms_max",
    shape: MaybeInteger { absent: "the manifest's, else `1_000`", ..RUN_TIME_MS },
    means: "wall milliseconds of one run",
};
pub(super) static MEMORY_BYTES_MAX: Key<MaybeInteger<u64>> = Key {
    name: "memory_bytes_max",
    shape: MaybeInteger { absent: "the manifest's, else `16_777_216`", ..MEMORY_BYTES },
    means: "bytes of an instance, all memories and tables together; at most `host.limits.memory_bytes_max`",
};
pub(super) static STAGED_ROWS_MAX: Key<Integer<u32>> = Key {
    name: "staged_rows_max",
    shape: Integer { min: 1, max: 10_000, default: 64 },
    means: "staged writes of one event",
};
pub(super) static STAGED_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "staged_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 1_048_576 },
    means: "bytes of the staged values of one event, emitted events included",
};
pub(super) static EVENTS_MAX: Key<Integer<u32>> = Key {
    name: "events_max",
    shape: Integer { min: 0, max: 10_000, default: 16 },
    means: "events that one event may emit",
};
pub(super) static HOST_CALLS_MAX: Key<Integer<u32>> = Key {
    name: "host_calls_max",
    shape: Integer { min: 1, max: 10_000_000, default: 10_000 },
    means: "host calls of one run",
};
pub(super) static LOG_LINES_MAX: Key<Integer<u32>> =
    Key { name: "log_lines_max", shape: Integer { min: 0, max: 10_000, default: 100 }, means: "log lines of one run" };
pub(super) static RESULT_BYTES_MAX: Key<Integer<u32>> = Key {
    name: "result_bytes_max",
    shape: Integer { min: 0, max: 1_024, default: 1_024 },
    means: "bytes of the result that is kept with the inbox row",
};

/// `[tenants.NAME.handlers.NAME.limits]`.
pub(super) static LIMITS_SECTION: Section = Section {
    path: "tenants.NAME.handlers.NAME.limits",
    about: "Limits of one event or instance.",
    keys: &[
        &RUN_TIME_MS_MAX,
        &MEMORY_BYTES_MAX,
        &STAGED_ROWS_MAX,
        &STAGED_BYTES_MAX,
        &EVENTS_MAX,
        &HOST_CALLS_MAX,
        &LOG_LINES_MAX,
        &RESULT_BYTES_MAX,
    ],
};

pub(super) static ATTEMPTS_MAX: Key<MaybeInteger<u32>> = Key {
    name: "attempts_max",
    shape: MaybeInteger { absent: "the manifest's, else `12`", ..ATTEMPTS },
    means: "counted attempts before an event is dead",
};
pub(super) static FIRST_MS: Key<MaybeInteger<u64>> = Key {
    name: "first_ms",
    shape: MaybeInteger { min: 1, max: 86_400_000, absent: "`1_000`" },
    means: "milliseconds of the first delay; not above `delay_ms_max`",
};
pub(super) static FACTOR: Key<MaybeFloat> = Key {
    name: "factor",
    shape: MaybeFloat { min: 1.0, max: 100.0, absent: "`3.0`" },
    means: "growth from one delay to the next",
};
pub(super) static DELAY_MS_MAX: Key<MaybeInteger<u64>> = Key {
    name: "delay_ms_max",
    shape: MaybeInteger { min: 1, max: 604_800_000, absent: "`3_600_000`" },
    means: "milliseconds of the longest delay",
};
pub(super) static DEADLINE_S: Key<MaybeInteger<u64>> = Key {
    name: "deadline_s",
    shape: MaybeInteger { absent: "the manifest's, else `86_400`", ..DEADLINE },
    means: "seconds from the first failure after which an event is dead",
};
pub(super) static SHORT_ATTEMPTS_MAX: Key<MaybeInteger<u32>> = Key {
    name: "short_attempts_max",
    shape: MaybeInteger { absent: "`3`", ..ATTEMPTS },
    means: "counted attempts of traps, time and memory limits and duplicate keys of business tables",
};

/// `[tenants.NAME.handlers.NAME.retry]`.
pub(super) static RETRY_SECTION: Section = Section {
    path: "tenants.NAME.handlers.NAME.retry",
    about: "When a failed event is tried again, and when it is dead.",
    keys: &[&ATTEMPTS_MAX, &FIRST_MS, &FACTOR, &DELAY_MS_MAX, &DEADLINE_S, &SHORT_ATTEMPTS_MAX],
};

/// The kinds of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DestinationKind {
    Local,
    Table,
}

pub(super) static DESTINATION_KIND: Key<Kind<DestinationKind>> = Key {
    name: "kind",
    shape: Kind {
        known: &[("local", DestinationKind::Local), ("table", DestinationKind::Table)],
        elsewhere: &["rabbitmq", "kafka", "http"],
    },
    means: "`\"local\"`: another source of this tenant, in the same transaction; `\"table\"`: a kept row of `ob_outbox`",
};
pub(super) static DESTINATION_SOURCE: Key<Text> = Key {
    name: "source",
    shape: Text { form: &NAME, default: None },
    means: "with kind `\"local\"`, where it is required: the name of the source",
};

/// `[tenants.NAME.destinations.NAME]`.
pub(super) static DESTINATION: Section = Section {
    path: "tenants.NAME.destinations.NAME",
    about: "A place that events are emitted to.",
    keys: &[&DESTINATION_KIND, &DESTINATION_SOURCE],
};

/// The form of the values that a plugin may read.
pub(super) static VALUE: &Form = &form::VALUE;

/// The reference page of `oncebox.toml`, as it stands in `docs/reference/config.md`.
#[must_use]
pub fn reference() -> String {
    page::page(
        "oncebox.toml: the configuration",
        "What the operator says. A key that is not listed here is refused, so that none is believed in that does nothing.",
        &[
            &FILE,
            &HOST_SECTION,
            &HOST_LIMITS_SECTION,
            &TENANT,
            &STORE_SECTION,
            &SOURCE,
            &ENVELOPE_SECTION,
            &ROUTE,
            &HANDLER,
            &LIMITS_SECTION,
            &RETRY_SECTION,
            &DESTINATION,
        ],
    )
}
