//! Reading queries and statements: texts, parameters, row expectations and what a failure means.

use std::collections::BTreeMap;

use super::{Param, Query, Reaction, RowExpectation, Statement, keys};
use crate::{
    document::{
        Item, Table,
        key::grouped,
        shape::{Shape, read_integer},
    },
    text::quoted,
};

/// Rows that an expectation may speak of; more is not one event's work.
pub(super) const ROWS_MAX: u64 = 1_000_000;

/// Parameters of one statement; far below what the servers take (MySQL 65,535, SQLite 32,766).
const PARAMS_MAX: usize = 1_024;

/// The code when the manifest names none for a row mismatch.
const MISMATCH_CODE: &str = "rows-mismatch";

const REACTION_FORMS: &str = "{ reject = \"CODE\" }, \"retry\" or \"obsolete\"";

/// Reads one query.
pub(super) fn read_query(table: &Table<'_>) -> Query {
    table.refuse_unknown(&keys::QUERY);
    Query {
        sql: table.value(&keys::SQL),
        params: read_params(table),
        sqlite: table.value(&keys::SQLITE).filter(|text| !text.is_empty()),
        rows_max: table.value(&keys::ROWS_MAX),
        bytes_max: table.value(&keys::BYTES_MAX),
        lock: table.value(&keys::LOCK),
        integers: table.value(&keys::INTEGERS),
    }
}

/// Reads one statement.
pub(super) fn read_statement(table: &Table<'_>) -> Statement {
    table.refuse_unknown(&keys::STATEMENT);
    let rows = table.value(&keys::ROWS);
    let mismatch = table.value(&keys::MISMATCH);
    if let (RowExpectation::Any, Some(item)) = (rows, table.item(keys::MISMATCH.name))
        && table.item(keys::ROWS.name).is_some_and(|rows| rows.value.as_str() == Some("any"))
    {
        item.refuse(
            "would do nothing: rows = \"any\" takes every count",
            "leave it out, or say in rows how many are due",
        );
    }
    Statement {
        sql: table.value(&keys::SQL),
        params: read_params(table),
        sqlite: table.value(&keys::SQLITE).filter(|text| !text.is_empty()),
        rows,
        mismatch: mismatch.unwrap_or_else(|| Reaction::Reject(MISMATCH_CODE.to_owned())),
        errors: read_errors(table),
    }
}

fn read_params(table: &Table<'_>) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    let tables = table.tables(&keys::PARAMS);
    if tables.len() > PARAMS_MAX {
        let message = format!("{}.params has {} entries, above the limit of {PARAMS_MAX}", table.path, tables.len());
        table.spot_of(keys::PARAMS.name).refuse(message, None);
        return params;
    }
    for table in tables {
        table.refuse_unknown(&keys::PARAM_SECTION);
        let param = Param { name: table.value(&keys::PARAM), kind: table.value(&keys::PARAM_TYPE) };
        if params.iter().any(|other| other.name == param.name && !param.name.is_empty()) {
            let message = format!("{} repeats the parameter {}", table.path, quoted(&param.name));
            table.spot_of(keys::PARAM.name).refuse(message, Some("give each parameter a name of its own".to_owned()));
        }
        params.push(param);
    }
    params
}

fn read_errors(table: &Table<'_>) -> BTreeMap<u32, Reaction> {
    let mut errors = BTreeMap::new();
    let Some(table) = table.table(&keys::ERRORS) else { return errors };
    for (name, spot, item) in table.entries() {
        // A number with a sign or a leading zero would be a second spelling of one error.
        let number = name.parse::<u16>().ok().filter(|number| *number > 0 && number.to_string() == name);
        match number {
            Some(number) => {
                if let Some(Some(reaction)) = MaybeReaction.read(&item) {
                    errors.insert(u32::from(number), reaction);
                }
            }
            None => spot.refuse(
                format!("the key {} in [{}] is no server error number", quoted(&name), table.path),
                Some("expected: a number from 1 to 65535, such as 1062 (duplicate entry)".to_owned()),
            ),
        }
    }
    errors
}

/// `rows`: a count, a range, `"any"` or `"one-key"`.
#[derive(Debug)]
pub(super) struct Rows;

impl Shape for Rows {
    type Value = RowExpectation;

    fn read(&self, item: &Item<'_>) -> Option<RowExpectation> {
        const HELP: &str = "expected: a count, { min = 0, max = 5 }, \"any\" or \"one-key\"";
        if let Some(table) = item.as_table() {
            return read_range(&table);
        }
        if item.value.is_integer() {
            return read_integer(item, 0, ROWS_MAX).map(|count| RowExpectation::Between { min: count, max: count });
        }
        match item.value.as_str() {
            Some("any") => Some(RowExpectation::Any),
            Some("one-key") => Some(RowExpectation::OneKey),
            Some(other) => {
                item.refuse(format!("is {}, which is not known", quoted(other)), HELP);
                None
            }
            None => {
                item.refuse_type("a count, a range, \"any\" or \"one-key\"");
                None
            }
        }
    }

    fn absent(&self) -> RowExpectation {
        RowExpectation::Any
    }

    fn required(&self) -> bool {
        true
    }

    fn shown(&self) -> String {
        format!(
            "integer, 0 to {max}, or `{{ min = …, max = … }}`, or `\"any\"`, or `\"one-key\"` (ON DUPLICATE KEY UPDATE)",
            max = grouped(ROWS_MAX)
        )
    }

    fn absent_shown(&self) -> String {
        "required".to_owned()
    }
}

fn read_range(table: &Table<'_>) -> Option<RowExpectation> {
    table.refuse_unknown(&keys::RANGE);
    let (min, max) = (table.value(&keys::RANGE_MIN), table.value(&keys::RANGE_MAX));
    match (min, max) {
        (Some(min), Some(max)) if min <= max => Some(RowExpectation::Between { min, max }),
        (Some(min), Some(max)) => {
            table.refuse(format!("has min {min} above max {max}"), "exchange them");
            None
        }
        (None, _) | (_, None) => {
            if table.item("min").is_none() || table.item("max").is_none() {
                table.refuse("does not give both min and max", "write { min = 0, max = 5 }");
            }
            None
        }
    }
}

/// What a row mismatch or a server error means.
#[derive(Debug)]
pub(super) struct MaybeReaction;

impl Shape for MaybeReaction {
    type Value = Option<Reaction>;

    fn read(&self, item: &Item<'_>) -> Option<Self::Value> {
        if let Some(table) = item.as_table() {
            table.refuse_unknown(&keys::REACTION);
            let code = table.value(&keys::REJECT);
            return if code.is_empty() { None } else { Some(Some(Reaction::Reject(code))) };
        }
        match item.value.as_str() {
            Some("retry") => Some(Some(Reaction::Retry)),
            Some("obsolete") => Some(Some(Reaction::Obsolete)),
            Some(other) => {
                item.refuse(format!("is {}, which is not known", quoted(other)), format!("expected: {REACTION_FORMS}"));
                None
            }
            None => {
                item.refuse_type(REACTION_FORMS);
                None
            }
        }
    }

    fn absent(&self) -> Self::Value {
        None
    }

    fn shown(&self) -> String {
        "`{ reject = CODE }`, `\"retry\"` or `\"obsolete\"`".to_owned()
    }

    fn absent_shown(&self) -> String {
        format!("`{{ reject = \"{MISMATCH_CODE}\" }}`")
    }
}
