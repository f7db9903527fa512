//! A database of one test's own, on a MySQL or MariaDB that all tests share.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{cell::RefCell, thread};

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, Row as _, mysql::MySqlRow};
use tokio::runtime::{Builder, Runtime};

use super::{Kind, Server, fresh_name};
use crate::database::Tables;

/// Somebody who may log in.
#[derive(Debug, Clone)]
pub struct User {
    /// The name; from any host.
    pub name: String,
    /// The password: letters and digits.
    pub password: String,
}

/// A fresh database and two users, until it is dropped.
#[derive(Debug)]
pub struct MysqlDatabase {
    /// Its name, `ob_t_…`.
    pub name: String,
    /// May do everything in this database, routines and triggers too, and pass it on; elsewhere only see what there is.
    pub migrate: User,
    /// May log in, and nothing else yet.
    pub runtime: User,
    server: Server,
}

impl MysqlDatabase {
    /// Makes the database and its users.
    ///
    /// # Panics
    /// The server does not answer or refuses.
    #[must_use]
    pub fn create(server: &Server) -> Self {
        let name = fresh_name();
        let user = |end: &str| User { name: format!("{name}_{end}"), password: format!("pw{}", &fresh_name()[5..]) };
        let database = Self { migrate: user("m"), runtime: user("r"), server: server.clone(), name };
        let Self { name, migrate, runtime, .. } = &database;
        let mut statements = vec![format!("CREATE DATABASE {name}")];
        for user in [migrate, runtime] {
            statements.push(format!("CREATE USER '{}'@'%' IDENTIFIED BY '{}'", user.name, user.password));
        }
        statements.push(format!("GRANT ALL PRIVILEGES ON {name}.* TO '{}'@'%' WITH GRANT OPTION", migrate.name));
        statements.push(format!("GRANT PROCESS ON *.* TO '{}'@'%'", migrate.name));
        on(&server.url, &statements).unwrap_or_else(|error| panic!("{} of {}: {error}", name, server.kind.name()));
        database
    }

    /// The URL for somebody.
    #[must_use]
    pub fn url_of(&self, user: &User) -> String {
        let User { name, password } = user;
        format!("mysql://{name}:{password}@{}/{}", self.server.address(), self.name)
    }

    /// The URL of the user that migrates.
    #[must_use]
    pub fn migrate_url(&self) -> String {
        self.url_of(&self.migrate)
    }

    /// The URL of the host's own user.
    #[must_use]
    pub fn runtime_url(&self) -> String {
        self.url_of(&self.runtime)
    }

    /// The URL of the user that may do everything on the server.
    #[must_use]
    pub fn root_url(&self) -> String {
        format!("{}/{}", self.server.url, self.name)
    }

    /// The server that it is on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A session as root that stays: for a transaction, or to look often.
    ///
    /// # Panics
    /// The server does not answer.
    #[must_use]
    #[track_caller]
    pub fn session(&self) -> Session {
        self.session_at(&self.root_url())
    }

    /// The same as somebody else.
    ///
    /// # Panics
    /// The server does not let him in.
    #[must_use]
    #[track_caller]
    pub fn session_of(&self, user: &User) -> Session {
        self.session_at(&self.url_of(user))
    }

    #[track_caller]
    fn session_at(&self, url: &str) -> Session {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connection = runtime.block_on(MySqlConnection::connect(url));
        let connection = connection.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Session { runtime, connection: RefCell::new(connection) }
    }

    /// Does something as root in this database.
    ///
    /// # Panics
    /// The database refuses.
    #[track_caller]
    pub fn execute(&self, sql: &str) {
        on(&self.root_url(), &[sql.to_owned()]).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }

    /// Does something as somebody else in this database.
    ///
    /// # Panics
    /// The database refuses.
    #[track_caller]
    pub fn execute_as(&self, user: &User, sql: &str) {
        on(&self.url_of(user), &[sql.to_owned()]).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }

    /// Does something as root without a database of its own: names are written out.
    ///
    /// # Panics
    /// The server refuses.
    #[track_caller]
    pub fn execute_on_server(&self, sql: &str) {
        on(&self.server.url, &[sql.to_owned()]).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }

    /// Lets the host's own user do something: `SELECT, INSERT ON {table}` of this database, as it follows `GRANT`.
    ///
    /// # Panics
    /// The database refuses.
    #[track_caller]
    pub fn grant(&self, what: &str) {
        self.execute(&format!("GRANT {what} TO '{}'@'%'", self.runtime.name));
    }

