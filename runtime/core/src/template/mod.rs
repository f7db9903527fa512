//! Templates of keys and envelopes: `order:{/orderId}:paid`.
//!
//! Rendering a key is injective: two different tuples of values never render to the same bytes. Every ASCII
//! punctuation character of the template's literals, and `%`, is percent-encoded in values, and between two
//! placeholders stands at least one such character. Values are never trimmed, folded or normalised.

use std::{borrow::Cow, collections::BTreeSet};

use crate::{
    json::{JsonKind, JsonValue},
    message::Message,
};

/// Bytes that a template may have: the width of its columns in `ob_rule`.
pub const TEMPLATE_BYTES_MAX: usize = 512;

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateUse {
    /// A business or ordering key: at least one placeholder, values always encoded.
    Key,
    /// A single fact of an envelope: `{amqp:timestamp}` is allowed, `{ce:…}` is not, and values are encoded only where
    /// two of them meet, so that an event type reads as the producer wrote it.
    Envelope,
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
    /// ASCII bytes that are percent-encoded in values.
    encoded: BTreeSet<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Placeholder(Placeholder),
}

/// What stands between `{` and `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    /// `{/json/pointer}` into the payload.
    Pointer(String),
    /// `{ce:id}`: a CloudEvents attribute, extensions included.
    Attribute(String),
    /// `{header:x}`.
    Header(String),
    /// A fact of the transport by its full name, e.g. `amqp:message-id`.
    Property(&'static str),
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing at all.
    #[error("the template is empty")]
    Empty,
    /// More than [`TEMPLATE_BYTES_MAX`] bytes.
    #[error("the template has {0} bytes, more than {TEMPLATE_BYTES_MAX}")]
    TooLong(usize),
    /// A key that would be the same for every event.
    #[error("the key has no placeholder, so that every event would have the same key")]
    NoPlaceholder,
    /// Two placeholders that could run into each other.
    #[error(
        "between {{{0}}} and {{{1}}} stands no punctuation, so that two different events could have the same key; write for example `:` between them"
    )]
    NothingBetween(String, String),
    /// A brace without its partner.
    #[error("a `{{` or `}}` without its partner at byte {0}")]
    Brace(usize),
    /// `%` or a control character outside placeholders.
    #[error("{0:?} cannot stand outside a placeholder")]
    Literal(char),
    /// A placeholder that does not exist.
    #[error(
        "{{{0}}} is no placeholder; there are {{/json/pointer}}, {{ce:NAME}}, {{header:NAME}}, {{amqp:message-id}}, {{amqp:routing-key}} and {{kafka:key}}"
    )]
    Unknown(String),
    /// A placeholder that exists but not for this use.
    #[error("{{{0}}} {1}")]
    NotHere(String, &'static str),
    /// A JSON pointer that RFC 6901 does not have.
    #[error("{{{0}}} is no JSON pointer: a `~` is followed by neither 0 nor 1")]
    Pointer(String),
}

/// Where the values of placeholders come from.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// Headers and facts of the transport.
    pub message: &'a Message,
    /// The payload, when it is JSON.
    pub json: Option<JsonValue<'a>>,
    /// CloudEvents attributes by name, as texts.
    pub attributes: &'a [(String, String)],
}

