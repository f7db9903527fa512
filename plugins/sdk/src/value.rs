//! Values of statements and queries, and what Rust gives for them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

pub use crate::bindings::oncebox::handler::types::Value;

/// NULL for a parameter of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Null;

/// What a parameter declared with a type takes: a value of that type, borrowed or owned, an `Option` of it, or [`Null`].
///
/// `T` is `bool`, `i64` (signed), `u64` (unsigned), `f64` (float), [`Decimal`], `str` (text), `[u8]` (bytes), [`Date`],
/// [`Time`], [`Datetime`] or [`Json`]. Other types are not converted on the way: an `i32` is written
/// `i64::from(number)`, so that what reaches the database is what stands in the code.
#[diagnostic::on_unimplemented(
    message = "a parameter of type `{T}` does not take `{Self}`",
    label = "not a `{T}`, an `Option` of it, or `Null`"
)]
pub trait Arg<T: ?Sized> {
    /// The value as it crosses to the host.
    fn into_value(self) -> Value;
}

impl<T: ?Sized> Arg<T> for Null {
    fn into_value(self) -> Value {
        Value::Null
    }
}

macro_rules! arg {
    ($declared:ty: $case:ident, $($given:ty),+) => {
        $(
            impl Arg<$declared> for $given {
                fn into_value(self) -> Value {
                    Value::$case(self.into())
                }
            }
        )+
    };
    (optional $declared:ty, $($given:ty),+) => {
        $(
            impl Arg<$declared> for Option<$given> {
                fn into_value(self) -> Value {
                    self.map_or(Value::Null, <$given as Arg<$declared>>::into_value)
                }
            }
        )+
    };
}

// One owned type for each number, so that a literal finds its type, and one optional one, so that `None` does.
arg!(bool: Boolean, bool);
arg!(optional bool, bool);
arg!(i64: Signed, i64);
arg!(optional i64, i64);
arg!(u64: Unsigned, u64);
arg!(optional u64, u64);
arg!(f64: Float, f64);
arg!(optional f64, f64);
arg!(str: Text, &str, &String, String);
arg!(optional str, &str);
arg!([u8]: Bytes, &[u8], Vec<u8>);
arg!(optional[u8], &[u8]);

impl Arg<[u8]> for &Vec<u8> {
    fn into_value(self) -> Value {
        Value::Bytes(self.clone())
    }
}

impl<const N: usize> Arg<[u8]> for &[u8; N] {
    fn into_value(self) -> Value {
        Value::Bytes(self.to_vec())
    }
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(
            /// The text, in the form above; the host checks it.
            pub String,
        );

        as_text!($name);
    };
}

macro_rules! as_text {
    ($name:ident) => {
        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl From<&$name> for String {
            fn from(value: &$name) -> Self {
                value.0.clone()
            }
        }

        arg!($name: $name, $name, &$name);
        arg!(optional $name, $name);
    };
}

text_newtype!(
    /// A date: `2026-11-29`.
    Date
);
text_newtype!(
    /// A time of day or a duration: `-838:59:59.000000`.
    Time
);
text_newtype!(
    /// A date and time in UTC: `2026-11-29 12:00:00.000000`.
    Datetime
);
text_newtype!(
    /// A JSON text.
    Json
);

/// An exact decimal, kept as its text: `-12.340`. For money, which a float would round.
///
/// In JSON it is read from a number or a text, digit for digit, and written as a text. It is carried, not calculated
/// with: let the statement do that, where the column's own type rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Decimal(String);

as_text!(Decimal);

/// A text that is not an exact decimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseDecimalError(String);

impl FromStr for Decimal {
    type Err = ParseDecimalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if all_digits(whole) && all_digits(fraction) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseDecimalError(text.to_owned()))
        }
    }
}

impl fmt::Display for ParseDecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an exact decimal such as -12.340", self.0)
    }
}

impl std::error::Error for ParseDecimalError {}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The raw text: any number type of serde's would round it.
        let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if text.starts_with('"') {
            let inner: String = serde_json::from_str(text).map_err(D::Error::custom)?;
            inner.parse().map_err(D::Error::custom)
        } else {
            text.parse().map_err(D::Error::custom)
        }
    }
}

impl Value {
    /// The name that the manifest uses for the value's type; `null` for NULL.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Signed(_) => "signed",
            Self::Unsigned(_) => "unsigned",
            Self::Float(_) => "float",
            Self::Decimal(_) => "decimal",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Date(_) => "date",
            Self::Time(_) => "time",
            Self::Datetime(_) => "datetime",
            Self::Json(_) => "json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<T: ?Sized>(argument: impl Arg<T>) -> Value {
        argument.into_value()
    }

    #[test]
    fn an_argument_keeps_the_declared_type_and_null_fits_every_one() {
        assert_eq!(value::<i64>(-3), Value::Signed(-3));
        assert_eq!(value::<u64>(3), Value::Unsigned(3));
        assert_eq!(value::<str>(&"o-1".to_owned()), Value::Text("o-1".to_owned()));
        assert_eq!(value::<[u8]>(b"\x00\xff"), Value::Bytes(vec![0, 255]));
        assert_eq!(value::<Date>(Date("2026-11-29".to_owned())), Value::Date("2026-11-29".to_owned()));
        assert_eq!(value::<u64>(None), Value::Null);
        assert_eq!(value::<str>(None), Value::Null);
        assert_eq!(value::<Decimal>(Null), Value::Null);
    }

    #[test]
    fn a_decimal_keeps_every_digit_of_a_json_number_or_text() {
        let read = |json: &str| serde_json::from_str::<Decimal>(json).map(String::from).map_err(|e| e.to_string());
        assert_eq!(read("12.340").as_deref(), Ok("12.340"));
        assert_eq!(read("123456789012345678901234567890.10").as_deref(), Ok("123456789012345678901234567890.10"));
        assert_eq!(read("\"-0.5\"").as_deref(), Ok("-0.5"));
        assert_eq!(read("1e3"), Err("`1e3` is not an exact decimal such as -12.340".to_owned()));
        assert!(read("true").is_err());
    }

    #[test]
    fn a_decimal_is_digits_with_at_most_one_point_between_them() {
        for bad in ["", "-", ".5", "5.", "1.2.3", "+1", "1 "] {
            assert!(bad.parse::<Decimal>().is_err(), "{bad:?}");
        }
    }
}
