//! Statements that go to the server in one text, and what they answer.

use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Either,
    mysql::{MySqlConnection, MySqlRow},
};

use super::errors::MysqlError;

/// Statements that wait for the next trip, in one text.
#[derive(Debug, Default)]
pub(super) struct Packet {
    text: String,
    asked: Asked,
}

/// What the statements of a text are, in order.
#[derive(Debug, Default)]
pub(super) struct Asked {
    whats: Vec<&'static str>,
    /// Known before anything is committed.
    expected: Vec<Expected>,
}

/// What a statement must affect, of one of our own tables.
#[derive(Debug)]
struct Expected {
    /// Its place.
    at: usize,
    affected: u64,
    table: &'static str,
}

/// What one statement of a text has answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Rows found; of `ON DUPLICATE KEY UPDATE` 1 for a new row, 2 for a changed one.
    pub(super) affected: u64,
    /// What `LAST_INSERT_ID(n)` was told.
    pub(super) last_insert_id: u64,
    /// Rows of a question, in the text protocol.
    pub(super) rows: Vec<MySqlRow>,
}

/// The server stopped in the middle of a text.
#[derive(Debug)]
pub(super) struct Stopped {
    /// What the statements before the one that failed have affected.
    pub(super) stood: Vec<u64>,
    /// Why.
    pub(super) error: MysqlError,
}

impl From<Stopped> for MysqlError {
    fn from(stopped: Stopped) -> Self {
        stopped.error
    }
}

impl Packet {
    /// One statement more.
    pub(super) fn push(&mut self, what: &'static str, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.push_str(text);
        self.asked.whats.push(what);
    }

    /// The last one must affect so many rows of a table.
    pub(super) fn expect(&mut self, affected: u64, table: &'static str) {
        if let Some(at) = self.len().checked_sub(1) {
            self.asked.expected.push(Expected { at, affected, table });
        }
    }

    /// Whether it is known of one of them what it must affect.
    pub(super) fn expects(&self) -> bool {
        !self.asked.expected.is_empty()
    }

    /// How many statements.
    pub(super) fn len(&self) -> usize {
        self.asked.whats.len()
    }

    /// How long the text is.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// What the first one is.
    pub(super) fn first(&self) -> Option<&'static str> {
        self.asked.whats.first().copied()
    }

    /// The text, and what it asks.
    pub(super) fn split(self) -> (String, Asked) {
        (self.text, self.asked)
    }
}

impl Asked {
    /// What the statement at a place is.
    pub(super) fn what(&self, at: usize) -> &'static str {
        self.whats.get(at).copied().unwrap_or("statements")
    }

    /// Whether each has answered.
    pub(super) fn has_all(&self, answers: &[Answer]) -> Result<(), String> {
        match (answers.len(), self.whats.len()) {
            (found, wanted) if found == wanted => Ok(()),
            (found, wanted) => Err(format!("{found} answers to {wanted} statements")),
        }
    }

    /// Whether those of which it is known have affected what they must.
    pub(super) fn are_met(&self, answers: &[Answer]) -> Result<(), MysqlError> {
        for &Expected { at, affected, table } in &self.expected {
            let found = answers.get(at).map_or(0, |answer| answer.affected);
            if found != affected {
                let message =
                    format!("of its own rows some are gone inside a unit of work: {found} count, not {affected}");
                return Err(MysqlError::Missing { what: self.what(at), table, message });
            }
        }
        Ok(())
    }
}

/// Sends a text and reads all that it answers. What each statement has affected is told in `stood` as soon as it stands.
pub(super) async fn run(
    connection: &mut MySqlConnection,
    text: String,
    stood: &Mutex<Vec<u64>>,
) -> Result<Vec<Answer>, sqlx::Error> {
    let mut done = Vec::new();
    let mut answer = Answer::default();
    let mut answers = sqlx::raw_sql(AssertSqlSafe(text)).fetch_many(connection);
    while let Some(next) = answers.try_next().await? {
        match next {
            Either::Right(row) => answer.rows.push(row),
            Either::Left(result) => {
                answer.affected = result.rows_affected();
                answer.last_insert_id = result.last_insert_id();
                stood.lock().unwrap_or_else(PoisonError::into_inner).push(answer.affected);
                done.push(std::mem::take(&mut answer));
            }
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(affected: &[u64]) -> Vec<Answer> {
        affected.iter().map(|&affected| Answer { affected, ..Answer::default() }).collect()
    }

    #[test]
    fn statements_are_one_text_and_keep_what_each_of_them_must_affect() {
        let mut packet = Packet::default();
        assert_eq!((packet.first(), packet.expects()), (None, false));
        packet.push("begin", "START TRANSACTION");
        packet.push("inbox mark", "INSERT 1");
        packet.expect(4, "ob_inbox");
        packet.push("outbox insert", "INSERT 2");
        assert_eq!((packet.first(), packet.len(), packet.expects()), (Some("begin"), 3, true));
        let (text, asked) = packet.split();
        assert_eq!(text, "START TRANSACTION; INSERT 1; INSERT 2");
        assert_eq!((asked.what(1), asked.what(3)), ("inbox mark", "statements"));
        assert_eq!(asked.are_met(&answers(&[0, 4, 1])), Ok(()));
        let Err(MysqlError::Missing { what: "inbox mark", table: "ob_inbox", message }) =
            asked.are_met(&answers(&[0, 3, 1]))
        else {
            panic!("three rows are not four")
        };
        assert!(message.contains("3 count, not 4"), "{message}");
        assert!(asked.has_all(&answers(&[0, 4])).is_err() && asked.has_all(&answers(&[0, 4, 1])).is_ok());
    }
}
