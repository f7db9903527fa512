//! The keys of `[tenants.NAME]`, but for its handlers.

use crate::{
    config::{Unrouted, source::MaybeTemplate},
    document::{
        form::{EVENT_TYPE, NAME, PATH, TABLE_NAME, TRIGGER},
        key::{Key, Nested, Section},
        shape::{Absent, Form, Integer, Kind, MaybeInteger, MaybeText, OneOf, Text, Texts},
    },
    envelope::{EnvelopeFormat, TimeFormat},
    text::quoted,
};

/// SQLite takes some names for something else than a file (sqlite.org, "In-Memory Databases", "URI Filenames").
static STORE_PATH_FORM: Form = Form {
    shown: "path of a file, 1 to 4_096 bytes",
    check: |text| {
        (PATH.check)(text)?;
        match text.starts_with(':') || text.starts_with("file:") {
            true => Err(format!("is {}, which names no file", quoted(text))),
            false => Ok(()),
        }
    },
};

pub(crate) static SLOW_RUN_MS: Key<Integer<u64>> = Key {
    name: "slow_run_ms",
    shape: Integer { min: 1, max: 60_000, default: 20 },
    means: "milliseconds after which a run leaves its batch and finishes in a slow lane",
};
pub(crate) static UNIT_TIME_MS_MAX: Key<Integer<u64>> = Key {
    name: "unit_time_ms_max",
    shape: Integer { min: 1, max: 60_000, default: 100 },
    means: "milliseconds after which the unit of work of handlers with queries takes no further event",
};
pub(crate) static BATCH_MAX: Key<Integer<u16>> =
    Key { name: "batch_max", shape: Integer { min: 1, max: 4_096, default: 256 }, means: "events in one unit of work" };
pub(crate) static BATCH_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "batch_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 4_194_304 },
    means: "payload bytes in one unit of work",
};
pub(crate) static TABLES: Key<Texts> = Key {
    name: "tables",
    shape: Texts { form: &TABLE_NAME, items_min: 0, absent: "none" },
    means: "the business tables that plugins may name",
};
pub(crate) static TRIGGERS: Key<Texts> = Key {
    name: "triggers",
    shape: Texts { form: &TRIGGER, items_min: 0, absent: "none" },
    means: "the triggers that the operator allows on those tables",
};
pub(crate) static STORE: Nested = Nested {
    name: "store",
    shape: "table",
    absent: "required",
    means: "the tenant's database, with its business tables and those of Oncebox",
};
pub(crate) static SOURCES: Nested = Nested {
    name: "sources",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "where events come from",
};
pub(crate) static ROUTES: Nested = Nested {
    name: "routes",
    shape: "array of tables",
    absent: "none",
    means: "which handlers get which events of a source",
};
pub(crate) static HANDLERS: Nested = Nested {
    name: "handlers",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the tenant's handlers; which module one runs is a deployment",
};
pub(crate) static DESTINATIONS: Nested = Nested {
    name: "destinations",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "where handlers may emit events to",
};

