//! The SQL gate: whether a text of a manifest may ever run.
//!
//! [`check_text`] judges the text by itself and against its manifest (`oncebox check module` asks so); [`check`]
//! also against the operator's list and the database's catalogue. The way through: `lexer.rs` reads the original
//! text, `text.rs` asks of the words, `parse.rs` makes a tree and proves that the parser read the same tokens,
//! `walk.rs` and its parts allow node by node, `tables.rs` follows tables, triggers and foreign keys. What is not
//! named is refused. An accepted text is kept by the caller and runs as its author wrote it, but for what stands where
//! its `?` stood (`marks.rs`) and for what folding makes of it (`update.rs`): nothing here prints a tree back to SQL.
//! After the gate the server prepares the text (names, syntax), and grants are the second wall.

mod catalogue;
mod condition;
mod expression;
mod functions;
mod lexer;
mod marks;
mod parse;
mod refusal;
mod select;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod update;
mod walk;
mod words;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

pub use catalogue::{Catalogue, ForeignKey, KeyColumn, ReferentialAction, TableFacts, TableKind};
pub use functions::{UNITS, cast_types, names as function_names};
pub use marks::Mark;
pub use refusal::{At, Refusal, Rule};
pub use update::UpdateShape;

use crate::manifest::{Access, RowExpectation};

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL 8.4 and 9, MariaDB 10.11 and later.
    MySql,
    /// The embedded store.
    Sqlite,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::MySql => "MySQL",
            Dialect::Sqlite => "SQLite",
        })
    }
}

/// What the text is in its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An entry of `[statements]`.
    Statement {
        /// Its `rows`.
        rows: RowExpectation,
    },
    /// An entry of `[queries]`.
    Query {
        /// Its `lock`.
        lock: bool,
    },
}

/// What the manifest says about the text.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// Its `[tables]`.
    pub tables: &'a BTreeMap<String, Access>,
    /// How many `params` the text has.
    pub params: usize,
    /// Statement or query.
    pub purpose: Purpose,
}

/// What the operator allows the handler.
#[derive(Debug, Clone, Copy)]
pub struct Operator<'a> {
    /// Tables, by name, upper and lower case as the server has them.
    pub tables: &'a [String],
    /// Triggers, each as `table.trigger`.
    pub triggers: &'a [String],
}

/// The kind of an accepted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// INSERT … VALUES.
    Insert,
    /// UPDATE of one table.
    Update,
    /// DELETE from one table.
    Delete,
    /// SELECT.
    Select,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Insert => "INSERT",
            Verb::Update => "UPDATE",
            Verb::Delete => "DELETE",
            Verb::Select => "SELECT",
        })
    }
}

/// What is known of an accepted text; the text itself stays with the caller, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Its kind.
    pub verb: Verb,
    /// The table that it writes; none for SELECT.
    pub table: Option<String>,
    /// Tables that it reads, by name, each once, in the order of the alphabet.
    pub tables_read: Vec<String>,
    /// Whether an INSERT may update: ON DUPLICATE KEY UPDATE, or ON CONFLICT … DO UPDATE.
    pub on_duplicate_key: bool,
    /// Whether it calls LAST_INSERT_ID(): such a handler is not folded, and it is reset before each event.
    pub last_insert_id: bool,
    /// Whether the text ends in FOR UPDATE.
    pub locking: bool,
    /// Each `?` of the text, in order.
    pub marks: Vec<Mark>,
    /// Byte range of the group `(…)` behind VALUES, if an INSERT has one row; what folding repeats.
    pub values_group: Option<Range<usize>>,
    /// The shape of an UPDATE that can be folded.
    pub update: Option<UpdateShape>,
}

/// Judges the text by itself and against its manifest, without a database.
///
/// # Errors
///
/// A [`Refusal`] by the first rule that the text breaks.
pub fn check_text(sql: &str, dialect: Dialect, declared: &Declared<'_>) -> Result<Accepted, Refusal> {
    text::read(sql, dialect, declared).map(|text| text.accepted)
}

/// Judges the text against everything: itself, its manifest, the operator's list and the database's catalogue.
///
/// # Errors
///
/// A [`Refusal`] by the first rule that is broken.
pub fn check(
    sql: &str,
    dialect: Dialect,
    declared: &Declared<'_>,
    operator: &Operator<'_>,
    catalogue: &Catalogue,
) -> Result<Accepted, Refusal> {
    let text = text::read(sql, dialect, declared)?;
    tables::check(&text, dialect, declared, operator, catalogue)?;
    Ok(text.accepted)
}
