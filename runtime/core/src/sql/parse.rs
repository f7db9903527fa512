//! From tokens to a tree, with proof that the parser read the same tokens as we did.

use sqlparser::ast::Statement;
use sqlparser::dialect::{Dialect as ParserDialect, MySqlDialect, SQLiteDialect};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token as ParserToken, TokenWithSpan, Tokenizer};

use super::Dialect;
use super::lexer::{Kind, Token};
use super::refusal::{At, Refusal, Rule};

/// Deepest recursion of the parser.
const RECURSION_MAX: usize = 50;

/// Parses the text to its one statement.
pub(super) fn statement(sql: &str, dialect: Dialect, ours: &[Token<'_>]) -> Result<Statement, Refusal> {
    let dialect: &dyn ParserDialect = match dialect {
        Dialect::MySql => &MySqlDialect {},
        Dialect::Sqlite => &SQLiteDialect {},
    };
    let theirs = Tokenizer::new(dialect, sql)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| Refusal::new(Rule::Syntax, place(error.location), error.message))?;
    agree(ours, &theirs)?;
    let mut statements = Parser::new(dialect)
        .with_recursion_limit(RECURSION_MAX)
        .with_tokens_with_locations(theirs)
        .parse_statements()
        .map_err(|error| refuse_syntax(&error))?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_) | None, _) => Err(Refusal::new(Rule::Syntax, None, "the text is not one statement")),
    }
}

fn refuse_syntax(error: &ParserError) -> Refusal {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            Refusal::new(Rule::Syntax, None, format!("it does not parse ({text})"))
        }
        ParserError::RecursionLimitExceeded => Refusal::new(Rule::TooLarge, None, "expressions nested too deeply"),
    }
}

/// Compares token by token: kind, text and place.
fn agree(ours: &[Token<'_>], theirs: &[TokenWithSpan]) -> Result<(), Refusal> {
    let mut theirs = theirs.iter().filter(|t| !matches!(t.token, ParserToken::Whitespace(_) | ParserToken::EOF));
    for token in ours {
        if !theirs.next().is_some_and(|their| is_same(token, their)) {
            return Err(Refusal::new(
                Rule::Disagreement,
                token.at,
                format!("the parser and the gate read {:?} differently", token.text),
            ));
        }
    }
    match theirs.next() {
        None => Ok(()),
        Some(more) => {
            Err(Refusal::new(Rule::Disagreement, place(more.span.start), "the parser reads more than the gate"))
        }
    }
}

/// A token that is not named here is not the same, which refuses the text.
fn is_same(ours: &Token<'_>, theirs: &TokenWithSpan) -> bool {
    let same_text = match (&theirs.token, ours.kind) {
        (ParserToken::Word(word), Kind::Word) => word.quote_style.is_none() && word.value == ours.text,
        (ParserToken::Word(word), Kind::Quoted) => word.quote_style == Some('`') && word.value == ours.text,
        (ParserToken::Number(digits, false), Kind::Number) => digits == ours.text,
        (ParserToken::SingleQuotedString(body), Kind::Text) => body == ours.text,
        (ParserToken::Placeholder(mark), Kind::Placeholder) => mark == "?",
        (ParserToken::Neq, Kind::Symbol) => matches!(ours.text, "<>" | "!="),
        (
            ParserToken::Comma
            | ParserToken::Eq
            | ParserToken::Lt
            | ParserToken::Gt
            | ParserToken::LtEq
            | ParserToken::GtEq
            | ParserToken::Spaceship
            | ParserToken::Plus
            | ParserToken::Minus
            | ParserToken::Mul
            | ParserToken::Div
            | ParserToken::Mod
            | ParserToken::StringConcat
            | ParserToken::LParen
            | ParserToken::RParen
            | ParserToken::Period
            | ParserToken::Ampersand
            | ParserToken::Pipe
            | ParserToken::ShiftLeft
            | ParserToken::ShiftRight
            | ParserToken::Arrow
            | ParserToken::LongArrow,
            Kind::Symbol,
        ) => theirs.token.to_string() == ours.text,
        _ => false,
    };
    same_text && place(theirs.span.start) == Some(ours.at)
}

/// The parser's place as ours; it gives line 0 to what has none.
pub(super) fn place(location: Location) -> Option<At> {
    (location.line > 0).then_some(At { line: location.line, column: location.column })
}
