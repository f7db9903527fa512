//! The keys of `handler.toml`: what the reader accepts and the reference page prints.

use super::{
    Access, Integers,
    fingerprint::MaybeFingerprint,
    statement::{self, MaybeReaction, Rows},
};
use crate::{
    document::{
        form::{self, DESCRIPTION, EVENT_TYPE, KEY_TEMPLATE, LINE, NAME, PARAM_NAME},
        key::{Key, Nested, Section},
        page,
        shape::{Absent, Flag, Form, Integer, MaybeInteger, MaybeText, OneOf, Text, Texts},
    },
    text::quoted,
    value::ParamType,
};

/// Bytes of the text of a statement or query.
const SQL_BYTES_MAX: usize = 65_536;

/// The contract versions that this build links.
const CONTRACTS: [&str; 1] = ["1.0"];

/// The kinds that a destination of any build may have.
pub(crate) const DESTINATION_KINDS: [&str; 5] = ["rabbitmq", "kafka", "http", "local", "table"];

static VERSION_FORM: Form =
    Form { shown: "version, such as `1.4.0` or `2.0.0-rc.1`, up to 64 bytes", check: check_version };
static CONTRACT_FORM: Form = Form { shown: "contract version, `1.0`", check: check_contract };
static SQL_FORM: Form = Form { shown: "SQL text, 1 to 65_536 bytes", check: check_sql };
static OTHER_SQL_FORM: Form = Form {
    shown: "SQL text, up to 65_536 bytes",
    check: |text| if text.is_empty() { Ok(()) } else { check_sql(text) },
};
static KIND_FORM: Form = Form { shown: "kind of destination", check: check_kind };

pub(super) static NAME_KEY: Key<Text> =
    Key { name: "name", shape: Text { form: &NAME, default: None }, means: "the handler's own name" };
pub(super) static VERSION: Key<Text> = Key {
    name: "version",
    shape: Text { form: &VERSION_FORM, default: None },
    means: "semantic version, for people; the module's digest is its identity",
};
pub(super) static CONTRACT: Key<Text> = Key {
    name: "contract",
    shape: Text { form: &CONTRACT_FORM, default: None },
    means: "the oldest `oncebox:handler` that the module needs",
};
pub(super) static DESCRIPTION_KEY: Key<Text> = Key {
    name: "description",
    shape: Text { form: &DESCRIPTION, default: Some("") },
    means: "one sentence for people",
};
pub(super) static EVENT_TYPES: Key<Texts> = Key {
    name: "event_types",
    shape: Texts { form: &EVENT_TYPE, items_min: 0, absent: "any" },
    means: "the event types that it can take",
};
pub(super) static KEY: Key<Text> = Key {
    name: "key",
    shape: Text { form: &KEY_TEMPLATE, default: None },
    means: "template of the business key; fixed by the handler's first deployment",
};
pub(super) static FINGERPRINT: Key<MaybeFingerprint> = Key {
    name: "fingerprint",
    shape: MaybeFingerprint { required: true, absent: "required" },
    means: "what must be equal in the payload when the business key is equal",
};
pub(super) static ORDERING: Key<MaybeText> = Key {
    name: "ordering",
    shape: MaybeText { form: &KEY_TEMPLATE, absent: "no order" },
    means: "template of the ordering key; events with the same one are applied in arrival order",
};
pub(super) static TABLES: Nested = Nested {
    name: "tables",
    shape: "table of `\"read\"` and `\"write\"` by table name",
    absent: "none",
    means: "the business tables that statements and queries name; the operator's list must contain them; required with statements",
};
pub(super) static ACCESS: OneOf<Access> =
    OneOf { choices: &[("read", Access::Read), ("write", Access::Write)], absent: Absent::Required(Access::Read) };
pub(super) static QUERIES: Nested = Nested {
    name: "queries",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the queries that the handler may run; with any, it runs inside the open unit of work",
};
pub(super) static STATEMENTS: Nested = Nested {
    name: "statements",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the statements that the handler may stage; a query of the same name is refused",
};
pub(super) static CONFIG: Nested = Nested {
    name: "config",
    shape: "tables by name, `[a-z0-9_-]{1,64}`",
    absent: "none",
    means: "the configuration values that the handler may read",
};
pub(super) static DESTINATIONS: Nested = Nested {
    name: "destinations",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "where the handler may emit events to",
};
pub(super) static LIMITS: Nested = Nested {
    name: "limits",
    shape: "table",
    absent: "the defaults",
    means: "what the handler needs of memory and time",
};
pub(super) static RETRY: Nested = Nested {
    name: "retry",
    shape: "table",
    absent: "the defaults",
    means: "retry defaults that the operator may override",
};
pub(super) static BUILD: Nested = Nested {
    name: "build",
    shape: "table",
    absent: "Rust",
    means: "how `oncebox build` makes the component; not packed",
};

