//! CloudEvents 1.0 in structured and binary mode.
//!
//! Sources: the specification 1.0.2, its JSON format (3.1.1 for `data`), and its bindings for HTTP (3.1.3.2 for the
//! encoding of header values), AMQP and Kafka.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Absence, Data, Envelope, EnvelopeRule, NAME_BYTES_MAX, Payload, content_type, fact, is_json, payload_json, time,
};
use crate::{
    identify::{Poison, PoisonCode},
    ids::shown,
    json::{Json, JsonKind, JsonValue},
    message::Message,
    template::Values,
};

/// What stands before an attribute's name in a header: HTTP, AMQP (two forms), Kafka.
const PREFIXES: [&str; 4] = [HTTP_PREFIX, "cloudEvents:", "cloudEvents_", "ce_"];
const HTTP_PREFIX: &str = "ce-";

/// Attributes that have a field of their own in the event.
const CORE: [&str; 8] = ["specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema"];

fn bad(text: impl Into<String>) -> Poison {
    Poison::new(PoisonCode::BadEnvelope, text)
}

/// A name of the producer's, short and safe to print.
fn brief(name: &str) -> String {
    shown(name.chars().take(64).collect::<String>().as_bytes())
}

/// Whether a message of a CloudEvents media type can be opened.
pub(super) fn check_media_type(media_type: &str) -> Result<(), Poison> {
    if media_type == "application/cloudevents+json" {
        Ok(())
    } else if media_type.starts_with("application/cloudevents-batch") {
        Err(batch())
    } else {
        Err(bad(format!(
            "the content type is {}; of CloudEvents only application/cloudevents+json is read",
            brief(media_type)
        )))
    }
}

fn batch() -> Poison {
    let text = "the body is a batch of CloudEvents; send each event as a message of its own";
    Poison::new(PoisonCode::EventBatch, text)
}

/// The prefix of the headers that carry an envelope; `None` when there is none.
pub(super) fn prefix(message: &Message) -> Option<&'static str> {
    PREFIXES.into_iter().find(|prefix| {
        message.headers.iter().any(|header| {
            attribute_name(&header.name, prefix).is_some_and(|name| name.eq_ignore_ascii_case("specversion"))
        })
    })
}

fn attribute_name<'a>(header: &'a str, prefix: &str) -> Option<&'a str> {
    let (before, name) = header.split_at_checked(prefix.len())?;
    before.eq_ignore_ascii_case(prefix).then_some(name)
}

/// Whether a body that nothing declares to be one looks like a structured event.
pub(super) fn is_event(root: JsonValue<'_>) -> bool {
    let is_text = |name| root.member(name).is_some_and(|value| value.as_text().is_some());
    root.member("specversion").and_then(JsonValue::as_text).as_deref() == Some("1.0")
        && ["id", "source", "type"].into_iter().all(is_text)
}

/// Opens a message that has its envelope in the body; `json` is the body when it has been read already.
pub(super) fn structured(message: &Message, json: Option<Json>, rule: &EnvelopeRule) -> Result<Envelope, Poison> {
    let json = json.map_or_else(|| Json::parse(&message.body), Ok).map_err(|error| {
        Poison::new(PoisonCode::BadPayload, format!("the CloudEvents envelope is not JSON that can be taken: {error}"))
    })?;
    let JsonKind::Object(members) = json.root(&message.body).kind() else {
        let is_array = matches!(json.root(&message.body).kind(), JsonKind::Array(_));
        return Err(if is_array { batch() } else { bad("the CloudEvents envelope is not a JSON object") });
    };
    let mut context = Vec::new();
    let (mut data, mut data_base64) = (None, None);
    for (name, value) in members {
        match &*name {
            "data" => data = Some(value),
            "data_base64" => data_base64 = Some(value),
            _ => {
                if let Some(text) = attribute_text(&name, value)? {
                    context.push((name.into_owned(), text));
                }
            }
        }
    }
    let declared = context.iter().find(|(name, _)| name == "datacontenttype").map(|(_, text)| text.clone());
    let data = structured_data(data, data_base64, declared)?;
    envelope(context, data, message, rule)
}

/// The text of an attribute in the JSON format; `None` when it is null or empty, which is as good as absent.
fn attribute_text(name: &str, value: JsonValue<'_>) -> Result<Option<String>, Poison> {
    let core = CORE.contains(&name);
    match value.kind() {
        JsonKind::Null => Ok(None),
        JsonKind::Text(text) if text.is_empty() => Ok(None),
        JsonKind::Text(text) => Ok(Some(text.into_owned())),
        JsonKind::Boolean(value) if !core => Ok(Some(value.to_string())),
        JsonKind::Number(text) if !core && text != "-0" && !text.contains(['.', 'e', 'E']) => Ok(Some(text.to_owned())),
        JsonKind::Boolean(_) | JsonKind::Number(_) | JsonKind::Object(_) | JsonKind::Array(_) => {
            let types = if core { "a text" } else { "a text, integer or boolean" };
            Err(bad(format!("the CloudEvents attribute {} is not {types}", brief(name))))
        }
    }
}

