//! Folding: the same INSERT staged by many events becomes one statement with many rows.
//!
//! Nobody may be able to tell: an INSERT is folded only where no other statement of the batch touches its table, nor one
//! that foreign keys tie to it, so that moving its rows together changes nothing; and only where the number of rows of
//! all together tells that each met its expectation. When the folded statement fails, all is undone and done again in
//! event order, unfolded: a verdict is drawn from that alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    manifest::RowExpectation,
    sql::{Accepted, Catalogue, Verb},
};

/// What folding has to know of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Tables that it may read or change, and those that foreign keys tie to them; `None`: any, for it fires a trigger.
    pub touches: Option<BTreeSet<String>>,
    /// Byte range of the group behind VALUES that is repeated; `None`: it is never folded.
    pub group: Option<Range<usize>>,
    /// Rows that so many repetitions must match.
    pub rows: RowsOfAll,
}

/// How the number of rows of a folded statement tells that each of its events met its expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowsOfAll {
    /// One a repetition.
    #[default]
    OneEach,
    /// It need not tell: each repetition touches the one row that it names.
    Any,
}

impl RowsOfAll {
    /// Whether so many repetitions may have matched so many rows.
    #[must_use]
    pub fn met(self, repetitions: u64, rows: u64) -> bool {
        match self {
            Self::OneEach => rows == repetitions,
            Self::Any => true,
        }
    }
}

/// The facts of a statement that the gate has accepted.
#[must_use]
pub fn facts(accepted: &Accepted, rows: RowExpectation, catalogue: &Catalogue) -> Facts {
    let Some(table) = &accepted.table else { return Facts::default() };
    let named: BTreeSet<&str> = accepted.tables_read.iter().chain([table]).map(String::as_str).collect();
    let touches = tied(named, catalogue);
    let fires = touches.iter().any(|table| catalogue.tables.get(table).is_some_and(|facts| !facts.triggers.is_empty()));
    let group = accepted.values_group.clone().filter(|group| {
        let parameters_stand_in_it = accepted.placeholders.iter().all(|at| group.contains(at));
        let is_one_row = match (rows, accepted.on_duplicate_key) {
            (RowExpectation::Any | RowExpectation::OneKey, _) => true,
            (RowExpectation::Between { min, max }, false) => (min..=max).contains(&1),
            (RowExpectation::Between { .. }, true) => false,
        };
        let reads_nothing = accepted.tables_read.is_empty() && !accepted.last_insert_id;
        accepted.verb == Verb::Insert && parameters_stand_in_it && is_one_row && reads_nothing && !fires
    });
    Facts {
        touches: (!fires).then_some(touches),
        group,
        rows: if accepted.on_duplicate_key { RowsOfAll::Any } else { RowsOfAll::OneEach },
    }
}

/// Tables and all that foreign keys tie to them, however far.
fn tied(named: BTreeSet<&str>, catalogue: &Catalogue) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = named.into_iter().map(str::to_owned).collect();
    loop {
        let mut more = Vec::new();
        for (table, facts) in &catalogue.tables {
            for key in &facts.referenced_by {
                match (found.contains(table), found.contains(&key.from_table)) {
                    (true, false) => more.push(key.from_table.clone()),
                    (false, true) => more.push(table.clone()),
                    (true, true) | (false, false) => {}
                }
            }
        }
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// One step of a batch's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// This write, by itself.
    One(usize),
    /// These writes of one statement, as one.
    Folded(Vec<usize>),
}