/// The whole manifest.
pub(super) static MANIFEST: Section = Section {
    path: "",
    about: "A handler's own declaration.",
    keys: &[
        &NAME_KEY,
        &VERSION,
        &CONTRACT,
        &DESCRIPTION_KEY,
        &EVENT_TYPES,
        &KEY,
        &FINGERPRINT,
        &ORDERING,
        &TABLES,
        &QUERIES,
        &STATEMENTS,
        &CONFIG,
        &DESTINATIONS,
        &LIMITS,
        &RETRY,
        &BUILD,
    ],
};

pub(super) static SQL: Key<Text> = Key {
    name: "sql",
    shape: Text { form: &SQL_FORM, default: None },
    means: "the text, byte for byte what runs; `?` takes a parameter",
};
pub(super) static PARAMS: Nested = Nested {
    name: "params",
    shape: "list of `{ name = …, type = … }`, up to 1_024",
    absent: "`[]`",
    means: "the parameters in the order of their `?`; NULL is always allowed",
};
pub(super) static SQLITE: Key<MaybeText> = Key {
    name: "sqlite",
    shape: MaybeText { form: &OTHER_SQL_FORM, absent: "the same text" },
    means: "another text for the embedded store; `\"\"`: the same text",
};
pub(super) static ROWS_MAX: Key<Integer<u32>> = Key {
    name: "rows_max",
    shape: Integer { min: 1, max: 10_000, default: 100 },
    means: "rows that the answer may have",
};
pub(super) static BYTES_MAX: Key<Integer<u64>> = Key {
    name: "bytes_max",
    shape: Integer { min: 1, max: 16_777_216, default: 65_536 },
    means: "bytes that the answer may have",
};
pub(super) static LOCK: Key<Flag> =
    Key { name: "lock", shape: Flag, means: "asserts that the text ends in FOR UPDATE" };
pub(super) static INTEGERS: Key<OneOf<Integers>> = Key {
    name: "integers",
    shape: OneOf {
        choices: &[("number", Integers::Number), ("text", Integers::Text)],
        absent: Absent::Default(Integers::Number),
    },
    means: "how integers reach the guest; `\"text\"` is for guests whose numbers end at 2^53",
};

/// One query.
pub(super) static QUERY: Section = Section {
    path: "queries.NAME",
    about: "A question that the handler may put to the tenant's tables while it runs.",
    keys: &[&SQL, &PARAMS, &SQLITE, &ROWS_MAX, &BYTES_MAX, &LOCK, &INTEGERS],
};

pub(super) static ROWS: Key<Rows> =
    Key { name: "rows", shape: Rows, means: "rows that the server must match (found rows, not changed ones)" };
pub(super) static MISMATCH: Key<MaybeReaction> = Key {
    name: "mismatch",
    shape: MaybeReaction,
    means: "what another count means for the event; refused with `rows = \"any\"`, where it would do nothing",
};
pub(super) static ERRORS: Nested = Nested {
    name: "errors",
    shape: "table of `{ reject = CODE }`, `\"retry\"` and `\"obsolete\"` by server error number, `1` to `65_535`",
    absent: "the host's classes",
    means: "what a server error means for the event, beyond the defaults",
};

pub(super) static RANGE_MIN: Key<MaybeInteger<u64>> = Key {
    name: "min",
    shape: MaybeInteger { min: 0, max: statement::ROWS_MAX, absent: "required" },
    means: "least rows",
};
pub(super) static RANGE_MAX: Key<MaybeInteger<u64>> = Key {
    name: "max",
    shape: MaybeInteger { min: 0, max: statement::ROWS_MAX, absent: "required" },
    means: "most rows",
};

/// A range of rows.
pub(super) static RANGE: Section =
    Section { path: "statements.NAME.rows", about: "A range in place of a count.", keys: &[&RANGE_MIN, &RANGE_MAX] };

