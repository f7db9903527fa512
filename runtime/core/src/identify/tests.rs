use super::*;
use crate::{
    envelope::{self, EnvelopeRule},
    manifest::FingerprintSpec,
    message::Header,
};

const LIMITS: Limits = Limits { key_bytes_max: 512, payload_bytes_max: 4096 };

fn identity(message: &Message, rule: &Rule) -> Result<Identity, Poison> {
    let envelope = envelope::open(message, &EnvelopeRule::default(), &LIMITS)?;
    identify(&envelope, message, rule, &LIMITS)
}

fn body(body: &str) -> Message {
    Message { body: body.as_bytes().to_vec(), ..Message::default() }
}

fn pointers(pointers: &[&str]) -> FingerprintSpec {
    FingerprintSpec::Pointers(pointers.iter().map(|&p| p.to_owned()).collect())
}

fn order_rule() -> Rule {
    Rule::parse("order:{/orderId}:paid", &pointers(&["/userId", "/amount"]), Some("user:{/userId}")).unwrap()
}

#[test]
fn a_message_has_key_fingerprint_and_ordering_key() {
    let first = identity(&body(r#"{"orderId":42,"userId":"u1","amount":9.90,"sentAt":1}"#), &order_rule()).unwrap();
    assert_eq!(first.key, BusinessKey::new("order:42:paid"));
    assert_eq!(first.ordering_key.as_deref(), Some(b"user:u1".as_slice()));
    let again = identity(&body(r#"{"sentAt":2,"amount":9.9,"userId":"u1","orderId":"42"}"#), &order_rule()).unwrap();
    assert_eq!(again, first);
    let other = identity(&body(r#"{"orderId":42,"userId":"u1","amount":9.91}"#), &order_rule()).unwrap();
    assert_eq!(other.key, first.key);
    assert_ne!(other.fingerprint, first.fingerprint);
}

#[test]
fn an_event_has_one_identity_in_structured_and_in_binary_mode() {
    let rule = Rule::parse("{ce:id}:{/a}", &FingerprintSpec::Payload, None).unwrap();
    let structured = body(r#"{"specversion":"1.0","id":"e:1","source":"s","type":"t","data":{"a":1,"b":[2]}}"#);
    let mut binary = body(r#"{ "b": [2.0], "a": 1 }"#);
    for (name, value) in [("ce_specversion", "1.0"), ("ce_id", "e:1"), ("ce_source", "s"), ("ce_type", "t")] {
        binary.headers.push(Header::new(name, value));
    }
    let identity_of = |message| identity(message, &rule).unwrap();
    assert_eq!(identity_of(&structured).key, BusinessKey::new("e%3A1:1"));
    assert_eq!(identity_of(&binary), identity_of(&structured));
}

#[test]
fn the_hash_of_a_body_is_no_key_but_a_message_id_is() {
    let rule = Rule::parse("{ce:id}", &FingerprintSpec::Payload, None).unwrap();
    let mut message = body("{}");
    let poison = identity(&message, &rule).unwrap_err();
    assert_eq!((poison.code, poison.message.as_str()), (PoisonCode::NoKey, "business key: {ce:id} is missing"));
    message.properties.push(("amqp:message-id".to_owned(), b"m-1".to_vec()));
    assert_eq!(identity(&message, &rule).unwrap().key, BusinessKey::new("m-1"));
}

#[test]
fn a_payload_without_json_is_compared_by_its_bytes() {
    let rule = Rule::parse("{header:k}", &FingerprintSpec::Payload, None).unwrap();
    let fingerprint = |text: &str| {
        let message = Message { headers: vec![Header::new("k", "1")], ..body(text) };
        identity(&message, &rule).unwrap().fingerprint
    };
    assert_eq!(fingerprint("1.0"), fingerprint("1.0"));
    assert_ne!(fingerprint("1.0"), fingerprint("1"), "a text is no number");
    assert_ne!(fingerprint("x"), fingerprint("x "));
    assert_eq!(fingerprint("[1.0]"), fingerprint("[ 1 ]"), "an array is JSON");
    assert_ne!(fingerprint(""), fingerprint("null"));
}

#[test]
fn each_poison_says_what_is_wrong() {
    let ordered = |ordering| Rule::parse("{/k}", &FingerprintSpec::Payload, Some(ordering)).unwrap();
    let by_header = Rule::parse("{header:k}", &pointers(&["/a"]), None).unwrap();
    let with_header = Message { headers: vec![Header::new("k", "1")], ..body("x") };
    let long = format!(r#"{{"k":"{}"}}"#, "a".repeat(513));
    let long_order = format!(r#"{{"k":1,"o":"{}"}}"#, "a".repeat(513));
    let cases = [
        (body("{}"), order_rule(), "no-key", "business key: {/orderId} is missing"),
        (body("x"), order_rule(), "not-json", "business key: {/orderId} points into a payload that is not JSON"),
        (body(r#"{"orderId":-0}"#), order_rule(), "bad-key", "business key: {/orderId} is -0"),
        (
            body(&long),
            ordered("{/k}"),
            "key-too-long",
            "business key: the result has 513 bytes after encoding, more than 512 (key_bytes_max)",
        ),
        (body(r#"{"k":1}"#), ordered("{/o}"), "no-ordering-key", "ordering key: {/o} is missing"),
        (
            body(r#"{"k":1,"o":[]}"#),
            ordered("{/o}"),
            "bad-ordering-key",
            "ordering key: {/o} is an array; a key takes integers and texts",
        ),
        (
            body(&long_order),
            ordered("{/o}"),
            "ordering-key-too-long",
            "ordering key: the result has 513 bytes after encoding, more than 512 (key_bytes_max)",
        ),
        (with_header, by_header, "not-json", "the fingerprint's pointers need a JSON payload"),
        (
            body(r#"{"k":1,"n":1e9223372036854775808}"#),
            ordered("{/k}"),
            "bad-payload",
            "a number of the payload has an exponent beyond 64 bits",
        ),
    ];
    for (message, rule, code, text) in cases {
        let poison = identity(&message, &rule).unwrap_err();
        assert_eq!((poison.code.name(), poison.message.as_str()), (code, text));
    }
}

#[test]
fn six_spellings_are_six_keys() {
    let rule = Rule::parse("{/k}", &FingerprintSpec::Payload, None).unwrap();
    let spellings = ["A", "a", "a ", "a\\u0000", "\u{e1}", "a\u{301}"];
    let keys: std::collections::HashSet<_> = spellings
        .iter()
        .map(|spelling| identity(&body(&format!(r#"{{"k":"{spelling}"}}"#)), &rule).unwrap().key)
        .collect();
    assert_eq!(keys.len(), 6);
}
