//! Folding: the same INSERT or UPDATE staged by many events becomes one statement for many rows.
//!
//! Nobody may be able to tell: a statement is folded only where no other one of the batch touches its table, nor one
//! that foreign keys tie to it, so that moving its rows together changes nothing; and only where the number of rows of
//! all together tells that each met its expectation. An UPDATE must find its row by the whole primary key and may change
//! no unique key: then it concerns one row, and those of one row follow each other in event order, one statement after
//! the other. When a folded statement fails, all is undone and done again in event order, unfolded: a verdict is drawn
//! from that alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    manifest::RowExpectation,
    sql::{Accepted, Catalogue, UpdateShape, Verb},
    value::{ParamType, Value},
};

/// What folding has to know of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Tables that it may read or change, and those that foreign keys tie to them; `None`: any, for it fires a trigger.
    pub touches: Option<BTreeSet<String>>,
    /// How it is written for many events; `None`: it is never folded.
    pub form: Option<Form>,
    /// Rows that so many repetitions must match.
    pub rows: RowsOfAll,
}

/// How a statement is written for many events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// An INSERT: this byte range of its text, the group behind VALUES, is repeated.
    Insert(Range<usize>),
    /// An UPDATE: its values come from a table of them.
    Update(UpdateForm),
}

/// How an UPDATE takes its values from a table of them, a row for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateForm {
    /// Byte offset behind the word UPDATE, where the table of values goes.
    pub behind_verb: usize,
    /// Byte offset of the word SET.
    pub set: usize,
    /// Byte offset and type of each `?`, in order.
    pub marks: Vec<(usize, Column)>,
    /// Which `?` the columns of the primary key are compared with.
    pub keys: Vec<usize>,
}

/// The type of a column of the table of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// A whole number with a sign, 64 bits.
    Signed,
    /// A whole number without one.
    Unsigned,
    /// Text, and what the contract writes as text.
    Text,
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

/// The facts of a statement that the gate has accepted; `params` are the types of its `?`.
#[must_use]
pub fn facts(accepted: &Accepted, rows: RowExpectation, params: &[ParamType], catalogue: &Catalogue) -> Facts {
    let Some(table) = &accepted.table else { return Facts::default() };
    let named: BTreeSet<&str> = accepted.tables_read.iter().chain([table]).map(String::as_str).collect();
    let touches = tied(named, catalogue);
    let fires = touches.iter().any(|table| catalogue.tables.get(table).is_some_and(|facts| !facts.triggers.is_empty()));
    let reads_nothing = accepted.tables_read.is_empty() && !accepted.last_insert_id;
    let (form, rows) = match accepted.verb {
        Verb::Insert => (insert(accepted, rows).map(Form::Insert), of_insert(accepted)),
        Verb::Update => (update(accepted, table, rows, params, catalogue).map(Form::Update), of_update(rows)),
        Verb::Delete | Verb::Select => (None, RowsOfAll::OneEach),
    };
    Facts { touches: (!fires).then_some(touches), form: form.filter(|_| reads_nothing && !fires), rows }
}

/// The group of an INSERT of one row, all of whose values stand in it.
fn insert(accepted: &Accepted, rows: RowExpectation) -> Option<Range<usize>> {
    let is_one_row = match (rows, accepted.on_duplicate_key) {
        (RowExpectation::Any | RowExpectation::OneKey, _) => true,
        (RowExpectation::Between { min, max }, false) => (min..=max).contains(&1),
        (RowExpectation::Between { .. }, true) => false,
    };
    let group = accepted.values_group.clone()?;
    (is_one_row && accepted.marks.iter().all(|mark| group.contains(&mark.at))).then_some(group)
}

fn of_insert(accepted: &Accepted) -> RowsOfAll {
    if accepted.on_duplicate_key { RowsOfAll::Any } else { RowsOfAll::OneEach }
}

