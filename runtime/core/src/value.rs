//! The values that a plugin binds to a statement, and the types that a manifest declares for them.

use serde::Deserialize;

/// The declared type of a parameter. NULL is always allowed beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// A truth value.
    Boolean,
    /// A 64-bit signed integer.
    Signed,
    /// A 64-bit unsigned integer.
    Unsigned,
    /// A 64-bit float; never NaN or infinite.
    Float,
    /// An exact decimal as text, e.g. `-12.340`.
    Decimal,
    /// UTF-8 text.
    Text,
    /// Bytes.
    Bytes,
    /// `2026-11-29`.
    Date,
    /// `-838:59:59.000000`.
    Time,
    /// `2026-11-29 12:00:00.000000`, UTC.
    Datetime,
    /// A JSON text.
    Json,
}

/// One value, as the contract's `value` variant carries it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// An exact decimal as text.
    Decimal(String),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A date as text.
    Date(String),
    /// A time of day or duration as text.
    Time(String),
    /// A date and time in UTC as text.
    Datetime(String),
    /// A JSON text.
    Json(String),
}

impl ParamType {
    /// The name that a manifest uses for the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Signed => "signed",
            Self::Unsigned => "unsigned",
            Self::Float => "float",
            Self::Decimal => "decimal",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Date => "date",
            Self::Time => "time",
            Self::Datetime => "datetime",
            Self::Json => "json",
        }
    }
}

impl Value {
    /// The declared type that this value belongs to; `None` for NULL, which fits every one.
    #[must_use]
    pub fn param_type(&self) -> Option<ParamType> {
        Some(match self {
            Self::Null => return None,
            Self::Boolean(_) => ParamType::Boolean,
            Self::Signed(_) => ParamType::Signed,
            Self::Unsigned(_) => ParamType::Unsigned,
            Self::Float(_) => ParamType::Float,
            Self::Decimal(_) => ParamType::Decimal,
            Self::Text(_) => ParamType::Text,
            Self::Bytes(_) => ParamType::Bytes,
            Self::Date(_) => ParamType::Date,
            Self::Time(_) => ParamType::Time,
            Self::Datetime(_) => ParamType::Datetime,
            Self::Json(_) => ParamType::Json,
        })
    }

    /// The bytes that this value holds in memory, for the staging quota.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Boolean(_) => 1,
            Self::Signed(_) | Self::Unsigned(_) | Self::Float(_) => 8,
            Self::Decimal(text)
            | Self::Text(text)
            | Self::Date(text)
            | Self::Time(text)
            | Self::Datetime(text)
            | Self::Json(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Checks that the value fits the declared type and is well formed; the answer says what is wrong.
    ///
    /// # Errors
    /// A sentence for the plugin's author: another type than declared, or a text that is not of the type's form.
    pub fn check(&self, declared: ParamType) -> Result<(), String> {
        let Some(own) = self.param_type() else { return Ok(()) };
        if own != declared {
            return Err(format!("is {} where the manifest declares {}", own.name(), declared.name()));
        }
        let well_formed = match self {
            Self::Float(number) => number.is_finite(),
            Self::Decimal(text) => is_decimal(text),
            Self::Date(text) => is_date(text),
            Self::Time(text) => is_time(text),
            Self::Datetime(text) => {
                text.split_once(' ').is_some_and(|(date, time)| is_date(date) && is_clock(time, 23))
            }
            Self::Json(text) => crate::json::Json::parse(text.as_bytes()).is_ok(),
            Self::Null | Self::Boolean(_) | Self::Signed(_) | Self::Unsigned(_) | Self::Text(_) | Self::Bytes(_) => {
                true
            }
        };
        if well_formed { Ok(()) } else { Err(format!("is not a well-formed {}", own.name())) }
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole) && all_digits(fraction)
}

fn number(text: &str, digits: std::ops::RangeInclusive<usize>, max: u32) -> bool {
    digits.contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|n| n <= max)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(y), Some(m), Some(d)) = (parts.next(), parts.next(), parts.next()) else { return false };
    if !(number(y, 4..=4, 9999) && number(m, 2..=2, 12) && number(d, 2..=2, 31)) {
        return false;
    }
    let (Ok(y), Ok(m), Ok(d)) = (y.parse(), m.parse(), d.parse()) else { return false };
    jiff::civil::Date::new(y, m, d).is_ok()
}

fn is_clock(text: &str, hours_max: u32) -> bool {
    let (clock, fraction) = text.split_once('.').map_or((text, None), |(c, f)| (c, Some(f)));
    let mut parts = clock.splitn(3, ':');
    let (Some(h), Some(m), Some(s)) = (parts.next(), parts.next(), parts.next()) else { return false };
    number(h, 2..=3, hours_max)
        && number(m, 2..=2, 59)
        && number(s, 2..=2, 59)
        && fraction.is_none_or(|f| number(f, 1..=6, 999_999))
}

fn is_time(text: &str) -> bool {
    is_clock(text.strip_prefix('-').unwrap_or(text), 838)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_takes_null_and_no_other_type() {
        assert_eq!(Value::Null.check(ParamType::Date), Ok(()));
        assert_eq!(
            Value::Signed(1).check(ParamType::Unsigned),
            Err("is signed where the manifest declares unsigned".to_owned())
        );
    }

    #[test]
    fn texts_of_numbers_and_times_are_checked_for_their_form() {
        let good = [
            Value::Decimal("-12.340".into()),
            Value::Date("2024-02-29".into()),
            Value::Time("-838:59:59.000000".into()),
            Value::Datetime("2026-11-29 12:00:00.000000".into()),
            Value::Json("{\"a\":1}".into()),
        ];
        for value in good {
            assert_eq!(value.check(value.param_type().unwrap()), Ok(()), "{value:?}");
        }
        let bad = [
            Value::Decimal("1e3".into()),
            Value::Decimal("1.".into()),
            Value::Decimal(String::new()),
            Value::Date("2026-02-29".into()),
            Value::Date("2026-2-09".into()),
            Value::Time("839:00:00".into()),
            Value::Datetime("2026-11-29T12:00:00Z".into()),
            Value::Datetime("2026-11-29 24:00:00".into()),
            Value::Json("{".into()),
            Value::Float(f64::NAN),
        ];
        for value in bad {
            assert!(value.check(value.param_type().unwrap()).is_err(), "{value:?}");
        }
    }
}
