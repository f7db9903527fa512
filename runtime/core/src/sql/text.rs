//! A text by itself and against its manifest: words, tree, parameters, rows, `[tables]`.

use std::collections::BTreeSet;
use std::ops::Range;

use sqlparser::ast::Statement;

use super::lexer::{self, Kind, Token};
use super::refusal::{Refusal, Rule};
use super::walk::{Named, Walk, construct};
use super::write::InsertShape;
use super::{Accepted, Declared, Dialect, Purpose, UpdateShape, Verb, marks, parse, update, words};
use crate::manifest::{Access, RowExpectation};

/// An accepted text with every table that it names and where.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) accepted: Accepted,
    pub(super) named: Vec<Named>,
}

/// Reads and judges a text.
pub(super) fn read(sql: &str, dialect: Dialect, declared: &Declared<'_>) -> Result<Text, Refusal> {
    let tokens = lexer::tokens(sql, dialect)?;
    let verb = verb(&tokens, declared.purpose)?;
    check_words(&tokens, verb)?;
    let statement = parse::statement(sql, dialect, &tokens)?;
    let mut walk = Walk::new(dialect, &tokens);
    let shape = walk_statement(&mut walk, &statement)?;
    walk.account()?;
    let Walk { named, last_insert_id, .. } = walk;
    check_lock(dialect, declared.purpose, shape.locking)?;
    check_params(&tokens, declared.params)?;
    check_rows(declared.purpose, &shape)?;
    check_declared(&named, declared)?;
    let accepted = Accepted {
        verb,
        table: named.iter().find(|table| table.written).map(|table| table.table.clone()),
        tables_read: read_tables(&named),
        on_duplicate_key: shape.upsert,
        last_insert_id,
        locking: shape.locking,
        marks: marks::marks(&statement, &tokens),
        values_group: if shape.rows == 1 { values_group(&tokens) } else { None },
        update: shape.update,
    };
    Ok(Text { accepted, named })
}