/// An UPDATE of the one row that has a primary key of whole numbers, of no column that a unique key has, and with values
/// that mean the same in a table as alone: whole numbers anywhere, text where it is stored as it is.
fn update(
    accepted: &Accepted,
    table: &str,
    rows: RowExpectation,
    params: &[ParamType],
    catalogue: &Catalogue,
) -> Option<UpdateForm> {
    let UpdateShape { behind_verb, set, assigned, equals, stored } = accepted.update.as_ref()?;
    let facts = catalogue.tables.get(table)?;
    let is_one_row = match rows {
        RowExpectation::Any => true,
        RowExpectation::Between { min, max } => min <= 1 && max >= 1,
        RowExpectation::OneKey => false,
    };
    let refers_to_itself = facts.referenced_by.iter().any(|key| key.from_table == table);
    if !is_one_row || refers_to_itself || facts.primary_key.is_empty() || !assigned.is_disjoint(&facts.unique) {
        return None;
    }
    let column = |(at, param): (usize, &ParamType)| match param {
        ParamType::Boolean | ParamType::Signed => Some(Column::Signed),
        ParamType::Unsigned => Some(Column::Unsigned),
        ParamType::Text | ParamType::Date | ParamType::Time | ParamType::Datetime | ParamType::Json => {
            stored.contains(&at).then_some(Column::Text)
        }
        ParamType::Float | ParamType::Decimal | ParamType::Bytes => None,
    };
    let columns: Vec<Column> = params.iter().enumerate().map(column).collect::<Option<_>>()?;
    let key = |column: &crate::sql::KeyColumn| {
        let mark = equals.iter().find(|(name, _)| *name == column.name && column.is_integer)?.1;
        (columns.get(mark)? != &Column::Text).then_some(mark)
    };
    let keys = facts.primary_key.iter().map(key).collect::<Option<Vec<_>>>()?;
    if columns.len() != accepted.marks.len() {
        return None;
    }
    let marks = accepted.marks.iter().map(|mark| mark.at).zip(columns).collect();
    Some(UpdateForm { behind_verb: *behind_verb, set: *set, marks, keys })
}

fn of_update(rows: RowExpectation) -> RowsOfAll {
    match rows {
        RowExpectation::Between { min: 1.., .. } => RowsOfAll::OneEach,
        RowExpectation::Between { min: 0, .. } | RowExpectation::Any | RowExpectation::OneKey => RowsOfAll::Any,
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

/// A write of a batch: which statement (`S` names one), and its values.
#[derive(Debug)]
pub struct Write<'w, S> {
    /// The statement.
    pub statement: S,
    /// What is known of it.
    pub facts: &'w Facts,
    /// The values.
    pub params: &'w [Value],
}

/// One step of a batch's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// This write, by itself.
    One(usize),
    /// These writes of one statement, as one; of an UPDATE each concerns another row.
    Folded(Vec<usize>),
}

