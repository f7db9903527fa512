//! From a column of any type to a value, without loss. By the type's name where that is sure, by the value where it is
//! not (a text in `utf8mb4_bin` calls itself VARBINARY).

use oncebox_core::{failure::Class, value::Value};
use sqlx::{Column as _, Row as _, TypeInfo as _, ValueRef as _, mysql::MySqlRow};

use crate::store::StatementError;

/// The value at `at`, in the binary protocol.
pub(super) fn decoded(row: &MySqlRow, at: usize) -> Result<Value, StatementError> {
    let column = row.column(at);
    let kind = column.type_info().name();
    let value = match kind {
        "DATE" | "DATETIME" | "TIMESTAMP" | "TIME" => temporal(row, at, kind),
        _ if row.try_get_raw(at).map_err(|error| unread(kind, &error))?.is_null() => Ok(Value::Null),
        "FLOAT" => row.try_get::<f32, _>(at).map(single),
        "DOUBLE" => row.try_get::<f64, _>(at).map(Value::Float),
        "DECIMAL" => row.try_get_unchecked::<String, _>(at).map(Value::Decimal),
        "JSON" => row.try_get_unchecked::<String, _>(at).map(Value::Json),
        "GEOMETRY" => row.try_get_unchecked::<Vec<u8>, _>(at).map(Value::Bytes),
        "BIT" | "YEAR" => row.try_get::<u64, _>(at).map(Value::Unsigned),
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => {
            // A TINYINT(1) UNSIGNED calls itself BOOLEAN.
            let unsigned = |_| row.try_get::<u64, _>(at).map(Value::Unsigned);
            row.try_get::<i64, _>(at).map(Value::Signed).or_else(unsigned)
        }
        _ if kind.ends_with("UNSIGNED") => row.try_get::<u64, _>(at).map(Value::Unsigned),
        // CHAR, TEXT, ENUM, SET, BINARY, BLOB and their kin.
        _ => {
            let bytes = |_| row.try_get_unchecked::<Vec<u8>, _>(at).map(Value::Bytes);
            row.try_get::<String, _>(at).map(Value::Text).or_else(bytes)
        }
    };
    value.map_err(|error| unread(kind, &error))
}

fn unread(kind: &str, error: &sqlx::Error) -> StatementError {
    StatementError {
        class: Class::Data,
        number: Some(1366),
        code: "wrong-type",
        message: format!("a column of type {kind} cannot be read: {error}"),
    }
}

/// As the server shows it: 1.1 and not 1.100000023841858, which is the same number of a FLOAT.
fn single(number: f32) -> Value {
    Value::Float(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
}

/// Dates and times as text. A zero date (written under another sql_mode) is one, and not NULL, as the driver has it.
fn temporal(row: &MySqlRow, at: usize, kind: &str) -> Result<Value, sqlx::Error> {
    let bytes: &[u8] = match row.try_get_unchecked(at) {
        Ok(bytes) => bytes,
        Err(error) => {
            let absent = row.try_get_unchecked::<Option<&[u8]>, _>(at).is_ok_and(|bytes| bytes.is_none());
            return if absent { Ok(Value::Null) } else { Err(error) };
        }
    };
    let value = match kind {
        "DATE" => date(bytes).map(|(date, _)| Value::Date(date)),
        "TIME" => time(bytes).map(Value::Time),
        _ => date(bytes).map(|(date, clock)| Value::Datetime(format!("{date} {clock}"))),
    };
    value.ok_or_else(|| sqlx::Error::Decode("unknown form of a date or time".into()))
}

/// Date and time of day of the binary protocol: a length of 0, 4, 7 or 11, then as much of year, month, day, hour,
/// minute, second, microseconds
/// (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>).
fn date(bytes: &[u8]) -> Option<(String, String)> {
    let (length, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*length) || ![0, 4, 7, 11].contains(length) {
        return None;
    }
    let mut all = [0u8; 11];
    all.get_mut(..rest.len())?.copy_from_slice(rest);
    let [y0, y1, month, day, hour, minute, second, m0, m1, m2, m3] = all;
    let (year, micros) = (u16::from_le_bytes([y0, y1]), u32::from_le_bytes([m0, m1, m2, m3]));
    Some((format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}.{micros:06}")))
}

/// A duration of the binary protocol: a length of 0, 8 or 12, then sign, days, hour, minute, second, microseconds.
fn time(bytes: &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*length) || ![0, 8, 12].contains(length) {
        return None;
    }
    let mut all = [0u8; 12];
    all.get_mut(..rest.len())?.copy_from_slice(rest);
    let [sign, d0, d1, d2, d3, hour, minute, second, m0, m1, m2, m3] = all;
    let days = u32::from_le_bytes([d0, d1, d2, d3]);
    let hours = days.checked_mul(24)?.checked_add(u32::from(hour))?;
    let micros = u32::from_le_bytes([m0, m1, m2, m3]);
    let sign = if sign == 1 { "-" } else { "" };
    Some(format!("{sign}{hours:02}:{minute:02}:{second:02}.{micros:06}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_of_the_binary_protocol_are_written_out_whole() {
        let at = |text: &str, clock: &str| Some((text.to_owned(), clock.to_owned()));
        let full = [11, 0xea, 0x07, 11, 29, 12, 1, 2, 0x40, 0xe2, 0x01, 0];
        assert_eq!(date(&full), at("2026-11-29", "12:01:02.123456"));
        assert_eq!(date(&[7, 0xea, 0x07, 11, 29, 12, 1, 2]), at("2026-11-29", "12:01:02.000000"));
        assert_eq!(date(&[4, 0xea, 0x07, 0, 1]), at("2026-00-01", "00:00:00.000000"));
        assert_eq!(date(&[0]), at("0000-00-00", "00:00:00.000000"));
        for wrong in [&[][..], &[4, 1], &[5, 1, 2, 3, 4, 5]] {
            assert_eq!(date(wrong), None, "{wrong:?}");
        }
        let longest = [12, 1, 34, 0, 0, 0, 22, 59, 59, 0, 0, 0, 0];
        assert_eq!(time(&longest).as_deref(), Some("-838:59:59.000000"));
        assert_eq!(time(&[8, 0, 0, 0, 0, 0, 1, 2, 3]).as_deref(), Some("01:02:03.000000"));
        assert_eq!(time(&[0]).as_deref(), Some("00:00:00.000000"));
        assert_eq!(time(&[3, 0, 0, 0]), None);
    }

    #[test]
    fn a_single_precision_number_is_what_the_server_shows() {
        assert_eq!(single(1.1), Value::Float(1.1));
        assert_eq!(single(-0.25), Value::Float(-0.25));
        assert_eq!(single(f32::MAX), Value::Float(3.4028235e38));
        assert_eq!(single(16_777_216.0), Value::Float(16_777_216.0));
    }
}