fn structured_data(
    data: Option<JsonValue<'_>>,
    data_base64: Option<JsonValue<'_>>,
    declared: Option<String>,
) -> Result<Data, Poison> {
    match (data, data_base64) {
        (Some(_), Some(_)) => Err(bad("the CloudEvents envelope has both data and data_base64")),
        (None, None) => Ok(Data { payload: Payload::Body(0..0), json: None, content_type: declared }),
        (None, Some(value)) => {
            let text = value.as_text().ok_or_else(|| bad("data_base64 of the CloudEvents envelope is not a text"))?;
            let bytes = STANDARD
                .decode(text.as_bytes())
                .map_err(|error| bad(format!("data_base64 of the CloudEvents envelope is not Base64: {error}")))?;
            decoded(bytes, declared)
        }
        (Some(value), None) => match (value.kind(), &declared) {
            // JSON format, 3.1.1: a string under a content type that is not JSON stands for its text.
            (JsonKind::Text(text), Some(content_type)) if !is_json(content_type) => {
                decoded(text.into_owned().into_bytes(), declared)
            }
            _ => Ok(Data {
                payload: Payload::Body(value.range()),
                json: Some(Json::part(value)),
                content_type: declared.or_else(|| Some("application/json".to_owned())),
            }),
        },
    }
}

fn decoded(bytes: Vec<u8>, content_type: Option<String>) -> Result<Data, Poison> {
    let json = payload_json(&bytes, content_type.as_deref(), Absence::Allowed)?;
    Ok(Data { payload: Payload::Decoded(bytes), json, content_type })
}

/// Opens a message that has its envelope in the headers of that prefix.
pub(super) fn binary(message: &Message, prefix: &str, rule: &EnvelopeRule) -> Result<Envelope, Poison> {
    let mut context: Vec<(String, String)> = Vec::new();
    for header in &message.headers {
        let Some(name) = attribute_name(&header.name, prefix).map(str::to_ascii_lowercase) else { continue };
        let text = if prefix == HTTP_PREFIX { http_value(&header.value) } else { Some(header.value.clone()) };
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| bad(format!("the header {} is not UTF-8", brief(&header.name))))?;
        match context.iter().find(|(own, _)| *own == name) {
            Some((_, first)) if *first != text => {
                return Err(bad(format!("the header {} has more than one value", brief(&header.name))));
            }
            Some(_) => {}
            None if text.is_empty() => {}
            None => context.push((name, text)),
        }
    }
    let declared = context.iter().find(|(name, _)| name == "datacontenttype").map(|(_, text)| text.clone());
    let content_type = content_type(message).map(str::to_owned).or(declared);
    let json = payload_json(&message.body, content_type.as_deref(), Absence::Allowed)?;
    let data = Data { payload: Payload::Body(0..message.body.len()), json, content_type };
    envelope(context, data, message, rule)
}

/// HTTP binding, 3.1.3.2: a quoted string is unquoted, then `%XX` decoded; other `%` stand for themselves.
fn http_value(value: &[u8]) -> Option<Vec<u8>> {
    let unquoted = match value.strip_prefix(b"\"") {
        Some(rest) => unquote(rest.strip_suffix(b"\"")?),
        None => value.to_vec(),
    };
    let mut out = Vec::with_capacity(unquoted.len());
    let mut rest = unquoted.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        let escape = if *byte == b'%' { after.first_chunk::<2>().and_then(|digits| hex_byte(*digits)) } else { None };
        out.push(escape.unwrap_or(*byte));
        rest = after.get(if escape.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    Some(out)
}

fn unquote(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(if *byte == b'\\' { *bytes.next().unwrap_or(byte) } else { *byte });
    }
    out
}

fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}

/// Puts an event's facts in order, the same for both modes.
fn envelope(
    context: Vec<(String, String)>,
    data: Data,
    message: &Message,
    rule: &EnvelopeRule,
) -> Result<Envelope, Poison> {
    let get = |name: &str| context.iter().find(|(own, _)| own == name).map(|(_, text)| text.clone());
    let required =
        |name: &str| get(name).ok_or_else(|| bad(format!("the CloudEvents attribute {name} is missing or empty")));
    let version = required("specversion")?;
    if version != "1.0" {
        return Err(bad(format!("the CloudEvents specversion is {}; only 1.0 is read", brief(&version))));
    }
    let (id, event_type, ce_source) = (required("id")?, required("type")?, required("source")?);
    for (name, text) in [("id", &id), ("type", &event_type)] {
        if text.len() > NAME_BYTES_MAX {
            let bytes = text.len();
            return Err(bad(format!("the CloudEvents attribute {name} has {bytes} bytes, more than {NAME_BYTES_MAX}")));
        }
    }
    let moment = match get("time") {
        Some(text) => Some(time::read(&text, time::TimeFormat::Rfc3339)?),
        None => {
            let body = match &data.payload {
                Payload::Body(_) => &message.body,
                Payload::Decoded(bytes) => bytes,
            };
            let values = Values { message, json: data.json.as_ref().map(|json| json.root(body)), attributes: &[] };
            fact("time", rule.time.as_ref(), values)?.map(|text| time::read(&text, rule.time_format)).transpose()?
        }
    };
    let further = context.iter().filter(|(name, _)| !CORE.contains(&name.as_str()));
    let attributes = further.chain(&message.position).cloned().collect();
    Ok(Envelope {
        id,
        event_type,
        ce_source: Some(ce_source),
        subject: get("subject"),
        time_us: moment.as_ref().map(|moment| moment.us),
        time: moment.map(|moment| moment.text),
        content_type: data.content_type,
        schema: get("dataschema"),
        attributes,
        payload: data.payload,
        json: data.json,
        context,
    })
}