pub(super) static REJECT: Key<Text> = Key {
    name: "reject",
    shape: Text { form: &NAME, default: None },
    means: "the event is dead at once, with this code; `\"retry\"` in place of the table: parked and counted; \
            `\"obsolete\"`: the event is older than the state, its writes are undone and it is skipped",
};

/// What is rejected.
pub(super) static REACTION: Section = Section {
    path: "statements.NAME.{mismatch,errors.NUMBER}",
    about: "What a row mismatch or a server error means for the event.",
    keys: &[&REJECT],
};

/// One statement.
pub(super) static STATEMENT: Section = Section {
    path: "statements.NAME",
    about: "A write that the handler may stage. It runs after the handler has ended, in the unit of work.",
    keys: &[&SQL, &PARAMS, &SQLITE, &ROWS, &MISMATCH, &ERRORS],
};

pub(super) static PARAM: Key<Text> = Key {
    name: "name",
    shape: Text { form: &PARAM_NAME, default: None },
    means: "the name of the argument in the guest's language",
};
pub(super) static PARAM_TYPE: Key<OneOf<ParamType>> = Key {
    name: "type",
    shape: OneOf {
        choices: &[
            ("boolean", ParamType::Boolean),
            ("signed", ParamType::Signed),
            ("unsigned", ParamType::Unsigned),
            ("float", ParamType::Float),
            ("decimal", ParamType::Decimal),
            ("text", ParamType::Text),
            ("bytes", ParamType::Bytes),
            ("date", ParamType::Date),
            ("time", ParamType::Time),
            ("datetime", ParamType::Datetime),
            ("json", ParamType::Json),
        ],
        absent: Absent::Required(ParamType::Text),
    },
    means: "its declared type",
};

/// One parameter.
pub(super) static PARAM_SECTION: Section = Section {
    path: "{queries,statements}.NAME.params[]",
    about: "One parameter of a query or statement.",
    keys: &[&PARAM, &PARAM_TYPE],
};

pub(super) static REQUIRED: Key<Flag> =
    Key { name: "required", shape: Flag, means: "whether the operator must give a value; not together with `default`" };
pub(super) static DEFAULT: Key<MaybeText> = Key {
    name: "default",
    shape: MaybeText { form: &form::VALUE, absent: "none" },
    means: "the value when the operator gives none",
};

/// One configuration value.
pub(super) static CONFIG_SECTION: Section = Section {
    path: "config.NAME",
    about: "A value that the operator gives and the handler reads.",
    keys: &[&REQUIRED, &DEFAULT, &DESCRIPTION_KEY],
};

pub(super) static KINDS: Key<Texts> = Key {
    name: "kinds",
    shape: Texts { form: &KIND_FORM, items_min: 0, absent: "any" },
    means: "the kinds that may be bound: `rabbitmq`, `kafka`, `http`, `local`, `table`",
};
pub(super) static CARRIED: Key<Texts> = Key {
    name: "event_types",
    shape: Texts { form: &EVENT_TYPE, items_min: 0, absent: "any" },
    means: "the event types that it may carry",
};
pub(super) static ORDERED: Key<Flag> =
    Key { name: "ordering", shape: Flag, means: "whether the handler sets an ordering key on what it emits" };

/// One destination.
pub(super) static DESTINATION: Section = Section {
    path: "destinations.NAME",
    about: "A place to emit events to, by the handler's own name for it; the operator binds it.",
    keys: &[&KINDS, &CARRIED, &ORDERED],
};

/// The range of `memory_bytes_max`, from one page of memory on.
pub(crate) const MEMORY_BYTES: MaybeInteger<u64> =
    MaybeInteger { min: 65_536, max: 4_294_967_296, absent: "`16_777_216`" };
/// The range of `run_time_ms_max`.
pub(crate) const RUN_TIME_MS: MaybeInteger<u64> = MaybeInteger { min: 1, max: 60_000, absent: "`1_000`" };
/// The range of `attempts_max`.
pub(crate) const ATTEMPTS: MaybeInteger<u32> = MaybeInteger { min: 1, max: 1_000, absent: "`12`" };
/// The range of `deadline_s`, up to 30 days.
pub(crate) const DEADLINE: MaybeInteger<u64> = MaybeInteger { min: 1, max: 2_592_000, absent: "`86_400`" };

