//! The table of statements: what is accepted with which facts, and what is refused by which rule.

mod accepted;
mod page;
mod properties;
mod reached;
mod refused;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Accepted, Catalogue, Declared, Dialect, ForeignKey, Operator, Purpose, ReferentialAction, Refusal, TableFacts,
    TableKind, check,
};
use crate::manifest::{Access, RowExpectation};

/// An entry of `[statements]` with `rows = 1`.
const S: Purpose = Purpose::Statement { rows: RowExpectation::Between { min: 1, max: 1 } };
/// One with `rows = "any"`.
const ANY: Purpose = Purpose::Statement { rows: RowExpectation::Any };
/// One with `rows = "one-key"`.
const KEY: Purpose = Purpose::Statement { rows: RowExpectation::OneKey };
/// An entry of `[queries]`.
const Q: Purpose = Purpose::Query { lock: false };
/// One with `lock = true`.
const L: Purpose = Purpose::Query { lock: true };
const MY: Dialect = Dialect::MySql;
const LITE: Dialect = Dialect::Sqlite;

/// A manifest, an operator's list and a database.
struct World {
    declared: BTreeMap<String, Access>,
    listed: Vec<String>,
    triggers: Vec<String>,
    catalogue: Catalogue,
}

impl World {
    /// Tables `account` and `stock` to write, `level` to read, and nothing odd about them.
    fn plain() -> World {
        let mut world = World {
            declared: BTreeMap::new(),
            listed: vec![],
            triggers: vec![],
            catalogue: Catalogue { tables: BTreeMap::new(), complete: true },
        };
        world.add("account", Access::Write);
        world.add("stock", Access::Write);
        world.add("level", Access::Read);
        world
    }

    fn add(&mut self, table: &str, access: Access) {
        self.declared.insert(table.to_owned(), access);
        self.listed.push(table.to_owned());
        self.exists(table);
    }

    fn exists(&mut self, table: &str) -> &mut TableFacts {
        self.catalogue.tables.entry(table.to_owned()).or_insert_with(|| TableFacts {
            kind: TableKind::Base,
            engine: Some("InnoDB".to_owned()),
            triggers: vec![],
            referenced_by: vec![],
            primary_key: vec![],
            unique: BTreeSet::new(),
        })
    }

    /// `child` refers to `parent`.
    fn refer(&mut self, child: &str, parent: &str, on_delete: ReferentialAction, on_update: ReferentialAction) {
        let key = ForeignKey { name: format!("fk_{child}"), from_table: child.to_owned(), on_delete, on_update };
        self.exists(parent).referenced_by.push(key);
    }

    fn check(&self, purpose: Purpose, dialect: Dialect, sql: &str, params: usize) -> Result<Accepted, Refusal> {
        let declared = Declared { tables: &self.declared, params, purpose };
        let operator = Operator { tables: &self.listed, triggers: &self.triggers };
        check(sql, dialect, &declared, &operator, &self.catalogue)
    }
}

/// As many parameters as the text has question marks.
fn marks(sql: &str) -> usize {
    sql.matches('?').count()
}
