//! MySQL's and MariaDB's error numbers, sorted by what must be done about them (DESIGN, chapter 7).
//! Sources: the MySQL 8.4 error reference, MariaDB's knowledge base ("MariaDB Error Codes").

use oncebox_core::failure::Class;
use sqlx::mysql::MySqlDatabaseError;

use crate::store::{DEADLOCK, LOCK_WAIT, StatementError, StoreError};

/// A call to the server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum MysqlError {
    /// The server's own word.
    #[error("{what}: {message} (error {number})")]
    Server {
        /// The verb.
        what: &'static str,
        /// Its number.
        number: u16,
        /// SQLSTATE.
        state: String,
        /// Its words.
        message: String,
    },
    /// The connection is gone, or can no longer be trusted.
    #[error("{what}: {message}")]
    Connection {
        /// The verb.
        what: &'static str,
        /// What has happened to it.
        message: String,
    },
    /// The server has undone the open transaction: nothing more may be written in its name.
    #[error("{what}: the transaction was undone by the server: {message}")]
    Gone {
        /// The verb.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The answer holds what the driver cannot read; the connection is given up.
    #[error("{what}: the server's answer cannot be read: {message}")]
    Answer {
        /// The verb.
        what: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Rows of our own that must be there are not.
    #[error("{what}: {message}")]
    Missing {
        /// The verb.
        what: &'static str,
        /// Whose rows.
        table: &'static str,
        /// How many there should be.
        message: String,
    },
    /// One row is too large for one packet.
    #[error("{what}: one row has {bytes} bytes, the server takes {max} at once (max_allowed_packet)")]
    TooLarge {
        /// The verb.
        what: &'static str,
        /// The row's.
        bytes: usize,
        /// `max_allowed_packet`.
        max: usize,
    },
}

/// What an error number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// The server is away, full, read-only or ending: the connection is given up, all is done again.
    Away,
    /// The transaction is gone, or cannot become durable beside another one: all of it again.
    Conflict,
    /// A lock, or the server's own time limit: this statement is undone, the transaction lives.
    Wait,
    /// The text does not fit the tables or the grants any more.
    Blocked,
    /// A unique key.
    DuplicateKey,
    /// A foreign key; the number that MySQL has for it.
    ForeignKey(u16),
    /// The data itself; the failure's code, and the number that MySQL has for it.
    Data(&'static str, u16),
    /// None of these.
    Other,
}

/// "Can't create more than max_prepared_stmt_count statements".
pub(super) const TOO_MANY_STATEMENTS: u16 = 1461;
/// "Unknown thread id".
pub(super) const NO_SUCH_THREAD: u16 = 1094;
/// "SAVEPOINT does not exist".
pub(super) const NO_SUCH_SAVEPOINT: u16 = 1305;

/// Sorts an error number; `state` is its SQLSTATE.
pub(super) fn sort(number: u16, state: &str) -> Sort {
    match number {
        1205 | 3572 | 3024 | 1969 => Sort::Wait,
        1213 | 1020 | 1412 | 1613 | 1614 | 1637 | 3058 | 3101 => Sort::Conflict,
        // Resources, disks, rights to connect.
        1015..=1019 | 1021 | 1023 | 1024 | 1026 | 1030 | 1034..=1041 | 1043 | 1045 | 1049 | 1114 | 1129 | 1130 | 1135
        // The end of a server, a session or a statement; the network.
        | 1047 | 1053 | 1077..=1081 | 1152 | 1154..=1161 | 1184 | 1189 | 1190 | 1203 | 1226 | 1317 | 1927 | 3032
        | 3168 | 3169 | 4031 | 8002
        // What COMMIT and ROLLBACK may say.
        | 1180 | 1181 | 1402 | 1598 | 3100
        // A server that may only be read from.
        | 1290 | 1792 | 1836 | 1874 | 1223
        // Limits of the server that pass by.
        | 1105 | 1194 | 1195 | 1197 | 1206 | 1461 | 1615 | 1878 => Sort::Away,
        1044 | 1051 | 1054 | 1064 | 1072 | 1109 | 1136 | 1142 | 1143 | 1146 | 1176 | 1191 | 1227 | 1247 | 1267 | 1270
        | 1271 | 1288 | 1295 | 1305 | 1318 | 1347 | 1356 | 1370 | 1442 | 1449 | 1906 | 3105 => Sort::Blocked,
        1022 | 1062 | 1169 | 1586 | 1859 => Sort::DuplicateKey,
        1216 | 1452 => Sort::ForeignKey(1452),
        1217 | 1451 => Sort::ForeignKey(1451),
        1118 | 1153 | 1301 | 1406 => Sort::Data("too-long", 1406),
        1264 | 1690 => Sort::Data("out-of-range", 1264),
        1048 | 1364 | 1263 => Sort::Data("null-refused", 1048),
        1265 | 1292 | 1300 | 1366 | 1411 | 1525 | 3140..=3158 | 3988 | 4038 => Sort::Data("wrong-type", 1366),
        3819 => Sort::Data("constraint", 3819),
        // MariaDB's CHECK; another server has given the number to something else.
        4025 if state == "23000" => Sort::Data("constraint", 3819),
        _ => by_state(state),
    }
}

/// What no list names: the two digits of SQLSTATE that tell the kind.
fn by_state(state: &str) -> Sort {
    match state.get(..2) {
        Some("08") => Sort::Away,
        Some("40") => Sort::Conflict,
        Some("42") => Sort::Blocked,
        _ => Sort::Other,
    }
}

impl MysqlError {
    /// What the driver says of a call.
    pub(super) fn of(what: &'static str, error: &sqlx::Error) -> Self {
        if let Some(server) = server_error(error) {
            return Self::Server {
                what,
                number: server.number(),
                state: server.code().unwrap_or_default().to_owned(),
                message: server.message().to_owned(),
            };
        }
        let message = error.to_string();
        let is_unread = matches!(
            error,
            sqlx::Error::Protocol(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::TypeNotFound { .. }
        );
        // Not the server's word: whatever it is, this connection is not used again.
        if is_unread { Self::Answer { what, message } } else { Self::Connection { what, message } }
    }

    /// The same, of another verb.
    pub(super) fn named(mut self, verb: &'static str) -> Self {
        match &mut self {
            Self::Server { what, .. }
            | Self::Connection { what, .. }
            | Self::Gone { what, .. }
            | Self::Answer { what, .. }
            | Self::Missing { what, .. }
            | Self::TooLarge { what, .. } => *what = verb,
        }
        self
    }

    /// The server's number, if it has spoken.
    pub(super) fn number(&self) -> Option<u16> {
        match self {
            Self::Server { number, .. } => Some(*number),
            Self::Connection { .. }
            | Self::Gone { .. }
            | Self::Answer { .. }
            | Self::Missing { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// What it means.
    pub(super) fn sort(&self) -> Sort {
        match self {
            Self::Server { number, state, .. } => sort(*number, state),
            Self::Connection { .. } => Sort::Away,
            Self::Gone { .. } => Sort::Conflict,
            Self::Answer { .. } | Self::Missing { .. } => Sort::Other,
            Self::TooLarge { .. } => Sort::Data("too-long", 1406),
        }
    }

    /// Whether the connection must not be used again.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            // The server is in step and has only refused.
            Self::Server { number: 1461 | 1114 | 1206, .. } => false,
            // It closes the connection after these.
            Self::Server { number: 1153, .. } => true,
            Self::Server { .. } => self.sort() == Sort::Away,
            Self::Connection { .. } | Self::Answer { .. } => true,
            Self::Gone { .. } | Self::Missing { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// An error of a plugin's statement.
    pub(super) fn of_statement(self) -> StatementError {
        let own = self.number().map(u32::from);
        let (class, number, code) = match self.sort() {
            Sort::Away => (Class::Infrastructure, None, "database-away"),
            Sort::Conflict => (Class::Infrastructure, Some(DEADLOCK), "database-away"),
            Sort::Wait => (Class::Infrastructure, Some(LOCK_WAIT), "lock-wait"),
            Sort::Blocked => (Class::Blocked, own, "schema-changed"),
            Sort::DuplicateKey => (Class::DuplicateKey, Some(1062), "duplicate-key"),
            Sort::ForeignKey(number) => (Class::ForeignKey, Some(u32::from(number)), "foreign-key"),
            Sort::Data(code, number) => {
                // A manifest may name the number itself; only what MySQL does not have is replaced.
                let number = if own == Some(4025) { Some(u32::from(number)) } else { own.or(Some(u32::from(number))) };
                (Class::Data, number, code)
            }
            // A table was changed to a type that the driver does not know: the gate sees it with the next look.
            Sort::Other if own.is_none() => (Class::Infrastructure, None, "database-away"),
            Sort::Other => (Class::Data, own, "refused"),
        };
        StatementError { class, number, code, message: self.words() }
    }

    /// The server's words, without the verb.
    fn words(self) -> String {
        match self {
            Self::Server { message, .. } | Self::Connection { message, .. } => message,
            Self::Gone { .. } | Self::Answer { .. } | Self::Missing { .. } | Self::TooLarge { .. } => self.to_string(),
        }
    }
}

impl From<MysqlError> for StoreError {
    fn from(error: MysqlError) -> Self {
        let message = error.to_string();
        match (error.sort(), error) {
            (Sort::Away, _) | (_, MysqlError::Answer { .. }) => Self::Away { message },
            (Sort::Conflict | Sort::Wait, _) => Self::Busy { message },
            (_, MysqlError::Server { number: 1044 | 1142 | 1143 | 1227 | 1370, .. }) => {
                Self::Denied { message: format!("{message}; docs/mysql.md lists what must be granted") }
            }
            (_, MysqlError::Server { what, number, message, .. }) => {
                Self::Statement { what, message: format!("{message} (error {number})") }
            }
            (_, MysqlError::Connection { what, message } | MysqlError::Gone { what, message }) => {
                Self::Statement { what, message }
            }
            (_, MysqlError::Missing { table, message, .. }) => Self::Corrupt { table, message },
            (_, MysqlError::TooLarge { what, .. }) => Self::Statement { what, message },
        }
    }
}

/// The server's error behind the driver's.
pub(super) fn server_error(error: &sqlx::Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u16, state: &str) -> MysqlError {
        MysqlError::Server { what: "it", number, state: state.to_owned(), message: "words".to_owned() }
    }

    /// DESIGN chapter 7, written out once more by hand: numbers, SQLSTATE, and what a plugin's statement makes of them.
    #[test]
    fn each_number_is_what_the_design_says() {
        use Class::{Blocked, Data, DuplicateKey, ForeignKey, Infrastructure};
        type Line = (&'static [u16], &'static str, Class, Option<u32>, &'static str);
        let table: &[Line] = &[
            (&[1205, 3572, 3024, 1969], "HY000", Infrastructure, Some(1205), "lock-wait"),
            (&[1213, 1020, 1412, 3101], "HY000", Infrastructure, Some(1213), "database-away"),
            (
                &[1040, 1114, 1290, 1461, 1792, 1836, 1053, 1927, 3169, 4031],
                "HY000",
                Infrastructure,
                None,
                "database-away",
            ),
            (&[1180, 1317, 1206, 1021, 1041, 1105, 1615, 1203, 1226], "HY000", Infrastructure, None, "database-away"),
            (&[1062, 1022, 1169, 1586], "23000", DuplicateKey, Some(1062), "duplicate-key"),
            (&[1452, 1216], "23000", ForeignKey, Some(1452), "foreign-key"),
            (&[1451, 1217], "23000", ForeignKey, Some(1451), "foreign-key"),
            (&[3819], "HY000", Data, Some(3819), "constraint"),
            (&[4025], "23000", Data, Some(3819), "constraint"),
            // On MySQL the number means something else.
            (&[4025], "HY000", Data, Some(4025), "refused"),
            (&[1644], "45000", Data, Some(1644), "refused"),
            (&[9999], "22000", Data, Some(9999), "refused"),
            (&[9999], "40001", Infrastructure, Some(1213), "database-away"),
            (&[9999], "08S01", Infrastructure, None, "database-away"),
            (&[9999], "42000", Blocked, Some(9999), "schema-changed"),
            (&[9999], "", Data, Some(9999), "refused"),
        ];
        for (numbers, state, class, number, code) in table {
            for own in *numbers {
                let error = server(*own, state).of_statement();
                assert_eq!((error.class, error.number, error.code), (*class, *number, *code), "{own} {state}");
            }
        }
        // A manifest names these by the server's own number.
        for (numbers, class, code) in [
            (&[1054, 1146, 1142, 1064, 1305, 1370, 1143, 1044, 1136][..], Blocked, "schema-changed"),
            (&[1406, 1118], Data, "too-long"),
            (&[1264, 1690], Data, "out-of-range"),
            (&[1048, 1364], Data, "null-refused"),
            (&[1366, 1292, 1265, 3140, 3156], Data, "wrong-type"),
        ] {
            for own in numbers {
                let error = server(*own, "HY000").of_statement();
                assert_eq!((error.class, error.number, error.code), (class, Some(u32::from(*own)), code), "{own}");
            }
        }
    }

    #[test]
    fn an_error_of_our_own_statement_is_waited_for_done_again_or_a_bug() {
        for (number, state, code) in [
            (1040, "08004", "store-away"),
            (1114, "HY000", "store-away"),
            (1290, "HY000", "store-away"),
            (1461, "42000", "store-away"),
            (1213, "40001", "store-busy"),
            (1205, "HY000", "store-busy"),
            (1142, "42000", "store-denied"),
            (1062, "23000", "store-statement"),
            (1064, "42000", "store-statement"),
            (1406, "22001", "store-statement"),
        ] {
            assert_eq!(StoreError::from(server(number, state)).code(), code, "{number}");
        }
        let what = "it";
        let message = String::new;
        assert!(StoreError::from(MysqlError::Connection { what, message: message() }).is_away());
        assert!(StoreError::from(MysqlError::Answer { what, message: message() }).is_away());
        assert!(StoreError::from(MysqlError::Gone { what, message: message() }).is_busy());
        assert_eq!(StoreError::from(MysqlError::TooLarge { what, bytes: 2, max: 1 }).code(), "store-statement");
    }

    #[test]
    fn only_what_leaves_the_connection_in_doubt_ends_it() {
        for number in [1040, 1053, 1153, 1290, 1317, 1792, 1836, 1927, 3169, 4031, 1180] {
            assert!(server(number, "HY000").ends_connection(), "{number}");
        }
        for number in [1062, 1205, 1213, 1305, 1406, 1461, 1114, 1054] {
            assert!(!server(number, "HY000").ends_connection(), "{number}");
        }
        assert!(MysqlError::Connection { what: "it", message: String::new() }.ends_connection());
        assert!(MysqlError::Answer { what: "it", message: String::new() }.ends_connection());
        assert!(!MysqlError::TooLarge { what: "it", bytes: 2, max: 1 }.ends_connection());
    }
}
