//! The keys of `[host]`.

use crate::{
    config::LogFormat,
    document::{
        form::{HOST_NAME, PATH},
        key::{Key, Nested, Section},
        shape::{Absent, Form, Integer, MaybeText, OneOf, Text},
    },
    manifest::MEMORY_BYTES,
    text::quoted,
};

static LISTEN_FORM: Form = Form {
    shown: "address and port, such as `127.0.0.1:8420`, or `\"\"`",
    check: |text| match text.is_empty() || text.parse::<std::net::SocketAddr>().is_ok() {
        true => Ok(()),
        false => Err(format!("is {}, which is no address and port", quoted(text))),
    },
};

pub(crate) static HOST_NAME_KEY: Key<MaybeText> = Key {
    name: "name",
    shape: MaybeText { form: &HOST_NAME, absent: "the machine's host name" },
    means: "the name under which this host is seen",
};
pub(crate) static DATA_DIR: Key<Text> = Key {
    name: "data_dir",
    shape: Text { form: &PATH, default: Some("./data") },
    means: "module cache and embedded stores; a relative path starts at the configuration file's folder",
};
pub(crate) static LISTEN: Key<Text> = Key {
    name: "listen",
    shape: Text { form: &LISTEN_FORM, default: Some("127.0.0.1:8420") },
    means: "where /livez, /readyz and /metrics are served; `\"\"`: nowhere",
};
pub(crate) static DRAIN_TIME_MS: Key<Integer<u64>> = Key {
    name: "drain_time_ms",
    shape: Integer { min: 1, max: 600_000, default: 25_000 },
    means: "milliseconds that a host which is told to stop gives to what is in flight",
};
pub(crate) static LEASE_TIME_MS: Key<Integer<u64>> = Key {
    name: "lease_time_ms",
    shape: Integer { min: 100, max: 3_600_000, default: 30_000 },
    means: "milliseconds for which a host may work on a row that it has claimed",
};
pub(crate) static HEARTBEAT_MS: Key<Integer<u64>> = Key {
    name: "heartbeat_ms",
    shape: Integer { min: 100, max: 60_000, default: 5_000 },
    means: "milliseconds from one heartbeat of this host in each tenant's database to the next",
};
pub(crate) static BOOT_TIMEOUT_MS: Key<Integer<u64>> = Key {
    name: "boot_timeout_ms",
    shape: Integer { min: 300, max: 3_600_000, default: 20_000 },
    means: "milliseconds without a heartbeat after which a host counts as gone; at least three times `heartbeat_ms`, and \
            best the same on every host",
};
pub(crate) static LOG: Key<OneOf<LogFormat>> = Key {
    name: "log",
    shape: OneOf {
        choices: &[("auto", LogFormat::Auto), ("human", LogFormat::Human), ("json", LogFormat::Json)],
        absent: Absent::Default(LogFormat::Auto),
    },
    means: "the form of log lines; `\"auto\"`: for people on a terminal, JSON otherwise",
};
pub(crate) static HOST_LIMITS: Nested =
    Nested { name: "limits", shape: "table", absent: "the defaults", means: "ceilings for every tenant and handler" };

/// `[host]`.
pub(crate) static HOST_SECTION: Section = Section {
    path: "host",
    about: "What holds for the whole host.",
    keys: &[
        &HOST_NAME_KEY,
        &DATA_DIR,
        &LISTEN,
        &DRAIN_TIME_MS,
        &LEASE_TIME_MS,
        &HEARTBEAT_MS,
        &BOOT_TIMEOUT_MS,
        &LOG,
        &HOST_LIMITS,
    ],
};

pub(crate) static HOST_MEMORY_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "memory_bytes_max",
    shape: Integer { min: MEMORY_BYTES.min, max: MEMORY_BYTES.max, default: 67_108_864 },
    means: "bytes that an instance may have, all memories and tables together",
};
pub(crate) static INSTANCES_MAX: Key<Integer<u32>> = Key {
    name: "instances_max",
    shape: Integer { min: 1, max: 10_000, default: 64 },
    means: "instances alive at the same time",
};
pub(crate) static MODULE_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "module_bytes_max",
    shape: Integer { min: 1, max: 268_435_456, default: 33_554_432 },
    means: "bytes of a packed module",
};
pub(crate) static PAYLOAD_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "payload_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 4_194_304 },
    means: "bytes of a message's body",
};
pub(crate) static KEY_BYTES_MAX: Key<Integer<u32>> = Key {
    name: "key_bytes_max",
    shape: Integer { min: 1, max: 512, default: 512 },
    means: "bytes of a rendered business or ordering key",
};
pub(crate) static HOPS_MAX: Key<Integer<u8>> = Key {
    name: "hops_max",
    shape: Integer { min: 1, max: 255, default: 16 },
    means: "hops from handler to handler over `local`",
};
pub(crate) static CONNECTIONS_MAX: Key<Integer<u32>> = Key {
    name: "connections_max",
    shape: Integer { min: 1, max: 10_000, default: 64 },
    means: "connections of lanes to databases, all tenants together; embedded stores have none",
};

/// `[host.limits]`.
pub(crate) static HOST_LIMITS_SECTION: Section = Section {
    path: "host.limits",
    about: "Ceilings for every tenant and handler.",
    keys: &[
        &HOST_MEMORY_BYTES_MAX,
        &INSTANCES_MAX,
        &MODULE_BYTES_MAX,
        &PAYLOAD_BYTES_MAX,
        &KEY_BYTES_MAX,
        &HOPS_MAX,
        &CONNECTIONS_MAX,
    ],
};
