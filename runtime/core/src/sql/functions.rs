//! The allow-list of functions, units and cast types, per dialect.
//!
//! On the list: built-in, answering from its arguments alone (or from the database's clock at the statement's
//! start), without an effect. Not on it: what waits, locks, reads files, tells of the session or draws at random.

use super::Dialect;

/// Whether a function of this name, in upper case, may be called.
#[must_use]
pub(super) fn is_allowed(dialect: Dialect, upper: &str) -> bool {
    names(dialect).iter().any(|list| list.contains(&upper))
}

/// The allowed names, in upper case, in lists by topic.
#[must_use]
pub fn names(dialect: Dialect) -> &'static [&'static [&'static str]] {
    match dialect {
        Dialect::MySql => MYSQL,
        Dialect::Sqlite => SQLITE,
    }
}

const MYSQL: &[&[&str]] = &[
    &["COALESCE", "IFNULL", "NULLIF", "IF", "GREATEST", "LEAST"],
    &["ABS", "SIGN", "ROUND", "TRUNCATE", "FLOOR", "CEIL", "CEILING", "MOD"],
    &[
        "CONCAT",
        "CONCAT_WS",
        "SUBSTRING",
        "SUBSTR",
        "LENGTH",
        "CHAR_LENGTH",
        "LOWER",
        "UPPER",
        "TRIM",
        "LTRIM",
        "RTRIM",
        "REPLACE",
        "LPAD",
        "RPAD",
        "INSTR",
        "LOCATE",
        "HEX",
        "UNHEX",
        "SHA2",
    ],
    &[
        "JSON_EXTRACT",
        "JSON_VALUE",
        "JSON_OBJECT",
        "JSON_ARRAY",
        "JSON_SET",
        "JSON_INSERT",
        "JSON_REPLACE",
        "JSON_REMOVE",
        "JSON_ARRAY_APPEND",
        "JSON_MERGE_PATCH",
        "JSON_UNQUOTE",
        "JSON_QUOTE",
        "JSON_CONTAINS",
        "JSON_CONTAINS_PATH",
        "JSON_LENGTH",
        "JSON_TYPE",
        "JSON_VALID",
    ],
    &["COUNT", "SUM", "MIN", "MAX", "AVG"],
    &[
        "DATE_ADD",
        "DATE_SUB",
        "TIMESTAMPDIFF",
        "TIMESTAMPADD",
        "DATEDIFF",
        "DATE",
        "TIME",
        "YEAR",
        "QUARTER",
        "MONTH",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MICROSECOND",
        "LAST_DAY",
        "FROM_UNIXTIME",
        "UNIX_TIMESTAMP",
        "DATE_FORMAT",
    ],
    &[
        "NOW",
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "LOCALTIMESTAMP",
        "LOCALTIME",
        "CURDATE",
        "CURTIME",
        "UTC_TIMESTAMP",
        "UTC_DATE",
        "UTC_TIME",
    ],
    &["LAST_INSERT_ID"],
];

const SQLITE: &[&[&str]] = &[
    &["COALESCE", "IFNULL", "NULLIF", "IIF"],
    &["ABS", "SIGN", "ROUND", "FLOOR", "CEIL", "CEILING"],
    &[
        "CONCAT",
        "CONCAT_WS",
        "SUBSTRING",
        "SUBSTR",
        "LENGTH",
        "LOWER",
        "UPPER",
        "TRIM",
        "LTRIM",
        "RTRIM",
        "REPLACE",
        "INSTR",
        "HEX",
        "UNHEX",
    ],
    &[
        "JSON_EXTRACT",
        "JSON_OBJECT",
        "JSON_ARRAY",
        "JSON_SET",
        "JSON_INSERT",
        "JSON_REPLACE",
        "JSON_REMOVE",
        "JSON_PATCH",
        "JSON_QUOTE",
        "JSON_ARRAY_LENGTH",
        "JSON_TYPE",
        "JSON_VALID",
        "JSON",
    ],
    &["COUNT", "SUM", "TOTAL", "MIN", "MAX", "AVG"],
    &["DATE", "TIME", "DATETIME", "JULIANDAY", "UNIXEPOCH", "STRFTIME"],
    &["CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"],
];

/// Words that MySQL or SQLite reads as a function without parentheses, where a parser reads a column.
#[must_use]
pub(super) fn is_bare_function(upper: &str) -> bool {
    matches!(
        upper,
        "CURRENT_USER"
            | "SESSION_USER"
            | "SYSTEM_USER"
            | "USER"
            | "CURRENT_ROLE"
            | "CURRENT_DATE"
            | "CURRENT_TIME"
            | "CURRENT_TIMESTAMP"
            | "LOCALTIME"
            | "LOCALTIMESTAMP"
            | "UTC_DATE"
            | "UTC_TIME"
            | "UTC_TIMESTAMP"
            | "SYSDATE"
    )
}

/// Units of INTERVAL, EXTRACT, TIMESTAMPDIFF and TIMESTAMPADD.
pub const UNITS: &[&str] = &["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"];

/// Types of CAST.
#[must_use]
pub fn cast_types(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::MySql => {
            &["SIGNED", "UNSIGNED", "CHAR", "DECIMAL", "DATE", "TIME", "DATETIME", "JSON", "DOUBLE", "FLOAT"]
        }
        Dialect::Sqlite => &["INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB"],
    }
}
