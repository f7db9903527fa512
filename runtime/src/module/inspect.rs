//! All that a module may ever do, read without running it.

use std::collections::BTreeMap;

use oncebox_core::manifest::{
    Access, ConfigEntry, Destination, FingerprintSpec, Manifest, Param, Query, Reaction, RowExpectation, Statement,
};
use serde::Serialize;
use wit_component::DecodedWasm;
use wit_parser::{Resolve, WorldItem, WorldKey};

use super::{ModuleError, pack};

/// What a module declares, and what its code can reach. The shape of `oncebox inspect --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The handler's own name.
    pub name: String,
    /// The version, for people.
    pub version: String,
    /// One sentence for people.
    pub description: String,
    /// The sha256 of the module, in hexadecimal: its identity.
    pub digest: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// The oldest `oncebox:handler` that it needs.
    pub contract: String,
    /// Event types that it can take; empty: any.
    pub event_types: Vec<String>,
    /// Template of the business key.
    pub key: String,
    /// What must be equal when the key is equal: JSON pointers; `None`: the whole payload.
    pub fingerprint: Option<Vec<String>>,
    /// Template of the ordering key.
    pub ordering: Option<String>,
    /// Tables by name, and whether they are read or written.
    pub tables: BTreeMap<String, Access>,
    /// Every statement that it can stage.
    pub statements: BTreeMap<String, InspectedStatement>,
    /// Every query that it can ask.
    pub queries: BTreeMap<String, InspectedQuery>,
    /// Every configuration value that it can read.
    pub config: BTreeMap<String, InspectedConfig>,
    /// Every destination that it can send to.
    pub destinations: BTreeMap<String, InspectedDestination>,
    /// Bytes that an instance needs; `None`: the operator's default.
    pub memory_bytes_max: Option<u64>,
    /// Milliseconds that a run needs; `None`: the operator's default.
    pub run_time_ms_max: Option<u64>,
    /// Counted attempts before an event is dead; `None`: the operator's default.
    pub attempts_max: Option<u32>,
    /// Seconds from the first receipt after which an event is dead; `None`: the operator's default.
    pub deadline_s: Option<u64>,
    /// Functions of the host that its code can call, by interface.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Functions that the host can call, by interface.
    pub exports: BTreeMap<String, Vec<String>>,
}

/// One statement of an [`Inspection`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedStatement {
    /// The text that runs.
    pub sql: String,
    /// Another text for the embedded store.
    pub sqlite: Option<String>,
    /// Parameters in order.
    pub params: Vec<InspectedParam>,
    /// Rows that it must match: `any`, `1`, `0 to 5`, `one-key`.
    pub rows: String,
    /// What another count means: `reject CODE`, `retry` or `obsolete`.
    pub mismatch: String,
    /// What a server error means, by its number.
    pub errors: BTreeMap<u32, String>,
}

/// One query of an [`Inspection`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedQuery {
    /// The text that runs.
    pub sql: String,
    /// Another text for the embedded store.
    pub sqlite: Option<String>,
    /// Parameters in order.
    pub params: Vec<InspectedParam>,
    /// Rows that the answer may have.
    pub rows_max: u32,
    /// Bytes that the answer may have.
    pub bytes_max: u64,
    /// Whether it locks what it reads.
    pub lock: bool,
}

/// One parameter of a statement or query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedParam {
    /// Its name.
    pub name: String,
    /// Its declared type.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// One configuration value of an [`Inspection`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedConfig {
    /// Whether the operator must give it.
    pub required: bool,
    /// The value when the operator gives none.
    pub default: Option<String>,
    /// One sentence for people.
    pub description: String,
}

/// One destination of an [`Inspection`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedDestination {
    /// Kinds that may be bound; empty: any.
    pub kinds: Vec<String>,
    /// Event types that it may carry; empty: any.
    pub event_types: Vec<String>,
    /// Whether its events carry an ordering key.
    pub ordering: bool,
}

