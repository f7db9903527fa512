//! One connection to the server, and the rule that a call which was begun is seen through.
//!
//! A call's future owns the connection. Past its deadline, or when whoever waits for it is dropped, it goes on by
//! itself and nobody uses the connection again: a call that is dropped in the middle leaves the driver out of step, and
//! its error would come out of the next one. The session is killed by a connection of its own (`supervisor.rs`).

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Executor as _, SqlSafeStr, SqlStr, Statement as _,
    TypeInfo as _,
    mysql::{MySqlArguments, MySqlConnection, MySqlRow, MySqlStatement},
};

use super::{
    args::Args,
    errors::{MysqlError, NO_SUCH_SAVEPOINT, Sort, TOO_MANY_STATEMENTS, server_error},
    packet::{self, Answer, Asked, Packet, Stopped},
    server::{Facts, Flavour, STATEMENTS_MAX, Server, Version},
    supervisor::Ended,
};
use crate::{clock, store::StoreError};

/// One connection, owned by a lane or by the store.
pub(super) struct Session {
    server: Arc<Server>,
    facts: Facts,
    /// `None` while a call runs on it, and for good when it must not be used any more.
    connection: Option<MySqlConnection>,
    /// Why it must not be used any more.
    lost: Option<String>,
    transaction: Transaction,
    /// What goes with the next trip.
    waiting: Packet,
    /// What a transaction was told at its begin, until somebody asks.
    told: Option<MySqlRow>,
    /// How many texts were described on it.
    described: u64,
    used: Instant,
}

/// A transaction was not committed, or nobody knows.
#[derive(Debug)]
pub(super) struct Uncommitted {
    /// Why.
    pub(super) error: MysqlError,
    /// COMMIT was asked for: what became of it is not known.
    pub(super) is_unknown: bool,
}

impl From<Uncommitted> for StoreError {
    fn from(uncommitted: Uncommitted) -> Self {
        uncommitted.error.into()
    }
}

/// What a statement has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    /// Rows found (the driver asks for found rows); of `ON DUPLICATE KEY UPDATE` 1 for a new row, 2 for a changed one.
    pub(super) affected: u64,
    /// The first number that was given out, or what `LAST_INSERT_ID(n)` was told.
    pub(super) last_insert_id: u64,
}

/// The rows of a plugin's query.
pub(super) struct Found {
    /// Names of the columns.
    pub(super) columns: Vec<String>,
    /// As many rows as were wanted, of those there are.
    pub(super) rows: Vec<MySqlRow>,
}

/// What a statement's preparation tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    /// How many `?` it has.
    pub(super) parameters: usize,
    /// Names of the columns of its answer, each with its type's name.
    pub(super) columns: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Transaction {
    /// None is open: each statement is its own.
    None,
    Open,
    /// The server has undone it; statements would commit by themselves.
    Gone(String),
}

type Call<T> = Pin<Box<dyn Future<Output = (MySqlConnection, Result<T, sqlx::Error>)> + Send>>;

/// Texts that were only described are let go so many at a time: nobody runs them, and the server's statements are for all.
const DESCRIBED_MAX: u64 = 32;
/// What a statement at a transaction's begin is.
const BEGIN: &str = "begin";
/// What statements about savepoints are.
pub(super) const SAVEPOINT: &str = "savepoint";
/// A killed call's rest gets so long to see that its connection is closed.
const GRACE: Duration = Duration::from_secs(1);

impl Session {
    /// Opens a session with the host's settings; the password is read anew. A server that does not let in the user whom
    /// it knew before is waited for, as one that is away: his password is being changed.
    pub(super) async fn open(server: &Arc<Server>) -> Result<Self, StoreError> {
        Self::first(server).await.map_err(|error| {
            if let StoreError::Denied { message } = error { StoreError::Away { message } } else { error }
        })
    }

