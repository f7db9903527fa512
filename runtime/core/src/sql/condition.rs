//! Whether a WHERE chooses rows: it must compare a bare column with something that is not of the row itself.
//!
//! The rule, on purpose a little stricter than needed: on every side of an OR, and somewhere in every AND, one
//! comparison `column = value` (or `<=>`, `<`, `<=`, `>`, `>=`, BETWEEN, IN, LIKE, IS NULL), where the value has no
//! column. So `1 = 1`, `? = ?`, `id = id` and `id = COALESCE(?, id)` do not count. Inside of a subquery the value
//! may be another column, since such a WHERE binds the outer row. Whether an index serves it, EXPLAIN tells.

#![expect(clippy::wildcard_enum_match_arm, reason = "a condition that is not named here does not count, which refuses")]

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, InTarget,
    Spanned,
};

use super::functions::is_bare_function;
use super::parse::place;
use super::refusal::{Refusal, Rule};

/// What a column may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// Something without any column.
    Value,
    /// Anything but the same column: inside of a subquery.
    NotItself,
}

/// Refuses a WHERE that does not choose rows by a column.
pub(super) fn check(condition: &Expr, other: Other) -> Result<(), Refusal> {
    if chooses(condition, other) {
        return Ok(());
    }
    let at = place(condition.span().start);
    Err(Refusal::new(Rule::WhereColumn, at, format!("WHERE {condition} does not choose rows by a column")))
}

fn chooses(condition: &Expr, other: Other) -> bool {
    match condition {
        Expr::Nested(inner) => chooses(inner, other),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => chooses(left, other) || chooses(right, other),
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => chooses(left, other) && chooses(right, other),
        Expr::BinaryOp {
            left,
            op:
                BinaryOperator::Eq
                | BinaryOperator::Spaceship
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq,
            right,
        } => compares(left, right, other) || compares(right, left, other),
        Expr::Between { expr, negated: false, low, high } => compares(expr, low, other) && compares(expr, high, other),
        Expr::In { expr, target, negated: false, global: false } => match target {
            InTarget::List(values) => values.iter().all(|value| compares(expr, value, other)),
            InTarget::Subquery(_) => is_column(expr),
            InTarget::Unnest(_) | InTarget::Table { name: _, args: _ } => false,
        },
        Expr::Like { negated: false, any: false, expr, pattern, escape_char: _ } => compares(expr, pattern, other),
        Expr::IsNull(expr) => is_column(expr),
        _ => false,
    }
}

fn compares(column: &Expr, with: &Expr, other: Other) -> bool {
    match other {
        Other::Value => is_column(column) && is_value(with),
        Other::NotItself => is_column(column) && (is_value(with) || is_column(with) && !is_same_column(column, with)),
    }
}

/// A bare column, or a tuple of them.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_column(inner),
        Expr::Identifier(name) => name.quote_style.is_some() || !is_bare_function(&name.value.to_ascii_uppercase()),
        Expr::CompoundIdentifier(_) => true,
        Expr::Tuple(parts) => parts.iter().all(is_column),
        _ => false,
    }
}

/// Columns are compared as the server names them: without regard to case.
fn is_same_column(one: &Expr, two: &Expr) -> bool {
    fn last(expr: &Expr) -> Option<(Option<&str>, &str)> {
        match expr {
            Expr::Nested(inner) => last(inner),
            Expr::Identifier(name) => Some((None, &name.value)),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => Some((Some(&table.value), &name.value)),
                _ => None,
            },
            _ => None,
        }
    }
    match (last(one), last(two)) {
        (Some((Some(table_one), name_one)), Some((Some(table_two), name_two))) => {
            table_one.eq_ignore_ascii_case(table_two) && name_one.eq_ignore_ascii_case(name_two)
        }
        // Without both qualifiers, columns of one name may be one column.
        (Some((_, name_one)), Some((_, name_two))) => name_one.eq_ignore_ascii_case(name_two),
        _ => true,
    }
}

/// An expression without any column outside of its own subqueries.
fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::Subquery(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: _, expr: inner } => is_value(inner),
        Expr::Cast { kind: _, expr: inner, data_type: _, format: _ } => is_value(inner),
        Expr::BinaryOp { left, op: _, right } => is_value(left) && is_value(right),
        Expr::Tuple(parts) => parts.iter().all(is_value),
        Expr::Interval(interval) => is_value(&interval.value),
        Expr::Identifier(name) => name.quote_style.is_none() && is_bare_function(&name.value.to_ascii_uppercase()),
        Expr::Function(function) => has_value_arguments(function),
        _ => false,
    }
}

fn has_value_arguments(function: &Function) -> bool {
    match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::Subquery(_) => false,
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment: _, args, clauses: _ }) => {
            args.iter().all(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if is_value(expr)))
        }
    }
}