/// Reads all that a packed module may ever do.
///
/// # Errors
/// As [`super::manifest`]; [`ModuleError::Malformed`] when the component does not validate.
pub fn inspect(module: &[u8]) -> Result<Inspection, ModuleError> {
    let manifest = pack::manifest(module)?;
    let malformed = |error| ModuleError::Malformed { offset: 0, message: format!("{error:#}") };
    let (imports, exports) = match wit_component::decode(module).map_err(malformed)? {
        DecodedWasm::Component(resolve, world) => {
            let world = &resolve.worlds[world];
            (functions(&resolve, &world.imports), functions(&resolve, &world.exports))
        }
        DecodedWasm::WitPackage(..) => {
            return Err(ModuleError::NotAComponent { found: "a WIT package in binary form" });
        }
    };
    Ok(describe(manifest, module, imports, exports))
}

/// The functions of a world's imports or exports, by interface; bare functions stand under their own name.
fn functions<'a>(
    resolve: &Resolve,
    items: impl IntoIterator<Item = (&'a WorldKey, &'a WorldItem)>,
) -> BTreeMap<String, Vec<String>> {
    let named = items.into_iter().filter_map(|(key, item)| {
        let functions = match item {
            WorldItem::Interface { id, .. } => resolve.interfaces[*id].functions.keys().cloned().collect(),
            WorldItem::Function(function) => vec![function.name.clone()],
            WorldItem::Type { .. } => return None,
        };
        Some((resolve.name_world_key(key), functions))
    });
    named.collect()
}

fn describe(
    manifest: Manifest,
    module: &[u8],
    imports: BTreeMap<String, Vec<String>>,
    exports: BTreeMap<String, Vec<String>>,
) -> Inspection {
    Inspection {
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        digest: pack::digest(module).to_string(),
        bytes: module.len(),
        contract: manifest.contract,
        event_types: manifest.event_types,
        key: manifest.key,
        fingerprint: match manifest.fingerprint {
            FingerprintSpec::Payload => None,
            FingerprintSpec::Pointers(pointers) => Some(pointers),
        },
        ordering: manifest.ordering,
        tables: manifest.tables,
        statements: each(manifest.statements, statement),
        queries: each(manifest.queries, query),
        config: each(manifest.config, config),
        destinations: each(manifest.destinations, destination),
        memory_bytes_max: manifest.limits.memory_bytes_max,
        run_time_ms_max: manifest.limits.run_time_ms_max,
        attempts_max: manifest.retry.attempts_max,
        deadline_s: manifest.retry.deadline_s,
        imports,
        exports,
    }
}

fn each<T, U>(map: BTreeMap<String, T>, describe: fn(T) -> U) -> BTreeMap<String, U> {
    map.into_iter().map(|(name, entry)| (name, describe(entry))).collect()
}

fn statement(statement: Statement) -> InspectedStatement {
    let rows = match statement.rows {
        RowExpectation::Any => "any".to_owned(),
        RowExpectation::OneKey => "one-key".to_owned(),
        RowExpectation::Between { min, max } if min == max => min.to_string(),
        RowExpectation::Between { min, max } => format!("{min} to {max}"),
    };
    InspectedStatement {
        sql: statement.sql,
        sqlite: statement.sqlite,
        params: params(statement.params),
        rows,
        mismatch: reaction(statement.mismatch),
        errors: statement.errors.into_iter().map(|(number, meaning)| (number, reaction(meaning))).collect(),
    }
}

fn query(query: Query) -> InspectedQuery {
    InspectedQuery {
        sql: query.sql,
        sqlite: query.sqlite,
        params: params(query.params),
        rows_max: query.rows_max,
        bytes_max: query.bytes_max,
        lock: query.lock,
    }
}

fn config(entry: ConfigEntry) -> InspectedConfig {
    InspectedConfig { required: entry.required, default: entry.default, description: entry.description }
}

fn destination(destination: Destination) -> InspectedDestination {
    InspectedDestination {
        kinds: destination.kinds,
        event_types: destination.event_types,
        ordering: destination.ordering,
    }
}

fn params(params: Vec<Param>) -> Vec<InspectedParam> {
    params.into_iter().map(|param| InspectedParam { name: param.name, kind: param.kind.name() }).collect()
}

fn reaction(reaction: Reaction) -> String {
    match reaction {
        Reaction::Reject(code) => format!("reject {code}"),
        Reaction::Retry => "retry".to_owned(),
        Reaction::Obsolete => "obsolete".to_owned(),
    }
}
