//! How a message's headers and transport facts are kept beside its body: JSON, so that a person can read it in SQL.
//! Values that are not UTF-8 are kept as `{"hex": "…"}`.

use std::fmt::Write as _;

use oncebox_core::message::{Header, Message};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Kept {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, Bytes)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    properties: Vec<(String, Bytes)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    position: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Hex { hex: String },
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes).map_or_else(
            |_| Self::Hex {
                hex: bytes.iter().fold(String::new(), |mut out, byte| {
                    let _ = write!(out, "{byte:02x}");
                    out
                }),
            },
            |text| Self::Text(text.to_owned()),
        )
    }
}

impl Bytes {
    fn into_vec(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Hex { hex } => {
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
            }
        }
    }
}

/// All of a message but its body.
#[must_use]
pub fn encode_headers(message: &Message) -> Vec<u8> {
    let kept = Kept {
        headers: message.headers.iter().map(|h| (h.name.clone(), h.value.as_slice().into())).collect(),
        content_type: message.content_type.clone(),
        properties: message.properties.iter().map(|(n, v)| (n.clone(), v.as_slice().into())).collect(),
        position: message.position.clone(),
    };
    // Strings, vectors and options only: serde_json has nothing to refuse.
    serde_json::to_vec(&kept).unwrap_or_default()
}

/// The message of a row, whole.
///
/// # Errors
/// What is wrong with the kept text.
pub fn decode_message(headers: &[u8], body: Vec<u8>) -> Result<Message, String> {
    let kept: Kept = serde_json::from_slice(headers).map_err(|error| error.to_string())?;
    let headers = kept.headers.into_iter().map(|(name, value)| {
        let value = value.into_vec().ok_or_else(|| format!("header {name} is not hexadecimal"))?;
        Ok(Header { name, value })
    });
    let properties = kept.properties.into_iter().map(|(name, value)| {
        let value = value.into_vec().ok_or_else(|| format!("property {name} is not hexadecimal"))?;
        Ok((name, value))
    });
    Ok(Message {
        body,
        headers: headers.collect::<Result<_, String>>()?,
        content_type: kept.content_type,
        properties: properties.collect::<Result<_, String>>()?,
        position: kept.position,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_message_comes_back_byte_for_byte() {
        let message = Message {
            body: vec![0, 255],
            headers: vec![Header::new("a", b"x".to_vec()), Header::new("a", vec![0xff, 0x00]), Header::new("", vec![])],
            content_type: Some("text/plain".into()),
            properties: vec![("amqp:message-id".into(), b"7".to_vec())],
            position: vec![("queue".into(), "q\"\n".into())],
        };
        assert_eq!(decode_message(&encode_headers(&message), message.body.clone()), Ok(message));
        assert_eq!(decode_message(b"{}", vec![]), Ok(Message::default()));
    }
}
