//! Values written into a statement's text, so that many statements go in one packet.
//!
//! Nothing of a value can be read as SQL. A text of printable ASCII without quote and backslash stands in quotes: under no
//! SQL mode and no character set can it end there. All others are written as hexadecimal digits, and numbers as the digits
//! that we make of them ourselves. Each literal has the type that the value would have been bound with; of texts, bytes and
//! decimals that is only sure where they are not calculated with ([`Mark::is_alone`]).

use std::fmt::Write as _;

use oncebox_core::{sql::Mark, value::Value};

/// The text with a literal for each `?`. `None`: it cannot be written so, and has to be prepared.
pub(super) fn inlined(sql: &str, marks: &[Mark], params: &[Value]) -> Option<String> {
    if marks.len() != params.len() {
        return None;
    }
    let bytes: usize = params.iter().map(|value| value.bytes() + 24).sum();
    let mut text = String::with_capacity(sql.len() + bytes);
    push_inlined(&mut text, sql, 0..sql.len(), marks, params)?;
    Some(text)
}

/// The same of a range of the text, which has all of its `?`.
pub(super) fn push_inlined(
    text: &mut String,
    sql: &str,
    range: std::ops::Range<usize>,
    marks: &[Mark],
    params: &[Value],
) -> Option<()> {
    let mut rest = range.start;
    for (mark, value) in marks.iter().zip(params) {
        if sql.as_bytes().get(mark.at) != Some(&b'?') {
            return None;
        }
        text.push_str(sql.get(rest..mark.at)?);
        push(text, value, mark.is_alone)?;
        rest = mark.at + 1;
    }
    text.push_str(sql.get(rest..range.end)?);
    Some(())
}

fn push(text: &mut String, value: &Value, is_alone: bool) -> Option<()> {
    match value {
        Value::Null => text.push_str("NULL"),
        Value::Boolean(flag) => text.push(if *flag { '1' } else { '0' }),
        Value::Signed(number) => push_signed(text, *number),
        Value::Unsigned(number) if is_alone => write!(text, "{number}").ok()?,
        // A small one would be signed otherwise, and calculate in another way.
        Value::Unsigned(number) => write!(text, "CAST({number} AS UNSIGNED)").ok()?,
        Value::Float(number) if !number.is_finite() => return None,
        Value::Float(number) if number.is_sign_negative() => write!(text, "({number:e})").ok()?,
        Value::Float(number) => write!(text, "{number:e}").ok()?,
        Value::Decimal(_) | Value::Text(_) | Value::Bytes(_) if !is_alone => return None,
        Value::Date(_) | Value::Time(_) | Value::Datetime(_) | Value::Json(_) if !is_alone => return None,
        Value::Decimal(number) if !is_exact(number) => return None,
        Value::Decimal(number) if number.starts_with('-') => text.extend(["(", number, ")"]),
        Value::Decimal(number) => text.push_str(number),
        Value::Text(value) | Value::Date(value) | Value::Time(value) | Value::Datetime(value) | Value::Json(value) => {
            push_text(text, value);
        }
        Value::Bytes(value) => push_bytes(text, value),
    }
    Some(())
}

/// Digits, perhaps with a point between some of them, as many as a decimal can have: everything else is a float, or no
/// number.
fn is_exact(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(fraction) && whole.len() <= 35 && fraction.len() <= 30
}

/// In brackets: behind a minus a second one would begin a comment.
pub(super) fn push_signed(text: &mut String, number: i64) {
    // Writing to a string does not fail.
    let _ = if number < 0 { write!(text, "({number})") } else { write!(text, "{number}") };
}

/// A text, in UTF-8.
pub(super) fn push_text(text: &mut String, value: &str) {
    if is_plain(value.as_bytes()) {
        text.extend(["'", value, "'"]);
    } else {
        push_hex(text, "_utf8mb4", value.as_bytes());
    }
}

/// Bytes; said to be a string, for hexadecimal digits alone may also be a number.
pub(super) fn push_bytes(text: &mut String, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(plain) if is_plain(value) => text.extend(["_binary '", plain, "'"]),
        Ok(_) | Err(_) => push_hex(text, "_binary", value),
    }
}

fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (0x20..0x7f).contains(byte) && *byte != b'\'' && *byte != b'\\')
}

