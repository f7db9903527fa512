//! Looking into a JSON text that has been read.

use std::{borrow::Cow, ops::Range};

use super::{Node, NodeKind};

/// One value of a JSON text; a cheap copy.
#[derive(Debug, Clone, Copy)]
pub struct JsonValue<'a> {
    bytes: &'a [u8],
    nodes: &'a [Node],
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum JsonKind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// The number's text, as written.
    Number(&'a str),
    /// The string's text, escapes resolved.
    Text(Cow<'a, str>),
    /// The array's elements.
    Array(Elements<'a>),
    /// The object's members, in the order written.
    Object(Members<'a>),
}

impl<'a> JsonValue<'a> {
    pub(super) fn new(bytes: &'a [u8], nodes: &'a [Node]) -> Self {
        Self { bytes, nodes }
    }

    pub(super) fn nodes(self) -> &'a [Node] {
        self.nodes
    }

    /// What the value is.
    #[must_use]
    pub fn kind(self) -> JsonKind<'a> {
        let Some(node) = self.nodes.first() else { return JsonKind::Null };
        match node.kind {
            NodeKind::Null => JsonKind::Null,
            NodeKind::Boolean(value) => JsonKind::Boolean(value),
            NodeKind::Number => JsonKind::Number(text(self.raw())),
            NodeKind::PlainText | NodeKind::EscapedText => JsonKind::Text(unquoted(self.bytes, *node)),
            NodeKind::Array => JsonKind::Array(Elements(self.below())),
            NodeKind::Object => JsonKind::Object(Members(self.below())),
        }
    }

    /// The string's text, when the value is one.
    #[must_use]
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        if let JsonKind::Text(text) = self.kind() { Some(text) } else { None }
    }

    /// The value's bytes as they stand in the text, without white space around them.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.bytes.get(self.range()).unwrap_or_default()
    }

    /// Where the value stands in the text.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.nodes.first().map_or(0..0, |node| place(node.start)..place(node.end))
    }

    /// The member of that name, when the value is an object that has it.
    #[must_use]
    pub fn member(self, name: &str) -> Option<JsonValue<'a>> {
        let JsonKind::Object(mut members) = self.kind() else { return None };
        members.find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The value at a JSON pointer (RFC 6901): `""` is the value itself; `None` when nothing stands there.
    #[must_use]
    pub fn pointer(self, pointer: &str) -> Option<JsonValue<'a>> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut steps = pointer.strip_prefix('/')?.split('/');
        steps.try_fold(self, |value, step| match value.kind() {
            JsonKind::Object(_) => value.member(&step.replace("~1", "/").replace("~0", "~")),
            JsonKind::Array(mut elements) => elements.nth(array_index(step)?),
            JsonKind::Null | JsonKind::Boolean(_) | JsonKind::Number(_) | JsonKind::Text(_) => None,
        })
    }

    fn below(self) -> Self {
        Self { bytes: self.bytes, nodes: self.nodes.get(1..).unwrap_or_default() }
    }

    /// Takes the first value off a run of siblings.
    fn split_first(&mut self) -> Option<JsonValue<'a>> {
        let span = place(self.nodes.first()?.span);
        let (nodes, rest) = self.nodes.split_at_checked(span)?;
        self.nodes = rest;
        Some(Self { bytes: self.bytes, nodes })
    }
}

/// An array's elements, in order.
#[derive(Debug, Clone)]
pub struct Elements<'a>(JsonValue<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = JsonValue<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.split_first()
    }
}

/// An object's members, in the order written; no name comes twice.
#[derive(Debug, Clone)]
pub struct Members<'a>(JsonValue<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, JsonValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.split_first()?.as_text()?;
        Some((name, self.0.split_first()?))
    }
}

/// RFC 6901, section 4: digits without a leading zero.
fn array_index(step: &str) -> Option<usize> {
    let canonical = step == "0" || (!step.starts_with('0') && step.bytes().all(|b| b.is_ascii_digit()));
    if canonical { step.parse().ok() } else { None }
}

/// Nodes count in 32 bits, which every supported target's `usize` holds.
pub(super) fn place(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The text of a string or member name.
pub(super) fn unquoted(bytes: &[u8], node: Node) -> Cow<'_, str> {
    let inner = bytes.get(place(node.start) + 1..place(node.end).saturating_sub(1)).unwrap_or_default();
    if node.kind == NodeKind::EscapedText { Cow::Owned(unescaped(text(inner))) } else { Cow::Borrowed(text(inner)) }
}

/// Resolves the escapes of a string that the reader has found well formed.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('\\') {
        out.push_str(plain);
        let (c, length) = match after.as_bytes().first() {
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'u') => unicode_escape(after),
            Some(other) => (char::from(*other), 1),
            None => break,
        };
        out.push(c);
        rest = after.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The character of `uXXXX` or `uXXXX\uXXXX`, and the length of that text.
fn unicode_escape(after: &str) -> (char, usize) {
    let unit = |start: usize| after.get(start..start + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let first = unit(1).unwrap_or_default();
    if let Some(c) = char::from_u32(first) {
        return (c, 5);
    }
    let second = unit(7).unwrap_or_default();
    let joined = 0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
    (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 11)
}
