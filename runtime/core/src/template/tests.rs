use proptest::prelude::*;

use super::*;
use crate::{json::Json, message::Header};

const MAX: usize = 512;

fn key(template: &str, payload: &str) -> Result<Vec<u8>, RenderError> {
    let json = Json::parse(payload.as_bytes()).unwrap();
    let values = Values { message: &Message::default(), json: Some(json.root(payload.as_bytes())), attributes: &[] };
    Template::parse(template, TemplateUse::Key).unwrap().render(values, MAX)
}

fn problem(template: &str, payload: &str) -> (String, ValueProblem) {
    match key(template, payload) {
        Err(RenderError::Value { placeholder, problem }) => (placeholder, problem),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_is_its_literals_and_values() {
    assert_eq!(key("order:{/order/id}:paid", r#"{"order":{"id":42}}"#).unwrap(), b"order:42:paid");
    assert_eq!(key("{/lines/1}", r#"{"lines":["a","b c"]}"#).unwrap(), b"b c");
}

#[test]
fn punctuation_of_the_literals_and_percent_are_encoded_in_values_and_nothing_else() {
    assert_eq!(key("a:{/x}/{/y}", r#"{"x":"1:2/3.4","y":"50% é"}"#).unwrap(), "a:1%3A2%2F3.4/50%25 é".as_bytes());
    assert_eq!(key("n-{/x}", r#"{"x":-5}"#).unwrap(), b"n-%2D5");
}

#[test]
fn the_integer_42_and_the_text_42_are_one_key() {
    assert_eq!(key("k:{/x}", r#"{"x":42}"#), key("k:{/x}", r#"{"x":"42"}"#));
    assert_eq!(key("{/x}", r#"{"x":123456789012345678901234567890}"#).unwrap(), b"123456789012345678901234567890");
}

#[test]
fn what_is_neither_integer_nor_text_is_refused_with_its_placeholder() {
    let cases = [
        (r#"{}"#, ValueProblem::Missing),
        (r#"{"x":null}"#, ValueProblem::Null),
        (r#"{"x":""}"#, ValueProblem::Empty),
        (r#"{"x":1.0}"#, ValueProblem::Float),
        (r#"{"x":1e0}"#, ValueProblem::Float),
        (r#"{"x":1E400}"#, ValueProblem::Float),
        (r#"{"x":-0}"#, ValueProblem::NegativeZero),
        (r#"{"x":-0.0}"#, ValueProblem::Float),
        (r#"{"x":true}"#, ValueProblem::Boolean),
        (r#"{"x":{}}"#, ValueProblem::Object),
        (r#"{"x":[1]}"#, ValueProblem::Array),
    ];
    for (payload, expected) in cases {
        assert_eq!(problem("k:{/x}", payload), ("/x".to_owned(), expected), "{payload}");
    }
}

#[test]
fn a_pointer_into_a_payload_that_is_not_json_is_refused() {
    let values = Values { message: &Message::default(), json: None, attributes: &[] };
    let rendered = Template::parse("{/x}", TemplateUse::Key).unwrap().render(values, MAX);
    assert_eq!(rendered.unwrap_err().to_string(), "{/x} points into a payload that is not JSON");
}

#[test]
fn headers_properties_and_attributes_are_taken_byte_for_byte() {
    let message = Message {
        headers: vec![Header::new("X-Id", b"a\xff\0b".as_slice())],
        properties: vec![("kafka:key".to_owned(), vec![0xfe]), ("amqp:message-id".to_owned(), b"m".to_vec())],
        ..Message::default()
    };
    let values = Values { message: &message, json: None, attributes: &[("id".to_owned(), "e-1".to_owned())] };
    let template = Template::parse("{header:x-id}:{kafka:key}:{amqp:message-id}:{ce:id}", TemplateUse::Key).unwrap();
    assert_eq!(template.render(values, MAX).unwrap(), b"a\xff\0b:\xfe:m:e-1");
    let missing = Template::parse("{ce:tenant}", TemplateUse::Key).unwrap().render(values, MAX);
    assert_eq!(missing.unwrap_err().to_string(), "{ce:tenant} is missing");
}

#[test]
fn a_header_with_two_different_values_names_no_event() {
    let with =
        |second: &str| Message { headers: vec![Header::new("x", "1"), Header::new("X", second)], ..Message::default() };
    let template = Template::parse("{header:x}", TemplateUse::Key).unwrap();
    let render = |message: &Message| template.render(Values { message, json: None, attributes: &[] }, MAX);
    assert_eq!(render(&with("1")).unwrap(), b"1");
    assert_eq!(render(&with("2")).unwrap_err().to_string(), "{header:x} has more than one value");
}

#[test]
fn keys_are_compared_byte_for_byte() {
    let payloads = [r#""A""#, r#""a""#, r#""a ""#, r#""a\u0000""#, "\"\u{e1}\"", "\"a\u{301}\""];
    let keys: BTreeSet<_> = payloads.iter().map(|x| key("{/x}", &format!("{{\"x\":{x}}}")).unwrap()).collect();
    assert_eq!(keys.len(), 6);
}

#[test]
fn a_key_at_the_limit_is_taken_and_one_byte_more_is_refused() {
    let render = |template: &str, length: usize| key(template, &format!("{{\"x\":\"{}\"}}", "a".repeat(length)));
    assert_eq!(render("k:{/x}", 509).unwrap().len(), 511);
    assert_eq!(render("k:{/x}", 510).unwrap().len(), 512);
    assert_eq!(render("k:{/x}", 511), Err(RenderError::TooLong { bytes: 513, max: 512 }));
    let encoded = key("k:{/x}", &format!("{{\"x\":\"{}:\"}}", "a".repeat(508)));
    assert_eq!(encoded, Err(RenderError::TooLong { bytes: 513, max: 512 }), "the limit counts encoded bytes");
}

#[test]
fn a_template_at_the_limit_is_taken_and_one_byte_more_is_refused() {
    let parse = |bytes: usize| Template::parse(&format!("{}{{/x}}", "a".repeat(bytes - 4)), TemplateUse::Key);
    assert!(parse(511).is_ok());
    assert!(parse(512).is_ok());
    assert_eq!(parse(513), Err(TemplateError::TooLong(513)));
}

#[test]
fn a_template_that_could_confuse_two_events_is_refused() {
    for template in ["{/a}{/b}", "{/a}x{/b}", "{/a}é{/b}", "k:{/a}1{/b}", "{/a}:{/b}{/c}"] {
        let error = Template::parse(template, TemplateUse::Key).unwrap_err();
        assert!(matches!(error, TemplateError::NothingBetween(..)), "{template}: {error}");
    }
    assert_eq!(Template::parse("fixed", TemplateUse::Key), Err(TemplateError::NoPlaceholder));
    assert_eq!(Template::parse("{/a}%{/b}", TemplateUse::Key), Err(TemplateError::Literal('%')));
}

#[test]
fn a_malformed_template_is_refused_where_it_is_wrong() {
    let cases = [
        ("", TemplateError::Empty),
        ("a{/x", TemplateError::Brace(1)),
        ("a}{/x}", TemplateError::Brace(1)),
        ("{/x{/y}}", TemplateError::Brace(0)),
        ("{/x}\n", TemplateError::Literal('\n')),
        ("{}", TemplateError::Unknown(String::new())),
        ("{x}", TemplateError::Unknown("x".to_owned())),
        ("{header:}", TemplateError::Unknown("header:".to_owned())),
        ("{amqp:app-id}", TemplateError::Unknown("amqp:app-id".to_owned())),
        ("{/a~2}", TemplateError::Pointer("/a~2".to_owned())),
        ("{/a~}", TemplateError::Pointer("/a~".to_owned())),
    ];
    for (template, expected) in cases {
        assert_eq!(Template::parse(template, TemplateUse::Key), Err(expected), "{template}");
    }
}

#[test]
fn a_placeholder_stands_only_where_it_has_a_meaning() {
    let refused = |template, usage| matches!(Template::parse(template, usage), Err(TemplateError::NotHere(..)));
    assert!(refused("{amqp:timestamp}", TemplateUse::Key));
    assert!(refused("{ce:id}", TemplateUse::Envelope));
    assert!(refused("{ce:Id}", TemplateUse::Key));
    assert!(Template::parse("{amqp:timestamp}", TemplateUse::Envelope).is_ok());
    assert!(Template::parse("order.paid", TemplateUse::Envelope).is_ok());
}

#[test]
fn an_envelope_encodes_only_where_two_values_meet() {
    let message = Message { headers: vec![Header::new("a", "x.y%"), Header::new("b", "z")], ..Message::default() };
    let values = Values { message: &message, json: None, attributes: &[] };
    let render = |template| Template::parse(template, TemplateUse::Envelope).unwrap().render(values, MAX).unwrap();
    assert_eq!(render("orders.{header:a}"), b"orders.x.y%");
    assert_eq!(render("{header:a}.{header:b}"), b"x%2Ey%25.z");
}

/// Values full of what could be mistaken for the template's own text.
fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        b"%".to_vec(),
        b"%3A".to_vec(),
        b"%25".to_vec(),
        b":".to_vec(),
        b"/".to_vec(),
        b"-".to_vec(),
        b" ".to_vec(),
        b"a".to_vec(),
        b"ab".to_vec(),
        b"3A".to_vec(),
        b"\xff".to_vec(),
        b"\0".to_vec(),
        "é".as_bytes().to_vec(),
        b"{".to_vec(),
        b"}".to_vec(),
    ]);
    prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat())
}

fn render_three(template: &str, values: &[Vec<u8>; 3]) -> Vec<u8> {
    let [a, b, c] = values.clone();
    let headers = vec![Header::new("a", a), Header::new("b", b), Header::new("c", c)];
    let message = Message { headers, ..Message::default() };
    let template = Template::parse(template, TemplateUse::Key).unwrap();
    template.render(Values { message: &message, json: None, attributes: &[] }, usize::MAX).unwrap()
}

const THREE: [&str; 5] = [
    "{header:a}:{header:b}:{header:c}",
    "a{header:a}ab:{header:b}:abb{header:c}b",
    "{header:a}-3A:{header:b}/ {header:c}",
    ":{header:a}::{header:b}:::{header:c}::::",
    "{header:a} é{header:b}é-{header:c}",
];

proptest! {
    /// Chance rarely meets the one text that an encoded one could be taken for, so it is made.
    #[test]
    fn a_value_is_never_taken_for_the_encoding_of_another(
        template in prop::sample::select(THREE.as_slice()),
        values in prop::array::uniform3(tricky()),
        place in 0..3usize,
    ) {
        let mut encoded = values.clone();
        Template::parse(template, TemplateUse::Key).unwrap().encode(&values[place], &mut encoded[place]);
        encoded[place].drain(..values[place].len());
        let equal = render_three(template, &values) == render_three(template, &encoded);
        prop_assert_eq!(equal, values == encoded);
    }

    #[test]
    fn two_different_tuples_never_render_to_one_key(
        template in prop::sample::select(THREE.as_slice()),
        first in prop::array::uniform3(tricky()),
        second in prop::array::uniform3(tricky()),
    ) {
        let equal = render_three(template, &first) == render_three(template, &second);
        prop_assert_eq!(equal, first == second);
    }

    /// Chance rarely makes two tuples of the same bytes, so these are: one text, cut at different places.
    #[test]
    fn where_one_value_ends_and_the_next_begins_is_never_lost(
        template in prop::sample::select(THREE.as_slice()),
        text in prop::collection::vec(tricky(), 3..6).prop_map(|pieces| pieces.concat()),
        cuts in prop::array::uniform4(any::<prop::sample::Index>()),
    ) {
        let cut = |a: prop::sample::Index, b: prop::sample::Index| {
            let first = 1 + a.index(text.len() - 2);
            let second = first + 1 + b.index(text.len() - first - 1);
            [text[..first].to_vec(), text[first..second].to_vec(), text[second..].to_vec()]
        };
        let (first, second) = (cut(cuts[0], cuts[1]), cut(cuts[2], cuts[3]));
        prop_assume!(first.iter().chain(&second).all(|value| !value.is_empty()));
        let equal = render_three(template, &first) == render_three(template, &second);
        prop_assert_eq!(equal, first == second);
    }

    #[test]
    fn no_text_makes_the_template_parser_panic(source in "[{}%:/a-z~0é ]{0,20}") {
        let _ = Template::parse(&source, TemplateUse::Key);
        let _ = Template::parse(&source, TemplateUse::Envelope);
    }
}
