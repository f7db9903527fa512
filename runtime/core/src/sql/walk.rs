//! The walk over the parsed tree: what all its parts share.
//!
//! Every struct of the parser is taken apart field by field, without `..`, and every enum by the variants that are
//! allowed: what is not named is refused, and a field that a newer parser adds does not compile. The parts are
//! `write.rs` (INSERT, UPDATE, DELETE), `select.rs`, `expression.rs` and `condition.rs`. Each name, parameter and
//! literal that the walk meets is noted by its place; a word of the text that nobody met is refused in the end, so
//! that nothing the parser swallows gets through.

use std::collections::BTreeSet;
use std::fmt::Debug;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Spanned, TableAlias};
use sqlparser::tokenizer::Span;

use super::Dialect;
use super::lexer::{Kind, Token};
use super::parse::place;
use super::refusal::{At, Refusal, Rule};
use super::words;

/// Deepest tree of expressions, chains of AND and OR included; the walk recurses.
const DEPTH_MAX: usize = 128;

/// A table as the text names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) table: String,
    pub(super) at: Option<At>,
    pub(super) written: bool,
}

/// What the walk has seen so far.
pub(super) struct Walk<'a> {
    pub(super) dialect: Dialect,
    pub(super) tokens: &'a [Token<'a>],
    pub(super) named: Vec<Named>,
    pub(super) last_insert_id: bool,
    /// Inside of ON DUPLICATE KEY UPDATE, where VALUES(column) may stand.
    pub(super) in_upsert: bool,
    seen: BTreeSet<At>,
    depth: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(dialect: Dialect, tokens: &'a [Token<'a>]) -> Walk<'a> {
        Walk {
            dialect,
            tokens,
            named: vec![],
            last_insert_id: false,
            in_upsert: false,
            seen: BTreeSet::new(),
            depth: 0,
        }
    }

    /// Notes that the token at this place is part of the tree.
    pub(super) fn see(&mut self, span: Span) {
        self.seen.extend(place(span.start));
    }

    /// Goes one level down, within the limit.
    pub(super) fn deeper<T>(
        &mut self,
        at: Option<At>,
        step: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth == DEPTH_MAX {
            return Err(Refusal::new(Rule::TooLarge, at, format!("an expression {} levels deep", DEPTH_MAX + 1)));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// A name as it stands: unquoted and not reserved, or in backticks.
    pub(super) fn name(&mut self, name: &Ident) -> Result<(), Refusal> {
        let Ident { value, quote_style, span } = name;
        let at = place(span.start);
        match quote_style {
            None if words::is_reserved(&value.to_ascii_uppercase()) => {
                return Err(Refusal::new(
                    Rule::ReservedWord,
                    at,
                    format!("the reserved word {value} where a name stands"),
                ));
            }
            None | Some('`') => {}
            Some(_) => return Err(Refusal::new(Rule::Identifier, at, format!("the name {name}"))),
        }
        self.see(*span);
        Ok(())
    }

    /// A table's name: one part, noted as read or written.
    pub(super) fn table(&mut self, name: &ObjectName, written: bool) -> Result<(), Refusal> {
        let at = place(name.span().start);
        let ObjectName(parts) = name;
        let [ObjectNamePart::Identifier(table)] = parts.as_slice() else {
            return Err(Refusal::new(Rule::QualifiedName, at, format!("the name {name}")));
        };
        self.name(table)?;
        self.named.push(Named { table: table.value.clone(), at, written });
        Ok(())
    }

    /// A column's name: alone, or behind a table or alias.
    pub(super) fn column(&mut self, name: &ObjectName) -> Result<(), Refusal> {
        let ObjectName(parts) = name;
        let mut names = Vec::new();
        for part in parts {
            match part {
                ObjectNamePart::Identifier(name) => names.push(name.clone()),
                ObjectNamePart::Function(_) => return Err(construct(name)),
            }
        }
        self.column_path(&names)
    }

    /// The parts of a column's name.
    pub(super) fn column_path(&mut self, parts: &[Ident]) -> Result<(), Refusal> {
        if parts.len() > 2 {
            let path: Vec<_> = parts.iter().map(|part| part.value.as_str()).collect();
            let at = parts.first().and_then(|part| place(part.span.start));
            return Err(Refusal::new(Rule::QualifiedName, at, format!("the name {}", path.join("."))));
        }
        parts.iter().try_for_each(|part| self.name(part))
    }

    /// A table's alias, without columns of its own.
    pub(super) fn alias(&mut self, alias: Option<&TableAlias>) -> Result<(), Refusal> {
        let Some(alias) = alias else { return Ok(()) };
        let TableAlias { explicit: _, name, columns, at } = alias;
        if !columns.is_empty() || at.is_some() {
            return Err(Refusal::new(Rule::Construct, place(name.span.start), format!("the alias {alias}")));
        }
        self.name(name)
    }

    /// Every word, quoted name, parameter and literal of the text must be a keyword or have been met in the tree.
    pub(super) fn account(&self) -> Result<(), Refusal> {
        for token in self.tokens {
            let free = match token.kind {
                Kind::Word => words::is_keyword(&token.text.to_ascii_uppercase()),
                Kind::Number | Kind::Symbol => true,
                Kind::Quoted | Kind::Text | Kind::Placeholder => false,
            };
            if !free && !self.seen.contains(&token.at) {
                let found = format!("{:?} is part of nothing that the gate knows", token.text);
                return Err(Refusal::new(Rule::Disagreement, token.at, found));
            }
        }
        Ok(())
    }
}

/// Refuses a node that the walk does not name, with the parser's word for it.
pub(super) fn construct(node: &(impl Debug + Spanned)) -> Refusal {
    Refusal::new(Rule::Construct, place(node.span().start), format!("the construct {}", kind(node)))
}

/// The variant's name, the first word of the debug text.
pub(super) fn kind(node: &impl Debug) -> String {
    let text = format!("{node:?}");
    text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// Refuses at the first of these clauses that is there.
pub(super) fn refuse_clauses(at: Option<At>, clauses: &[(bool, Rule, &str)]) -> Result<(), Refusal> {
    match clauses.iter().find(|(there, _, _)| *there) {
        Some((_, rule, name)) => Err(Refusal::new(*rule, at, *name)),
        None => Ok(()),
    }
}
