//! Reading columns of our own tables, and times on their way there and back.

use jiff::{Timestamp, civil, tz::Offset};
use sqlx::{Row as _, mysql::MySqlRow};

use crate::store::StoreError;

/// A row of one of our own tables, read column by column; what does not read is a damaged row, with the table's name.
pub(super) struct Columns<'r> {
    table: &'static str,
    row: &'r MySqlRow,
}

impl<'r> Columns<'r> {
    /// A row of `table`.
    pub(super) fn of(table: &'static str, row: &'r MySqlRow) -> Self {
        Self { table, row }
    }

    /// The error of a column that says something impossible.
    pub(super) fn corrupt(&self, message: impl Into<String>) -> StoreError {
        StoreError::Corrupt { table: self.table, message: message.into() }
    }

    fn wrong(&self, at: usize, message: &str) -> StoreError {
        self.corrupt(format!("column {}: {message}", at + 1))
    }

    fn is_null(&self, at: usize) -> Result<bool, StoreError> {
        let bytes: Result<Option<&[u8]>, _> = self.row.try_get_unchecked(at);
        bytes.map(|bytes| bytes.is_none()).map_err(|error| self.wrong(at, &error.to_string()))
    }

    fn optional<T>(
        &self,
        at: usize,
        read: impl FnOnce(&Self, usize) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.is_null(at)? { Ok(None) } else { read(self, at).map(Some) }
    }

    /// An integer of any size and sign that fits the wanted type.
    pub(super) fn integer<T: TryFrom<i128>>(&self, at: usize) -> Result<T, StoreError> {
        let wide = integer(self.row, at).map_err(|error| self.wrong(at, &error.to_string()))?;
        T::try_from(wide).map_err(|_| self.wrong(at, &format!("{wide} is out of range")))
    }

    /// The same, or NULL.
    pub(super) fn integer_or_null<T: TryFrom<i128>>(&self, at: usize) -> Result<Option<T>, StoreError> {
        self.optional(at, Self::integer)
    }

    /// Bytes.
    pub(super) fn bytes(&self, at: usize) -> Result<&'r [u8], StoreError> {
        self.row.try_get_unchecked(at).map_err(|error| self.wrong(at, &error.to_string()))
    }

    /// The same, or NULL.
    pub(super) fn bytes_or_null(&self, at: usize) -> Result<Option<&'r [u8]>, StoreError> {
        self.optional(at, Self::bytes)
    }

    /// Text in UTF-8, whatever its column calls itself.
    pub(super) fn text(&self, at: usize) -> Result<String, StoreError> {
        let text = std::str::from_utf8(self.bytes(at)?);
        text.map(str::to_owned).map_err(|_| self.wrong(at, "is not UTF-8"))
    }

    /// The same, or NULL.
    pub(super) fn text_or_null(&self, at: usize) -> Result<Option<String>, StoreError> {
        self.optional(at, Self::text)
    }

    /// A DATETIME(6) as microseconds since 1970.
    pub(super) fn time(&self, at: usize) -> Result<i64, StoreError> {
        micros(self.bytes(at)?).ok_or_else(|| self.wrong(at, "is no date and time"))
    }

    /// The same, or NULL.
    pub(super) fn time_or_null(&self, at: usize) -> Result<Option<i64>, StoreError> {
        self.optional(at, Self::time)
    }
}

fn integer(row: &MySqlRow, at: usize) -> Result<i128, sqlx::Error> {
    row.try_get::<i64, _>(at).map(i128::from).or_else(|_| row.try_get::<u64, _>(at).map(i128::from))
}

/// An unsigned integer, whatever its sign is called.
pub(super) fn unsigned(row: &MySqlRow, at: usize) -> Result<u64, sqlx::Error> {
    u64::try_from(integer(row, at)?).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Microseconds since 1970 as DATETIME(6) takes it. A time before the year 1 or after 9999 becomes the nearest one.
pub(super) fn datetime(us: i64) -> String {
    let first = civil::date(1, 1, 1).at(0, 0, 0, 0);
    let time = Timestamp::from_microsecond(us).map_or_else(
        |_| if us < 0 { first } else { civil::DateTime::MAX },
        |time| Offset::UTC.to_datetime(time).max(first),
    );
    let (date, clock) = (time.date(), time.time());
    // Several for each event: a pattern would be read again each time.
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
        date.year(),
        date.month(),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.subsec_nanosecond() / 1_000
    )
}

/// A DATE, DATETIME or TIMESTAMP of the binary protocol, its length byte included
/// (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>).
pub(super) fn civil_of(bytes: &[u8]) -> Option<civil::DateTime> {
    let (date, time) = match bytes {
        [4, date @ ..] if date.len() == 4 => (date, &[0u8; 7][..]),
        [7, rest @ ..] if rest.len() == 7 => rest.split_at(4),
        [11, rest @ ..] if rest.len() == 11 => rest.split_at(4),
        _ => return None,
    };
    let [low, high, month, day] = *date else { return None };
    let (clock, micros) = time.split_at_checked(3)?;
    let [hour, minute, second] = *clock else { return None };
    let micros = micros.get(..4).map_or(0, |m| i32::from_le_bytes([m[0], m[1], m[2], m[3]]));
    let small = |byte: u8| i8::try_from(byte).ok();
    let year = i16::try_from(u16::from_le_bytes([low, high])).ok()?;
    civil::DateTime::new(
        year,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        micros.checked_mul(1_000)?,
    )
    .ok()
}

/// The same as microseconds since 1970.
fn micros(bytes: &[u8]) -> Option<i64> {
    Offset::UTC.to_timestamp(civil_of(bytes)?).ok().map(|time| time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_microseconds_and_kept_within_what_the_column_takes() {
        for (us, text) in [
            (0, "1970-01-01 00:00:00.000000"),
            (1, "1970-01-01 00:00:00.000001"),
            (-1, "1969-12-31 23:59:59.999999"),
            (1_795_953_600_123_456, "2026-11-29 12:00:00.123456"),
            (-30_610_224_000_000_000, "1000-01-01 00:00:00.000000"),
            (i64::MIN, "0001-01-01 00:00:00.000000"),
            (i64::MAX, "9999-12-31 23:59:59.999999"),
        ] {
            assert_eq!(datetime(us), text, "{us}");
        }
    }

    #[test]
    fn a_time_of_the_binary_protocol_is_read_to_the_microsecond() {
        let full = [11, 0xea, 0x07, 11, 29, 12, 0, 0, 0x40, 0xe2, 0x01, 0];
        assert_eq!(micros(&full), Some(1_795_953_600_123_456));
        assert_eq!(micros(&[7, 0xb2, 0x07, 1, 1, 0, 0, 1]), Some(1_000_000));
        assert_eq!(micros(&[4, 0xb2, 0x07, 1, 2]), Some(86_400_000_000));
        for wrong in [&[][..], &[0], &[4, 1], &[11, 0, 0, 0, 0], &[7, 0xb2, 0x07, 13, 1, 0, 0, 0]] {
            assert_eq!(micros(wrong), None, "{wrong:?}");
        }
    }
}
