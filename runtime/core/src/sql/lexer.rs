//! Our own reading of the original text, before any parser: tokens with their places, and nothing else in between.
//!
//! It reads as the lanes' sessions do: strict sql_mode without ANSI_QUOTES and NO_BACKSLASH_ESCAPES on MySQL (a
//! backslash escapes inside of a literal), standard literals on SQLite. What it does not know it refuses, so that no
//! comment, semicolon or variable can hide from the parser that follows (`parse.rs`).

use super::Dialect;
use super::refusal::{At, Refusal, Rule};

/// Longest text, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 65_536;
/// Most tokens of a text.
pub(super) const TOKENS_MAX: usize = 4_096;
/// Deepest nesting of parentheses; a parser's time may double with each.
pub(super) const PARENTHESES_MAX: usize = 16;
/// Most operators of a text: a chain of them is a tree as deep as it is long, and the parser's own code recurses on it
/// without a limit.
pub(super) const OPERATORS_MAX: usize = 256;
/// Most joins of a text; the parser nests them.
pub(super) const JOINS_MAX: usize = 16;
/// Longest name, in characters, as MySQL has it.
const NAME_MAX: usize = 64;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An unquoted word: keyword, function or name.
    Word,
    /// A name in backticks; the text is without them.
    Quoted,
    /// Digits, perhaps with one decimal point.
    Number,
    /// A literal in single quotes; the text is what stands between them.
    Text,
    /// A bare `?`.
    Placeholder,
    /// An operator or punctuation.
    Symbol,
}

/// One token of the original text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) at: At,
    /// Byte offset of its first character in the text, the quote included.
    pub(super) start: usize,
    /// Byte offset behind its last character.
    pub(super) end: usize,
}

impl Token<'_> {
    /// Whether it is this keyword, unquoted.
    pub(super) fn is_word(&self, upper: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(upper)
    }
}

/// Reads a whole text.
pub(super) fn tokens(sql: &str, dialect: Dialect) -> Result<Vec<Token<'_>>, Refusal> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err(Refusal::new(Rule::TooLarge, None, format!("the text has {} bytes", sql.len())));
    }
    let mut lexer = Lexer { sql, dialect, offset: 0, at: At { line: 1, column: 1 } };
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut sizes = Sizes::default();
    while let Some(token) = lexer.next_token()? {
        if let Some(before) = tokens.last() {
            check_neighbours(before, &token)?;
        }
        sizes.count(&token)?;
        tokens.push(token);
    }
    Ok(tokens)
}

/// Sizes that bound the depth of the tree: parsing, walking and dropping it recurse.
#[derive(Default)]
struct Sizes {
    tokens: usize,
    nesting: usize,
    operators: usize,
    joins: usize,
}

impl Sizes {
    fn count(&mut self, token: &Token<'_>) -> Result<(), Refusal> {
        self.tokens += 1;
        match (token.kind, token.text) {
            (Kind::Symbol, "(") => self.nesting += 1,
            (Kind::Symbol, ")") => self.nesting = self.nesting.saturating_sub(1),
            (Kind::Symbol, "," | ".") => {}
            (Kind::Symbol, _) => self.operators += 1,
            (Kind::Word, _) if token.is_word("JOIN") => self.joins += 1,
            (Kind::Word, _) if OPERATOR_WORDS.iter().any(|word| token.is_word(word)) => self.operators += 1,
            (Kind::Word | Kind::Quoted | Kind::Number | Kind::Text | Kind::Placeholder, _) => {}
        }
        let limits = [
            (self.tokens, TOKENS_MAX, "tokens"),
            (self.nesting, PARENTHESES_MAX, "nested parentheses"),
            (self.operators, OPERATORS_MAX, "operators"),
            (self.joins, JOINS_MAX, "joins"),
        ];
        match limits.into_iter().find(|(size, max, _)| size > max) {
            Some((_, max, what)) => Err(Refusal::new(Rule::TooLarge, token.at, format!("more than {max} {what}"))),
            None => Ok(()),
        }
    }
}

