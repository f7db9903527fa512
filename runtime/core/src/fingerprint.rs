//! The fingerprint: what must be equal in the payload when the key is equal.
//!
//! SHA-256 over an algorithm byte and the chosen parts in canonical form. Every value begins with a byte that says what
//! it is and says itself where it ends (a length, or an end mark), so that no two different payloads feed the same bytes.
//! What is fed here is kept in tables for as long as the inbox: another form is another algorithm byte.

use sha2::{Digest as _, Sha256};

use crate::{
    decimal::{Decimal, DecimalError},
    ids::Fingerprint,
    json::{Json, JsonKind, JsonValue},
    manifest::FingerprintSpec,
    template::check_pointer,
};

/// Version of all that is fed to the hashes of a rule; part of the rule, kept in `ob_rule.algorithm`.
pub const ALGORITHM: u8 = 1;

/// The algorithm byte of payloads that are not JSON: their bytes as they are.
const ALGORITHM_BYTES: u8 = 2;

/// Bytes that the text of a fingerprint's choice may have: the width of its column in `ob_rule`.
pub const FINGERPRINT_TEXT_BYTES_MAX: usize = 2048;

/// The payload, as far as the fingerprint is concerned.
#[derive(Debug, Clone, Copy)]
pub enum PayloadForm<'a> {
    /// JSON, with its value.
    Json(JsonValue<'a>),
    /// Anything else.
    Bytes(&'a [u8]),
}

/// Why a payload has no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// JSON pointers were chosen, and the payload is not JSON.
    #[error("the fingerprint's pointers need a JSON payload")]
    NotJson,
    /// A number whose exact value cannot be kept.
    #[error("a number of the payload {0}")]
    Number(#[from] DecimalError),
}

/// Why a choice of parts cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintSpecError {
    /// No part at all: every payload would be equal.
    #[error("the fingerprint names nothing; write \"payload\" or a list of JSON pointers")]
    Empty,
    /// A JSON pointer that RFC 6901 does not have, or the empty one.
    #[error("{0:?} is no JSON pointer into the payload; it begins with `/`, for example \"/amount\"")]
    Pointer(String),
    /// The text would not fit its column.
    #[error("the fingerprint has {0} bytes as text, more than {FINGERPRINT_TEXT_BYTES_MAX}")]
    TooLong(usize),
    /// A kept text that this version does not read.
    #[error("{0:?} is no fingerprint's text")]
    Text(String),
}

/// Makes the fingerprint of a payload.
///
/// # Errors
/// [`FingerprintError`]: the message is poison for this handler.
pub fn fingerprint(spec: &FingerprintSpec, payload: PayloadForm<'_>) -> Result<Fingerprint, FingerprintError> {
    let mut hash = Sha256::new();
    match (spec, payload) {
        (FingerprintSpec::Payload, PayloadForm::Json(value)) => {
            hash.update([ALGORITHM]);
            feed(&mut hash, value)?;
        }
        (FingerprintSpec::Payload, PayloadForm::Bytes(bytes)) => {
            hash.update([ALGORITHM_BYTES]);
            hash.update(bytes);
        }
        (FingerprintSpec::Pointers(pointers), PayloadForm::Json(value)) => {
            hash.update([ALGORITHM]);
            for pointer in pointers {
                match value.pointer(pointer) {
                    Some(part) => feed(&mut hash, part)?,
                    None => hash.update(b"-"),
                }
            }
        }
        (FingerprintSpec::Pointers(_), PayloadForm::Bytes(_)) => return Err(FingerprintError::NotJson),
    }
    Ok(Fingerprint(hash.finalize().into()))
}

/// Feeds one value. It goes into itself at most [`crate::json::DEPTH_MAX`] times.
fn feed(hash: &mut Sha256, value: JsonValue<'_>) -> Result<(), DecimalError> {
    match value.kind() {
        JsonKind::Null => hash.update(b"n"),
        JsonKind::Boolean(false) => hash.update(b"f"),
        JsonKind::Boolean(true) => hash.update(b"t"),
        JsonKind::Number(text) => {
            let decimal = Decimal::parse(text)?;
            hash.update(if decimal.is_negative() { b"<" } else { b"+" });
            feed_bytes(hash, decimal.digits().as_bytes());
            hash.update(decimal.exponent().to_be_bytes());
        }
        JsonKind::Text(text) => {
            hash.update(b"s");
            feed_bytes(hash, text.as_bytes());
        }
        JsonKind::Array(elements) => {
            hash.update(b"a");
            for element in elements {
                feed(hash, element)?;
            }
            hash.update(b".");
        }
        JsonKind::Object(members) => {
            hash.update(b"o");
            let mut members: Vec<_> = members.collect();
            members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            for (name, value) in members {
                hash.update(b"m");
                feed_bytes(hash, name.as_bytes());
                feed(hash, value)?;
            }
            hash.update(b".");
        }
    }
    Ok(())
}

/// Feeds bytes behind their length.
pub(crate) fn feed_bytes(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(bytes);
}

