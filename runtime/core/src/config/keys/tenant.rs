//! The keys of `[tenants.NAME]`, but for its store, its connections and sources, and its handlers.

use crate::document::{
    form::{EVENT_TYPE, NAME, TABLE_NAME, TRIGGER},
    key::{Key, Nested, Section},
    shape::{Integer, Kind, Text, Texts},
};

pub(crate) static LANES: Key<Integer<u16>> = Key {
    name: "lanes",
    shape: Integer { min: 1, max: 64, default: 4 },
    means: "workers, each with a database connection of its own; refused with a store of kind `\"sqlite\"`, which has one",
};
pub(crate) static SLOW_LANES: Key<Integer<u16>> = Key {
    name: "slow_lanes",
    shape: Integer { min: 1, max: 64, default: 2 },
    means: "the same, for slow runs; refused with a store of kind `\"sqlite\"`, which has one",
};
pub(crate) static SLOW_RUN_MS: Key<Integer<u64>> = Key {
    name: "slow_run_ms",
    shape: Integer { min: 1, max: 60_000, default: 20 },
    means: "milliseconds of processor time, or ten times as many by the clock, after which a run leaves its batch and \
            finishes in a slow lane",
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
pub(crate) static DEFER_AFTER: Key<Integer<u32>> = Key {
    name: "defer_after",
    shape: Integer { min: 1, max: 100, default: 3 },
    means: "tries of an event whose own statement waits too long for a lock, before the event is put aside; refused with \
            a store of kind `\"sqlite\"`, where no lock of a row is waited for",
};
pub(crate) static ACK_GAP_MS: Key<Integer<u64>> = Key {
    name: "ack_gap_ms",
    shape: Integer { min: 1, max: 60_000, default: 100 },
    means: "milliseconds for which an undecided message holds up the acks of those after it; then they are acked singly",
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
pub(crate) static CONNECTIONS: Nested = Nested {
    name: "connections",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the brokers that sources take messages from",
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
        &LANES,
        &SLOW_LANES,
        &SLOW_RUN_MS,
        &UNIT_TIME_MS_MAX,
        &BATCH_MAX,
        &BATCH_BYTES_MAX,
        &DEFER_AFTER,
        &ACK_GAP_MS,
        &TABLES,
        &TRIGGERS,
        &STORE,
        &CONNECTIONS,
        &SOURCES,
        &ROUTES,
        &HANDLERS,
        &DESTINATIONS,
    ],
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
        elsewhere: &["kafka", "http"],
        later: &["rabbitmq"],
    },
    means: "`\"local\"`: another source of this tenant, in the same transaction; `\"table\"`: a kept row of `ob_outbox`",
};
pub(crate) static DESTINATION_SOURCE: Key<Text> = Key {
    name: "source",
    shape: Text { form: &NAME, default: None },
    means: "with kind `\"local\"`, where it is required: the name of a source of kind `\"local\"`",
};

/// `[tenants.NAME.destinations.NAME]`.
pub(crate) static DESTINATION: Section = Section {
    path: "tenants.NAME.destinations.NAME",
    about: "A place that events are emitted to.",
    keys: &[&DESTINATION_KIND, &DESTINATION_SOURCE],
};
