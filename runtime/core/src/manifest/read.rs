//! Reading `handler.toml`: every key checked by itself, then the manifest against itself.

use std::collections::BTreeMap;

use super::{
    Access, Build, ConfigEntry, Destination, FingerprintSpec, Limits, Manifest, Query, Retry, Statement, keys,
    statement,
};
use crate::{
    document::{
        Document, Table,
        form::{CONFIG_NAME, NAME, TABLE_NAME},
        shape::Shape,
    },
    text::TextErrors,
};

/// Bytes of a manifest's text.
pub const MANIFEST_BYTES_MAX: usize = 1_048_576;

impl Manifest {
    /// Parses the text of a `handler.toml`; `file` is what errors call it.
    ///
    /// Templates are only measured, and SQL is not looked into: the rule and the gate do that.
    ///
    /// # Errors
    /// All that is wrong with the text, up to a number, each with its place and how to mend it.
    pub fn parse(text: &str, file: &str) -> Result<Self, TextErrors> {
        let document = Document::parse(file, text, MANIFEST_BYTES_MAX, |_| Vec::new())?;
        let manifest = read(&document.root(""));
        let (errors, left_out, _) = document.into_findings();
        TextErrors::collected(errors, left_out).map_or(Ok(manifest), Err)
    }
}

fn read(root: &Table<'_>) -> Manifest {
    root.refuse_unknown(&keys::MANIFEST);
    let statements = read_statements(root);
    Manifest {
        name: root.value(&keys::NAME_KEY),
        version: root.value(&keys::VERSION),
        contract: root.value(&keys::CONTRACT),
        description: root.value(&keys::DESCRIPTION_KEY),
        event_types: root.value(&keys::EVENT_TYPES),
        key: root.value(&keys::KEY),
        fingerprint: root.value(&keys::FINGERPRINT).unwrap_or(FingerprintSpec::Payload),
        ordering: root.value(&keys::ORDERING),
        tables: read_tables(root, &statements),
        queries: read_queries(root, &statements),
        statements,
        config: read_config(root),
        destinations: read_destinations(root),
        limits: root.table(&keys::LIMITS).map(|table| read_limits(&table)).unwrap_or_default(),
        retry: root.table(&keys::RETRY).map(|table| read_retry(&table)).unwrap_or_default(),
        build: root.table(&keys::BUILD).map(|table| read_build(&table)).unwrap_or_default(),
    }
}

fn read_statements(root: &Table<'_>) -> BTreeMap<String, Statement> {
    let tables = root.named_tables(&keys::STATEMENTS, &NAME).into_iter();
    tables.map(|(name, table)| (name, statement::read_statement(&table))).collect()
}

fn read_queries(root: &Table<'_>, statements: &BTreeMap<String, Statement>) -> BTreeMap<String, Query> {
    let mut queries = BTreeMap::new();
    for (name, table) in root.named_tables(&keys::QUERIES, &NAME) {
        if statements.contains_key(&name) {
            table.refuse("has the name of a statement", "give the query or the statement another name");
        }
        queries.insert(name, statement::read_query(&table));
    }
    queries
}

fn read_tables(root: &Table<'_>, statements: &BTreeMap<String, Statement>) -> BTreeMap<String, Access> {
    let items = root.named(&keys::TABLES, &TABLE_NAME).into_iter();
    let tables: BTreeMap<_, _> = items.filter_map(|(name, item)| Some((name, keys::ACCESS.read(&item)?))).collect();
    let none_is_given = root.item(keys::TABLES.name).is_none_or(|item| item.as_table().is_some_and(|t| t.is_empty()));
    if none_is_given && !statements.is_empty() {
        let spot = root.spot_of(keys::STATEMENTS.name);
        let help = "add [tables] with each table that statements and queries name, \"read\" or \"write\"";
        spot.refuse("statements are declared, and tables names no table", Some(help.to_owned()));
    }
    tables
}

fn read_config(root: &Table<'_>) -> BTreeMap<String, ConfigEntry> {
    let mut entries = BTreeMap::new();
    for (name, table) in root.named_tables(&keys::CONFIG, &CONFIG_NAME) {
        table.refuse_unknown(&keys::CONFIG_SECTION);
        let entry = ConfigEntry {
            required: table.value(&keys::REQUIRED),
            default: table.value(&keys::DEFAULT),
            description: table.value(&keys::DESCRIPTION_KEY),
        };
        if let (true, Some(item)) = (entry.required, table.item(keys::DEFAULT.name)) {
            item.refuse("would do nothing: the value is required", "leave out default or required");
        }
        entries.insert(name, entry);
    }
    entries
}

fn read_destinations(root: &Table<'_>) -> BTreeMap<String, Destination> {
    let mut destinations = BTreeMap::new();
    for (name, table) in root.named_tables(&keys::DESTINATIONS, &NAME) {
        table.refuse_unknown(&keys::DESTINATION);
        let destination = Destination {
            kinds: table.value(&keys::KINDS),
            event_types: table.value(&keys::CARRIED),
            ordering: table.value(&keys::ORDERED),
        };
        destinations.insert(name, destination);
    }
    destinations
}

fn read_limits(table: &Table<'_>) -> Limits {
    table.refuse_unknown(&keys::LIMITS_SECTION);
    Limits {
        memory_bytes_max: table.value(&keys::MEMORY_BYTES_MAX),
        run_time_ms_max: table.value(&keys::RUN_TIME_MS_MAX),
    }
}

fn read_retry(table: &Table<'_>) -> Retry {
    table.refuse_unknown(&keys::RETRY_SECTION);
    Retry { attempts_max: table.value(&keys::ATTEMPTS_MAX), deadline_s: table.value(&keys::DEADLINE_S) }
}

fn read_build(table: &Table<'_>) -> Build {
    table.refuse_unknown(&keys::BUILD_SECTION);
    let build = Build {
        language: table.value(&keys::LANGUAGE),
        command: table.value(&keys::COMMAND),
        component: table.value(&keys::COMPONENT),
    };
    let own = [keys::COMMAND.name, keys::COMPONENT.name].into_iter().filter_map(|name| table.item(name));
    match build.language.as_deref() {
        Some("rust") => {
            own.for_each(|item| {
                item.refuse(
                    "would do nothing: language is \"rust\", which cargo builds",
                    "leave it out, or name another language",
                );
            });
        }
        Some(_) if build.command.is_none() || build.component.is_none() => {
            table.refuse("has no command and component", "give both: only \"rust\" is built without them");
        }
        None if build.command.is_some() != build.component.is_some() => {
            table.refuse("gives only one of command and component", "give both, or neither for Rust");
        }
        Some(_) | None => {}
    }
    build
}
