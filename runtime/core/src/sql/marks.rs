//! The `?` of a text: which one an expression is, and which of them stand by themselves.

use std::collections::BTreeSet;

use sqlparser::ast::{
    Assignment, BinaryOperator, Delete, Expr, Ident, InTarget, Insert, OnConflictAction, OnInsert, SetExpr, Statement,
    Update, Value,
};

use super::lexer::{Kind, Token};
use super::parse::place;

/// A `?` of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its byte offset in the text.
    pub at: usize,
    /// Whether it stands by itself: it is stored as it is, or compared with a column. A server gives a parameter that is
    /// calculated with another type than a literal of the same value.
    pub is_alone: bool,
}

/// All of them, in order.
pub(super) fn marks(statement: &Statement, tokens: &[Token<'_>]) -> Vec<Mark> {
    let mut alone = BTreeSet::new();
    #[expect(clippy::wildcard_enum_match_arm, reason = "of a query, none is asked for")]
    match statement {
        Statement::Insert(insert) => of_insert(insert, tokens, &mut alone),
        Statement::Update(Update { assignments, selection, .. }) => {
            of_assignments(assignments, tokens, &mut alone);
            of_condition(selection.as_ref(), tokens, &mut alone);
        }
        Statement::Delete(Delete { selection, .. }) => of_condition(selection.as_ref(), tokens, &mut alone),
        _ => {}
    }
    let placeholders = tokens.iter().filter(|token| token.kind == Kind::Placeholder).enumerate();
    placeholders.map(|(number, token)| Mark { at: token.start, is_alone: alone.contains(&number) }).collect()
}

fn of_insert(insert: &Insert, tokens: &[Token<'_>], alone: &mut BTreeSet<usize>) {
    if let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| source.body.as_ref()) {
        alone.extend(values.rows.iter().flat_map(|row| &row.content).filter_map(|value| mark(value, tokens)));
    }
    match &insert.on {
        Some(OnInsert::DuplicateKeyUpdate(assignments)) => of_assignments(assignments, tokens, alone),
        Some(OnInsert::OnConflict(conflict)) => {
            if let OnConflictAction::DoUpdate(update) = &conflict.action {
                of_assignments(&update.assignments, tokens, alone);
            }
        }
        Some(_) | None => {}
    }
}

fn of_assignments(assignments: &[Assignment], tokens: &[Token<'_>], alone: &mut BTreeSet<usize>) {
    alone.extend(assignments.iter().filter_map(|assignment| mark(&assignment.value, tokens)));
}

/// Comparisons with a column, however ANDs and ORs tie them.
fn of_condition(condition: Option<&Expr>, tokens: &[Token<'_>], alone: &mut BTreeSet<usize>) {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or, Spaceship};
    match condition {
        Some(Expr::Nested(inner)) => of_condition(Some(inner), tokens, alone),
        Some(Expr::BinaryOp { left, op: And | Or, right }) => {
            of_condition(Some(left), tokens, alone);
            of_condition(Some(right), tokens, alone);
        }
        Some(Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship, right }) => {
            for (column, value) in [(left, right), (right, left)] {
                alone.extend(mark(value, tokens).filter(|_| column_of(column).is_some()));
            }
        }
        Some(Expr::In { expr, target: InTarget::List(values), .. }) if column_of(expr).is_some() => {
            alone.extend(values.iter().filter_map(|value| mark(value, tokens)));
        }
        _ => {}
    }
}

/// Which `?` of the text the expression is, if it is one.
#[expect(clippy::wildcard_enum_match_arm, reason = "anything else is no `?`")]
pub(super) fn mark(expr: &Expr, tokens: &[Token<'_>]) -> Option<usize> {
    match expr {
        Expr::Nested(inner) => mark(inner, tokens),
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            let at = place(value.span.start)?;
            tokens.iter().filter(|token| token.kind == Kind::Placeholder).position(|token| token.at == at)
        }
        _ => None,
    }
}

/// The name of a bare column, in small letters.
#[expect(clippy::wildcard_enum_match_arm, reason = "anything else is no bare column")]
pub(super) fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => column_of(inner),
        Expr::Identifier(name) => Some(lower(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(lower),
        _ => None,
    }
}

/// Columns are the same without regard to case.
pub(super) fn lower(name: &Ident) -> String {
    name.value.to_lowercase()
}