    /// The same for the first session of a process: a user who is not let in is told so at once.
    pub(super) async fn first(server: &Arc<Server>) -> Result<Self, StoreError> {
        let (connection, facts) = server.connect().await?;
        Ok(Self {
            server: server.clone(),
            facts,
            connection: Some(connection),
            lost: None,
            transaction: Transaction::None,
            waiting: Packet::default(),
            told: None,
            described: 0,
            used: clock::monotonic(),
        })
    }

    /// Whether another one must be opened: it is lost, or idle for so long that the server is about to end it.
    pub(super) fn is_over(&self) -> bool {
        self.connection.is_none() || self.used.elapsed() > self.server.idle_max()
    }

    /// What was learnt when it was opened.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What runs there.
    pub(super) fn version(&self) -> &Version {
        &self.facts.version
    }

    /// MySQL or MariaDB.
    pub(super) fn flavour(&self) -> Flavour {
        self.facts.version.flavour
    }

    /// Gives the connection up; every further call fails with `why`.
    pub(super) fn abandon(&mut self, why: impl Into<String>) {
        self.connection = None;
        self.waiting = Packet::default();
        self.lost.get_or_insert(why.into());
    }

    /// Says goodbye, so that the server need not find out by itself.
    pub(super) async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            // Nobody uses it again, whether the server hears it or not.
            let _ = tokio::time::timeout(GRACE, connection.close()).await;
        }
        self.abandon("it was closed");
    }

    /// Opens a transaction; one that is still open is undone first.
    pub(super) async fn begin(&mut self) -> Result<(), MysqlError> {
        self.rollback().await?;
        self.script(BEGIN, "START TRANSACTION").await?;
        self.transaction = Transaction::Open;
        Ok(())
    }

    /// Opens a transaction with the next trip, and asks something; [`Session::told`] is the answer.
    pub(super) async fn begin_later(&mut self, asks: &str) -> Result<(), MysqlError> {
        self.rollback().await?;
        self.told = None;
        self.transaction = Transaction::Open;
        self.later(BEGIN, "START TRANSACTION").await?;
        self.later(BEGIN, asks).await
    }

    /// What the open transaction was told at its begin.
    pub(super) async fn told(&mut self) -> Result<Option<&MySqlRow>, MysqlError> {
        if self.told.is_none() {
            self.send().await?;
        }
        Ok(self.told.as_ref())
    }

    /// Makes the open transaction durable, after all that waits. After an error of COMMIT it is unknown whether it is, and
    /// the session is over; one that came before has left the transaction open, or the server has undone it.
    pub(super) async fn commit(&mut self) -> Result<(), Uncommitted> {
        let known = |error| Uncommitted { error, is_unknown: false };
        if let Transaction::None = self.transaction {
            let message = "no transaction is open".to_owned();
            return Err(known(MysqlError::Gone { what: "commit", message }));
        }
        if self.waiting.expects() {
            self.send().await.map_err(|stopped| known(stopped.error))?;
        }
        self.later("commit", "COMMIT").await.map_err(known)?;
        let before = self.waiting.len() - 1;
        match self.send().await {
            Ok(_) => {
                self.transaction = Transaction::None;
                Ok(())
            }
            // It was not asked for: the server stops at the first that fails.
            Err(Stopped { stood, error }) if stood.len() < before && !error.ends_connection() => Err(known(error)),
            Err(Stopped { error, .. }) => {
                self.abandon("the answer to COMMIT is not known");
                Err(Uncommitted { error, is_unknown: true })
            }
        }
    }

    /// Undoes the open transaction, if there is one.
    pub(super) async fn rollback(&mut self) -> Result<(), MysqlError> {
        self.waiting = Packet::default();
        if let Transaction::None = self.transaction {
            return Ok(());
        }
        // One that is gone is asked to end too: of some servers a new one has begun by itself (MDEV-36959).
        self.transaction = Transaction::Open;
        self.script("rollback", "ROLLBACK").await?;
        self.transaction = Transaction::None;
        Ok(())
    }

    /// Runs a prepared statement.
    pub(super) async fn execute(
        &mut self,
        what: &'static str,
        sql: impl SqlSafeStr,
        args: Args,
    ) -> Result<Done, MysqlError> {
        let (sql, args) = (sql.into_sql_str(), args.finished(what)?);
        self.send().await?;
        self.call(what, move |mut connection| {
            Box::pin(async move {
                let done = execute(&mut connection, sql, args).await;
                (connection, done)
            })
        })
        .await
    }

    /// Runs a prepared statement that answers rows: all of them.
    pub(super) async fn rows(
        &mut self,
        what: &'static str,
        sql: impl SqlSafeStr,
        args: Args,
    ) -> Result<Vec<MySqlRow>, MysqlError> {
        let found = self.find(what, sql, args, usize::MAX).await?;
        Ok(found.rows)
    }

    /// The same, with the names of the columns; at most `rows_max` rows are kept. The others are read and let go, so
    /// that what goes wrong with them is told here and not by the next statement.
    pub(super) async fn find(
        &mut self,
        what: &'static str,
        sql: impl SqlSafeStr,
        args: Args,
        rows_max: usize,
    ) -> Result<Found, MysqlError> {
        let (sql, args) = (sql.into_sql_str(), args.finished(what)?);
        self.send().await?;
        self.call(what, move |mut connection| {
            Box::pin(async move {
                let found = find(&mut connection, sql, args, rows_max).await;
                (connection, found)
            })
        })
        .await
    }

    /// Runs one or several statements as text; the answer holds the rows of all of them, in the text protocol. Never used
    /// for a plugin's text as its author wrote it.
    pub(super) async fn script(
        &mut self,
        what: &'static str,
        sql: impl SqlSafeStr,
    ) -> Result<Vec<MySqlRow>, MysqlError> {
        let sql = sql.into_sql_str();
        self.send().await?;
        self.call(what, move |mut connection| {
            Box::pin(async move {
                let rows = sqlx::raw_sql(sql).fetch_all(&mut connection).await;
                (connection, rows)
            })
        })
        .await
    }

    /// How many statements wait for the next trip.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a text more can go with the next trip.
    pub(super) fn has_room_beside(&self, text: &str) -> bool {
        self.waiting.bytes() + text.len() < self.facts.packet_max / 2
    }

    /// Whether a text can be sent, as one statement or among others.
    pub(super) fn has_room_for(&self, text: &str) -> bool {
        text.len() + 1_024 < self.facts.packet_max
    }

    /// One statement more for the next trip: its values are in it, and nobody waits for its answer. What it fails with is
    /// told by whatever comes next.
    pub(super) async fn later(&mut self, what: &'static str, text: &str) -> Result<(), MysqlError> {
        self.usable(what)?;
        if !self.has_room_beside(text) {
            self.send().await?;
        }
        self.waiting.push(what, text);
        Ok(())
    }

    /// The same, sent with all that waits; the answer is its own.
    pub(super) async fn now(&mut self, what: &'static str, text: &str) -> Result<Done, MysqlError> {
        self.later(what, text).await?;
        let last = self.send().await?.pop().unwrap_or_default();
        Ok(Done { affected: last.affected, last_insert_id: last.last_insert_id })
    }

    /// As [`Self::later`], of which it is known how many rows of `table` it must affect. Else an error comes before
    /// anything is committed.
    pub(super) async fn later_exactly(
        &mut self,
        what: &'static str,
        text: &str,
        affected: u64,
        table: &'static str,
    ) -> Result<(), MysqlError> {
        self.later(what, text).await?;
        self.waiting.expect(affected, table);
        Ok(())
    }

    /// Sends what waits, in one trip; the answer is what each of them has answered, in order.
    ///
    /// # Errors
    /// The server stops at the first that fails: what those before it have done, and what it says.
    pub(super) async fn send(&mut self) -> Result<Vec<Answer>, Stopped> {
        let packet = std::mem::take(&mut self.waiting);
        let Some(first) = packet.first() else { return Ok(Vec::new()) };
        let (text, asked) = packet.split();
        let stood = Arc::new(Mutex::new(Vec::new()));
        let counted = stood.clone();
        let ran = self
            .call(first, move |mut connection| {
                Box::pin(async move {
                    let ran = packet::run(&mut connection, text, &counted).await;
                    (connection, ran)
                })
            })
            .await;
        let mut answers = match ran {
            Ok(answers) => answers,
            Err(error) => {
                let stood = std::mem::take(&mut *stood.lock().unwrap_or_else(PoisonError::into_inner));
                return Err(self.stopped(&asked, stood, error));
            }
        };
        if let Err(message) = asked.has_all(&answers) {
            // What has run is not what was sent: nothing on this connection can be believed.
            self.abandon(message.clone());
            return Err(Stopped { stood: Vec::new(), error: MysqlError::Connection { what: first, message } });
        }
        asked.are_met(&answers).map_err(|error| Stopped { stood: Vec::new(), error })?;
        if self.told.is_none() && self.transaction == Transaction::Open && first == BEGIN {
            self.told = answers.iter_mut().find_map(|answer| answer.rows.pop());
        }
        Ok(answers)
    }

    /// Lets the server prepare a text and tell what it is, as its tables are now: a comment before it makes sure that none
    /// prepared earlier answers for it.
    pub(super) async fn describe(&mut self, what: &'static str, sql: &str) -> Result<Described, MysqlError> {
        self.described += 1;
        let is_enough = self.described.is_multiple_of(DESCRIBED_MAX);
        let sql = AssertSqlSafe(format!("/* {} */ {sql}", self.described)).into_sql_str();
        self.send().await?;
        self.call(what, move |mut connection| {
            Box::pin(async move {
                let mut described = describe(&mut connection, sql).await;
                if is_enough && let (Ok(_), Err(error)) = (&described, connection.clear_cached_statements().await) {
                    described = Err(error);
                }
                (connection, described)
            })
        })
        .await
    }

    /// A savepoint that is not there means that this is no longer the transaction which set it.
    fn stopped(&mut self, asked: &Asked, stood: Vec<u64>, error: MysqlError) -> Stopped {
        let what = asked.what(stood.len());
        let error = error.named(what);
        if what != SAVEPOINT || error.number() != Some(NO_SUCH_SAVEPOINT) {
            return Stopped { stood, error };
        }
        let message = format!("{error}: the transaction is not the one that was begun");
        self.abandon(message.clone());
        Stopped { stood, error: MysqlError::Connection { what, message } }
    }

    /// Whether anything more may be asked in the open transaction's name.
    fn usable(&self, what: &'static str) -> Result<(), MysqlError> {
        match &self.transaction {
            Transaction::Gone(why) => Err(MysqlError::Gone { what, message: why.clone() }),
            Transaction::None | Transaction::Open if self.connection.is_none() => Err(self.over(what)),
            Transaction::None | Transaction::Open => Ok(()),
        }
    }

    fn over(&self, what: &'static str) -> MysqlError {
        let why = self.lost.as_deref().unwrap_or("an earlier call on the connection was given up");
        MysqlError::Connection { what, message: format!("the session is over: {why}") }
    }

    /// Begins a call and waits for its end, as long as it may take.
    async fn call<T: Send + 'static>(
        &mut self,
        what: &'static str,
        begin: impl FnOnce(MySqlConnection) -> Call<T>,
    ) -> Result<T, MysqlError> {
        self.usable(what)?;
        let Some(connection) = self.connection.take() else { return Err(self.over(what)) };
        let mut call = Begun(Some(begin(connection)));
        match tokio::time::timeout(self.server.call_time(), &mut call).await {
            Ok((connection, done)) => {
                self.connection = Some(connection);
                self.used = clock::monotonic();
                done.map_err(|error| self.noted(MysqlError::of(what, &error)))
            }
            Err(_) => Err(self.overdue(what, call).await),
        }
    }

    /// Draws the consequences of an error.
    fn noted(&mut self, error: MysqlError) -> MysqlError {
        if error.ends_connection() {
            self.abandon(error.to_string());
        } else if error.sort() == Sort::Conflict && self.transaction == Transaction::Open {
            self.transaction = Transaction::Gone(error.to_string());
        }
        error
    }

    /// The call goes on by itself; its session is killed, and what it has done is unknown.
    async fn overdue<T: Send + 'static>(&mut self, what: &'static str, call: Begun<T>) -> MysqlError {
        let after = self.server.call_time();
        self.lost = Some(format!("{what} took longer than {} ms", after.as_millis()));
        let mut rest = tokio::spawn(call);
        let ended = self.server.end(&self.facts).await;
        tracing::warn!(what, session = self.facts.id, ?ended, "killed a session that was over its time");
        // Its connection is closed by now. One whose server is silent is closed from this side: nobody uses it again.
        if tokio::time::timeout(GRACE, &mut rest).await.is_err() {
            rest.abort();
        }
        let killed = match ended {
            Ended::Gone => "the session was killed",
            Ended::Unknown => "the session could not be seen killed",
        };
        MysqlError::Connection { what, message: format!("{killed} after {} ms", after.as_millis()) }
    }
}

