//! The hashes that name messages, held rows and outgoing events.
//!
//! Each begins with a text of its own and frames every part by its length, so that no two of them, and no two tuples
//! of parts, feed the same bytes. They are kept in tables: what is fed here never changes.

use sha2::{Digest as _, Sha256};

use crate::{
    fingerprint::feed_bytes,
    ids::{BusinessKey, Fingerprint, HeldIdentity, MessageHash},
    message::Message,
};

/// Hash of a message as the producer sent it: body, content type, properties and headers.
///
/// A source puts the routing key among the properties (`amqp:routing-key`) and leaves the broker's own headers out.
/// `position` does not count: where a message lies says nothing about what it is. The order of the properties does not
/// count either, that of the headers does.
#[must_use]
pub fn message_hash(message: &Message) -> MessageHash {
    let mut hash = begin("message");
    feed_bytes(&mut hash, &message.body);
    feed_optional(&mut hash, message.content_type.as_deref().map(str::as_bytes));
    let mut properties: Vec<_> = message.properties.iter().collect();
    properties.sort_unstable();
    feed_count(&mut hash, properties.len());
    for (name, value) in properties {
        feed_bytes(&mut hash, name.as_bytes());
        feed_bytes(&mut hash, value);
    }
    feed_count(&mut hash, message.headers.len());
    for header in &message.headers {
        feed_bytes(&mut hash, header.name.as_bytes());
        feed_bytes(&mut hash, &header.value);
    }
    MessageHash(hash.finalize().into())
}

/// What makes a held row with a key unique, among all rows of a tenant.
#[must_use]
pub fn held_identity_of_key(handler: &str, key: &BusinessKey, fingerprint: &Fingerprint) -> HeldIdentity {
    let mut hash = begin("held key");
    feed_bytes(&mut hash, handler.as_bytes());
    feed_bytes(&mut hash, key.as_bytes());
    feed_bytes(&mut hash, fingerprint.as_bytes());
    HeldIdentity(hash.finalize().into())
}

/// What makes a held row without a key unique, among all rows of a tenant; `handler` is `None` where no handler is
/// concerned (a bad envelope, no route).
#[must_use]
pub fn held_identity_of_message(source: &str, handler: Option<&str>, message: &MessageHash) -> HeldIdentity {
    let mut hash = begin("held message");
    feed_bytes(&mut hash, source.as_bytes());
    feed_optional(&mut hash, handler.map(str::as_bytes));
    feed_bytes(&mut hash, message.as_bytes());
    HeldIdentity(hash.finalize().into())
}

/// The id of an outgoing event: the same at each attempt, another one for each position (from 0) and generation.
///
/// `ob-` and the first half of a SHA-256 in 32 lower-case hexadecimal digits: 128 bits, 35 characters.
#[must_use]
pub fn outgoing_event_id(tenant: &str, handler: &str, key: &BusinessKey, generation: u32, position: u32) -> String {
    let mut hash = begin("outgoing event");
    feed_bytes(&mut hash, tenant.as_bytes());
    feed_bytes(&mut hash, handler.as_bytes());
    feed_bytes(&mut hash, key.as_bytes());
    hash.update(generation.to_be_bytes());
    hash.update(position.to_be_bytes());
    format!("ob-{}", hex(&hash.finalize()[..16]))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn begin(what: &str) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(b"oncebox ");
    hash.update(what.as_bytes());
    hash.update([0]);
    hash
}

fn feed_count(hash: &mut Sha256, count: usize) {
    hash.update(u64::try_from(count).unwrap_or(u64::MAX).to_be_bytes());
}

fn feed_optional(hash: &mut Sha256, bytes: Option<&[u8]>) {
    hash.update([u8::from(bytes.is_some())]);
    feed_bytes(hash, bytes.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::message::Header;

    #[test]
    fn whatever_the_producer_sent_makes_another_message_hash() {
        let message = Message {
            body: b"body".to_vec(),
            headers: vec![Header::new("a", "1"), Header::new("b", "2")],
            content_type: Some("text/plain".to_owned()),
            properties: vec![("amqp:routing-key".to_owned(), b"r".to_vec())],
            position: Vec::new(),
        };
        let changes: [fn(&mut Message); 10] = [
            |_| {},
            |m| m.body.push(0),
            |m| m.body.clear(),
            |m| m.content_type = None,
            |m| m.content_type = Some(String::new()),
            |m| m.headers.reverse(),
            |m| m.headers = vec![Header::new("a", "1b2")],
            |m| m.headers = vec![Header::new("a1", ""), Header::new("b", "2")],
            |m| m.properties[0].1 = b"s".to_vec(),
            |m| m.properties.clear(),
        ];
        let hashes: HashSet<_> = changes
            .iter()
            .map(|change| {
                let mut changed = message.clone();
                change(&mut changed);
                message_hash(&changed)
            })
            .collect();
        assert_eq!(hashes.len(), changes.len());
    }

    #[test]
    fn where_a_message_lies_and_the_order_of_its_properties_do_not_change_its_hash() {
        let message = Message {
            properties: vec![("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())],
            ..Message::default()
        };
        let mut moved = message.clone();
        moved.position.push(("offset".to_owned(), "7".to_owned()));
        moved.properties.reverse();
        assert_eq!(message_hash(&moved), message_hash(&message));
    }

    #[test]
    fn held_rows_of_different_things_have_different_identities() {
        let fingerprints = [Fingerprint([0; 32]), Fingerprint([1; 32])];
        let key = |text: &str| BusinessKey::new(text);
        let message = MessageHash([0; 32]);
        let identities = HashSet::from([
            held_identity_of_key("ab", &key("c"), &fingerprints[0]),
            held_identity_of_key("a", &key("bc"), &fingerprints[0]),
            held_identity_of_key("ab", &key("c"), &fingerprints[1]),
            held_identity_of_message("ab", Some("c"), &message),
            held_identity_of_message("a", Some("bc"), &message),
            held_identity_of_message("ab", None, &message),
            held_identity_of_message("ab", Some(""), &message),
            held_identity_of_message("ab", None, &MessageHash([1; 32])),
        ]);
        assert_eq!(identities.len(), 8);
    }

    #[test]
    fn an_outgoing_event_keeps_its_id_and_no_other_event_has_it() {
        let id = |tenant, handler, key: &str, generation, position| {
            outgoing_event_id(tenant, handler, &BusinessKey::new(key), generation, position)
        };
        let ids = HashSet::from([
            id("t", "h", "k", 0, 0),
            id("t", "h", "k", 0, 1),
            id("t", "h", "k", 1, 0),
            id("t", "h", "k2", 0, 0),
            id("t", "hk", "", 0, 0),
            id("th", "", "k", 0, 0),
        ]);
        assert_eq!(ids.len(), 6);
        for id in &ids {
            assert!(id.len() == 35 && id.starts_with("ob-"), "{id}");
            assert!(id[3..].bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        }
        let fed = [
            b"oncebox outgoing event\0".as_slice(),
            b"\0\0\0\0\0\0\0\x01t",
            b"\0\0\0\0\0\0\0\x01h",
            b"\0\0\0\0\0\0\0\x01k",
            b"\0\0\0\x02\0\0\0\x03",
        ];
        let expected = format!("ob-{}", &hex(&Sha256::digest(fed.concat()))[..32]);
        assert_eq!(id("t", "h", "k", 2, 3), expected);
    }
}