/// Plans the writes of a batch, given in event order: what can be folded stands where its first write stood, the rest in
/// its order. `None`: nothing can be folded.
#[must_use]
pub fn plan<S: Ord + Copy>(writes: &[Write<'_, S>]) -> Option<Vec<Step>> {
    let mut statements: BTreeMap<S, (&Facts, Vec<usize>)> = BTreeMap::new();
    for (at, write) in writes.iter().enumerate() {
        statements.entry(write.statement).or_insert((write.facts, Vec::new())).1.push(at);
    }
    let is_apart = |one: &S, facts: &Facts| {
        let Some(own) = &facts.touches else { return false };
        statements
            .iter()
            .filter(|(other, _)| *other != one)
            .all(|(_, (other, _))| other.touches.as_ref().is_some_and(|touched| touched.is_disjoint(own)))
    };
    let mut folded: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
    for (one, (facts, all)) in &statements {
        if let (Some(form), [first, _, ..], true) = (&facts.form, all.as_slice(), is_apart(one, facts))
            && let Some(steps) = steps(form, all, writes)
        {
            folded.insert(*first, steps);
        }
    }
    if !folded.values().flatten().any(|step| matches!(step, Step::Folded(_))) {
        return None;
    }
    let gone: BTreeSet<usize> = folded.values().flatten().flat_map(Step::all).copied().collect();
    let mut steps = Vec::new();
    for at in 0..writes.len() {
        match folded.remove(&at) {
            Some(own) => steps.extend(own),
            None if gone.contains(&at) => {}
            None => steps.push(Step::One(at)),
        }
    }
    Some(steps)
}

impl Step {
    /// The writes that it does.
    #[must_use]
    pub fn all(&self) -> &[usize] {
        match self {
            Self::One(at) => std::slice::from_ref(at),
            Self::Folded(all) => all,
        }
    }
}

/// All writes of one statement. Those of an UPDATE that concern the same row come one after the other; within a step rows
/// are in the order of their keys, so that units do not wait for each other crosswise.
fn steps<S>(form: &Form, all: &[usize], writes: &[Write<'_, S>]) -> Option<Vec<Step>> {
    let keys = match form {
        Form::Insert(_) => return Some(vec![Step::Folded(all.to_vec())]),
        Form::Update(UpdateForm { keys, .. }) => keys,
    };
    let mut rounds: Vec<Vec<(Key, usize)>> = Vec::new();
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    for &at in all {
        let params = writes.get(at)?.params;
        let key: Key = keys.iter().map(|&mark| integer(params.get(mark)?)).collect::<Option<_>>()?;
        let round = seen.entry(key.clone()).or_insert(0);
        if rounds.len() == *round {
            rounds.push(Vec::new());
        }
        rounds.get_mut(*round)?.push((key, at));
        *round += 1;
    }
    let step = |mut round: Vec<(Key, usize)>| {
        round.sort();
        let all: Vec<usize> = round.into_iter().map(|(_, at)| at).collect();
        if let [at] = *all { Step::One(at) } else { Step::Folded(all) }
    };
    Some(rounds.into_iter().map(step).collect())
}

/// A primary key's values; `None`: NULL.
type Key = Vec<Option<i128>>;

fn integer(value: &Value) -> Option<Option<i128>> {
    match value {
        Value::Null => Some(None),
        Value::Boolean(flag) => Some(Some(i128::from(*flag))),
        Value::Signed(number) => Some(Some(i128::from(*number))),
        Value::Unsigned(number) => Some(Some(i128::from(*number))),
        Value::Float(_)
        | Value::Decimal(_)
        | Value::Text(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::Datetime(_)
        | Value::Json(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{
        Declared, Dialect, ForeignKey, KeyColumn, Purpose, ReferentialAction, TableFacts, TableKind, check_text,
    };

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
            primary_key: vec![KeyColumn { name: "id".to_owned(), is_integer: true }],
            unique: ["id".to_owned(), "code".to_owned()].into(),
        };
        let tables = [
            ("log", table(&[], &[])),
            ("member", table(&[], &["account"])),
            ("account", table(&[], &["entry"])),
            ("entry", table(&[], &[])),
            ("audited", table(&["t"], &[])),
            ("tree", table(&[], &["tree"])),
            (
                "pair",
                TableFacts {
                    primary_key: PAIR.map(|(name, is_integer)| key(name, is_integer)).into(),
                    ..table(&[], &[])
                },
            ),
            ("named", TableFacts { primary_key: vec![key("id", false)], ..table(&[], &[]) }),
            ("bare", TableFacts { primary_key: vec![], ..table(&[], &[]) }),
        ];
        Catalogue { tables: tables.into_iter().map(|(name, facts)| (name.to_owned(), facts)).collect(), complete: true }
    }

    const PAIR: [(&str, bool); 2] = [("member", true), ("shop", true)];

    fn key(name: &str, is_integer: bool) -> KeyColumn {
        KeyColumn { name: name.to_owned(), is_integer }
    }

    fn facts_of(sql: &str, rows: RowExpectation) -> Facts {
        facts_with(sql, rows, &vec![ParamType::Signed; sql.matches('?').count()])
    }

    fn facts_with(sql: &str, rows: RowExpectation, params: &[ParamType]) -> Facts {
        let access = ["log", "member", "account", "entry", "audited", "tree", "pair", "named", "bare"];
        let tables = access.iter().map(|name| ((*name).to_owned(), crate::manifest::Access::Write)).collect();
        let declared = Declared { tables: &tables, params: params.len(), purpose: Purpose::Statement { rows } };
        facts(&check_text(sql, Dialect::MySql, &declared).unwrap(), rows, params, &catalogue())
    }

    const ONE: RowExpectation = RowExpectation::Between { min: 1, max: 1 };

    #[test]
    fn an_insert_whose_rows_can_tell_is_folded() {
        for (sql, rows, folds) in [
            ("INSERT INTO log (a, b) VALUES (?, 7)", ONE, true),
            ("INSERT INTO log (a, b) VALUES (?, 7)", RowExpectation::Any, true),
            ("INSERT INTO log (a, b) VALUES (?, 7)", RowExpectation::Between { min: 0, max: 0 }, false),
            ("INSERT INTO log (a) VALUES (?) ON DUPLICATE KEY UPDATE b = b + 1", RowExpectation::OneKey, true),
            ("INSERT INTO log (a) VALUES (?) ON DUPLICATE KEY UPDATE b = b + ?", RowExpectation::OneKey, false),
            ("INSERT INTO log (a) VALUES (?), (?)", RowExpectation::Between { min: 2, max: 2 }, false),
            ("INSERT INTO log (a) VALUES (LAST_INSERT_ID())", ONE, false),
            ("INSERT INTO audited (a) VALUES (?)", ONE, false),
            ("DELETE FROM log WHERE b = ?", ONE, false),
        ] {
            assert_eq!(facts_of(sql, rows).form.is_some(), folds, "{sql} with {rows:?}");
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
        let writes = [(1, &update), (2, &log), (1, &update), (2, &log), (2, &log)].map(unvalued);
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
            assert_eq!(plan(&[(1, &entry), (1, &entry), (2, other)].map(unvalued)), None, "{other:?}");
        }
        assert_eq!(plan(&[(1, &entry), (1, &entry)].map(unvalued)), Some(vec![Step::Folded(vec![0, 1])]));
    }

    fn unvalued<'f>((statement, facts): (i32, &'f Facts)) -> Write<'f, i32> {
        Write { statement, facts, params: &[] }
    }

    #[test]
    fn an_update_of_the_one_row_of_a_primary_key_is_folded() {
        let between = |min, max| RowExpectation::Between { min, max };
        for (sql, rows, folds) in [
            ("UPDATE log SET a = a + ? WHERE id = ?", ONE, true),
            ("UPDATE log SET a = a + ? WHERE ID = ?", ONE, true),
            ("UPDATE log SET a = a + ? WHERE ? = `id` AND a > ?", ONE, true),
            ("UPDATE log AS l SET l.a = l.a + ?, b = 1 WHERE (l.id = ?)", RowExpectation::Any, true),
            ("UPDATE log SET a = ? WHERE id = ?", between(0, 1), true),
            ("UPDATE log SET a = ? WHERE id = ?", between(1, 9), true),
            ("UPDATE log SET a = ? WHERE id = ?", between(2, 9), false),
            ("UPDATE log SET a = ? WHERE id = ?", between(0, 0), false),
            ("UPDATE pair SET a = ? WHERE member = ? AND shop = ?", ONE, true),
            ("UPDATE pair SET a = ? WHERE member = ?", ONE, false),
            ("UPDATE log SET a = ? WHERE b = ?", ONE, false),
            ("UPDATE log SET a = ? WHERE id = ? OR b = ?", ONE, false),
            ("UPDATE log SET a = ? WHERE id > ?", ONE, false),
            ("UPDATE log SET a = ? WHERE id = ? + 1", ONE, false),
            ("UPDATE log SET a = ? WHERE id BETWEEN ? AND ?", ONE, false),
            ("UPDATE log SET id = ? WHERE id = ?", ONE, false),
            ("UPDATE log SET Code = ? WHERE id = ?", ONE, false),
            ("UPDATE log SET a = a + ?, b = a WHERE id = ?", ONE, false),
            ("UPDATE log SET a = b, b = ? WHERE id = ?", ONE, false),
            ("UPDATE log SET a = a + ?, b = b + ? WHERE id = ?", ONE, true),
            ("UPDATE log SET a = ?, a = 2 WHERE id = ?", ONE, false),
            ("UPDATE log SET a = ? WHERE id = ? ORDER BY a LIMIT 1", ONE, false),
            ("UPDATE log SET a = (SELECT max(b) FROM entry WHERE id = ?) WHERE id = ?", ONE, false),
            ("UPDATE tree SET a = ? WHERE id = ?", ONE, false),
            ("UPDATE named SET a = ? WHERE id = ?", ONE, false),
            ("UPDATE bare SET a = ? WHERE id = ?", ONE, false),
            ("UPDATE audited SET a = ? WHERE id = ?", ONE, false),
        ] {
            assert_eq!(facts_of(sql, rows).form.is_some(), folds, "{sql} with {rows:?}");
        }
    }

    #[test]
    fn text_comes_from_a_table_of_values_only_where_it_is_stored_as_it_is() {
        let number = ParamType::Unsigned;
        for (sql, params, folds) in [
            ("UPDATE log SET a = ? WHERE id = ?", [ParamType::Text, number], true),
            ("UPDATE log SET a = ? WHERE id = ?", [ParamType::Json, number], true),
            ("UPDATE log SET a = UPPER(?) WHERE id = ?", [ParamType::Text, number], false),
            ("UPDATE log SET a = 1 WHERE b = ? AND id = ?", [ParamType::Text, number], false),
            ("UPDATE log SET a = 1 WHERE b = ? AND id = ?", [ParamType::Signed, number], true),
            ("UPDATE log SET a = ? WHERE id = ?", [ParamType::Decimal, number], false),
            ("UPDATE log SET a = ? WHERE id = ?", [ParamType::Float, number], false),
            ("UPDATE log SET a = ? WHERE id = ?", [ParamType::Bytes, number], false),
            ("UPDATE log SET a = ? WHERE id = ?", [number, ParamType::Text], false),
        ] {
            assert_eq!(facts_with(sql, ONE, &params).form.is_some(), folds, "{sql} with {params:?}");
        }
    }

    #[test]
    fn the_parts_of_an_update_are_where_they_are_said_to_be() {
        let sql = "UPDATE `log` SET a = ?, b = b + ? WHERE id = ?";
        let facts = facts_with(sql, ONE, &[ParamType::Text, ParamType::Signed, ParamType::Unsigned]);
        let Some(Form::Update(form)) = facts.form else { panic!("not folded") };
        assert_eq!((&sql[..form.behind_verb], &sql[form.set..form.set + 3]), ("UPDATE", "SET"));
        assert!(form.marks.iter().all(|(at, _)| sql[*at..].starts_with('?')));
        let columns: Vec<Column> = form.marks.iter().map(|(_, column)| *column).collect();
        assert_eq!((columns, form.keys), (vec![Column::Text, Column::Signed, Column::Unsigned], vec![2]));
    }

    #[test]
    fn updates_of_one_row_follow_each_other_and_those_of_many_are_in_the_order_of_their_keys() {
        let facts = facts_of("UPDATE account SET a = ? WHERE id = ?", ONE);
        let values: Vec<[Value; 2]> =
            [9, 3, 9, 1, 3, 9].into_iter().map(|id| [Value::Signed(0), Value::Unsigned(id)]).collect();
        let writes: Vec<_> = values.iter().map(|params| Write { statement: 1, facts: &facts, params }).collect();
        let rounds = vec![Step::Folded(vec![3, 1, 0]), Step::Folded(vec![4, 2]), Step::One(5)];
        assert_eq!(plan(&writes), Some(rounds));
        assert_eq!(
            plan(&[&writes[0], &writes[2]].map(|w| Write { statement: 1, facts: &facts, params: w.params })),
            None
        );
        let text = [Value::Signed(0), Value::Text("1".into())];
        let odd = [&values[0][..], &text[..]].map(|params| Write { statement: 1, facts: &facts, params });
        assert_eq!(plan(&odd), None, "a value that is no whole number");
    }

    #[test]
    fn the_rows_of_all_tell_of_each() {
        let any = |min, max| facts_of("UPDATE log SET a = ? WHERE id = ?", RowExpectation::Between { min, max }).rows;
        assert_eq!((any(0, 1), any(1, 1), any(1, 2)), (RowsOfAll::Any, RowsOfAll::OneEach, RowsOfAll::OneEach));
        assert!(RowsOfAll::OneEach.met(3, 3) && !RowsOfAll::OneEach.met(3, 2));
        assert!(RowsOfAll::Any.met(3, 5));
    }
}