/// Checks a choice of parts and writes it as the text kept in `ob_rule`: `payload`, or a JSON array of pointers.
///
/// # Errors
/// [`FingerprintSpecError`]: for the author of the manifest or the configuration.
pub fn to_text(spec: &FingerprintSpec) -> Result<String, FingerprintSpecError> {
    let FingerprintSpec::Pointers(pointers) = spec else { return Ok("payload".to_owned()) };
    if pointers.is_empty() {
        return Err(FingerprintSpecError::Empty);
    }
    if let Some(wrong) = pointers.iter().find(|pointer| pointer.is_empty() || check_pointer(pointer).is_err()) {
        return Err(FingerprintSpecError::Pointer(wrong.clone()));
    }
    let texts: Vec<_> = pointers.iter().map(|pointer| json_string(pointer)).collect();
    let text = format!("[{}]", texts.join(","));
    if text.len() > FINGERPRINT_TEXT_BYTES_MAX { Err(FingerprintSpecError::TooLong(text.len())) } else { Ok(text) }
}

/// Reads the text of [`to_text`] back.
///
/// # Errors
/// [`FingerprintSpecError::Text`]: the text was not written by this version or an older one.
pub fn from_text(text: &str) -> Result<FingerprintSpec, FingerprintSpecError> {
    if text == "payload" {
        return Ok(FingerprintSpec::Payload);
    }
    let unknown = || FingerprintSpecError::Text(text.to_owned());
    let json = Json::parse(text.as_bytes()).map_err(|_| unknown())?;
    let JsonKind::Array(elements) = json.root(text.as_bytes()).kind() else { return Err(unknown()) };
    let pointers: Option<Vec<_>> = elements.map(|element| element.as_text().map(|text| text.into_owned())).collect();
    let spec = FingerprintSpec::Pointers(pointers.ok_or_else(unknown)?);
    to_text(&spec).map(|_| spec)
}

