use proptest::prelude::*;

use super::*;

fn problem(text: impl AsRef<[u8]>) -> (JsonProblem, usize) {
    let error = Json::parse(text.as_ref()).unwrap_err();
    (error.problem, error.offset)
}

fn at<'a>(json: &'a Json, text: &'a str, pointer: &str) -> Option<&'a str> {
    json.root(text.as_bytes()).pointer(pointer).map(|value| std::str::from_utf8(value.raw()).unwrap())
}

#[test]
fn every_value_knows_its_bytes_without_the_white_space_around_it() {
    let text = r#" { "a" : [ 1 , 2.50e+3 , { "b" : null } ] , "c" : "x\"y" , "d" : { } , "e":true} "#;
    let json = Json::parse(text.as_bytes()).unwrap();
    assert_eq!(at(&json, text, ""), Some(text.trim()));
    assert_eq!(at(&json, text, "/a"), Some(r#"[ 1 , 2.50e+3 , { "b" : null } ]"#));
    assert_eq!(at(&json, text, "/a/1"), Some("2.50e+3"));
    assert_eq!(at(&json, text, "/a/2/b"), Some("null"));
    assert_eq!(at(&json, text, "/c"), Some(r#""x\"y""#));
    assert_eq!(at(&json, text, "/d"), Some("{ }"));
    assert_eq!(at(&json, text, "/e"), Some("true"));
}

#[test]
fn a_pointer_follows_rfc_6901() {
    let text = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"m~n":8,"~1":9,"o":{"0":"member"}}"#;
    let json = Json::parse(text.as_bytes()).unwrap();
    let cases = [
        ("/foo/0", Some("\"bar\"")),
        ("/", Some("0")),
        ("/a~1b", Some("1")),
        ("/c%d", Some("2")),
        ("/m~0n", Some("8")),
        ("/~01", Some("9")),
        ("/o/0", Some("\"member\"")),
        ("/foo/2", None),
        ("/foo/-", None),
        ("/foo/00", None),
        ("/foo/01", None),
        ("/foo/+1", None),
        ("/foo/", None),
        ("/foo/0/x", None),
        ("/FOO", None),
        ("foo", None),
    ];
    for (pointer, expected) in cases {
        assert_eq!(at(&json, text, pointer), expected, "{pointer}");
    }
}

#[test]
fn a_part_looks_the_same_over_the_same_bytes() {
    let text = r#"{"before":[1],"data":{"x":[true,"y"]},"after":2}"#;
    let json = Json::parse(text.as_bytes()).unwrap();
    let part = Json::part(json.root(text.as_bytes()).member("data").unwrap());
    assert_eq!(at(&part, text, ""), Some(r#"{"x":[true,"y"]}"#));
    assert_eq!(at(&part, text, "/x/1"), Some(r#""y""#));
}

#[test]
fn escapes_are_resolved_and_plain_text_stays_as_it_is() {
    let text = r#"["\"\\\/\b\f\n\r\t","\u0000\u00e9\uD83D\uDE00x","é😀","a\u0062c"]"#;
    let json = Json::parse(text.as_bytes()).unwrap();
    let JsonKind::Array(elements) = json.root(text.as_bytes()).kind() else { panic!("not an array") };
    let texts: Vec<_> = elements.map(|value| value.as_text().unwrap().into_owned()).collect();
    assert_eq!(texts, ["\"\\/\u{8}\u{c}\n\r\t", "\0é😀x", "é😀", "abc"]);
}

#[test]
fn numbers_keep_their_text() {
    let text = "[123456789012345678901234567890,-0,0.1e+1,1E400]";
    let json = Json::parse(text.as_bytes()).unwrap();
    let JsonKind::Array(elements) = json.root(text.as_bytes()).kind() else { panic!("not an array") };
    let number =
        |value: JsonValue<'_>| matches!(value.kind(), JsonKind::Number(text) if text.as_bytes() == value.raw());
    assert!(elements.clone().all(number));
    let texts: Vec<_> = elements.map(|value| std::str::from_utf8(value.raw()).unwrap()).collect();
    assert_eq!(texts, ["123456789012345678901234567890", "-0", "0.1e+1", "1E400"]);
}

#[test]
fn what_two_readers_could_understand_differently_is_refused() {
    assert_eq!(problem(r#"{"a":1,"b":2,"a":3}"#), (JsonProblem::DuplicateMember, 13));
    assert_eq!(problem(r#"[{"a":1,"\u0061":2}]"#), (JsonProblem::DuplicateMember, 8));
    assert_eq!(problem("\u{feff}{}"), (JsonProblem::ByteOrderMark, 0));
    assert_eq!(problem(r#"["\ud800"]"#), (JsonProblem::LoneSurrogate, 2));
    assert_eq!(problem(r#"["\ud800\u0041"]"#), (JsonProblem::LoneSurrogate, 2));
    assert_eq!(problem(r#"["\udc00\ud800"]"#), (JsonProblem::LoneSurrogate, 2));
    assert_eq!(problem(r#"["\ud800x"]"#), (JsonProblem::LoneSurrogate, 2));
}

#[test]
fn equal_names_in_different_objects_are_no_duplicates() {
    assert!(Json::parse(br#"{"a":{"a":{"a":1}},"b":{"a":1},"A":0}"#).is_ok());
}

#[test]
fn what_is_not_json_is_refused_where_it_stands() {
    use JsonProblem::{BadEscape, ControlCharacter, NotUtf8, Trailing, Unexpected, Unfinished};
    let cases: [(&[u8], JsonProblem, usize); 29] = [
        (b"", Unfinished, 0),
        (b" \t\r\n", Unfinished, 4),
        (b"x", Unexpected, 0),
        (b"NaN", Unexpected, 0),
        (b"-Infinity", Unexpected, 1),
        (b"nul", Unfinished, 3),
        (b"nulL", Unexpected, 3),
        (b"1 2", Trailing, 2),
        (b"{} //", Trailing, 3),
        (b"01", Trailing, 1),
        (b"-", Unfinished, 1),
        (b"1.", Unfinished, 2),
        (b"1e", Unfinished, 2),
        (b"+1", Unexpected, 0),
        (b"[1,]", Unexpected, 3),
        (b"[1", Unfinished, 2),
        (b"[1 2]", Unexpected, 3),
        (b"[}", Unexpected, 1),
        (b"{1:2}", Unexpected, 1),
        (b"{\"a\"}", Unexpected, 4),
        (b"{\"a\":1,}", Unexpected, 7),
        (b"{\"a\":1 \"b\":2}", Unexpected, 7),
        (b"\"a", Unfinished, 2),
        (b"\"a\nb\"", ControlCharacter, 2),
        (b"\"\\x\"", BadEscape, 2),
        (b"\"\\u12g4\"", BadEscape, 5),
        (b"\"\\u12", Unfinished, 5),
        (b"[\"\xff\"]", NotUtf8, 2),
        (b"\xfe\xff\0{", NotUtf8, 0),
    ];
    for (text, expected, offset) in cases {
        assert_eq!(problem(text), (expected, offset), "{}", text.escape_ascii());
    }
}

#[test]
fn nesting_128_is_read_and_129_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(Json::parse(nested(127).as_bytes()).is_ok());
        assert!(Json::parse(nested(128).as_bytes()).is_ok());
        assert_eq!(problem(nested(129)), (JsonProblem::TooDeep, 128 * open.len()));
        assert_eq!(problem(nested(1_000_000)), (JsonProblem::TooDeep, 128 * open.len()));
    }
    assert_eq!(problem("[".repeat(1_000_000)), (JsonProblem::TooDeep, 128));
}

#[test]
fn an_object_of_many_members_is_read_in_one_go() {
    let members: Vec<_> = (0..100_000).map(|n| format!("\"{n}\":{n}")).collect();
    let text = format!("{{{}}}", members.join(","));
    let json = Json::parse(text.as_bytes()).unwrap();
    assert_eq!(at(&json, &text, "/99999"), Some("99999"));
}

/// Texts that are JSON more often than chance would have it.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"b\"",
        "\"a\":",
        "\"\\u0061\"",
        "\"\\ud83d\\ude00\"",
        "\\",
        "\\ud800",
        "null",
        "true",
        "false",
        "tru",
        "0",
        "-",
        "-0",
        "1",
        "12",
        ".5",
        "e3",
        "E-2",
        "+",
        " ",
        "\n",
        "é",
        "\u{1}",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Json::parse(&bytes);
    }

    #[test]
    fn the_reader_takes_what_serde_json_takes_but_for_duplicates(text in nearly_json()) {
        let own = Json::parse(text.as_bytes());
        let other = serde_json::from_str::<serde_json::Value>(&text);
        match own {
            Ok(_) => prop_assert!(other.is_ok(), "{text}: {other:?}"),
            Err(JsonError { problem: JsonProblem::DuplicateMember, .. }) => {}
            Err(error) => prop_assert!(other.is_err(), "{text}: {error}"),
        }
    }

    #[test]
    fn every_text_reads_back_from_its_json_string(text in any::<String>()) {
        let written = serde_json::to_string(&text).unwrap();
        let json = Json::parse(written.as_bytes()).unwrap();
        prop_assert_eq!(json.root(written.as_bytes()).as_text().unwrap(), text);
    }
}