pub(super) static MEMORY_BYTES_MAX: Key<MaybeInteger<u64>> =
    Key { name: "memory_bytes_max", shape: MEMORY_BYTES, means: "bytes over all memories and tables of an instance" };
pub(super) static RUN_TIME_MS_MAX: Key<MaybeInteger<u64>> =
    Key { name: "run_time_ms_max", shape: RUN_TIME_MS, means: "wall milliseconds of one run" };

/// What the handler needs.
pub(super) static LIMITS_SECTION: Section = Section {
    path: "limits",
    about: "What the handler needs; refused at deploy when above the operator's ceiling.",
    keys: &[&MEMORY_BYTES_MAX, &RUN_TIME_MS_MAX],
};

pub(super) static ATTEMPTS_MAX: Key<MaybeInteger<u32>> =
    Key { name: "attempts_max", shape: ATTEMPTS, means: "counted attempts before an event is dead" };
pub(super) static DEADLINE_S: Key<MaybeInteger<u64>> =
    Key { name: "deadline_s", shape: DEADLINE, means: "seconds from the first receipt after which an event is dead" };

/// Retry defaults.
pub(super) static RETRY_SECTION: Section =
    Section { path: "retry", about: "Defaults that the operator may override.", keys: &[&ATTEMPTS_MAX, &DEADLINE_S] };

pub(super) static LANGUAGE: Key<MaybeText> = Key {
    name: "language",
    shape: MaybeText { form: &LINE, absent: "`\"rust\"`, or with `command` any" },
    means: "`rust`: built by cargo for wasm32-unknown-unknown; any other needs `command` and `component`",
};
pub(super) static COMMAND: Key<MaybeText> = Key {
    name: "command",
    shape: MaybeText { form: &form::COMMAND, absent: "none" },
    means: "the command that builds the component, run by `sh -c` in the manifest's folder",
};
pub(super) static COMPONENT: Key<MaybeText> = Key {
    name: "component",
    shape: MaybeText { form: &LINE, absent: "none" },
    means: "where the command leaves the component, relative to the manifest",
};

/// How the component is made.
pub(super) static BUILD_SECTION: Section = Section {
    path: "build",
    about: "How `oncebox build` makes the component. It stays in the source and is not packed.",
    keys: &[&LANGUAGE, &COMMAND, &COMPONENT],
};

/// The reference page of `handler.toml`, as it stands in `docs/reference/manifest.md`.
#[must_use]
pub fn reference() -> String {
    page::page(
        "handler.toml: the manifest",
        "What a handler declares about itself. `oncebox build` packs it into the component as the custom section \
         `oncebox:manifest`, and `oncebox inspect` shows it. A key that is not listed here is refused.",
        &[
            &MANIFEST,
            &QUERY,
            &STATEMENT,
            &RANGE,
            &REACTION,
            &PARAM_SECTION,
            &CONFIG_SECTION,
            &DESTINATION,
            &LIMITS_SECTION,
            &RETRY_SECTION,
            &BUILD_SECTION,
        ],
    )
}

/// Three numbers and, if any, a pre-release and a build of letters, digits, dots and hyphens (semver.org, 2.0.0).
fn check_version(text: &str) -> Result<(), String> {
    form::bytes_in(text, 64)?;
    let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let numbers: Vec<_> = core.split('.').collect();
    let numeric = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let rest_is_well_formed = rest.is_empty()
        || rest.len() > 1 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'));
    match numbers.len() == 3 && numbers.iter().all(numeric) && rest_is_well_formed {
        true => Ok(()),
        false => Err(format!("is {}, which is no semantic version", quoted(text))),
    }
}

fn check_contract(text: &str) -> Result<(), String> {
    match CONTRACTS.contains(&text) {
        true => Ok(()),
        false => Err(format!("is {}, and this build of oncebox links {}", quoted(text), CONTRACTS.join(", "))),
    }
}

fn check_sql(text: &str) -> Result<(), String> {
    form::bytes_in(text, SQL_BYTES_MAX)?;
    if text.trim().is_empty() { Err("is blank".to_owned()) } else { Ok(()) }
}

fn check_kind(text: &str) -> Result<(), String> {
    match DESTINATION_KINDS.contains(&text) {
        true => Ok(()),
        false => Err(format!("is {}, and the kinds are {}", quoted(text), DESTINATION_KINDS.join(", "))),
    }
}