/// Plans the writes of a batch, given in event order as statements (`S` names one) with their facts: what can be folded
/// stands where its first write stood, the rest in its order. `None`: nothing can be folded.
#[must_use]
pub fn plan<S: Ord + Copy>(writes: &[(S, &Facts)]) -> Option<Vec<Step>> {
    let mut statements: BTreeMap<S, (&Facts, Vec<usize>)> = BTreeMap::new();
    for (at, (statement, facts)) in writes.iter().enumerate() {
        statements.entry(*statement).or_insert((facts, Vec::new())).1.push(at);
    }
    let is_apart = |one: &S, facts: &Facts| {
        let Some(own) = &facts.touches else { return false };
        statements
            .iter()
            .filter(|(other, _)| *other != one)
            .all(|(_, (other, _))| other.touches.as_ref().is_some_and(|touched| touched.is_disjoint(own)))
    };
    let folded: BTreeSet<S> = statements
        .iter()
        .filter(|(one, (facts, all))| all.len() > 1 && facts.group.is_some() && is_apart(one, facts))
        .map(|(one, _)| *one)
        .collect();
    if folded.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    for (at, (statement, _)) in writes.iter().enumerate() {
        if !folded.contains(statement) {
            steps.push(Step::One(at));
        } else if let Some((_, all)) = statements.get(statement)
            && all.first() == Some(&at)
        {
            steps.push(Step::Folded(all.clone()));
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Declared, Dialect, ForeignKey, Purpose, ReferentialAction, TableFacts, TableKind, check_text};

    fn catalogue() -> Catalogue {
        let table = |triggers: &[&str], children: &[&str]| TableFacts {
            kind: TableKind::Base,
            engine: None,
            triggers: triggers.iter().map(|name| (*name).to_owned()).collect(),
            referenced_by: children
                .iter()
                .map(|child| ForeignKey {
                    name: "fk".into(),
                    from_table: (*child).to_owned(),
                    on_delete: ReferentialAction::Restrict,
                    on_update: ReferentialAction::Restrict,
                })
                .collect(),
        };
        let tables = [
            ("log", table(&[], &[])),
            ("member", table(&[], &["account"])),
            ("account", table(&[], &["entry"])),
            ("entry", table(&[], &[])),
            ("audited", table(&["t"], &[])),
        ];
        Catalogue { tables: tables.into_iter().map(|(name, facts)| (name.to_owned(), facts)).collect(), complete: true }
    }

    fn facts_of(sql: &str, rows: RowExpectation) -> Facts {
        let access = ["log", "member", "account", "entry", "audited"];
        let tables = access.iter().map(|name| ((*name).to_owned(), crate::manifest::Access::Write)).collect();
        let params = sql.matches('?').count();
        let declared = Declared { tables: &tables, params, purpose: Purpose::Statement { rows } };
        facts(&check_text(sql, Dialect::MySql, &declared).unwrap(), rows, &catalogue())
    }

    const ONE: RowExpectation = RowExpectation::Between { min: 1, max: 1 };

    #[test]
    fn only_an_insert_whose_rows_cannot_tell_is_folded() {
        for (sql, rows, folds) in [
            ("INSERT INTO log (a, b) VALUES (?, 7)", ONE, true),
            ("INSERT INTO log (a, b) VALUES (?, 7)", RowExpectation::Any, true),
            ("INSERT INTO log (a, b) VALUES (?, 7)", RowExpectation::Between { min: 0, max: 0 }, false),
            ("INSERT INTO log (a) VALUES (?) ON DUPLICATE KEY UPDATE b = b + 1", RowExpectation::OneKey, true),
            ("INSERT INTO log (a) VALUES (?) ON DUPLICATE KEY UPDATE b = b + ?", RowExpectation::OneKey, false),
            ("INSERT INTO log (a) VALUES (?), (?)", RowExpectation::Between { min: 2, max: 2 }, false),
            ("INSERT INTO log (a) VALUES (LAST_INSERT_ID())", ONE, false),
            ("INSERT INTO audited (a) VALUES (?)", ONE, false),
            ("UPDATE log SET a = ? WHERE b = ?", ONE, false),
            ("DELETE FROM log WHERE b = ?", ONE, false),
        ] {
            assert_eq!(facts_of(sql, rows).group.is_some(), folds, "{sql} with {rows:?}");
        }
    }

    #[test]
    fn foreign_keys_tie_tables_however_far_and_in_both_directions() {
        let touches = |sql| facts_of(sql, ONE).touches.map(|tables| tables.into_iter().collect::<Vec<_>>());
        assert_eq!(touches("INSERT INTO log (a) VALUES (?)").unwrap(), ["log"]);
        assert_eq!(touches("INSERT INTO entry (a) VALUES (?)").unwrap(), ["account", "entry", "member"]);
        assert_eq!(touches("UPDATE member SET a = 1 WHERE b = ?").unwrap(), ["account", "entry", "member"]);
        assert_eq!(touches("UPDATE audited SET a = 1 WHERE b = ?"), None, "a trigger may touch anything");
    }

    #[test]
    fn a_folded_insert_stands_where_its_first_row_stood_and_the_rest_keeps_its_order() {
        let log = facts_of("INSERT INTO log (a) VALUES (?)", ONE);
        let update = facts_of("UPDATE account SET a = ? WHERE b = ?", ONE);
        let writes = [(1, &update), (2, &log), (1, &update), (2, &log), (2, &log)];
        assert_eq!(plan(&writes), Some(vec![Step::One(0), Step::Folded(vec![1, 3, 4]), Step::One(2)]));
        assert_eq!(plan(&writes[..2]), None, "one row alone is not folded");
    }

    #[test]
    fn nothing_is_folded_whose_table_another_statement_may_touch() {
        let entry = facts_of("INSERT INTO entry (a) VALUES (?)", ONE);
        let second = facts_of("INSERT INTO entry (b) VALUES (?)", ONE);
        let parent = facts_of("DELETE FROM member WHERE a = ?", ONE);
        let trigger = facts_of("UPDATE audited SET a = 1 WHERE b = ?", ONE);
        for other in [&second, &parent, &trigger] {
            assert_eq!(plan(&[(1, &entry), (1, &entry), (2, other)]), None, "{other:?}");
        }
        assert_eq!(plan(&[(1, &entry), (1, &entry)]), Some(vec![Step::Folded(vec![0, 1])]));
    }

    #[test]
    fn the_rows_of_all_tell_of_each() {
        assert!(RowsOfAll::OneEach.met(3, 3) && !RowsOfAll::OneEach.met(3, 2));
        assert!(RowsOfAll::Any.met(3, 5));
    }
}