fn json_string(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(spec: &FingerprintSpec, payload: &str) -> Fingerprint {
        let json = Json::parse(payload.as_bytes()).unwrap();
        fingerprint(spec, PayloadForm::Json(json.root(payload.as_bytes()))).unwrap()
    }

    fn whole(payload: &str) -> Fingerprint {
        of(&FingerprintSpec::Payload, payload)
    }

    fn pointers(pointers: &[&str]) -> FingerprintSpec {
        FingerprintSpec::Pointers(pointers.iter().map(|&p| p.to_owned()).collect())
    }

    fn sha256(parts: &[&[u8]]) -> Fingerprint {
        Fingerprint(Sha256::digest(parts.concat()).into())
    }

    #[test]
    fn the_bytes_that_are_hashed_never_change() {
        assert_eq!(whole("null"), sha256(&[b"\x01n"]));
        assert_eq!(
            whole(r#"{"b":[true,"é"],"a":-12.50}"#),
            sha256(&[
                b"\x01o",
                b"m\0\0\0\0\0\0\0\x01a<\0\0\0\0\0\0\0\x03125\xff\xff\xff\xff\xff\xff\xff\xff",
                b"m\0\0\0\0\0\0\0\x01bats\0\0\0\0\0\0\0\x02\xc3\xa9.",
                b".",
            ])
        );
        assert_eq!(
            of(&pointers(&["/a", "/b", "/c"]), r#"{"a":null,"c":"x"}"#),
            sha256(&[b"\x01n-s\0\0\0\0\0\0\0\x01x"])
        );
        assert_eq!(fingerprint(&FingerprintSpec::Payload, PayloadForm::Bytes(b"raw")).unwrap(), sha256(&[b"\x02raw"]));
    }

    #[test]
    fn member_order_white_space_escapes_and_spellings_of_a_number_do_not_count() {
        let expected = whole(r#"{"a":[1,2],"b":{"c":"x","d":100}}"#);
        for same in [
            r#"{"b":{"d":100,"c":"x"},"a":[1,2]}"#,
            " {\n\"a\" : [ 1 ,\t2 ] , \"b\" : { \"c\" : \"x\" , \"d\" : 100 } } ",
            r#"{"\u0061":[1.0,20e-1],"b":{"c":"\u0078","d":1e2}}"#,
        ] {
            assert_eq!(whole(same), expected, "{same}");
        }
        assert_eq!(whole("-0"), whole("0"));
    }

    #[test]
    fn different_payloads_have_different_fingerprints() {
        let payloads = [
            "null",
            "false",
            "true",
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "1e400",
            "1e401",
            "1e-999999999",
            "9007199254740992",
            "9007199254740993",
            r#""""#,
            r#""1""#,
            r#""null""#,
            "[]",
            "[[]]",
            "[[],[]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            "[1,[2]]",
            "{}",
            "[{}]",
            r#"{"a":null}"#,
            r#"{"a":1}"#,
            r#"{"A":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":{"b":2}}"#,
            r#"["a","b"]"#,
            r#"["ab"]"#,
            r#"["a\u0000"]"#,
            "[\"\u{e1}\"]",
            "[\"a\u{301}\"]",
        ];
        let all: std::collections::HashSet<_> = payloads.iter().map(|payload| whole(payload)).collect();
        assert_eq!(all.len(), payloads.len());
    }

    #[test]
    fn only_the_chosen_parts_count_and_absent_differs_from_null() {
        let spec = pointers(&["/user", "/amount"]);
        assert_eq!(of(&spec, r#"{"user":1,"amount":2,"at":3}"#), of(&spec, r#"{"amount":2.0,"user":1}"#));
        assert_ne!(of(&spec, r#"{"user":1}"#), of(&spec, r#"{"user":1,"amount":null}"#));
        assert_ne!(of(&spec, r#"{"user":1}"#), of(&spec, r#"{"amount":1}"#));
        assert_ne!(of(&spec, r#"{"user":1,"amount":2}"#), of(&spec, r#"{"user":2,"amount":1}"#));
    }

    #[test]
    fn pointers_need_a_json_payload() {
        let answer = fingerprint(&pointers(&["/a"]), PayloadForm::Bytes(b"x"));
        assert_eq!(answer, Err(FingerprintError::NotJson));
    }

    #[test]
    fn a_number_whose_exponent_cannot_be_kept_is_refused() {
        let payload = "[1e9223372036854775808]";
        let json = Json::parse(payload.as_bytes()).unwrap();
        let answer = fingerprint(&FingerprintSpec::Payload, PayloadForm::Json(json.root(payload.as_bytes())));
        assert_eq!(answer.unwrap_err().to_string(), "a number of the payload has an exponent beyond 64 bits");
    }

    #[test]
    fn the_deepest_json_that_is_read_has_a_fingerprint() {
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        assert_ne!(whole(&deep), whole("[]"));
    }

    #[test]
    fn a_choice_of_parts_reads_back_from_its_text() {
        for spec in [FingerprintSpec::Payload, pointers(&["/a", "/b~1c/0"]), pointers(&["/\"\\\n\u{1}é"])] {
            assert_eq!(from_text(&to_text(&spec).unwrap()), Ok(spec));
        }
        assert_eq!(to_text(&pointers(&["/a", "/b"])).unwrap(), r#"["/a","/b"]"#);
        for text in ["", "Payload", "[]", "[1]", "{}", "[\"a\"]"] {
            assert!(from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_choice_that_covers_nothing_or_does_not_fit_is_refused() {
        assert_eq!(to_text(&pointers(&[])), Err(FingerprintSpecError::Empty));
        for wrong in ["", "amount", "/a~", "/a~2"] {
            assert_eq!(to_text(&pointers(&[wrong])), Err(FingerprintSpecError::Pointer(wrong.to_owned())));
        }
        let of_bytes = |bytes: usize| to_text(&pointers(&[&format!("/{}", "a".repeat(bytes - 5))]));
        assert_eq!(of_bytes(2047).unwrap().len(), 2047);
        assert_eq!(of_bytes(2048).unwrap().len(), 2048);
        assert_eq!(of_bytes(2049), Err(FingerprintSpecError::TooLong(2049)));
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            "[a-c\"\\\\é]{0,3}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[a-c]{0,2}", inner, 0..4)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The same value spelled otherwise: members backwards, white space, `N` as `N.00e0`, letters as escapes.
    fn otherwise(value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::Null | serde_json::Value::Bool(_) => value.to_string(),
            serde_json::Value::Number(number) => format!("{number}.00e0"),
            serde_json::Value::String(text) => escaped(text),
            serde_json::Value::Array(elements) => {
                format!("[ {}\n]", elements.iter().map(otherwise).collect::<Vec<_>>().join("\t, "))
            }
            serde_json::Value::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .rev()
                    .map(|(name, value)| format!("{} : {}", escaped(name), otherwise(value)))
                    .collect();
                format!(" {{\r{}}} ", members.join(" ,"))
            }
        }
    }

    fn escaped(text: &str) -> String {
        format!("\"{}\"", text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect::<String>())
    }

    /// A number below ten as digits, and the place of its point.
    fn spelled(digits: u32, exponent: i32, zeros: usize) -> String {
        format!("{digits}{}e{}", "0".repeat(zeros), exponent - i32::try_from(zeros).unwrap())
    }

    proptest! {
        #[test]
        fn a_value_spelled_otherwise_has_the_same_fingerprint(value in any_json()) {
            prop_assert_eq!(whole(&value.to_string()), whole(&otherwise(&value)));
        }

        #[test]
        fn two_values_have_equal_fingerprints_only_when_they_are_equal(a in any_json(), b in any_json()) {
            prop_assert_eq!(whole(&a.to_string()) == whole(&b.to_string()), a == b);
        }

        #[test]
        fn numbers_are_equal_exactly_when_their_values_are(
            a in 1u32..1000, b in 1u32..1000, ea in -3i32..4, eb in -3i32..4, za in 0usize..4, zb in 0usize..4,
        ) {
            let scaled = |digits: u32, exponent: i32| u64::from(digits) * 10u64.pow(u32::try_from(exponent + 3).unwrap());
            let equal = whole(&spelled(a, ea, za)) == whole(&spelled(b, eb, zb));
            prop_assert_eq!(equal, scaled(a, ea) == scaled(b, eb));
        }
    }
}
