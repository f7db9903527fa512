//! From a message to the event that it carries.
//!
//! The first half of the step "identify"; the second, from event to key, is [`crate::identify`]. The payload is never
//! re-serialised, and the body is read as JSON at most once, however many handlers look into it.

mod cloudevents;
mod time;

pub use time::TimeFormat;

use std::ops::Range;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{
    fingerprint::PayloadForm,
    identify::{Limits, Poison, PoisonCode, hex},
    json::{Json, JsonValue},
    message::Message,
    template::{RenderError, Template, TemplateError, TemplateUse, ValueProblem, Values},
};

/// Bytes of an event's id and of its type: the width of their columns.
pub const NAME_BYTES_MAX: usize = 255;

/// A source's `envelope`; the default takes CloudEvents where it sees them and knows nothing of other messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvelopeRule {
    /// `format`.
    pub format: EnvelopeFormat,
    /// `event_type`: of messages that are no CloudEvents.
    pub event_type: Option<Template>,
    /// `id`: of messages that are no CloudEvents.
    pub id: Option<Template>,
    /// `time`: of messages that are no CloudEvents, and of CloudEvents without one.
    pub time: Option<Template>,
    /// `time_format`: how `time` is written; CloudEvents have one of their own.
    pub time_format: TimeFormat,
}

/// `envelope.format`: which messages are CloudEvents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnvelopeFormat {
    /// Whatever looks like one, in either mode.
    #[default]
    Auto,
    /// All, the envelope in the body.
    Structured,
    /// All, the envelope in the headers.
    Binary,
    /// None.
    Raw,
}

/// Why a source's `envelope` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {error}")]
pub struct EnvelopeRuleError {
    /// The setting that is wrong: `event_type`, `id` or `time`.
    pub field: &'static str,
    /// How it is wrong.
    #[source]
    pub error: TemplateError,
}

/// An event, as the host understands it: the fields of the contract's `event` but the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The CloudEvents id; else by the source's `envelope`; else the AMQP message-id; else the SHA-256 of the body.
    pub id: String,
    /// The CloudEvents type; else by the source's `envelope`; else `""`.
    pub event_type: String,
    /// The CloudEvents source.
    pub ce_source: Option<String>,
    /// The CloudEvents subject.
    pub subject: Option<String>,
    /// The producer's time: RFC 3339, UTC, microseconds (what is finer is cut off).
    pub time: Option<String>,
    /// The same in microseconds since 1970.
    pub time_us: Option<i64>,
    /// The payload's content type.
    pub content_type: Option<String>,
    /// The CloudEvents dataschema.
    pub schema: Option<String>,
    /// Further CloudEvents attributes, then the message's position.
    pub attributes: Vec<(String, String)>,
    payload: Payload,
    json: Option<Json>,
    /// All that `{ce:…}` may name, as the producer wrote it.
    context: Vec<(String, String)>,
}

/// Where the payload's bytes are.
#[derive(Debug, Clone, PartialEq)]
enum Payload {
    /// In the message's body.
    Body(Range<usize>),
    /// Apart from it, decoded from a text.
    Decoded(Vec<u8>),
}

/// What an event's data is, before its facts are put in order.
struct Data {
    payload: Payload,
    json: Option<Json>,
    content_type: Option<String>,
}

/// Opens a message. The size is looked at before anything else is.
///
/// # Errors
/// [`Poison`]: the message cannot be understood, whatever handler looks at it.
pub fn open(message: &Message, rule: &EnvelopeRule, limits: &Limits) -> Result<Envelope, Poison> {
    if message.body.len() > limits.payload_bytes_max {
        let (bytes, max) = (message.body.len(), limits.payload_bytes_max);
        let text = format!("the body has {bytes} bytes, more than {max} (payload_bytes_max)");
        return Err(Poison::new(PoisonCode::PayloadTooLarge, text));
    }
    match rule.format {
        EnvelopeFormat::Auto => open_any(message, rule),
        EnvelopeFormat::Structured => cloudevents::structured(message, None, rule),
        EnvelopeFormat::Binary => cloudevents::binary(message, cloudevents::prefix(message).unwrap_or("ce-"), rule),
        EnvelopeFormat::Raw => {
            open_raw(message, payload_json(&message.body, content_type(message), Absence::Wrong)?, rule)
        }
    }
}

fn open_any(message: &Message, rule: &EnvelopeRule) -> Result<Envelope, Poison> {
    if let Some(media_type) = content_type(message).map(media_type)
        && media_type.starts_with("application/cloudevents")
    {
        cloudevents::check_media_type(&media_type)?;
        return cloudevents::structured(message, None, rule);
    }
    if let Some(prefix) = cloudevents::prefix(message) {
        return cloudevents::binary(message, prefix, rule);
    }
    match payload_json(&message.body, content_type(message), Absence::Wrong)? {
        Some(json) if cloudevents::is_event(json.root(&message.body)) => {
            cloudevents::structured(message, Some(json), rule)
        }
        json => open_raw(message, json, rule),
    }
}

