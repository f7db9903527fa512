//! Tables against the operator's list and the catalogue, foreign keys followed to their end.
//!
//! A change of a referred row may change referring rows, of which the text says nothing. Whether an UPDATE touches
//! the referred columns at all is not asked: a trigger or a generated column might.

use std::collections::BTreeSet;

use super::catalogue::{Catalogue, ForeignKey, ReferentialAction, TableFacts, TableKind};
use super::lexer::is_host_name;
use super::refusal::{At, Refusal, Rule};
use super::text::Text;
use super::walk::Named;
use super::{Accepted, Declared, Dialect, Operator, Verb};
use crate::manifest::Access;

/// Judges every table that the text names, and those that its foreign keys reach.
pub(super) fn check(
    text: &Text,
    dialect: Dialect,
    declared: &Declared<'_>,
    operator: &Operator<'_>,
    catalogue: &Catalogue,
) -> Result<(), Refusal> {
    if !catalogue.complete {
        return Err(Refusal::new(Rule::CatalogueIncomplete, None, "triggers and foreign keys cannot be seen"));
    }
    let judge = Judge { dialect, declared, operator, catalogue };
    for Named { table, at, written: _ } in &text.named {
        if !operator.tables.contains(table) {
            return Err(Refusal::new(
                Rule::TableUnlisted,
                *at,
                format!("the table {table} is not in the operator's list"),
            ));
        }
        judge.table(table, *at)?;
    }
    match (&text.accepted.table, change(&text.accepted)) {
        (Some(table), Some(change)) => judge.cascades(table, change),
        (None, _) | (_, None) => Ok(()),
    }
}

/// How rows that others may refer to are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Delete,
    Update,
}

fn change(accepted: &Accepted) -> Option<Change> {
    match accepted.verb {
        Verb::Delete => Some(Change::Delete),
        Verb::Update => Some(Change::Update),
        Verb::Insert => accepted.on_duplicate_key.then_some(Change::Update),
        Verb::Select => None,
    }
}

impl ForeignKey {
    /// What happens to the referring rows, if anything.
    fn passes_on(&self, change: Change) -> Option<Change> {
        let action = match change {
            Change::Delete => self.on_delete,
            Change::Update => self.on_update,
        };
        match action {
            ReferentialAction::Restrict => None,
            ReferentialAction::Cascade => Some(change),
            ReferentialAction::SetNull | ReferentialAction::SetDefault => Some(Change::Update),
        }
    }
}

struct Judge<'a> {
    dialect: Dialect,
    declared: &'a Declared<'a>,
    operator: &'a Operator<'a>,
    catalogue: &'a Catalogue,
}

impl Judge<'_> {
    /// A base table of InnoDB, without a trigger that the operator does not name.
    fn table(&self, table: &str, at: Option<At>) -> Result<(), Refusal> {
        let Some(TableFacts { kind, engine, triggers, referenced_by: _, primary_key: _, unique: _ }) =
            self.catalogue.tables.get(table)
        else {
            return Err(Refusal::new(Rule::TableUnknown, at, format!("the table {table} does not exist")));
        };
        let kind = match kind {
            TableKind::Base => None,
            TableKind::View => Some("a view"),
            TableKind::Virtual => Some("a virtual table"),
            TableKind::Temporary => Some("a temporary table"),
            TableKind::System => Some("a system table"),
        };
        if let Some(kind) = kind {
            return Err(Refusal::new(Rule::TableKind, at, format!("{table} is {kind}")));
        }
        let engine = engine.as_deref().unwrap_or("none");
        if self.dialect == Dialect::MySql && !engine.eq_ignore_ascii_case("InnoDB") {
            return Err(Refusal::new(Rule::TableEngine, at, format!("the engine of {table} is {engine}")));
        }
        for trigger in triggers {
            if !self.operator.triggers.contains(&format!("{table}.{trigger}")) {
                return Err(Refusal::new(Rule::Trigger, at, format!("the trigger {table}.{trigger}")));
            }
        }
        Ok(())
    }

    /// Follows the foreign keys from a changed table; every table reached must be allowed as if it were written.
    fn cascades(&self, table: &str, change: Change) -> Result<(), Refusal> {
        let mut reached = BTreeSet::from([(table, change)]);
        let mut open = vec![(table, change)];
        while let Some((table, change)) = open.pop() {
            let Some(facts) = self.catalogue.tables.get(table) else { continue };
            for key in &facts.referenced_by {
                let Some(passed_on) = key.passes_on(change) else { continue };
                self.reached_table(table, key)?;
                let next = (key.from_table.as_str(), passed_on);
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        Ok(())
    }

    fn reached_table(&self, from: &str, key: &ForeignKey) -> Result<(), Refusal> {
        let ForeignKey { name, from_table, on_delete: _, on_update: _ } = key;
        let refuse = |why: &str| {
            let found = format!("the foreign key {name} passes changes of {from} on to {from_table}, which {why}");
            Err(Refusal::new(Rule::Cascade, None, found))
        };
        if is_host_name(from_table) {
            return refuse("belongs to the host");
        }
        if !self.operator.tables.contains(from_table) {
            return refuse("is not in the operator's list");
        }
        match self.declared.tables.get(from_table) {
            Some(Access::Write) => self.table(from_table, None),
            Some(Access::Read) => refuse("is declared as \"read\""),
            None => refuse("is not declared in [tables]"),
        }
    }
}