/// `[tenants.NAME]`.
pub(crate) static TENANT: Section = Section {
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
pub(crate) enum StoreKind {
    Sqlite,
}

pub(crate) static STORE_KIND: Key<Kind<StoreKind>> = Key {
    name: "kind",
    shape: Kind { known: &[("sqlite", StoreKind::Sqlite)], elsewhere: &["mysql"] },
    means: "what the store is; `\"sqlite\"` is the embedded one, for one host",
};
pub(crate) static STORE_PATH: Key<Text> = Key {
    name: "path",
    shape: Text { form: &STORE_PATH_FORM, default: None },
    means: "the database's file, relative to `host.data_dir`; no two tenants have the same",
};
pub(crate) static SCHEMA: Key<MaybeText> = Key {
    name: "schema",
    shape: MaybeText { form: &PATH, absent: "none" },
    means: "a file of SQL that is run once, when the database's file is made; relative to the configuration file's folder",
};

/// `[tenants.NAME.store]`.
pub(crate) static STORE_SECTION: Section = Section {
    path: "tenants.NAME.store",
    about: "The tenant's own database.",
    keys: &[&STORE_KIND, &STORE_PATH, &SCHEMA],
};

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKindWord {
    Local,
}

pub(crate) static SOURCE_KIND: Key<Kind<SourceKindWord>> = Key {
    name: "kind",
    shape: Kind { known: &[("local", SourceKindWord::Local)], elsewhere: &["rabbitmq", "kafka", "http"] },
    means: "what the source is; `\"local\"` is a table of the tenant's own database",
};
pub(crate) static PREFETCH: Key<MaybeInteger<u16>> = Key {
    name: "prefetch",
    shape: MaybeInteger { min: 1, max: 65_535, absent: "8 × `batch_max`" },
    means: "messages taken and not settled",
};
pub(crate) static UNROUTED: Key<OneOf<Unrouted>> = Key {
    name: "unrouted",
    shape: OneOf {
        choices: &[("dead", Unrouted::Dead), ("ignore", Unrouted::Ignore)],
        absent: Absent::Default(Unrouted::Dead),
    },
    means: "what becomes of a message that no route takes: a dead letter, or settled and counted",
};
pub(crate) static ENVELOPE: Nested = Nested {
    name: "envelope",
    shape: "table",
    absent: "CloudEvents",
    means: "where type, id and time of an event come from",
};

/// `[tenants.NAME.sources.NAME]`.
pub(crate) static SOURCE: Section = Section {
    path: "tenants.NAME.sources.NAME",
    about: "A queue, topic, endpoint or table that events come from.",
    keys: &[&SOURCE_KIND, &PREFETCH, &UNROUTED, &ENVELOPE],
};

pub(crate) static FORMAT: Key<OneOf<EnvelopeFormat>> = Key {
    name: "format",
    shape: OneOf {
        choices: &[
            ("auto", EnvelopeFormat::Auto),
            ("structured", EnvelopeFormat::Structured),
            ("binary", EnvelopeFormat::Binary),
            ("raw", EnvelopeFormat::Raw),
        ],
        absent: Absent::Default(EnvelopeFormat::Auto),
    },
    means: "which messages are CloudEvents: whatever looks like one, all in the body, all in the headers, or none",
};
pub(crate) static ENVELOPE_EVENT_TYPE: Key<MaybeTemplate> = Key {
    name: "event_type",
    shape: MaybeTemplate,
    means: "template of the event type of messages that are no CloudEvents",
};
pub(crate) static ENVELOPE_ID: Key<MaybeTemplate> =
    Key { name: "id", shape: MaybeTemplate, means: "template of the event id of messages that are no CloudEvents" };
pub(crate) static ENVELOPE_TIME: Key<MaybeTemplate> = Key {
    name: "time",
    shape: MaybeTemplate,
    means: "template of the event time of messages that are no CloudEvents, and of CloudEvents without one",
};
pub(crate) static TIME_FORMAT: Key<OneOf<TimeFormat>> = Key {
    name: "time_format",
    shape: OneOf {
        choices: &[("rfc3339", TimeFormat::Rfc3339), ("unix-s", TimeFormat::UnixS), ("unix-ms", TimeFormat::UnixMs)],
        absent: Absent::Default(TimeFormat::Rfc3339),
    },
    means: "how `time` is written; refused without `time`, where it would do nothing",
};

/// `[tenants.NAME.sources.NAME.envelope]`.
pub(crate) static ENVELOPE_SECTION: Section = Section {
    path: "tenants.NAME.sources.NAME.envelope",
    about: "Where type, id and time of an event come from, for messages that are no CloudEvents.",
    keys: &[&FORMAT, &ENVELOPE_EVENT_TYPE, &ENVELOPE_ID, &ENVELOPE_TIME, &TIME_FORMAT],
};

pub(crate) static ROUTE_SOURCE: Key<Text> =
    Key { name: "source", shape: Text { form: &NAME, default: None }, means: "the name of the source" };
pub(crate) static ROUTE_EVENT_TYPES: Key<Texts> = Key {
    name: "event_types",
    shape: Texts { form: &EVENT_TYPE, items_min: 0, absent: "all" },
    means: "the event types that it takes",
};
pub(crate) static ROUTE_HANDLERS: Key<Texts> = Key {
    name: "handlers",
    shape: Texts { form: &NAME, items_min: 1, absent: "" },
    means: "the handlers that get the event; a handler gets an event of a source by one route only",
};

/// `[[tenants.NAME.routes]]`.
pub(crate) static ROUTE: Section = Section {
    path: "tenants.NAME.routes[]",
    about: "Which handlers get which events of a source. A message is settled when all its handlers have decided.",
    keys: &[&ROUTE_SOURCE, &ROUTE_EVENT_TYPES, &ROUTE_HANDLERS],
};

/// The kinds of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationKind {
    Local,
    Table,
}

pub(crate) static DESTINATION_KIND: Key<Kind<DestinationKind>> = Key {
    name: "kind",
    shape: Kind {
        known: &[("local", DestinationKind::Local), ("table", DestinationKind::Table)],
        elsewhere: &["rabbitmq", "kafka", "http"],
    },
    means: "`\"local\"`: another source of this tenant, in the same transaction; `\"table\"`: a kept row of `ob_outbox`",
};
pub(crate) static DESTINATION_SOURCE: Key<Text> = Key {
    name: "source",
    shape: Text { form: &NAME, default: None },
    means: "with kind `\"local\"`, where it is required: the name of the source",
};

/// `[tenants.NAME.destinations.NAME]`.
pub(crate) static DESTINATION: Section = Section {
    path: "tenants.NAME.destinations.NAME",
    about: "A place that events are emitted to.",
    keys: &[&DESTINATION_KIND, &DESTINATION_SOURCE],
};
