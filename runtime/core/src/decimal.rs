//! The exact value of a JSON number, without rounding and without expanding it.
//!
//! `1`, `1.0` and `1e0` are one value; `1e400` and `1e-999999999` cost no more than their own digits.
//! Nothing here may go through a float.

use std::borrow::Cow;

/// A number as `±digits × 10^exponent`, in the one form that equal numbers share.
///
/// The digits neither begin nor end with a zero; zero has no digits, no sign and the exponent 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal<'a> {
    negative: bool,
    digits: Cow<'a, str>,
    exponent: i64,
}

/// Why a number has no [`Decimal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is not a number of RFC 8259.
    #[error("is not a JSON number")]
    NotANumber,
    /// The exponent in canonical form is beyond 64 bits.
    #[error("has an exponent beyond 64 bits")]
    ExponentTooLarge,
}

impl<'a> Decimal<'a> {
    /// Reads the text of a JSON number (RFC 8259, section 6).
    ///
    /// # Errors
    /// [`DecimalError`]: another text, or an exponent that would not fit `i64`.
    pub fn parse(text: &'a str) -> Result<Self, DecimalError> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) =
            unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(mantissa, exponent)| (mantissa, Some(exponent)));
        let (whole, fraction) =
            mantissa.split_once('.').map_or((mantissa, None), |(whole, fraction)| (whole, Some(fraction)));
        let well_formed = is_digits(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(is_digits)
            && exponent.is_none_or(|text| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
        if !well_formed {
            return Err(DecimalError::NotANumber);
        }
        let fraction = fraction.unwrap_or("");
        let digits = significant(whole, fraction);
        if digits.is_empty() {
            return Ok(Self { negative: false, digits, exponent: 0 });
        }
        let written = exponent.map_or(Some(0), parse_exponent).ok_or(DecimalError::ExponentTooLarge)?;
        let exponent = shifted(written, whole, fraction).ok_or(DecimalError::ExponentTooLarge)?;
        Ok(Self { negative, digits, exponent })
    }

    /// Whether the number is below zero; never true of zero itself.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The significant digits; empty for zero.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// The power of ten that the digits, read as one integer, are multiplied by.
    #[must_use]
    pub fn exponent(&self) -> i64 {
        self.exponent
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The digits of both parts without the zeros at their two ends; borrowed where they stand in one piece.
fn significant<'a>(whole: &'a str, fraction: &'a str) -> Cow<'a, str> {
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return Cow::Borrowed(whole.trim_matches('0'));
    }
    let whole = whole.trim_start_matches('0');
    if whole.is_empty() {
        return Cow::Borrowed(fraction.trim_start_matches('0'));
    }
    Cow::Owned(format!("{whole}{fraction}"))
}

/// `None` when it does not fit; leading zeros do not count against it.
fn parse_exponent(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The written exponent moved to where the last significant digit stands.
fn shifted(written: i64, whole: &str, fraction: &str) -> Option<i64> {
    let fraction = fraction.trim_end_matches('0');
    let places = if fraction.is_empty() {
        i64::try_from(whole.len() - whole.trim_end_matches('0').len()).ok()?
    } else {
        i64::try_from(fraction.len()).ok()?.checked_neg()?
    };
    written.checked_add(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (bool, String, i64) {
        let decimal = Decimal::parse(text).unwrap();
        (decimal.is_negative(), decimal.digits().to_owned(), decimal.exponent())
    }

    #[test]
    fn other_spellings_of_a_number_have_one_form() {
        for text in ["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000E+0", "0.00001e5", "1e00000000000000000000000000"] {
            assert_eq!(parts(text), (false, "1".to_owned(), 0), "{text}");
        }
        for text in ["-12.340", "-1234e-2", "-0.1234E2", "-12340e-3"] {
            assert_eq!(parts(text), (true, "1234".to_owned(), -2), "{text}");
        }
        assert_eq!(parts("100"), (false, "1".to_owned(), 2));
        assert_eq!(parts("101"), (false, "101".to_owned(), 0));
    }

    #[test]
    fn every_spelling_of_zero_is_zero_without_a_sign() {
        for text in ["0", "-0", "0.0", "-0.000", "0e5", "-0E-99999999999999999999999"] {
            assert_eq!(parts(text), (false, String::new(), 0), "{text}");
        }
    }

    #[test]
    fn nothing_is_rounded_or_expanded() {
        assert_eq!(parts("1e400"), (false, "1".to_owned(), 400));
        assert_eq!(parts("1e-999999999"), (false, "1".to_owned(), -999_999_999));
        assert_eq!(parts("9007199254740993"), (false, "9007199254740993".to_owned(), 0));
        assert_eq!(parts("0.30000000000000004"), (false, "30000000000000004".to_owned(), -17));
    }

    #[test]
    fn an_exponent_at_the_end_of_64_bits_is_kept_and_one_past_it_is_refused() {
        assert_eq!(parts("1e9223372036854775807"), (false, "1".to_owned(), i64::MAX));
        assert_eq!(parts("1e-9223372036854775808"), (false, "1".to_owned(), i64::MIN));
        assert_eq!(parts("0.1e-9223372036854775807"), (false, "1".to_owned(), i64::MIN));
        for text in
            ["1e9223372036854775808", "1e-9223372036854775809", "10e9223372036854775807", "0.1e-9223372036854775808"]
        {
            assert_eq!(Decimal::parse(text), Err(DecimalError::ExponentTooLarge), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_json_number_is_refused() {
        for text in
            ["", "-", "+1", "01", "-01", "1.", ".1", "1e", "1e+", "1e+-1", "1.e1", "0x1", "NaN", "Infinity", "1 ", "١"]
        {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text}");
        }
    }
}
