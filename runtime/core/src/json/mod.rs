//! Strict JSON (RFC 8259) as a flat list of nodes over the bytes that it was read from.
//!
//! Numbers keep their text, every value knows its bytes, and what two readers could understand differently is refused:
//! duplicate members, lone surrogates, invalid UTF-8, a byte order mark, anything after the value.
//! Reading goes by a stack of its own, and a flat list drops without one, so that no input overflows ours.

mod reader;
mod value;

pub use value::{Elements, JsonKind, JsonValue, Members};

/// Containers that may stand inside one another; the same as the limit of `serde_json`, which plugins read with.
pub const DEPTH_MAX: usize = 128;

/// A JSON text that has been read. It holds places, not bytes: look into it with [`Json::root`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    nodes: Vec<Node>,
}

/// One value or member name: where it stands, and how many nodes it spans with all below it.
///
/// An object is followed by name, value, name, value, …; an array by its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    kind: NodeKind,
    start: u32,
    end: u32,
    span: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Null,
    Boolean(bool),
    Number,
    /// Its bytes between the quotation marks are its text.
    PlainText,
    /// It has `\` escapes.
    EscapedText,
    Array,
    Object,
}

/// What is wrong with a JSON text, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub problem: JsonProblem,
    /// Bytes before the place where it was seen.
    pub offset: usize,
}

/// The ways in which a text is not the JSON that Oncebox takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// The text ends inside a value, or has none.
    #[error("the text ends too early")]
    Unfinished,
    /// A byte that JSON does not have at this place.
    #[error("a byte that JSON does not have here")]
    Unexpected,
    /// More follows after the value.
    #[error("something follows the value")]
    Trailing,
    /// A byte order mark.
    #[error("a byte order mark")]
    ByteOrderMark,
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// A control character inside a string, not escaped.
    #[error("a control character that is not escaped")]
    ControlCharacter,
    /// An escape that JSON does not have.
    #[error("an escape that JSON does not have")]
    BadEscape,
    /// Half of a surrogate pair.
    #[error("half of a surrogate pair")]
    LoneSurrogate,
    /// Two members of one object have the same name.
    #[error("a second member of the same name")]
    DuplicateMember,
    /// More than [`DEPTH_MAX`] containers inside one another.
    #[error("more than {DEPTH_MAX} levels of nesting")]
    TooDeep,
    /// More bytes than 32 bits can count.
    #[error("more than 4 GiB of text")]
    TooLong,
}

impl JsonProblem {
    /// Whether the text could still be JSON to a more lenient reader; the others are just not JSON.
    #[must_use]
    pub fn is_refused_json(self) -> bool {
        match self {
            Self::LoneSurrogate | Self::DuplicateMember | Self::TooDeep | Self::TooLong => true,
            Self::ByteOrderMark
            | Self::Unfinished
            | Self::Unexpected
            | Self::Trailing
            | Self::NotUtf8
            | Self::ControlCharacter
            | Self::BadEscape => false,
        }
    }
}

impl Json {
    /// Reads the one JSON value that the bytes hold.
    ///
    /// # Errors
    /// [`JsonError`]: the first thing that is wrong, and the byte where it stands.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        reader::read(bytes).map(|nodes| Self { nodes })
    }

    /// The outermost value. `bytes` are those that were given to [`Json::parse`].
    #[must_use]
    pub fn root<'a>(&'a self, bytes: &'a [u8]) -> JsonValue<'a> {
        JsonValue::new(bytes, &self.nodes)
    }

    /// A copy of one value and all below it, to be looked into over the same bytes.
    #[must_use]
    pub fn part(value: JsonValue<'_>) -> Self {
        Self { nodes: value.nodes().to_vec() }
    }
}

#[cfg(test)]
mod tests;