/// Why a template has no value for this message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A placeholder without a usable value.
    #[error("{{{placeholder}}} {problem}")]
    Value {
        /// The placeholder, without braces.
        placeholder: String,
        /// What is wrong with its value.
        problem: ValueProblem,
    },
    /// The result is over the limit.
    #[error("the result has {bytes} bytes after encoding, more than {max}")]
    TooLong {
        /// Bytes of the result.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

/// What is wrong with a placeholder's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueProblem {
    /// There is none.
    #[error("is missing")]
    Missing,
    /// JSON `null`.
    #[error("is null")]
    Null,
    /// A text of no bytes.
    #[error("is empty")]
    Empty,
    /// A number with a fraction or an exponent, even if it is whole.
    #[error("is a number with a fraction or an exponent; a key takes integers and texts")]
    Float,
    /// `-0`, which some readers take for 0.
    #[error("is -0")]
    NegativeZero,
    /// `true` or `false`.
    #[error("is a boolean; a key takes integers and texts")]
    Boolean,
    /// An object.
    #[error("is an object; a key takes integers and texts")]
    Object,
    /// An array.
    #[error("is an array; a key takes integers and texts")]
    Array,
    /// Two headers of the same name with different values.
    #[error("has more than one value")]
    Ambiguous,
    /// The payload is not JSON.
    #[error("points into a payload that is not JSON")]
    NotJson,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError`]: what is wrong, for the author of the manifest or the configuration.
    pub fn parse(source: &str, usage: TemplateUse) -> Result<Self, TemplateError> {
        if source.is_empty() {
            return Err(TemplateError::Empty);
        }
        if source.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::TooLong(source.len()));
        }
        let parts = parts(source, usage)?;
        check_separation(&parts, usage)?;
        let encoded = if usage == TemplateUse::Key || placeholders(&parts).count() > 1 {
            let literals = parts.iter().filter_map(|part| match part {
                Part::Literal(text) => Some(text),
                Part::Placeholder(_) => None,
            });
            literals.flat_map(|text| text.bytes()).filter(|byte| separates(*byte)).chain([b'%']).collect()
        } else {
            BTreeSet::new()
        };
        Ok(Self { source: source.to_owned(), parts, encoded })
    }

    /// The template as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders the template with the message's values.
    ///
    /// # Errors
    /// [`RenderError`]: the first placeholder without a usable value, or a result of more than `bytes_max` bytes.
    pub fn render(&self, values: Values<'_>, bytes_max: usize) -> Result<Vec<u8>, RenderError> {
        let mut out = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Placeholder(placeholder) => {
                    let value = placeholder
                        .value(values)
                        .map_err(|problem| RenderError::Value { placeholder: placeholder.to_string(), problem })?;
                    self.encode(&value, &mut out);
                }
            }
        }
        if out.len() > bytes_max {
            return Err(RenderError::TooLong { bytes: out.len(), max: bytes_max });
        }
        Ok(out)
    }

    fn encode(&self, value: &[u8], out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        for byte in value {
            if self.encoded.contains(byte) {
                out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            } else {
                out.push(*byte);
            }
        }
    }
}

/// ASCII only: what counts as punctuation elsewhere changes with the tables of Unicode, and a key must not.
fn separates(byte: u8) -> bool {
    byte.is_ascii_punctuation() || byte == b' '
}

fn placeholders(parts: &[Part]) -> impl Iterator<Item = &Placeholder> {
    parts.iter().filter_map(|part| match part {
        Part::Literal(_) => None,
        Part::Placeholder(placeholder) => Some(placeholder),
    })
}

fn parts(source: &str, usage: TemplateUse) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = source;
    while !rest.is_empty() {
        let at = source.len() - rest.len();
        if let Some(inner) = rest.strip_prefix('{') {
            let (name, after) = inner.split_once('}').ok_or(TemplateError::Brace(at))?;
            if name.contains('{') {
                return Err(TemplateError::Brace(at));
            }
            parts.push(Part::Placeholder(Placeholder::parse(name, usage)?));
            rest = after;
        } else {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            let (literal, after) = rest.split_at(end);
            if after.starts_with('}') {
                return Err(TemplateError::Brace(at + end));
            }
            if let Some(c) = literal.chars().find(|c| *c == '%' || c.is_control()) {
                return Err(TemplateError::Literal(c));
            }
            parts.push(Part::Literal(literal.to_owned()));
            rest = after;
        }
    }
    Ok(parts)
}

fn check_separation(parts: &[Part], usage: TemplateUse) -> Result<(), TemplateError> {
    let mut previous: Option<&Placeholder> = None;
    let mut separated = true;
    for part in parts {
        match part {
            Part::Literal(text) => separated |= text.bytes().any(separates),
            Part::Placeholder(placeholder) => {
                if let (Some(before), false) = (previous, separated) {
                    return Err(TemplateError::NothingBetween(before.to_string(), placeholder.to_string()));
                }
                previous = Some(placeholder);
                separated = false;
            }
        }
    }
    if previous.is_none() && usage == TemplateUse::Key { Err(TemplateError::NoPlaceholder) } else { Ok(()) }
}

impl Placeholder {
    fn parse(name: &str, usage: TemplateUse) -> Result<Self, TemplateError> {
        let unknown = || TemplateError::Unknown(name.to_owned());
        let not_here = |why| TemplateError::NotHere(name.to_owned(), why);
        if name.starts_with('/') {
            check_pointer(name).map_err(TemplateError::Pointer)?;
            return Ok(Self::Pointer(name.to_owned()));
        }
        let (space, own) = name.split_once(':').ok_or_else(unknown)?;
        if own.is_empty() {
            return Err(unknown());
        }
        match space {
            "ce" if usage == TemplateUse::Envelope => Err(not_here("is what an envelope makes, so it cannot make one")),
            "ce" if own.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) => {
                Ok(Self::Attribute(own.to_owned()))
            }
            "ce" => Err(not_here("is no name of CloudEvents 1.0, which has only a to z and 0 to 9")),
            "header" => Ok(Self::Header(own.to_owned())),
            _ => match name {
                "amqp:message-id" => Ok(Self::Property("amqp:message-id")),
                "amqp:routing-key" => Ok(Self::Property("amqp:routing-key")),
                "kafka:key" => Ok(Self::Property("kafka:key")),
                "amqp:timestamp" if usage == TemplateUse::Envelope => Ok(Self::Property("amqp:timestamp")),
                "amqp:timestamp" => Err(not_here("names no event, so it can only stand in an envelope")),
                _ => Err(unknown()),
            },
        }
    }

    fn value<'a>(&self, values: Values<'a>) -> Result<Cow<'a, [u8]>, ValueProblem> {
        let value = match self {
            Self::Pointer(pointer) => {
                let json = values.json.ok_or(ValueProblem::NotJson)?;
                json_value(json.pointer(pointer).ok_or(ValueProblem::Missing)?)?
            }
            Self::Attribute(name) => {
                let attribute = values.attributes.iter().find(|(own, _)| own == name);
                Cow::Borrowed(attribute.ok_or(ValueProblem::Missing)?.1.as_bytes())
            }
            Self::Header(name) => {
                let mut all = values.message.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
                let first = all.next().ok_or(ValueProblem::Missing)?.value.as_slice();
                if all.any(|other| other.value != first) {
                    return Err(ValueProblem::Ambiguous);
                }
                Cow::Borrowed(first)
            }
            Self::Property(name) => Cow::Borrowed(values.message.property(name).ok_or(ValueProblem::Missing)?),
        };
        if value.is_empty() { Err(ValueProblem::Empty) } else { Ok(value) }
    }
}

impl std::fmt::Display for Placeholder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pointer(pointer) => f.write_str(pointer),
            Self::Attribute(name) => write!(f, "ce:{name}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Property(name) => f.write_str(name),
        }
    }
}

/// Checks the form of a JSON pointer; the answer is the pointer that is wrong.
pub(crate) fn check_pointer(pointer: &str) -> Result<(), String> {
    let escapes_are_good = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if (pointer.is_empty() || pointer.starts_with('/')) && escapes_are_good { Ok(()) } else { Err(pointer.to_owned()) }
}

/// The bytes of a JSON value in a key: 42 and "42" are one key.
fn json_value(value: JsonValue<'_>) -> Result<Cow<'_, [u8]>, ValueProblem> {
    match value.kind() {
        JsonKind::Text(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_bytes())),
        JsonKind::Text(Cow::Owned(text)) => Ok(Cow::Owned(text.into_bytes())),
        JsonKind::Number("-0") => Err(ValueProblem::NegativeZero),
        JsonKind::Number(text) if text.contains(['.', 'e', 'E']) => Err(ValueProblem::Float),
        JsonKind::Number(text) => Ok(Cow::Borrowed(text.as_bytes())),
        JsonKind::Null => Err(ValueProblem::Null),
        JsonKind::Boolean(_) => Err(ValueProblem::Boolean),
        JsonKind::Object(_) => Err(ValueProblem::Object),
        JsonKind::Array(_) => Err(ValueProblem::Array),
    }
}

#[cfg(test)]
mod tests;