/// The first word says what it is; a manifest's statement writes, its query reads.
fn verb(tokens: &[Token<'_>], purpose: Purpose) -> Result<Verb, Refusal> {
    let Some(first) = tokens.first() else {
        return Err(Refusal::new(Rule::Verb, None, "the text is empty"));
    };
    let verbs: &[Verb] = match purpose {
        Purpose::Statement { rows: _ } => &[Verb::Insert, Verb::Update, Verb::Delete],
        Purpose::Query { lock: _ } => &[Verb::Select],
    };
    match verbs.iter().find(|verb| first.is_word(&verb.to_string())) {
        Some(verb) => Ok(*verb),
        None => {
            let kind = match purpose {
                Purpose::Statement { rows: _ } => "statement",
                Purpose::Query { lock: _ } => "query",
            };
            Err(Refusal::new(Rule::Verb, first.at, format!("a {kind} that begins with {}", first.text)))
        }
    }
}

/// Refuses words by name before any parser, each where it stands.
fn check_words(tokens: &[Token<'_>], verb: Verb) -> Result<(), Refusal> {
    if let [first, or, ..] = tokens
        && or.is_word("OR")
    {
        return Err(Refusal::new(Rule::Ignore, or.at, format!("{} OR …", first.text)));
    }
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Word) {
        if let Some(rule) = words::refused_word(&token.text.to_ascii_uppercase()) {
            let found = format!("the word {} (a name of that spelling stands in backticks)", token.text);
            return Err(Refusal::new(rule, token.at, found));
        }
        if let Some(next) = tokens.get(index + 1)
            && words::is_special_function(&token.text.to_ascii_uppercase())
            && next.text == "("
            && next.start != token.end
        {
            return Err(Refusal::new(Rule::Function, token.at, format!("a space behind {}", token.text)));
        }
        if token.is_word("INTO") && !(index == 1 && verb == Verb::Insert) {
            return Err(Refusal::new(Rule::Into, token.at, "INTO"));
        }
    }
    let before_set = tokens.iter().take_while(|token| !token.is_word("SET"));
    match before_set.filter(|token| verb == Verb::Update && token.kind == Kind::Symbol).find(|token| token.text == ",")
    {
        Some(comma) => Err(Refusal::new(Rule::ManyTables, comma.at, "UPDATE of several tables")),
        None => Ok(()),
    }
}

/// What the tree says beyond its tables.
#[derive(Default)]
struct Shape {
    upsert: bool,
    rows: usize,
    locking: bool,
    update: Option<UpdateShape>,
}

fn walk_statement(walk: &mut Walk<'_>, statement: &Statement) -> Result<Shape, Refusal> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a statement that is not named is refused")]
    match statement {
        Statement::Insert(insert) => {
            let InsertShape { upsert, rows } = walk.insert(insert)?;
            Ok(Shape { upsert, rows, ..Shape::default() })
        }
        Statement::Update(update) => {
            walk.update(update)?;
            Ok(Shape { update: update::shape(update, walk.tokens), ..Shape::default() })
        }
        Statement::Delete(delete) => walk.delete(delete).map(|()| Shape::default()),
        Statement::Query(query) => walk.top_query(query).map(|locking| Shape { locking, ..Shape::default() }),
        other => Err(construct(other)),
    }
}

/// SQLite has no FOR UPDATE and one writer: there `lock = true` asserts nothing about the text.
fn check_lock(dialect: Dialect, purpose: Purpose, locking: bool) -> Result<(), Refusal> {
    match (purpose, dialect, locking) {
        (Purpose::Query { lock: true }, Dialect::MySql, false) => {
            Err(Refusal::new(Rule::LockMissing, None, "lock = true, but the text does not end in FOR UPDATE"))
        }
        (Purpose::Query { lock: false }, Dialect::MySql, true) => {
            Err(Refusal::new(Rule::LockUndeclared, None, "the text ends in FOR UPDATE, but lock is false"))
        }
        (Purpose::Query { lock: _ } | Purpose::Statement { rows: _ }, Dialect::MySql | Dialect::Sqlite, _) => Ok(()),
    }
}

fn check_params(tokens: &[Token<'_>], params: usize) -> Result<(), Refusal> {
    let marks = tokens.iter().filter(|token| token.kind == Kind::Placeholder).count();
    if marks == params {
        return Ok(());
    }
    Err(Refusal::new(Rule::ParameterCount, None, format!("the text has {marks} ?, the manifest {params} params")))
}

/// The server's count of an upsert is 0, 1 or 2 for one key, so only "any" and "one-key" can be checked.
fn check_rows(purpose: Purpose, shape: &Shape) -> Result<(), Refusal> {
    let found = match purpose {
        Purpose::Query { lock: _ } | Purpose::Statement { rows: RowExpectation::Any } => return Ok(()),
        Purpose::Statement { rows: RowExpectation::Between { min, max } } if shape.upsert => {
            format!("rows from {min} to {max} of an upsert")
        }
        Purpose::Statement { rows: RowExpectation::Between { min: _, max: _ } } => return Ok(()),
        Purpose::Statement { rows: RowExpectation::OneKey } => match (shape.upsert, shape.rows) {
            (true, 1) => return Ok(()),
            (true, rows) => format!("rows = \"one-key\" of an upsert of {rows} rows"),
            (false, _) => "rows = \"one-key\" without an upsert".to_owned(),
        },
    };
    Err(Refusal::new(Rule::RowsExpectation, None, found))
}

/// Every table must be in `[tables]`, with access enough.
fn check_declared(named: &[Named], declared: &Declared<'_>) -> Result<(), Refusal> {
    for Named { table, at, written } in named {
        match (declared.tables.get(table), written) {
            (Some(Access::Write), _) | (Some(Access::Read), false) => {}
            (Some(Access::Read), true) => {
                let found = format!("the table {table} is written but declared as \"read\"");
                return Err(Refusal::new(Rule::TableReadOnly, *at, found));
            }
            (None, _) => {
                return Err(Refusal::new(Rule::TableUndeclared, *at, format!("the table {table} is not declared")));
            }
        }
    }
    Ok(())
}

fn read_tables(named: &[Named]) -> Vec<String> {
    let read: BTreeSet<&str> = named.iter().filter(|table| !table.written).map(|table| table.table.as_str()).collect();
    read.into_iter().map(str::to_owned).collect()
}

/// The bytes from the first parenthesis behind VALUES to the one that closes it.
fn values_group(tokens: &[Token<'_>]) -> Option<Range<usize>> {
    let values = tokens.iter().position(|token| token.is_word("VALUES"))?;
    let group = tokens.get(values + 1..)?;
    let mut nesting = 0_usize;
    for token in group.iter().filter(|token| token.kind == Kind::Symbol) {
        match token.text {
            "(" => nesting += 1,
            ")" => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting == 0 {
            return Some(group.first()?.start..token.end);
        }
    }
    None
}
