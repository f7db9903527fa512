//! Answers of declared queries.

use std::fmt;

use crate::{Date, Datetime, Decimal, Json, Time, Value, bindings::oncebox::handler::db};

/// The rows that a query answered, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    query: &'static str,
    rows: db::Rows,
}

/// One row of a query's answer.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    query: &'static str,
    columns: &'a [String],
    values: &'a [Value],
}

/// A column that is not there, or holds another type than was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnError {
    query: &'static str,
    column: String,
    found: Option<&'static str>,
    wanted: &'static str,
}

impl Rows {
    pub(crate) fn new(query: &'static str, rows: db::Rows) -> Self {
        Self { query, rows }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.data.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.data.is_empty()
    }

    /// The first row.
    #[must_use]
    pub fn first(&self) -> Option<Row<'_>> {
        self.iter().next()
    }

    /// All rows, in the query's order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.data.iter().map(|values| Row { query: self.query, columns: &self.rows.columns, values })
    }
}

impl Row<'_> {
    /// Reads a column; `Option<T>` where it may be NULL.
    ///
    /// # Errors
    /// [`ColumnError`] when there is no such column or it does not hold a `T`; `?` makes it a rejection `bad-column`.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T, ColumnError> {
        let value = self.columns.iter().position(|name| name == column).and_then(|index| self.values.get(index));
        value.and_then(T::from_value).ok_or_else(|| ColumnError {
            query: self.query,
            column: column.to_owned(),
            found: value.map(Value::type_name),
            wanted: T::WANTED,
        })
    }
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { query, column, found, wanted } = self;
        match found {
            Some(found) => write!(f, "column `{column}` of query `{query}` is {found} where {wanted} is read"),
            None => write!(f, "query `{query}` has no column `{column}`"),
        }
    }
}

impl std::error::Error for ColumnError {}

/// A type that a column's value can be read as.
pub trait FromValue: Sized {
    /// The type's name in an error.
    const WANTED: &'static str;

    /// The value as this type; `None` when it is of another type or does not fit.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($type:ty, $wanted:literal, $($pattern:pat => $result:expr),+ $(,)?) => {
        impl FromValue for $type {
            const WANTED: &'static str = $wanted;

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $($pattern => $result,)+
                    // The contract freezes the variants; each type reads a few of them.
                    _ => None,
                }
            }
        }
    };
}

// Where the embedded store has no type of its own it answers texts and integers, which are read all the same.
from_value!(bool, "boolean", Value::Boolean(is) => Some(*is), Value::Signed(0) | Value::Unsigned(0) => Some(false),
    Value::Signed(1) | Value::Unsigned(1) => Some(true));
from_value!(i64, "signed", Value::Signed(number) => Some(*number), Value::Unsigned(number) => (*number).try_into().ok());
from_value!(u64, "unsigned", Value::Unsigned(number) => Some(*number), Value::Signed(number) => (*number).try_into().ok());
from_value!(f64, "float", Value::Float(number) => Some(*number));
from_value!(Decimal, "decimal", Value::Decimal(text) | Value::Text(text) => text.parse().ok(),
    Value::Signed(number) => Some((*number).into()), Value::Unsigned(number) => Some((*number).into()));
from_value!(String, "text", Value::Text(text) => Some(text.clone()));
from_value!(Vec<u8>, "bytes", Value::Bytes(bytes) => Some(bytes.clone()));
from_value!(Date, "date", Value::Date(text) | Value::Text(text) => Some(Self(text.clone())));
from_value!(Time, "time", Value::Time(text) | Value::Text(text) => Some(Self(text.clone())));
from_value!(Datetime, "datetime", Value::Datetime(text) | Value::Text(text) => Some(Self(text.clone())));
from_value!(Json, "json", Value::Json(text) | Value::Text(text) => Some(Self(text.clone())));

impl FromValue for Value {
    const WANTED: &'static str = "any value";

    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn from_value(value: &Value) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let columns = ["level", "balance", "closed_at"].map(str::to_owned).to_vec();
        let data = vec![vec![Value::Signed(3), Value::Text("12.340".to_owned()), Value::Null]];
        Rows::new("account", db::Rows { columns, data })
    }

    #[test]
    fn a_column_is_read_as_any_type_that_holds_it_without_loss() {
        let rows = rows();
        let row = rows.first().unwrap();
        assert_eq!(row.get::<i64>("level"), Ok(3));
        assert_eq!(row.get::<u64>("level"), Ok(3));
        assert_eq!(row.get::<Decimal>("balance").unwrap().to_string(), "12.340");
        assert_eq!(row.get::<Option<Datetime>>("closed_at"), Ok(None));
    }

    #[test]
    fn a_column_of_another_type_or_name_is_an_error_that_says_so() {
        let rows = rows();
        let row = rows.first().unwrap();
        let message = |error: ColumnError| error.to_string();
        assert_eq!(
            row.get::<u64>("closed_at").map_err(message),
            Err("column `closed_at` of query `account` is null where unsigned is read".to_owned())
        );
        assert_eq!(row.get::<u64>("lvl").map_err(message), Err("query `account` has no column `lvl`".to_owned()));
    }
}
