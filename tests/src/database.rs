//! A tenant's database, seen from beside the host.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{cell::RefCell, path::Path, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteRow},
};
use tokio::runtime::{Builder, Runtime};

/// Tables that are looked at beside the host, on any server. A text that is portable names no type but `CHAR` and
/// `SIGNED` in a CAST, and joins texts with `concat`.
pub trait Tables {
    /// The first column of each row, a text.
    ///
    /// # Panics
    /// The database does not take the query.
    #[track_caller]
    fn lines(&self, sql: &str) -> Vec<String>;

    /// The one number that a query asks for.
    ///
    /// # Panics
    /// There is none.
    #[track_caller]
    fn number(&self, sql: &str) -> i64;
}

impl Tables for Database {
    fn lines(&self, sql: &str) -> Vec<String> {
        Database::lines(self, sql)
    }

    fn number(&self, sql: &str) -> i64 {
        Database::number(self, sql)
    }
}

/// One connection of the test's own.
pub struct Database {
    runtime: Runtime,
    connection: RefCell<SqliteConnection>,
}

impl Database {
    /// Opens a file that is there.
    ///
    /// # Panics
    /// It is not.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::from_secs(10));
        let connection = runtime.block_on(options.connect()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self { runtime, connection: RefCell::new(connection) }
    }

    fn rows(&self, sql: &str) -> Vec<SqliteRow> {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        let rows = self.runtime.block_on(query.fetch_all(&mut *self.connection.borrow_mut()));
        rows.unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }

    /// The first column of each row, a text.
    ///
    /// # Panics
    /// The database does not take the query.
    #[must_use]
    pub fn lines(&self, sql: &str) -> Vec<String> {
        self.rows(sql).iter().map(|row| row.try_get_unchecked(0).unwrap()).collect()
    }

    /// The one number that a query asks for.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    pub fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0].try_get(0).unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }

    /// Changes something, as another program beside the host does.
    ///
    /// # Panics
    /// The database refuses.
    pub fn execute(&self, sql: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = self.runtime.block_on(query.execute(&mut *self.connection.borrow_mut()));
        done.unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }
}
