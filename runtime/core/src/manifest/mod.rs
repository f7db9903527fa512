//! What a module declares about itself: the types of `handler.toml`, packed as custom section `oncebox:manifest`.

mod fingerprint;
mod keys;
mod packed;
mod read;
mod statement;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::{
    fingerprint::MaybeFingerprint,
    keys::{ATTEMPTS, DEADLINE, MEMORY_BYTES, RUN_TIME_MS},
};
pub use self::{keys::reference, read::MANIFEST_BYTES_MAX};
use crate::value::ParamType;

/// A handler's manifest, parsed and checked by itself (not against a configuration or a database).
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The handler's own name, `[a-z0-9-]{1,64}`.
    pub name: String,
    /// Semantic version, for people; the digest is the identity.
    pub version: String,
    /// Oldest `oncebox:handler` that it needs, e.g. `1.0`.
    pub contract: String,
    /// One sentence for people.
    pub description: String,
    /// Event types that it can take; empty: any. A trailing `*` matches any rest.
    pub event_types: Vec<String>,
    /// Template of the business key.
    pub key: String,
    /// What must be equal when the key is equal.
    pub fingerprint: FingerprintSpec,
    /// Template of the ordering key, if the handler asks for order.
    pub ordering: Option<String>,
    /// Tables that its statements and queries name, and what for.
    pub tables: BTreeMap<String, Access>,
    /// Queries by name; any query makes the handler run inside the open unit of work.
    pub queries: BTreeMap<String, Query>,
    /// Statements by name.
    pub statements: BTreeMap<String, Statement>,
    /// Configuration values by name.
    pub config: BTreeMap<String, ConfigEntry>,
    /// Destinations by the name that the plugin uses.
    pub destinations: BTreeMap<String, Destination>,
    /// What it needs of memory and time.
    pub limits: Limits,
    /// Defaults that the operator may override.
    pub retry: Retry,
    /// How `oncebox build` makes the component; not packed.
    pub build: Build,
}

/// The chosen parts of the payload that the fingerprint covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FingerprintSpec {
    /// The whole payload in canonical form.
    Payload,
    /// These JSON pointers, in the order written.
    Pointers(Vec<String>),
}

/// What a handler does with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// It may be read.
    Read,
    /// It may be written and read.
    Write,
}

/// One named, typed parameter (`?` in the text, in order).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// The name that the SDK gives the argument, `[a-z][a-z0-9_]*`.
    pub name: String,
    /// Its declared type.
    #[serde(rename = "type")]
    pub kind: ParamType,
}

/// A declared query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The text, byte for byte what runs on MySQL (and on SQLite unless `sqlite` is given).
    pub sql: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Another text for the embedded store.
    pub sqlite: Option<String>,
    /// Rows that the answer may have.
    pub rows_max: u32,
    /// Bytes that the answer may have.
    pub bytes_max: u64,
    /// Asserts that the text ends in FOR UPDATE.
    pub lock: bool,
    /// How integers reach the guest.
    pub integers: Integers,
}

/// How integers of a query's answer reach the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Integers {
    /// As signed or unsigned 64-bit numbers.
    #[default]
    Number,
    /// As text, for guests whose numbers end at 2^53.
    Text,
}

/// A declared statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text, byte for byte what runs on MySQL (and on SQLite unless `sqlite` is given).
    pub sql: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Another text for the embedded store.
    pub sqlite: Option<String>,
    /// What the server must have matched.
    pub rows: RowExpectation,
    /// What another count means.
    pub mismatch: Reaction,
    /// What a server error means, beyond the defaults, by the server's error number.
    pub errors: BTreeMap<u32, Reaction>,
}

/// Rows matched (found rows) by a staged statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowExpectation {
    /// Any count.
    Any,
    /// Between `min` and `max`, both included.
    Between {
        /// Least rows.
        min: u64,
        /// Most rows.
        max: u64,
    },
    /// Exactly one key inserted or updated (ON DUPLICATE KEY UPDATE).
    OneKey,
}

/// What a row mismatch or a server error means for the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Dead at once, with this code `[a-z0-9-]{1,64}`.
    Reject(String),
    /// Parked and counted.
    Retry,
    /// The event is older than the state: its writes are undone, the row stays `skipped`.
    Obsolete,
}

/// A configuration value that the plugin may read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigEntry {
    /// Whether the operator must give it.
    #[serde(default)]
    pub required: bool,
    /// Value when the operator gives none.
    #[serde(default)]
    pub default: Option<String>,
    /// One sentence for people.
    #[serde(default)]
    pub description: String,
}

/// A destination that the plugin may emit to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// Kinds that may be bound; empty: any.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Event types that it may carry; empty: any.
    #[serde(default)]
    pub event_types: Vec<String>,
    /// The handler sets `ordering-key`.
    #[serde(default)]
    pub ordering: bool,
}

/// What the module needs; refused at deploy when above the operator's ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes over all memories and tables of an instance.
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
    /// Wall milliseconds of one run.
    #[serde(default)]
    pub run_time_ms_max: Option<u64>,
}

/// Retry defaults that the operator may override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Counted attempts before dead.
    #[serde(default)]
    pub attempts_max: Option<u32>,
    /// Seconds from the first receipt after which it is dead.
    #[serde(default)]
    pub deadline_s: Option<u64>,
}

/// How `oncebox build` makes the component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// `rust`, or any other name together with `command` and `component`.
    #[serde(default)]
    pub language: Option<String>,
    /// Command that builds the component, run by `sh -c` in the manifest's folder.
    #[serde(default)]
    pub command: Option<String>,
    /// Where the command leaves the component, relative to the manifest.
    #[serde(default)]
    pub component: Option<String>,
}

impl Manifest {
    /// A handler that declares any query runs inside the open unit of work.
    #[must_use]
    pub fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }
}

#[cfg(test)]
mod tests;
