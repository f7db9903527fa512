//! The keys of `[tenants.NAME.handlers.NAME]`.

use crate::{
    blame,
    document::{
        form::{self, KEY_TEMPLATE, LINE},
        key::{Key, Nested, Section},
        shape::{Form, Integer, MaybeFloat, MaybeInteger, MaybeText},
    },
    manifest::{ATTEMPTS, DEADLINE, MEMORY_BYTES, MaybeFingerprint, RUN_TIME_MS},
};

pub(crate) static OWNER: Key<MaybeText> = Key {
    name: "owner",
    shape: MaybeText { form: &LINE, absent: "none" },
    means: "whom to ask; shown with every dead letter",
};
pub(crate) static CONFIG: Nested = Nested {
    name: "config",
    shape: "table of texts by name, `[a-z0-9_-]{1,64}`",
    absent: "none",
    means: "the values that the plugin may read",
};
pub(crate) static BINDINGS: Nested = Nested {
    name: "destinations",
    shape: "table: the manifest's name = the tenant's destination",
    absent: "none",
    means: "what the manifest's destinations are bound to",
};
pub(crate) static KEY_OVERRIDE: Key<MaybeText> = Key {
    name: "key",
    shape: MaybeText { form: &KEY_TEMPLATE, absent: "the manifest's" },
    means: "overrides the manifest's template of the business key",
};
pub(crate) static FINGERPRINT_OVERRIDE: Key<MaybeFingerprint> = Key {
    name: "fingerprint",
    shape: MaybeFingerprint { required: false, absent: "the manifest's" },
    means: "overrides the manifest's fingerprint",
};
pub(crate) static ORDERING_OVERRIDE: Key<MaybeText> = Key {
    name: "ordering",
    shape: MaybeText { form: &KEY_TEMPLATE, absent: "the manifest's" },
    means: "overrides the manifest's template of the ordering key",
};
pub(crate) static LIMITS: Nested =
    Nested { name: "limits", shape: "table", absent: "the defaults", means: "limits of one event or instance" };
pub(crate) static RETRY: Nested =
    Nested { name: "retry", shape: "table", absent: "the manifest's", means: "when a failed event is tried again" };

/// `[tenants.NAME.handlers.NAME]`.
pub(crate) static HANDLER: Section = Section {
    path: "tenants.NAME.handlers.NAME",
    about: "What a handler is bound to.",
    keys: &[&OWNER, &CONFIG, &BINDINGS, &KEY_OVERRIDE, &FINGERPRINT_OVERRIDE, &ORDERING_OVERRIDE, &LIMITS, &RETRY],
};

pub(crate) static RUN_TIME_MS_MAX: Key<MaybeInteger<u64>> = Key {
    name: "run_time_ms_max",
    shape: MaybeInteger { absent: "the manifest's, else `1_000`", ..RUN_TIME_MS },
    means: "wall milliseconds of one run",
};
pub(crate) static MEMORY_BYTES_MAX: Key<MaybeInteger<u64>> = Key {
    name: "memory_bytes_max",
    shape: MaybeInteger { absent: "the manifest's, else `16_777_216`", ..MEMORY_BYTES },
    means: "bytes of an instance, all memories and tables together; at most `host.limits.memory_bytes_max`",
};
pub(crate) static STAGED_ROWS_MAX: Key<Integer<u32>> = Key {
    name: "staged_rows_max",
    shape: Integer { min: 1, max: 10_000, default: 64 },
    means: "staged writes of one event",
};
pub(crate) static STAGED_BYTES_MAX: Key<Integer<u64>> = Key {
    name: "staged_bytes_max",
    shape: Integer { min: 1, max: 67_108_864, default: 1_048_576 },
    means: "bytes of the staged values of one event, emitted events included",
};
pub(crate) static EVENTS_MAX: Key<Integer<u32>> = Key {
    name: "events_max",
    shape: Integer { min: 0, max: 10_000, default: 16 },
    means: "events that one event may emit",
};
pub(crate) static HOST_CALLS_MAX: Key<Integer<u32>> = Key {
    name: "host_calls_max",
    shape: Integer { min: 1, max: 10_000_000, default: 10_000 },
    means: "host calls of one run",
};
pub(crate) static LOG_LINES_MAX: Key<Integer<u32>> =
    Key { name: "log_lines_max", shape: Integer { min: 0, max: 10_000, default: 100 }, means: "log lines of one run" };
pub(crate) static RESULT_BYTES_MAX: Key<Integer<u32>> = Key {
    name: "result_bytes_max",
    shape: Integer { min: 0, max: 1_024, default: 1_024 },
    means: "bytes of the result that is kept with the inbox row",
};

/// `[tenants.NAME.handlers.NAME.limits]`.
pub(crate) static LIMITS_SECTION: Section = Section {
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

pub(crate) static ATTEMPTS_MAX: Key<MaybeInteger<u32>> = Key {
    name: "attempts_max",
    shape: MaybeInteger { absent: "the manifest's, else `12`", ..ATTEMPTS },
    means: "counted attempts before an event is dead",
};
pub(crate) static FIRST_MS: Key<MaybeInteger<u64>> = Key {
    name: "first_ms",
    shape: MaybeInteger { min: 1, max: 86_400_000, absent: "`1_000`" },
    means: "milliseconds of the first delay; not above `delay_ms_max`",
};
pub(crate) static FACTOR: Key<MaybeFloat> = Key {
    name: "factor",
    shape: MaybeFloat { min: 1.0, max: 100.0, absent: "`3.0`" },
    means: "growth from one delay to the next",
};
pub(crate) static DELAY_MS_MAX: Key<MaybeInteger<u64>> = Key {
    name: "delay_ms_max",
    shape: MaybeInteger { min: 1, max: 604_800_000, absent: "`3_600_000`" },
    means: "milliseconds of the longest delay",
};
pub(crate) static DEADLINE_S: Key<MaybeInteger<u64>> = Key {
    name: "deadline_s",
    shape: MaybeInteger { absent: "the manifest's, else `86_400`", ..DEADLINE },
    means: "seconds from the first receipt after which an event is dead",
};
pub(crate) static SHORT_ATTEMPTS_MAX: Key<MaybeInteger<u32>> = Key {
    name: "short_attempts_max",
    shape: MaybeInteger { absent: "`3`", ..ATTEMPTS },
    means: "counted attempts of traps, time and memory limits and duplicate keys of business tables",
};
pub(crate) static DEATHS_MAX: Key<MaybeInteger<u32>> = Key {
    name: "deaths_max",
    shape: MaybeInteger { min: 1, max: blame::DEATHS_MAX, absent: "`2`" },
    means: "ends of the host's process while nothing but the event ran, after which the event is dead",
};

/// `[tenants.NAME.handlers.NAME.retry]`.
pub(crate) static RETRY_SECTION: Section = Section {
    path: "tenants.NAME.handlers.NAME.retry",
    about: "When a failed event is tried again, and when it is dead.",
    keys: &[&ATTEMPTS_MAX, &FIRST_MS, &FACTOR, &DELAY_MS_MAX, &DEADLINE_S, &SHORT_ATTEMPTS_MAX, &DEATHS_MAX],
};

/// The form of the values that a plugin may read.
pub(crate) static VALUE: &Form = &form::VALUE;
