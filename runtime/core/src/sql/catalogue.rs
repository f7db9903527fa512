//! What the host read of a tenant's database, as values.

use std::collections::{BTreeMap, BTreeSet};

/// The tables of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// By name, upper and lower case as the server has them.
    pub tables: BTreeMap<String, TableFacts>,
    /// False if the reader was not shown triggers and foreign keys: then the gate refuses every text.
    pub complete: bool,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFacts {
    /// What it is.
    pub kind: TableKind,
    /// Its storage engine as MySQL names it; none on SQLite.
    pub engine: Option<String>,
    /// Names of its triggers.
    pub triggers: Vec<String>,
    /// Foreign keys of other tables, or its own, that refer to it.
    pub referenced_by: Vec<ForeignKey>,
    /// The columns of its primary key, in order; empty if it has none, or if they are not known.
    pub primary_key: Vec<KeyColumn>,
    /// The columns of all its unique keys, in small letters.
    pub unique: BTreeSet<String>,
}

/// A column of a primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name, in small letters.
    pub name: String,
    /// Whether it holds whole numbers of up to 64 bits, so that no two values are equal to one another.
    pub is_integer: bool,
}

/// What a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A table that holds its own rows.
    Base,
    /// A view.
    View,
    /// A virtual table of SQLite.
    Virtual,
    /// A temporary table.
    Temporary,
    /// A system table, a sequence, or anything else.
    System,
}

/// A foreign key, seen from the table that it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name, for people.
    pub name: String,
    /// The table that has it; `database.table` if that is another database, which no list contains.
    pub from_table: String,
    /// What a DELETE of the referred row does.
    pub on_delete: ReferentialAction,
    /// What an UPDATE of the referred row does.
    pub on_update: ReferentialAction,
}

/// What a change of the referred row does to the referring one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferentialAction {
    /// RESTRICT or NO ACTION: nothing, or an error.
    Restrict,
    /// CASCADE: the same change.
    Cascade,
    /// SET NULL: an update.
    SetNull,
    /// SET DEFAULT: an update.
    SetDefault,
}
