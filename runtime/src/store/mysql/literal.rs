//! Values written into a statement's text, so that many statements go in one packet.
//!
//! Nothing of a value can be read as SQL: texts and bytes are written as hexadecimal digits, which is also the same under
//! every SQL mode and character set, and numbers as the digits that we make of them ourselves. Each literal has the type
//! that the value would have been bound with, so that a statement means the same both ways. For a decimal there is none:
//! MySQL gives a bound one more digits behind the point than it has, and divides by those.

use std::fmt::Write as _;

use oncebox_core::value::Value;

/// The text with a literal for each `?`. `None`: it cannot be written so, and has to be prepared.
pub(super) fn inlined(sql: &str, marks: &[usize], params: &[Value]) -> Option<String> {
    if marks.len() != params.len() {
        return None;
    }
    let mut text = String::with_capacity(sql.len() + params.iter().map(|value| 2 * value.bytes() + 24).sum::<usize>());
    let mut rest = 0;
    for (&mark, value) in marks.iter().zip(params) {
        let before = sql.get(rest..mark)?;
        if sql.as_bytes().get(mark) != Some(&b'?') {
            return None;
        }
        text.push_str(before);
        push(&mut text, value)?;
        rest = mark + 1;
    }
    text.push_str(sql.get(rest..)?);
    Some(text)
}

fn push(text: &mut String, value: &Value) -> Option<()> {
    match value {
        Value::Null => text.push_str("NULL"),
        Value::Boolean(flag) => text.push(if *flag { '1' } else { '0' }),
        // In brackets: behind a minus a second one would begin a comment.
        Value::Signed(number) if *number < 0 => write!(text, "({number})").ok()?,
        Value::Signed(number) => write!(text, "{number}").ok()?,
        // A small one would be signed otherwise, and calculate in another way.
        Value::Unsigned(number) => write!(text, "CAST({number} AS UNSIGNED)").ok()?,
        Value::Float(number) if !number.is_finite() => return None,
        Value::Float(number) if number.is_sign_negative() => write!(text, "({number:e})").ok()?,
        Value::Float(number) => write!(text, "{number:e}").ok()?,
        Value::Decimal(_) => return None,
        Value::Text(value) | Value::Date(value) | Value::Time(value) | Value::Datetime(value) | Value::Json(value) => {
            push_hex(text, "_utf8mb4", value.as_bytes());
        }
        // Said to be a string: hexadecimal digits alone may also be a number.
        Value::Bytes(value) => push_hex(text, "_binary", value),
    }
    Some(())
}

fn push_hex(text: &mut String, introducer: &str, bytes: &[u8]) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    text.push_str(introducer);
    text.push_str(" x'");
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text.push('\'');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn literal(value: Value) -> Option<String> {
        inlined("?", &[0], &[value])
    }

    #[test]
    fn each_type_has_its_own_literal() {
        for (value, expected) in [
            (Value::Null, "NULL"),
            (Value::Boolean(true), "1"),
            (Value::Boolean(false), "0"),
            (Value::Signed(7), "7"),
            (Value::Signed(i64::MIN), "(-9223372036854775808)"),
            (Value::Unsigned(u64::MAX), "CAST(18446744073709551615 AS UNSIGNED)"),
            (Value::Float(1.5), "1.5e0"),
            (Value::Float(-0.1), "(-1e-1)"),
            (Value::Float(f64::MAX), "1.7976931348623157e308"),
            (Value::Text("a'\\é".into()), "_utf8mb4 x'61275CC3A9'"),
            (Value::Text(String::new()), "_utf8mb4 x''"),
            (Value::Bytes(vec![0, 255]), "_binary x'00FF'"),
            (Value::Json("{}".into()), "_utf8mb4 x'7B7D'"),
        ] {
            assert_eq!(literal(value.clone()).as_deref(), Some(expected), "{value:?}");
        }
    }

    #[test]
    fn what_has_no_literal_is_prepared() {
        for value in [Value::Decimal("1.5".into()), Value::Float(f64::NAN), Value::Float(f64::INFINITY)] {
            assert_eq!(literal(value.clone()), None, "{value:?}");
        }
    }

    #[test]
    fn each_value_stands_where_its_mark_stood() {
        let sql = "UPDATE t SET a = ?, b = '?' WHERE c = ?";
        let marks = [sql.find('?').unwrap(), sql.rfind('?').unwrap()];
        let params = [Value::Signed(-1), Value::Text("?".into())];
        assert_eq!(
            inlined(sql, &marks, &params).as_deref(),
            Some("UPDATE t SET a = (-1), b = '?' WHERE c = _utf8mb4 x'3F'")
        );
        assert_eq!(inlined(sql, &marks, &params[..1]), None, "too few values");
        assert_eq!(inlined(sql, &[marks[0], marks[1] - 1], &params), None, "no mark stands there");
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
