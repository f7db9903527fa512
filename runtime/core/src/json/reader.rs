//! From bytes to nodes, in one pass and without recursion.

use std::borrow::Cow;

use super::{
    DEPTH_MAX, JsonError, JsonProblem, Node, NodeKind,
    value::{place, unquoted},
};

/// Reads the one value that the bytes hold.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Node>, JsonError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(JsonError { problem: JsonProblem::TooLong, offset: 0 });
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(JsonError { problem: JsonProblem::ByteOrderMark, offset: 0 });
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(JsonError { problem: JsonProblem::NotUtf8, offset: error.valid_up_to() });
    }
    let mut reader = Reader { bytes, at: 0, nodes: Vec::new(), open: Vec::new(), names: Vec::new() };
    reader.value()?;
    while !reader.open.is_empty() {
        reader.step()?;
    }
    reader.white_space();
    if reader.at < bytes.len() {
        return Err(reader.error(JsonProblem::Trailing));
    }
    Ok(reader.nodes)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Indexes in `nodes` of the containers that are not closed yet.
    open: Vec<usize>,
    /// Room for the names of the object being closed, kept for its allocation.
    names: Vec<(Cow<'a, str>, u32)>,
}

impl<'a> Reader<'a> {
    fn error(&self, problem: JsonProblem) -> JsonError {
        JsonError { problem, offset: self.at }
    }

    /// What is wrong with the byte at hand where another one was needed.
    fn unexpected(&self) -> JsonError {
        self.error(if self.at < self.bytes.len() { JsonProblem::Unexpected } else { JsonProblem::Unfinished })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over that byte, when it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// A value's beginning; of a container only its bracket.
    fn value(&mut self) -> Result<(), JsonError> {
        self.white_space();
        match self.peek() {
            Some(b'{') => self.container(NodeKind::Object),
            Some(b'[') => self.container(NodeKind::Array),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", NodeKind::Boolean(true)),
            Some(b'f') => self.word("false", NodeKind::Boolean(false)),
            Some(b'n') => self.word("null", NodeKind::Null),
            _ => Err(self.unexpected()),
        }
    }

    /// The next member or element of the innermost open container, or its end.
    fn step(&mut self) -> Result<(), JsonError> {
        let Some(container) = self.open.last().copied() else { return Ok(()) };
        let object = self.nodes.get(container).is_some_and(|node| node.kind == NodeKind::Object);
        let first = self.nodes.len() == container + 1;
        self.white_space();
        if self.take(if object { b'}' } else { b']' }) {
            return self.close(container, object);
        }
        if !first {
            if !self.take(b',') {
                return Err(self.unexpected());
            }
            self.white_space();
        }
        if object {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            self.string()?;
            self.white_space();
            if !self.take(b':') {
                return Err(self.unexpected());
            }
        }
        self.value()
    }

    fn push(&mut self, kind: NodeKind, start: usize) {
        self.nodes.push(Node { kind, start: narrow(start), end: narrow(self.at), span: 1 });
    }

    fn container(&mut self, kind: NodeKind) -> Result<(), JsonError> {
        if self.open.len() == DEPTH_MAX {
            return Err(self.error(JsonProblem::TooDeep));
        }
        self.open.push(self.nodes.len());
        self.at += 1;
        self.push(kind, self.at - 1);
        Ok(())
    }

    fn close(&mut self, container: usize, object: bool) -> Result<(), JsonError> {
        self.open.pop();
        if object {
            self.refuse_duplicates(container)?;
        }
        let span = narrow(self.nodes.len() - container);
        if let Some(node) = self.nodes.get_mut(container) {
            node.span = span;
            node.end = narrow(self.at);
        }
        Ok(())
    }

    /// Sorted, not pairwise: an object of a million members must not cost a million squared.
    fn refuse_duplicates(&mut self, object: usize) -> Result<(), JsonError> {
        let mut names = std::mem::take(&mut self.names);
        names.clear();
        let mut at = object + 1;
        while let (Some(name), Some(value)) = (self.nodes.get(at), self.nodes.get(at + 1)) {
            names.push((unquoted(self.bytes, *name), name.start));
            at += 1 + place(value.span);
        }
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        let duplicate = pairs.find(|((a, _), (b, _))| a == b).map(|(_, (_, start))| place(*start));
        self.names = names;
        duplicate.map_or(Ok(()), |offset| Err(JsonError { problem: JsonProblem::DuplicateMember, offset }))
    }

    fn word(&mut self, word: &str, kind: NodeKind) -> Result<(), JsonError> {
        let start = self.at;
        for byte in word.bytes() {
            if !self.take(byte) {
                return Err(self.unexpected());
            }
        }
        self.push(kind, start);
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        self.push(NodeKind::Number, start);
        Ok(())
    }

    /// One digit at least.
    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected()) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let mut kind = NodeKind::PlainText;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    kind = NodeKind::EscapedText;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.error(JsonProblem::ControlCharacter)),
                Some(_) => self.at += 1,
                None => return Err(self.error(JsonProblem::Unfinished)),
            }
        }
        self.at += 1;
        self.push(kind, start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let unit = self.code_unit()?;
                let lone = JsonError { problem: JsonProblem::LoneSurrogate, offset: start };
                match unit {
                    0xd800..=0xdbff => {
                        if !(self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u"))) {
                            return Err(lone);
                        }
                        self.at += 1;
                        if !(0xdc00..=0xdfff).contains(&self.code_unit()?) {
                            return Err(lone);
                        }
                    }
                    0xdc00..=0xdfff => return Err(lone),
                    _ => {}
                }
            }
            Some(_) => return Err(self.error(JsonProblem::BadEscape)),
            None => return Err(self.error(JsonProblem::Unfinished)),
        }
        Ok(())
    }

    /// The four digits after a `u`, which is at hand.
    fn code_unit(&mut self) -> Result<u32, JsonError> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else { return Err(self.error(JsonProblem::Unfinished)) };
            let Some(digit) = char::from(byte).to_digit(16) else { return Err(self.error(JsonProblem::BadEscape)) };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }
}

/// The text's length was found to fit before reading began, and no place is beyond it.
fn narrow(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
