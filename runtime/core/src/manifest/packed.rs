//! The text that is packed into a module: the manifest without `[build]`, in one form whatever the author's layout.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{
    Access, ConfigEntry, Destination, FingerprintSpec, Integers, Manifest, Param, Query, Reaction, RowExpectation,
    Statement,
};

impl Manifest {
    /// The text for the custom section `oncebox:manifest`: it parses to this manifest with a default `build`.
    ///
    /// It is written anew from the values, so that comments and layout of the source do not change a digest.
    #[must_use]
    pub fn packed_text(&self) -> String {
        let mut root = Table::new();
        put_text(&mut root, "name", &self.name);
        put_text(&mut root, "version", &self.version);
        put_text(&mut root, "contract", &self.contract);
        if !self.description.is_empty() {
            put_text(&mut root, "description", &self.description);
        }
        put_texts(&mut root, "event_types", &self.event_types);
        put_text(&mut root, "key", &self.key);
        root.insert("fingerprint".to_owned(), fingerprint(&self.fingerprint));
        if let Some(ordering) = &self.ordering {
            put_text(&mut root, "ordering", ordering);
        }
        put_map(&mut root, "tables", &self.tables, |access| Value::from(access_name(*access)));
        put_map(&mut root, "queries", &self.queries, query);
        put_map(&mut root, "statements", &self.statements, statement);
        put_map(&mut root, "config", &self.config, config_entry);
        put_map(&mut root, "destinations", &self.destinations, destination);
        let mut limits = Table::new();
        put_number(&mut limits, "memory_bytes_max", self.limits.memory_bytes_max);
        put_number(&mut limits, "run_time_ms_max", self.limits.run_time_ms_max);
        put_table(&mut root, "limits", limits);
        let mut retry = Table::new();
        put_number(&mut retry, "attempts_max", self.retry.attempts_max.map(u64::from));
        put_number(&mut retry, "deadline_s", self.retry.deadline_s);
        put_table(&mut root, "retry", retry);
        root.to_string()
    }
}

fn fingerprint(spec: &FingerprintSpec) -> Value {
    match spec {
        FingerprintSpec::Payload => Value::from("payload"),
        FingerprintSpec::Pointers(pointers) => texts(pointers),
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
    }
}

fn query(query: &Query) -> Value {
    let mut table = statement_head(&query.sql, &query.params, query.sqlite.as_deref());
    put_number(&mut table, "rows_max", Some(u64::from(query.rows_max)));
    put_number(&mut table, "bytes_max", Some(query.bytes_max));
    put_flag(&mut table, "lock", query.lock);
    match query.integers {
        Integers::Number => {}
        Integers::Text => put_text(&mut table, "integers", "text"),
    }
    Value::Table(table)
}

fn statement(statement: &Statement) -> Value {
    let mut table = statement_head(&statement.sql, &statement.params, statement.sqlite.as_deref());
    table.insert("rows".to_owned(), rows(statement.rows));
    match statement.rows {
        // With any count there is no mismatch, and the reader refuses what would do nothing.
        RowExpectation::Any => {}
        RowExpectation::Between { .. } | RowExpectation::OneKey => {
            table.insert("mismatch".to_owned(), reaction(&statement.mismatch));
        }
    }
    let errors = statement.errors.iter().map(|(number, meaning)| (number.to_string(), reaction(meaning)));
    put_table(&mut table, "errors", errors.collect());
    Value::Table(table)
}

fn statement_head(sql: &str, params: &[Param], sqlite: Option<&str>) -> Table {
    let mut table = Table::new();
    put_text(&mut table, "sql", sql);
    let params = params.iter().map(|param| {
        let mut table = Table::new();
        put_text(&mut table, "name", &param.name);
        put_text(&mut table, "type", param.kind.name());
        Value::Table(table)
    });
    let params: Vec<_> = params.collect();
    if !params.is_empty() {
        table.insert("params".to_owned(), Value::Array(params));
    }
    if let Some(text) = sqlite {
        put_text(&mut table, "sqlite", text);
    }
    table
}

fn rows(rows: RowExpectation) -> Value {
    match rows {
        RowExpectation::Any => Value::from("any"),
        RowExpectation::OneKey => Value::from("one-key"),
        RowExpectation::Between { min, max } => {
            let mut table = Table::new();
            put_number(&mut table, "min", Some(min));
            put_number(&mut table, "max", Some(max));
            Value::Table(table)
        }
    }
}

fn reaction(reaction: &Reaction) -> Value {
    match reaction {
        Reaction::Retry => Value::from("retry"),
        Reaction::Obsolete => Value::from("obsolete"),
        Reaction::Reject(code) => {
            let mut table = Table::new();
            put_text(&mut table, "reject", code);
            Value::Table(table)
        }
    }
}

fn config_entry(entry: &ConfigEntry) -> Value {
    let mut table = Table::new();
    put_flag(&mut table, "required", entry.required);
    if let Some(default) = &entry.default {
        put_text(&mut table, "default", default);
    }
    if !entry.description.is_empty() {
        put_text(&mut table, "description", &entry.description);
    }
    Value::Table(table)
}

fn destination(destination: &Destination) -> Value {
    let mut table = Table::new();
    put_texts(&mut table, "kinds", &destination.kinds);
    put_texts(&mut table, "event_types", &destination.event_types);
    put_flag(&mut table, "ordering", destination.ordering);
    Value::Table(table)
}

fn put_text(table: &mut Table, key: &str, text: &str) {
    table.insert(key.to_owned(), Value::from(text));
}

fn put_texts(table: &mut Table, key: &str, list: &[String]) {
    if !list.is_empty() {
        table.insert(key.to_owned(), texts(list));
    }
}

fn put_flag(table: &mut Table, key: &str, flag: bool) {
    if flag {
        table.insert(key.to_owned(), Value::Boolean(true));
    }
}

fn put_number(table: &mut Table, key: &str, number: Option<u64>) {
    if let Some(number) = number {
        // The ranges of the reader end far below the largest integer of TOML.
        table.insert(key.to_owned(), Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
    }
}

fn put_table(table: &mut Table, key: &str, entries: Table) {
    if !entries.is_empty() {
        table.insert(key.to_owned(), Value::Table(entries));
    }
}

fn put_map<T>(table: &mut Table, key: &str, map: &BTreeMap<String, T>, value: impl Fn(&T) -> Value) {
    put_table(table, key, map.iter().map(|(name, entry)| (name.clone(), value(entry))).collect());
}

fn texts(list: &[String]) -> Value {
    Value::Array(list.iter().map(|text| Value::from(text.as_str())).collect())
}