fn push_hex(text: &mut String, introducer: &str, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.reserve(introducer.len() + 2 * bytes.len() + 4);
    text.push_str(introducer);
    text.push_str(" x'");
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text.push('\'');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks(sql: &str, is_alone: bool) -> Vec<Mark> {
        sql.match_indices('?').map(|(at, _)| Mark { at, is_alone }).collect()
    }

    fn literal(value: Value) -> Option<String> {
        inlined("?", &marks("?", true), &[value])
    }

    #[test]
    fn each_type_has_its_own_literal() {
        for (value, expected) in [
            (Value::Null, "NULL"),
            (Value::Boolean(true), "1"),
            (Value::Boolean(false), "0"),
            (Value::Signed(7), "7"),
            (Value::Signed(i64::MIN), "(-9223372036854775808)"),
            (Value::Unsigned(u64::MAX), "18446744073709551615"),
            (Value::Float(1.5), "1.5e0"),
            (Value::Float(-0.1), "(-1e-1)"),
            (Value::Float(f64::MAX), "1.7976931348623157e308"),
            (Value::Decimal("-0012.50".into()), "(-0012.50)"),
            (Value::Text("a'\\é".into()), "_utf8mb4 x'61275CC3A9'"),
            (Value::Text("-- /* ; ? \" `".into()), "'-- /* ; ? \" `'"),
            (Value::Text("a\nb".into()), "_utf8mb4 x'610A62'"),
            (Value::Text(String::new()), "''"),
            (Value::Bytes(vec![0, 255]), "_binary x'00FF'"),
            (Value::Bytes(b"order:1".to_vec()), "_binary 'order:1'"),
            (Value::Json("{}".into()), "'{}'"),
        ] {
            assert_eq!(literal(value.clone()).as_deref(), Some(expected), "{value:?}");
        }
    }

    #[test]
    fn what_has_no_literal_is_prepared() {
        let long = "1".repeat(66);
        for value in ["", "1e5", "1.", ".5", "1 ", "0x1", "--1", &long].map(|text| Value::Decimal(text.into())) {
            assert_eq!(literal(value.clone()), None, "{value:?}");
        }
        for value in [Value::Float(f64::NAN), Value::Float(f64::INFINITY)] {
            assert_eq!(literal(value.clone()), None, "{value:?}");
        }
        let among = marks("1 / ?", false);
        for value in [Value::Decimal("1.5".into()), Value::Text("a".into()), Value::Bytes(vec![1])] {
            assert_eq!(inlined("1 / ?", &among, std::slice::from_ref(&value)), None, "{value:?} is calculated with");
        }
        assert_eq!(inlined("1 / ?", &among, &[Value::Unsigned(7)]).as_deref(), Some("1 / CAST(7 AS UNSIGNED)"));
        assert_eq!(inlined("1 / ?", &among, &[Value::Signed(7)]).as_deref(), Some("1 / 7"));
    }

    #[test]
    fn each_value_stands_where_its_mark_stood() {
        let sql = "UPDATE t SET a = ?, b = '?' WHERE c = ?";
        let marks = [sql.find('?').unwrap(), sql.rfind('?').unwrap()].map(|at| Mark { at, is_alone: true });
        let params = [Value::Signed(-1), Value::Text("?'".into())];
        assert_eq!(
            inlined(sql, &marks, &params).as_deref(),
            Some("UPDATE t SET a = (-1), b = '?' WHERE c = _utf8mb4 x'3F27'")
        );
        assert_eq!(inlined(sql, &marks, &params[..1]), None, "too few values");
        let beside = Mark { at: marks[1].at - 1, is_alone: true };
        assert_eq!(inlined(sql, &[marks[0], beside], &params), None, "no mark stands there");
        assert_eq!(inlined(sql, &[marks[1], marks[0]], &params), None, "marks in another order");
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Signed),
            any::<u64>().prop_map(Value::Unsigned),
            any::<f64>().prop_map(Value::Float),
            any::<String>().prop_map(Value::Text),
            any::<String>().prop_map(Value::Date),
            any::<String>().prop_map(Value::Json),
            "[ -~]{0,20}".prop_map(Value::Text),
            "[-+0-9.e]{0,70}".prop_map(Value::Decimal),
            any::<Vec<u8>>().prop_map(Value::Bytes),
        ]
    }

    /// The only forms that a literal may have: what does not fit them might be read as something else.
    fn is_harmless(text: &str) -> bool {
        let quoted = |rest: &str| {
            rest.strip_suffix('\'')
                .is_some_and(|hex| hex.len() % 2 == 0 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        let number = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.starts_with(|first: char| first.is_ascii_digit())
                && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'-'))
                && !digits.contains("--")
        };
        if let Some(rest) = text.strip_prefix("_utf8mb4 x'").or_else(|| text.strip_prefix("_binary x'")) {
            return quoted(rest);
        }
        if let Some(rest) = text.strip_prefix('\'').or_else(|| text.strip_prefix("_binary '")) {
            let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'\'' && byte != b'\\';
            return rest.strip_suffix('\'').is_some_and(|rest| rest.bytes().all(plain));
        }
        if let Some(rest) = text.strip_prefix("CAST(") {
            return rest.strip_suffix(" AS UNSIGNED)").is_some_and(number);
        }
        let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        inner.map_or_else(|| number(text) && !text.starts_with('-'), number)
    }

    proptest! {
        #[test]
        fn no_byte_of_a_value_can_be_read_as_sql(value in values()) {
            if let Some(text) = literal(value) {
                prop_assert!(is_harmless(&text), "{}", text);
            }
        }

        #[test]
        fn a_float_is_the_same_when_it_is_read_again(number in any::<f64>()) {
            if let Some(text) = literal(Value::Float(number)) {
                let read: f64 = text.trim_matches(['(', ')']).parse().unwrap();
                prop_assert_eq!(read.to_bits(), number.to_bits());
            }
        }
    }
}
