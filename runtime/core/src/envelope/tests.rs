use proptest::prelude::*;

use super::*;
use crate::{json::JsonKind, message::Header};

const LIMITS: Limits = Limits { key_bytes_max: 512, payload_bytes_max: 4096 };

fn auto(message: &Message) -> Result<Envelope, Poison> {
    open(message, &EnvelopeRule::default(), &LIMITS)
}

fn code(message: &Message) -> PoisonCode {
    auto(message).unwrap_err().code
}

fn body(body: impl Into<Vec<u8>>) -> Message {
    Message { body: body.into(), ..Message::default() }
}

/// A structured event with further members.
fn structured(members: &str) -> Message {
    body(format!(r#"{{"specversion":"1.0","id":"e-1","source":"/shop","type":"order.paid"{members}}}"#))
}

fn with_headers(headers: &[(&str, &[u8])], body: &str) -> Message {
    let headers = headers.iter().map(|(name, value)| Header::new(*name, *value)).collect();
    Message { headers, body: body.as_bytes().to_vec(), ..Message::default() }
}

fn with_type(content_type: &str, body: impl Into<Vec<u8>>) -> Message {
    Message { content_type: Some(content_type.to_owned()), body: body.into(), ..Message::default() }
}

#[test]
fn a_structured_event_gives_its_attributes_and_its_data_byte_for_byte() {
    let mut message = structured(
        r#","subject":"42","time":"2026-11-29T20:00:00+08:00","dataschema":"urn:s","tenant":"t","retries":3,"vip":true,
           "gone":null,"data": { "a" : 1.0 } "#,
    );
    message.position.push(("queue".to_owned(), "orders".to_owned()));
    let event = auto(&message).unwrap();
    assert_eq!(
        (event.id.as_str(), event.event_type.as_str(), event.ce_source.as_deref(), event.subject.as_deref()),
        ("e-1", "order.paid", Some("/shop"), Some("42"))
    );
    assert_eq!(event.time.as_deref(), Some("2026-11-29T12:00:00.000000Z"));
    assert_eq!(event.time_us, Some(1_795_953_600_000_000));
    assert_eq!(event.schema.as_deref(), Some("urn:s"));
    assert_eq!(event.content_type.as_deref(), Some("application/json"));
    let attributes: Vec<_> = event.attributes.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(attributes, [("tenant", "t"), ("retries", "3"), ("vip", "true"), ("queue", "orders")]);
    assert_eq!(event.payload(&message), br#"{ "a" : 1.0 }"#);
    assert!(matches!(event.json(&message).unwrap().pointer("/a").unwrap().kind(), JsonKind::Number("1.0")));
}

#[test]
fn a_content_type_declares_a_structured_event_whatever_its_parameters() {
    let message = with_type("Application/CloudEvents+JSON; charset=utf-8", structured("").body);
    assert_eq!(auto(&message).unwrap().id, "e-1");
    let broken = with_type("application/cloudevents+json", br#"{"specversion":"1.0","id":"e-1"}"#.as_slice());
    assert_eq!(auto(&broken).unwrap_err().to_string(), "the CloudEvents attribute type is missing or empty");
}

#[test]
fn a_body_that_only_resembles_an_event_is_raw() {
    for text in [
        r#"{"specversion":"0.3","id":"e-1","source":"/shop","type":"t"}"#,
        r#"{"specversion":1.0,"id":"e-1","source":"/shop","type":"t"}"#,
        r#"{"specversion":"1.0","id":1,"source":"/shop","type":"t"}"#,
        r#"{"specversion":"1.0","id":"e-1","source":"/shop"}"#,
    ] {
        assert_eq!(auto(&body(text)).unwrap().ce_source, None, "{text}");
    }
}

#[test]
fn an_event_without_data_has_an_empty_payload() {
    let message = structured(r#","datacontenttype":"application/json""#);
    let event = auto(&message).unwrap();
    assert_eq!(event.payload(&message), b"");
    assert!(event.json(&message).is_none());
    let null = structured(r#","data":null"#);
    assert_eq!(auto(&null).unwrap().payload(&null), b"null");
}

#[test]
fn data_in_base64_or_as_the_text_of_another_format_is_decoded() {
    let json = structured(r#","datacontenttype":"application/json","data_base64":"eyJhIjoxfQ==""#);
    let event = auto(&json).unwrap();
    assert_eq!(event.payload(&json), br#"{"a":1}"#);
    assert!(event.json(&json).unwrap().pointer("/a").is_some());
    let bytes = structured(r#","datacontenttype":"application/protobuf","data_base64":"AP8=""#);
    assert_eq!(auto(&bytes).unwrap().payload(&bytes), b"\0\xff");
    let xml = structured(r#","datacontenttype":"application/xml","data":"<a b=\"c\"/>""#);
    assert_eq!(auto(&xml).unwrap().payload(&xml), br#"<a b="c"/>"#);
}

#[test]
fn an_event_that_breaks_cloudevents_is_poison() {
    let long = format!(r#"{{"specversion":"1.0","source":"s","type":"t","id":"{}"}}"#, "i".repeat(256));
    for (text, expected) in [
        (
            r#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#,
            "the CloudEvents attribute id is missing or empty",
        ),
        (r#"{"id":"e","source":"s","type":"t"}"#, "the CloudEvents attribute specversion is missing or empty"),
        (
            r#"{"specversion":"0.3","id":"e","source":"s","type":"t"}"#,
            "the CloudEvents specversion is 0.3; only 1.0 is read",
        ),
        (r#"{"specversion":"1.0","id":7,"source":"s","type":"t"}"#, "the CloudEvents attribute id is not a text"),
        (
            r#"{"specversion":"1.0","id":"e","source":"s","type":"t","x":{}}"#,
            "the CloudEvents attribute x is not a text, integer or boolean",
        ),
        (
            r#"{"specversion":"1.0","id":"e","source":"s","type":"t","x":1.5}"#,
            "the CloudEvents attribute x is not a text, integer or boolean",
        ),
        (
            r#"{"specversion":"1.0","id":"e","source":"s","type":"t","data":1,"data_base64":"AA=="}"#,
            "the CloudEvents envelope has both data and data_base64",
        ),
        (
            r#"{"specversion":"1.0","id":"e","source":"s","type":"t","data_base64":1}"#,
            "data_base64 of the CloudEvents envelope is not a text",
        ),
        ("7", "the CloudEvents envelope is not a JSON object"),
        (&long, "the CloudEvents attribute id has 256 bytes, more than 255"),
    ] {
        let poison = auto(&with_type("application/cloudevents+json", text)).unwrap_err();
        assert_eq!((poison.code, poison.message.as_str()), (PoisonCode::BadEnvelope, expected), "{text}");
    }
    assert_eq!(code(&structured(r#","data_base64":"A""#)), PoisonCode::BadEnvelope);
    assert_eq!(code(&structured(r#","time":"yesterday""#)), PoisonCode::BadTime);
    assert_eq!(code(&structured(r#","id":"e-2""#)), PoisonCode::BadPayload);
    assert_eq!(code(&with_type("application/cloudevents+avro", "x")), PoisonCode::BadEnvelope);
}

#[test]
fn a_batch_is_no_event() {
    assert_eq!(code(&with_type("application/cloudevents-batch+json", "[]")), PoisonCode::EventBatch);
    assert_eq!(code(&with_type("application/cloudevents+json", "[]")), PoisonCode::EventBatch);
}

#[test]
fn an_event_in_headers_is_read_by_the_prefix_of_its_protocol() {
    for prefix in ["ce-", "CE-", "cloudEvents:", "cloudEvents_", "ce_"] {
        let names = ["specversion", "id", "type", "source", "tenant"].map(|name| format!("{prefix}{name}"));
        let values: [&[u8]; 5] = [b"1.0", b"e-1", b"order.paid", b"/shop", b"t"];
        let headers: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
        let message = with_headers(&headers, "x,y");
        let event = auto(&message).unwrap();
        assert_eq!((event.id.as_str(), event.event_type.as_str()), ("e-1", "order.paid"), "{prefix}");
        assert_eq!(event.ce_source.as_deref(), Some("/shop"));
        assert_eq!(event.attributes, [("tenant".to_owned(), "t".to_owned())]);
        assert_eq!(event.payload(&message), b"x,y");
    }
}

fn binary(id: &str, value: &[u8]) -> Message {
    let id_name = format!("{id}id");
    let (version, kind, source) = (format!("{id}specversion"), format!("{id}type"), format!("{id}source"));
    with_headers(&[(&version, b"1.0"), (&kind, b"t"), (&source, b"s"), (&id_name, value)], "")
}

#[test]
fn only_http_headers_are_percent_decoded() {
    let id = |prefix: &str, value: &[u8]| auto(&binary(prefix, value)).map(|event| event.id);
    assert_eq!(id("ce-", b"Euro%20%E2%82%AC%20%F0%9F%98%80").unwrap(), "Euro € 😀");
    assert_eq!(id("ce-", br#""a \"b\" %41""#).unwrap(), "a \"b\" A");
    assert_eq!(id("ce-", b"50%").unwrap(), "50%");
    assert_eq!(id("ce-", b"%zz%4").unwrap(), "%zz%4");
    assert_eq!(id("ce_", b"%41").unwrap(), "%41");
    assert_eq!(id("ce-", b"%ff").unwrap_err().message, "the header ce-id is not UTF-8");
    assert_eq!(id("ce_", b"\xff").unwrap_err().code, PoisonCode::BadEnvelope);
}

#[test]
fn an_attribute_of_no_bytes_is_as_good_as_absent() {
    let poison = auto(&binary("ce-", b"")).unwrap_err();
    assert_eq!(poison.message, "the CloudEvents attribute id is missing or empty");
    let mut message = binary("ce-", b"e-1");
    message.headers.push(Header::new("ce-subject", ""));
    assert_eq!(auto(&message).unwrap().subject, None);
    assert_eq!(auto(&structured(r#","subject":"""#)).unwrap().subject, None);
}

#[test]
fn two_different_values_of_one_attribute_are_poison() {
    let mut message = binary("ce-", b"e-1");
    message.headers.push(Header::new("Ce-Id", "e-1"));
    assert_eq!(auto(&message).unwrap().id, "e-1");
    message.headers.push(Header::new("ce-id", "e-2"));
    assert_eq!(auto(&message).unwrap_err().message, "the header ce-id has more than one value");
}

#[test]
fn a_raw_message_has_the_facts_that_the_source_names() {
    let rule = EnvelopeRule::parse(
        EnvelopeFormat::Auto,
        Some("{header:x-event-type}"),
        Some("{/id}"),
        Some("{amqp:timestamp}"),
        TimeFormat::UnixS,
    )
    .unwrap();
    let mut message = with_headers(&[("X-Event-Type", b"order.paid")], r#"{"id":7}"#);
    message.properties.push(("amqp:timestamp".to_owned(), b"1795953600".to_vec()));
    message.properties.push(("amqp:message-id".to_owned(), b"m-1".to_vec()));
    let event = open(&message, &rule, &LIMITS).unwrap();
    assert_eq!((event.id.as_str(), event.event_type.as_str()), ("7", "order.paid"));
    assert_eq!(event.time.as_deref(), Some("2026-11-29T12:00:00.000000Z"));

    message.body = br#"{"id":null}"#.to_vec();
    message.headers.clear();
    message.properties.remove(0);
    let event = open(&message, &rule, &LIMITS).unwrap();
    assert_eq!((event.id.as_str(), event.event_type.as_str(), event.time), ("m-1", "", None));

    message.body = b"no json".to_vec();
    let poison = open(&message, &rule, &LIMITS).unwrap_err();
    assert_eq!(poison.code, PoisonCode::NotJson);
    assert_eq!(poison.message, "id of the source's envelope: {/id} points into a payload that is not JSON");
}

#[test]
fn a_message_that_nothing_names_has_the_hash_of_its_body_as_id() {
    // SHA-256 of "abc": FIPS 180-4, example of section B.1.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(auto(&body("abc")).unwrap().id, expected);
    let mut message = body("abc");
    message.properties.push(("amqp:message-id".to_owned(), b"\xff".to_vec()));
    assert_eq!(auto(&message).unwrap().id, expected, "an id that is not UTF-8 is none");
}

#[test]
fn the_sources_time_also_stands_in_for_an_event_without_one() {
    let rule = EnvelopeRule::parse(EnvelopeFormat::Auto, None, None, Some("{/at}"), TimeFormat::UnixMs).unwrap();
    let us = |members: &str| open(&structured(members), &rule, &LIMITS).map(|event| event.time_us);
    assert_eq!(us(r#","data":{"at":1795953600123}"#), Ok(Some(1_795_953_600_123_000)));
    assert_eq!(us(r#","time":"2026-11-29T12:00:00Z","data":{"at":5}"#), Ok(Some(1_795_953_600_000_000)));
    assert_eq!(us(r#","data":{"at":"noon"}"#).unwrap_err().code, PoisonCode::BadTime);
    assert_eq!(us(r#","data":{"at":1.5}"#).unwrap_err().code, PoisonCode::BadEnvelope);
}

#[test]
fn a_format_that_is_set_is_not_guessed() {
    let rule = |format| EnvelopeRule { format, ..EnvelopeRule::default() };
    let raw = open(&structured(""), &rule(EnvelopeFormat::Raw), &LIMITS).unwrap();
    assert_eq!(raw.ce_source, None);
    let in_headers = binary("ce-", b"e-1");
    assert_eq!(open(&in_headers, &rule(EnvelopeFormat::Raw), &LIMITS).unwrap().ce_source, None);
    let poison = |message: &Message, format| open(message, &rule(format), &LIMITS).unwrap_err().code;
    assert_eq!(poison(&in_headers, EnvelopeFormat::Structured), PoisonCode::BadPayload);
    assert_eq!(poison(&structured(""), EnvelopeFormat::Binary), PoisonCode::BadEnvelope);
}

#[test]
fn a_payload_that_is_declared_as_json_must_be_json() {
    for text in ["", " ", "{", "{} {}", "NaN", "{\"a\":1,\"a\":2}", "\u{feff}{}", "// x\n{}"] {
        assert_eq!(code(&with_type("application/json", text)), PoisonCode::BadPayload, "{text:?}");
        assert_eq!(code(&with_type("application/vnd.shop+json; v=1", text)), PoisonCode::BadPayload, "{text:?}");
    }
    let scalar = with_type("application/json", "7");
    assert!(auto(&scalar).unwrap().json(&scalar).is_some());
}

#[test]
fn of_undeclared_payloads_only_objects_and_arrays_are_json() {
    let json = |text: &str| auto(&body(text)).unwrap().json(&body(text)).is_some();
    for (text, expected) in [
        ("{}", true),
        (" [1]", true),
        ("1.0", false),
        ("\"a\"", false),
        ("", false),
        ("{x", false),
        ("\u{feff}{}", false),
    ] {
        assert_eq!(json(text), expected, "{text:?}");
    }
    for refused in [r#"{"a":1,"a":2}"#.to_owned(), r#"["\ud800"]"#.to_owned(), "[".repeat(129)] {
        assert_eq!(code(&body(refused)), PoisonCode::BadPayload);
    }
}

#[test]
fn the_size_is_looked_at_before_the_content() {
    let limits = Limits { payload_bytes_max: 4, ..LIMITS };
    let open = |text: &str| open(&with_type("application/json", text), &EnvelopeRule::default(), &limits);
    assert!(open("123").is_ok());
    assert!(open("1234").is_ok());
    let poison = open("{{{{{").unwrap_err();
    assert_eq!(poison.code, PoisonCode::PayloadTooLarge);
    assert_eq!(poison.message, "the body has 5 bytes, more than 4 (payload_bytes_max)");
}

proptest! {
    #[test]
    fn no_message_makes_it_panic(
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "\\{\"(specversion|id|data|data_base64|time)\":(\"1.0\"|\"[a-z=%]{0,4}\"|[0-9]|null|\\{\\})\\}".prop_map(String::into_bytes),
        ],
        headers in prop::collection::vec(
            ("(ce-|ce_|cloudEvents:|é)(specversion|id|time|)", prop::collection::vec(any::<u8>(), 0..6)), 0..6,
        ),
        content_type in prop::option::of("application/(json|cloudevents(\\+json|-batch)?)?;?"),
    ) {
        let headers = headers.into_iter().map(|(name, value)| Header::new(name, value)).collect();
        let message = Message { body, headers, content_type, ..Message::default() };
        for format in [EnvelopeFormat::Auto, EnvelopeFormat::Structured, EnvelopeFormat::Binary, EnvelopeFormat::Raw] {
            if let Ok(event) = open(&message, &EnvelopeRule { format, ..EnvelopeRule::default() }, &LIMITS) {
                let _ = event.payload(&message);
            }
        }
    }
}