/// Words that the parser takes as operators, allowed or not.
const OPERATOR_WORDS: &[&str] = &[
    "AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "DIV", "MOD", "AT", "GLOBAL", "ILIKE", "ISNULL", "MEMBER",
    "NOTNULL", "OPERATOR", "OVERLAPS", "SIMILAR",
];

/// Refuses literals that the server would join, or read in another character set or base.
fn check_neighbours(before: &Token<'_>, token: &Token<'_>) -> Result<(), Refusal> {
    let touches = before.end == token.start;
    match (before.kind, token.kind) {
        (Kind::Text, Kind::Text) => Err(Refusal::new(Rule::StringLiteral, token.at, "two literals in a row")),
        (Kind::Word, Kind::Text) if touches || before.text.starts_with('_') => {
            Err(Refusal::new(Rule::StringLiteral, before.at, format!("a literal with the prefix {}", before.text)))
        }
        (Kind::Number, Kind::Word | Kind::Quoted | Kind::Text | Kind::Number) if touches => {
            Err(Refusal::new(Rule::Number, before.at, format!("{}{}", before.text, token.text)))
        }
        (Kind::Placeholder, Kind::Word | Kind::Quoted | Kind::Text | Kind::Number | Kind::Placeholder) if touches => {
            Err(Refusal::new(Rule::Placeholder, before.at, format!("?{}", token.text)))
        }
        _ => Ok(()),
    }
}

struct Lexer<'a> {
    sql: &'a str,
    dialect: Dialect,
    offset: usize,
    at: At,
}