fn open_raw(message: &Message, json: Option<Json>, rule: &EnvelopeRule) -> Result<Envelope, Poison> {
    let values = Values { message, json: json.as_ref().map(|json| json.root(&message.body)), attributes: &[] };
    let named = fact("id", rule.id.as_ref(), values)?.or_else(|| message_id(message));
    let event_type = fact("event_type", rule.event_type.as_ref(), values)?;
    let time = fact("time", rule.time.as_ref(), values)?;
    let context = [("id", &named), ("type", &event_type), ("time", &time)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
        .collect();
    let moment = time.map(|text| time::read(&text, rule.time_format)).transpose()?;
    Ok(Envelope {
        id: named.unwrap_or_else(|| hex(&Sha256::digest(&message.body))),
        event_type: event_type.unwrap_or_default(),
        ce_source: None,
        subject: None,
        time_us: moment.as_ref().map(|moment| moment.us),
        time: moment.map(|moment| moment.text),
        content_type: content_type(message).map(str::to_owned),
        schema: None,
        attributes: message.position.clone(),
        payload: Payload::Body(0..message.body.len()),
        json,
        context,
    })
}

/// One fact of a message by the source's `envelope`; `None` where the message does not have it.
fn fact(name: &str, template: Option<&Template>, values: Values<'_>) -> Result<Option<String>, Poison> {
    let Some(template) = template else { return Ok(None) };
    let bad = |text: String| Poison::new(PoisonCode::BadEnvelope, format!("{name} of the source's envelope: {text}"));
    match template.render(values, NAME_BYTES_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| bad("the value is not UTF-8".to_owned())),
        Err(RenderError::Value {
            problem: ValueProblem::Missing | ValueProblem::Null | ValueProblem::Empty, ..
        }) => Ok(None),
        Err(error @ RenderError::Value { problem: ValueProblem::NotJson, .. }) => {
            Err(Poison::new(PoisonCode::NotJson, format!("{name} of the source's envelope: {error}")))
        }
        Err(error @ (RenderError::Value { .. } | RenderError::TooLong { .. })) => Err(bad(error.to_string())),
    }
}

fn message_id(message: &Message) -> Option<String> {
    let id = std::str::from_utf8(message.property("amqp:message-id")?).ok()?;
    if id.is_empty() || id.len() > NAME_BYTES_MAX { None } else { Some(id.to_owned()) }
}

/// The transport's content type, else the header of that name.
fn content_type(message: &Message) -> Option<&str> {
    let header = || message.header("content-type").and_then(|value| std::str::from_utf8(value).ok());
    message.content_type.as_deref().or_else(header).filter(|text| !text.is_empty())
}

/// A content type without its parameters, in lower case.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json(content_type: &str) -> bool {
    let media_type = media_type(content_type);
    media_type.ends_with("/json") || media_type.ends_with("+json")
}

/// What an empty payload means where the content type says JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// The event has no data.
    Allowed,
    /// Something is lost.
    Wrong,
}

/// Reads a payload as JSON.
///
/// One that is declared as JSON must be JSON. Of others only an object or array is taken for JSON: `1.0` in a text file
/// is not the number 1. What is JSON but could be understood in two ways is refused even where nothing is declared.
fn payload_json(bytes: &[u8], content_type: Option<&str>, absence: Absence) -> Result<Option<Json>, Poison> {
    if bytes.is_empty() && absence == Absence::Allowed {
        return Ok(None);
    }
    let declared = content_type.is_some_and(is_json);
    let begins_like_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    if !declared && !begins_like_json {
        return Ok(None);
    }
    match Json::parse(bytes) {
        Ok(json) => Ok(Some(json)),
        Err(error) if declared || error.problem.is_refused_json() => {
            Err(Poison::new(PoisonCode::BadPayload, format!("the payload is not JSON that can be taken: {error}")))
        }
        Err(_) => Ok(None),
    }
}

impl EnvelopeRule {
    /// Parses the settings of a source's `envelope`.
    ///
    /// # Errors
    /// [`EnvelopeRuleError`]: the template that is wrong.
    pub fn parse(
        format: EnvelopeFormat,
        event_type: Option<&str>,
        id: Option<&str>,
        time: Option<&str>,
        time_format: TimeFormat,
    ) -> Result<Self, EnvelopeRuleError> {
        let template = |field, source: Option<&str>| {
            let parsed = source.map(|source| Template::parse(source, TemplateUse::Envelope)).transpose();
            parsed.map_err(|error| EnvelopeRuleError { field, error })
        };
        Ok(Self {
            format,
            event_type: template("event_type", event_type)?,
            id: template("id", id)?,
            time: template("time", time)?,
            time_format,
        })
    }
}

impl Envelope {
    /// The payload, as received. `message` is the one that the envelope was opened from.
    #[must_use]
    pub fn payload<'a>(&'a self, message: &'a Message) -> &'a [u8] {
        match &self.payload {
            Payload::Body(range) => message.body.get(range.clone()).unwrap_or_default(),
            Payload::Decoded(bytes) => bytes,
        }
    }

    /// The payload as JSON, when it is. `message` is the one that the envelope was opened from.
    #[must_use]
    pub fn json<'a>(&'a self, message: &'a Message) -> Option<JsonValue<'a>> {
        let bytes = match &self.payload {
            Payload::Body(_) => &message.body,
            Payload::Decoded(bytes) => bytes,
        };
        self.json.as_ref().map(|json| json.root(bytes))
    }

    pub(crate) fn payload_form<'a>(&'a self, message: &'a Message) -> PayloadForm<'a> {
        self.json(message).map_or_else(|| PayloadForm::Bytes(self.payload(message)), PayloadForm::Json)
    }

    pub(crate) fn values<'a>(&'a self, message: &'a Message) -> Values<'a> {
        Values { message, json: self.json(message), attributes: &self.context }
    }
}

#[cfg(test)]
mod tests;