    /// The first column of each row, as text (`CAST(… AS CHAR)` where it is none).
    ///
    /// # Panics
    /// The database does not take the query.
    #[must_use]
    #[track_caller]
    pub fn lines(&self, sql: &str) -> Vec<String> {
        let rows = rows(&self.root_url(), sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
        rows.iter().map(|row| row.try_get_unchecked(0).unwrap()).collect()
    }

    /// A query's rows as a person sees them: a line a row, columns apart; an error where the database does not take it.
    #[must_use]
    pub fn shown(&self, sql: &str) -> String {
        let shown = blocking(async || {
            let mut connection = MySqlConnection::connect(&self.server.url).await?;
            // The text protocol: every value comes as text.
            let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await?;
            connection.close().await?;
            let value = |row: &MySqlRow, at| row.try_get_unchecked::<Option<String>, _>(at);
            let line = |row: &MySqlRow| (0..row.len()).map(|at| Ok(value(row, at)?.unwrap_or_default())).collect();
            let lines: Result<Vec<Vec<String>>, sqlx::Error> = rows.iter().map(line).collect();
            Ok::<_, sqlx::Error>(lines?.iter().map(|line| line.join("  ") + "\n").collect::<String>())
        });
        shown.unwrap_or_else(|error| error.to_string())
    }

    /// The one number that a query asks for.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        let rows = rows(&self.root_url(), sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
        rows[0].try_get(0).unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }

    /// The ids of a user's sessions.
    ///
    /// # Panics
    /// The server does not answer.
    #[must_use]
    pub fn sessions_of(&self, user: &User) -> Vec<String> {
        self.lines(&sessions(self.server.kind, &format!("user = '{}'", user.name)))
    }

    /// Cuts all sessions of a user, as a failover does; how many there were.
    ///
    /// # Panics
    /// The server does not answer.
    pub fn kill_sessions_of(&self, user: &User) -> usize {
        let ids = self.sessions_of(user);
        // One may have ended by itself meanwhile.
        ids.iter().filter(|id| on(&self.server.url, &[format!("KILL {id}")]).is_ok()).count()
    }
}

impl Tables for MysqlDatabase {
    #[track_caller]
    fn lines(&self, sql: &str) -> Vec<String> {
        MysqlDatabase::lines(self, sql)
    }

    #[track_caller]
    fn number(&self, sql: &str) -> i64 {
        MysqlDatabase::number(self, sql)
    }
}

/// One session of the test's own; not for async tests.
#[derive(Debug)]
pub struct Session {
    runtime: Runtime,
    connection: RefCell<MySqlConnection>,
}

impl Session {
    /// Does something.
    ///
    /// # Panics
    /// The database refuses.
    #[track_caller]
    pub fn execute(&self, sql: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = self.runtime.block_on(query.execute(&mut *self.connection.borrow_mut()));
        done.unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }

    #[track_caller]
    fn rows(&self, sql: &str) -> Vec<MySqlRow> {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        let rows = self.runtime.block_on(query.fetch_all(&mut *self.connection.borrow_mut()));
        rows.unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }
}

impl Tables for Session {
    #[track_caller]
    fn lines(&self, sql: &str) -> Vec<String> {
        self.rows(sql).iter().map(|row| row.try_get_unchecked(0).unwrap()).collect()
    }

    #[track_caller]
    fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0].try_get(0).unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }
}

impl Drop for MysqlDatabase {
    fn drop(&mut self) {
        let Self { name, migrate, runtime, server } = self;
        // A session that is left over would hold a lock that DROP DATABASE waits for. Best effort: the server may be gone.
        let left = format!("db = '{name}' OR user IN ('{}', '{}')", migrate.name, runtime.name);
        let left = sessions(server.kind, &left);
        for row in rows(&server.url, &left).into_iter().flatten() {
            if let Ok(id) = row.try_get_unchecked::<String, _>(0) {
                let _ = on(&server.url, &[format!("KILL {id}")]);
            }
        }
        let drops = [
            "SET SESSION lock_wait_timeout = 10".to_owned(),
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("DROP USER IF EXISTS '{}'@'%', '{}'@'%'", migrate.name, runtime.name),
        ];
        let _ = on(&server.url, &drops);
    }
}

fn sessions(kind: Kind, whose: &str) -> String {
    let list = kind.process_list();
    format!("SELECT CAST(id AS CHAR) FROM {list} WHERE ({whose}) AND id <> CONNECTION_ID()")
}

/// Runs statements on a connection of their own, one after the other.
fn on(url: &str, statements: &[String]) -> Result<(), sqlx::Error> {
    blocking(async || {
        let mut connection = MySqlConnection::connect(url).await?;
        for statement in statements {
            // The text protocol: not all of these can be prepared.
            sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut connection).await?;
        }
        connection.close().await
    })
}

fn rows(url: &str, sql: &str) -> Result<Vec<MySqlRow>, sqlx::Error> {
    blocking(async || {
        let mut connection = MySqlConnection::connect(url).await?;
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await?;
        connection.close().await?;
        Ok(rows)
    })
}

/// Waits for something async on a thread of its own, so that a test's runtime is not in the way.
fn blocking<T: Send>(work: impl AsyncFnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| Builder::new_current_thread().enable_all().build().unwrap().block_on(work()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
