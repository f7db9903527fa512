//! The producer's word about when something happened.

use jiff::Timestamp;
use serde::Deserialize;

use crate::identify::{Poison, PoisonCode};

/// `envelope.time_format`: how a message's time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeFormat {
    /// `2026-11-29T12:00:00Z`, with any offset.
    #[default]
    Rfc3339,
    /// Seconds since 1970.
    UnixS,
    /// Milliseconds since 1970.
    UnixMs,
}

impl TimeFormat {
    /// The name that the configuration uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc3339 => "rfc3339",
            Self::UnixS => "unix-s",
            Self::UnixMs => "unix-ms",
        }
    }
}

/// A moment, in both forms that are kept of it.
pub(super) struct Moment {
    /// RFC 3339, UTC, microseconds.
    pub(super) text: String,
    /// Microseconds since 1970.
    pub(super) us: i64,
}

/// 1000-01-01: the first moment that MySQL's DATETIME is defined for (8.4 manual, 13.2.2).
const FIRST_US: i64 = -30_610_224_000_000_000;

/// Reads a time. A leap second is taken as the second before it.
pub(super) fn read(text: &str, format: TimeFormat) -> Result<Moment, Poison> {
    let whole = |scale: i64| text.parse::<i64>().ok()?.checked_mul(scale);
    let us = match format {
        TimeFormat::Rfc3339 => text.parse::<Timestamp>().ok().map(|moment| floor_us(&moment)),
        TimeFormat::UnixS => whole(1_000_000),
        TimeFormat::UnixMs => whole(1_000),
    };
    let moment = us.filter(|us| *us >= FIRST_US).and_then(|us| Timestamp::from_microsecond(us).ok().map(|t| (us, t)));
    let Some((us, moment)) = moment else {
        let shown: String = text.chars().take(64).collect();
        let text = format!("the time {shown:?} is not {} between the years 1000 and 9999", format.name());
        return Err(Poison::new(PoisonCode::BadTime, text));
    };
    Ok(Moment { text: format!("{moment:.6}"), us })
}

/// Before 1970, too, what is finer than a microsecond is cut off towards the past.
fn floor_us(moment: &Timestamp) -> i64 {
    i64::try_from(moment.as_nanosecond().div_euclid(1_000)).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rfc3339(text: &str) -> Option<(String, i64)> {
        read(text, TimeFormat::Rfc3339).ok().map(|moment| (moment.text, moment.us))
    }

    #[test]
    fn a_time_is_kept_in_utc_with_microseconds() {
        let expected = Some(("2026-11-29T12:00:00.123456Z".to_owned(), 1_795_953_600_123_456));
        assert_eq!(rfc3339("2026-11-29T12:00:00.123456Z"), expected);
        assert_eq!(rfc3339("2026-11-29T20:00:00.123456999+08:00"), expected);
        assert_eq!(rfc3339("2026-11-29t12:00:00.123456z"), expected);
        assert_eq!(rfc3339("1969-12-31T23:59:59.9999999Z"), Some(("1969-12-31T23:59:59.999999Z".to_owned(), -1)));
        assert_eq!(rfc3339("2016-12-31T23:59:60Z"), rfc3339("2016-12-31T23:59:59Z"));
    }

    #[test]
    fn unix_times_are_whole_numbers_of_their_unit() {
        let us = |text, format| read(text, format).ok().map(|moment| moment.us);
        assert_eq!(us("1795953600", TimeFormat::UnixS), Some(1_795_953_600_000_000));
        assert_eq!(us("-1", TimeFormat::UnixMs), Some(-1_000));
        for wrong in ["", "1.5", "1e3", "abc", "9223372036854775807", "292277026596"] {
            assert_eq!(us(wrong, TimeFormat::UnixS), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_that_no_store_could_hold_is_poison() {
        assert_eq!(rfc3339("1000-01-01T00:00:00Z").map(|(_, us)| us), Some(FIRST_US));
        for wrong in
            ["0999-12-31T23:59:59.999999Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z"]
        {
            assert_eq!(rfc3339(wrong), None, "{wrong}");
        }
        assert_eq!(
            rfc3339("9999-12-30T22:00:00Z").map(|(text, _)| text).as_deref(),
            Some("9999-12-30T22:00:00.000000Z")
        );
    }

    #[test]
    fn a_time_without_a_zone_or_of_another_form_is_poison() {
        for wrong in
            ["2026-11-29T12:00:00", "2026-11-29", "2026-02-29T12:00:00Z", "29.11.2026", "1795953600", "", "now"]
        {
            let poison = read(wrong, TimeFormat::Rfc3339).err().map(|poison| poison.code);
            assert_eq!(poison, Some(PoisonCode::BadTime), "{wrong}");
        }
    }
}
