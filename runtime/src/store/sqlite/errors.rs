//! SQLite's result codes, sorted into the classes of DESIGN chapter 7.
//! Source: <https://www.sqlite.org/rescode.html>.

use std::path::Path;

use oncebox_core::failure::Class;
use sqlx::Error;

use crate::store::{StatementError, StoreError};

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const READ_ONLY: i32 = 8;
const INTERRUPT: i32 = 9;
const IO_ERROR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const PROTOCOL: i32 = 15;
const ERROR: i32 = 1;
const SCHEMA: i32 = 17;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const NOT_A_DATABASE: i32 = 26;
const CONSTRAINT_FOREIGN_KEY: i32 = 787;
const CONSTRAINT_NOT_NULL: i32 = 1299;
const CONSTRAINT_PRIMARY_KEY: i32 = 1555;
const CONSTRAINT_UNIQUE: i32 = 2067;
const CONSTRAINT_ROW_ID: i32 = 2579;
/// A value that a STRICT table's column does not take.
const CONSTRAINT_DATA_TYPE: i32 = 3091;

/// The extended result code, if the server answered at all.
fn code(error: &Error) -> Option<i32> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).and_then(|code| code.parse().ok())
}

fn is_away(error: &Error) -> bool {
    match code(error) {
        Some(code) => matches!(
            code & 0xff,
            BUSY | LOCKED | NO_MEMORY | READ_ONLY | INTERRUPT | IO_ERROR | FULL | CANNOT_OPEN | PROTOCOL
        ),
        // Not the server's word: the connection is gone, or else the answer could not be understood.
        None => matches!(
            error,
            Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::PoolClosed | Error::PoolTimedOut
        ),
    }
}

/// Whether another connection has locked the file.
pub(super) fn is_locked(error: &Error) -> bool {
    code(error).is_some_and(|code| code & 0xff == BUSY)
}

/// Whether SQLite gives no reason by number.
pub(super) fn is_generic(error: &Error) -> bool {
    code(error).is_some_and(|code| code & 0xff == ERROR)
}

/// A value that SQLite, or a reader of its answer, does not take.
pub(super) fn bad_data(message: String) -> StatementError {
    StatementError { class: Class::Data, number: Some(1366), code: "wrong-type", message }
}

/// An error of a statement of our own.
pub(super) fn store_error(what: &'static str, error: &Error) -> StoreError {
    if is_away(error) {
        return away(what, error);
    }
    let message = words(error);
    match code(error).map(|code| code & 0xff) {
        Some(CORRUPT | NOT_A_DATABASE) => StoreError::Damaged { what, message },
        _ => StoreError::Statement { what, message },
    }
}

/// An error of opening the file.
pub(super) fn open_error(path: &Path, error: &Error) -> StoreError {
    let path = path.display().to_string();
    match code(error).map(|code| code & 0xff) {
        Some(NOT_A_DATABASE) => StoreError::NotADatabase { path },
        Some(CORRUPT) => StoreError::Damaged { what: "open", message: format!("{path}: {}", words(error)) },
        _ => StoreError::Away { message: format!("cannot open {path} (store.path): {}", words(error)) },
    }
}

/// What the server said, without the driver's own words around it.
pub(super) fn words(error: &Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// An error of the connection.
pub(super) fn away(what: &'static str, error: &Error) -> StoreError {
    StoreError::Away { message: format!("{what}: {}", words(error)) }
}

/// An error of a plugin's statement; `number` is what MySQL calls the same thing, so that one manifest serves both.
pub(super) fn statement_error(error: &Error) -> StatementError {
    let extended = code(error);
    let message = words(error);
    if matches!(error, Error::ColumnDecode { .. } | Error::Decode(_)) {
        return bad_data(message);
    }
    let (class, number, name) = match (extended, extended.map(|code| code & 0xff)) {
        _ if is_away(error) => (Class::Infrastructure, None, "database-away"),
        (Some(CONSTRAINT_UNIQUE | CONSTRAINT_PRIMARY_KEY | CONSTRAINT_ROW_ID), _) => {
            (Class::DuplicateKey, Some(1062), "duplicate-key")
        }
        (Some(CONSTRAINT_FOREIGN_KEY), _) => (Class::ForeignKey, Some(1452), "foreign-key"),
        (Some(CONSTRAINT_NOT_NULL), _) => (Class::Data, Some(1048), "null-refused"),
        (Some(CONSTRAINT_DATA_TYPE), _) | (_, Some(MISMATCH)) => return bad_data(message),
        (_, Some(CONSTRAINT)) => (Class::Data, Some(3819), "constraint"),
        (_, Some(TOO_BIG)) => (Class::Data, Some(1406), "too-long"),
        (_, Some(ERROR | SCHEMA)) => (Class::Blocked, Some(1146), "schema-changed"),
        _ => (Class::Data, None, "refused"),
    };
    StatementError { class, number, code: name, message }
}
