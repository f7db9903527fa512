//! What folding has to know of an UPDATE: what it assigns, by what it finds its rows, and where its parts stand.

use std::collections::BTreeSet;

use sqlparser::ast::{AssignmentTarget, BinaryOperator, Expr, ObjectNamePart, Spanned, Update};

use super::lexer::{Kind, Token};
use super::marks::{column_of, lower, mark};
use super::parse::place;

/// The shape of an UPDATE without ORDER BY and LIMIT whose assignments do not read each other's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateShape {
    /// Byte offset behind the word UPDATE.
    pub behind_verb: usize,
    /// Byte offset of the word SET.
    pub set: usize,
    /// The columns that it assigns, in small letters.
    pub assigned: BTreeSet<String>,
    /// Comparisons `column = ?` that all rows meet: the column in small letters, and which `?` it is.
    pub equals: Vec<(String, usize)>,
    /// Which `?` are assigned as they are.
    pub stored: BTreeSet<usize>,
}

/// `None`: it has another shape.
pub(super) fn shape(update: &Update, tokens: &[Token<'_>]) -> Option<UpdateShape> {
    let [verb, ..] = tokens else { return None };
    let set = tokens.iter().find(|token| token.is_word("SET"))?;
    if !update.order_by.is_empty() || update.limit.is_some() {
        return None;
    }
    let mut starts = Vec::with_capacity(update.assignments.len());
    let mut assigned = BTreeSet::new();
    let mut stored = BTreeSet::new();
    for assignment in &update.assignments {
        let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
        let Some(ObjectNamePart::Identifier(column)) = name.0.last() else { return None };
        let start = place(name.span().start)?;
        starts.push((tokens.iter().position(|token| token.at == start)?, lower(column)));
        // Of a column that is assigned twice the order decides.
        if !assigned.insert(lower(column)) {
            return None;
        }
        stored.extend(mark(&assignment.value, tokens));
    }
    // A server may carry assignments of a join out in any order.
    let end = tokens.iter().position(|token| token.is_word("WHERE"))?;
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([end]);
    for ((start, own), end) in starts.iter().zip(ends) {
        let names = tokens.get(*start..end)?.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        let mut names = names.map(|token| token.text.to_lowercase());
        if names.any(|name| name != *own && assigned.contains(&name)) {
            return None;
        }
    }
    let mut equals = Vec::new();
    conjuncts(update.selection.as_ref()?, tokens, &mut equals);
    Some(UpdateShape { behind_verb: verb.end, set: set.start, assigned, equals, stored })
}

/// Comparisons `column = ?` that stand in an AND with all else.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other condition only takes rows away")]
fn conjuncts(condition: &Expr, tokens: &[Token<'_>], found: &mut Vec<(String, usize)>) {
    match condition {
        Expr::Nested(inner) => conjuncts(inner, tokens, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, tokens, found);
            conjuncts(right, tokens, found);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            for (column, value) in [(left, right), (right, left)] {
                if let (Some(column), Some(mark)) = (column_of(column), mark(value, tokens)) {
                    found.push((column, mark));
                }
            }
        }
        _ => {}
    }
}