/// Operators and punctuation, the longest first.
const SYMBOLS: &[&str] = &[
    "->>", "<=>", "->", "<=", ">=", "<>", "!=", "<<", ">>", "||", "(", ")", ",", ".", "=", "<", ">", "+", "-", "*",
    "/", "%", "&", "|",
];

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Result<Option<Token<'a>>, Refusal> {
        self.skip_white_space()?;
        let Some(first) = self.peek() else { return Ok(None) };
        let (start, at) = (self.offset, self.at);
        self.refuse_trick()?;
        let (kind, text) = match first {
            'A'..='Z' | 'a'..='z' | '_' => (Kind::Word, self.word()?),
            '`' => (Kind::Quoted, self.quoted()?),
            '0'..='9' => (Kind::Number, self.number()),
            '\'' => (Kind::Text, self.literal()?),
            '?' => {
                self.advance();
                (Kind::Placeholder, "?")
            }
            other => match SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
                Some(symbol) => {
                    symbol.chars().for_each(|_| self.advance());
                    (Kind::Symbol, *symbol)
                }
                None => return Err(Refusal::new(Rule::Symbol, at, format!("the character {other}"))),
            },
        };
        Ok(Some(Token { kind, text, at, start, end: self.offset }))
    }

    /// Refuses, each by its own name, what no text may have outside of literals.
    fn refuse_trick(&self) -> Result<(), Refusal> {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or(' ');
        let (rule, found) = match first {
            '#' => (Rule::Comment, "a comment that begins with #"),
            '-' if rest.starts_with("--") => (Rule::Comment, "a comment that begins with --"),
            '/' if rest.starts_with("/*") => (Rule::Comment, "a comment that begins with /*"),
            '*' if rest.starts_with("*/") => (Rule::Comment, "the end of a comment"),
            '"' => (Rule::DoubleQuote, "a double quote"),
            ';' => (Rule::Semicolon, "a semicolon"),
            '@' => (Rule::Variable, "a variable"),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                (Rule::Number, "a number without its first digit")
            }
            '&' if rest.starts_with("&&") => (Rule::Operator, "the operator &&"),
            ':' if rest.starts_with(":=") => (Rule::Variable, "an assignment to a variable"),
            ':' | '$' => (Rule::Placeholder, "a named or numbered parameter"),
            _ if !first.is_ascii() => (Rule::NonAscii, "a character outside of ASCII"),
            _ => return Ok(()),
        };
        Err(Refusal::new(rule, self.at, found))
    }

    fn word(&mut self) -> Result<&'a str, Refusal> {
        let (start, at) = (self.offset, self.at);
        self.advance_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.peek() == Some('$') {
            return Err(Refusal::new(Rule::Identifier, at, "a name with $"));
        }
        let word = self.since(start);
        check_name(word, at)?;
        Ok(word)
    }

    fn quoted(&mut self) -> Result<&'a str, Refusal> {
        let at = self.at;
        self.advance();
        let start = self.offset;
        self.advance_while(|c| c != '`');
        let name = self.since(start);
        if self.peek().is_none() {
            return Err(Refusal::new(Rule::Identifier, at, "a name whose closing backtick is missing"));
        }
        self.advance();
        if self.peek() == Some('`') {
            return Err(Refusal::new(Rule::Identifier, at, "a name with a backtick in it"));
        }
        check_name(name, at)?;
        Ok(name)
    }

    /// Digits, and a fraction if a digit follows the point; what touches it is judged with its neighbour.
    fn number(&mut self) -> &'a str {
        let start = self.offset;
        self.advance_while(|c| c.is_ascii_digit());
        let mut ahead = self.rest().chars();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit()) {
            self.advance();
            self.advance_while(|c| c.is_ascii_digit());
        }
        self.since(start)
    }

    fn literal(&mut self) -> Result<&'a str, Refusal> {
        let at = self.at;
        self.advance();
        let start = self.offset;
        loop {
            match self.peek() {
                None => return Err(Refusal::new(Rule::StringLiteral, at, "a literal without its closing quote")),
                Some('\'') if self.rest().starts_with("''") => {
                    self.advance();
                    self.advance();
                }
                Some('\'') => break,
                Some('\\') if self.dialect == Dialect::MySql => {
                    self.advance();
                    self.refuse_control()?;
                    self.advance();
                }
                Some(_) => {
                    self.refuse_control()?;
                    self.advance();
                }
            }
        }
        let text = self.since(start);
        self.advance();
        Ok(text)
    }

    fn skip_white_space(&mut self) -> Result<(), Refusal> {
        while let Some(c) = self.peek() {
            self.refuse_control()?;
            if !matches!(c, ' ' | '\t' | '\n' | '\r') {
                break;
            }
            self.advance();
        }
        Ok(())
    }

    /// A tab and a line end (LF, or CR before LF) are the only control characters of a text, literals included.
    fn refuse_control(&self) -> Result<(), Refusal> {
        match self.peek() {
            Some('\t' | '\n') | None => Ok(()),
            Some('\r') if self.rest().starts_with("\r\n") => Ok(()),
            Some(c) if c.is_control() => {
                Err(Refusal::new(Rule::ControlCharacter, self.at, format!("the control character U+{:04X}", c as u32)))
            }
            Some(_) => Ok(()),
        }
    }

    fn rest(&self) -> &'a str {
        &self.sql[self.offset..]
    }

    fn since(&self, start: usize) -> &'a str {
        &self.sql[start..self.offset]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) {
        if let Some(c) = self.peek() {
            self.offset += c.len_utf8();
            if c == '\n' {
                self.at = At { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
    }

    fn advance_while(&mut self, goes_on: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&goes_on) {
            self.advance();
        }
    }
}

/// A name is letters, digits and `_`, and never one of the host's own.
fn check_name(name: &str, at: At) -> Result<(), Refusal> {
    if let Some(c) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
        let rule = if c.is_ascii() { Rule::Identifier } else { Rule::NonAscii };
        return Err(Refusal::new(rule, at, format!("the name {name:?}")));
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Refusal::new(Rule::Identifier, at, format!("the name {name:?}")));
    }
    if name.len() > NAME_MAX {
        return Err(Refusal::new(Rule::Identifier, at, format!("a name of {} characters", name.len())));
    }
    if is_host_name(name) {
        return Err(Refusal::new(Rule::HostName, at, format!("the name {name}")));
    }
    Ok(())
}

/// Whether the name is the host's (`ob_`) or the embedded database's own (`sqlite_`), in any case.
pub(super) fn is_host_name(name: &str) -> bool {
    ["ob_", "sqlite_"].iter().any(|p| name.get(..p.len()).is_some_and(|head| head.eq_ignore_ascii_case(p)))
}