/// A call on its way. Dropped before its end it goes on by itself, with its connection.
struct Begun<T: Send + 'static>(Option<Call<T>>);

impl<T: Send + 'static> Future for Begun<T> {
    type Output = (MySqlConnection, Result<T, sqlx::Error>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else { return Poll::Pending };
        let polled = call.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Begun<T> {
    fn drop(&mut self) {
        if let (Some(call), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(call);
        }
    }
}

/// Prepares a text, from the kept ones if it is there. At the session's limit or the server's, all kept ones are let go
/// first, at once: the server does not answer to that, and a packet which follows it can wait 40 ms for the other side's
/// delayed acknowledgement (the driver leaves Nagle's algorithm on), so it must not happen with each text.
async fn prepared(connection: &mut MySqlConnection, sql: &SqlStr) -> Result<MySqlStatement, sqlx::Error> {
    if connection.cached_statements_size() >= STATEMENTS_MAX {
        connection.clear_cached_statements().await?;
    }
    match connection.prepare(sql.clone()).await {
        Err(error) if server_error(&error).is_some_and(|error| error.number() == TOO_MANY_STATEMENTS) => {
            connection.clear_cached_statements().await?;
            connection.prepare(sql.clone()).await
        }
        prepared => prepared,
    }
}

async fn execute(connection: &mut MySqlConnection, sql: SqlStr, args: MySqlArguments) -> Result<Done, sqlx::Error> {
    prepared(connection, &sql).await?;
    let done = sqlx::query_with(sql, args).execute(&mut *connection).await?;
    Ok(Done { affected: done.rows_affected(), last_insert_id: done.last_insert_id() })
}

async fn find(
    connection: &mut MySqlConnection,
    sql: SqlStr,
    args: MySqlArguments,
    rows_max: usize,
) -> Result<Found, sqlx::Error> {
    let statement = prepared(connection, &sql).await?;
    let mut found = Found { columns: Vec::new(), rows: Vec::new() };
    {
        let mut rows = sqlx::query_with(sql, args).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            if found.rows.len() < rows_max {
                found.rows.push(row);
            }
        }
    }
    let columns = found.rows.first().map_or_else(|| statement.columns(), sqlx::Row::columns);
    found.columns = columns.iter().map(|column| column.name().to_owned()).collect();
    Ok(found)
}

async fn describe(connection: &mut MySqlConnection, sql: SqlStr) -> Result<Described, sqlx::Error> {
    let statement = prepared(connection, &sql).await?;
    let parameters = match statement.parameters() {
        Some(Either::Right(number)) => number,
        Some(Either::Left(types)) => types.len(),
        None => 0,
    };
    let columns = statement.columns().iter();
    let columns = columns.map(|c| (c.name().to_owned(), c.type_info().name().to_owned())).collect();
    Ok(Described { parameters, columns })
}
