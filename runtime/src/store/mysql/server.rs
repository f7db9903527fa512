//! Where a tenant's database is, and how a connection to it begins: address, password, TLS, session settings.

use std::{str::FromStr as _, time::Duration};

use futures_util::TryStreamExt as _;
use oncebox_core::config::{self, Address, Hidden, Secret, Tls, TlsMode};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Either, Row as _,
    mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow, MySqlSslMode, MySqlTypeInfo},
};
use tokio::sync::Mutex;

use super::{columns, errors::server_error};
use crate::{access::secret, store::StoreError};

/// What every session with one tenant's database is opened with.
#[derive(Debug)]
pub(super) struct Server {
    address: Address,
    password: Option<Secret>,
    tls: Tls,
    lock_wait: Duration,
    idle_timeout: Duration,
    /// One call may take so long before its session is killed.
    call_time: Duration,
    /// Whose turn it is to kill: one connection at a time, however many sessions hang.
    pub(super) turn: Mutex<()>,
}

/// The longest time of one call. A lock is waited for `lock_wait_s` (a second), a run's own statements are short:
/// what takes longer than this has lost its server.
pub(super) const CALL_TIME: Duration = Duration::from_secs(30);
/// The longest time until a session stands.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Prepared statements kept a session, of the 16,382 that a server has for all
/// (`max_prepared_stmt_count`, MySQL 8.4 manual, 7.1.8).
pub(super) const STATEMENTS_MAX: usize = 128;

/// What was learnt of a session when it was opened.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The server's number of the connection.
    pub(super) id: u64,
    /// Which server it is: the same number means nothing on another one.
    pub(super) place: String,
    /// What runs there.
    pub(super) version: Version,
    /// `max_allowed_packet`.
    pub(super) packet_max: usize,
    /// How the server names an exact decimal, to bind one.
    pub(super) decimal: MySqlTypeInfo,
}

/// MySQL or MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    /// MySQL, and what calls itself so.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// What `VERSION()` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// Whose.
    pub(super) flavour: Flavour,
    /// Its three numbers.
    pub(super) number: (u16, u16, u16),
    /// As the server writes it.
    pub(super) text: String,
}

impl Version {
    /// Reads `9.7.4-2` or `10.11.19-MariaDB-log`; what is missing is 0.
    pub(super) fn read(text: &str) -> Self {
        let flavour = if text.to_ascii_lowercase().contains("mariadb") { Flavour::Mariadb } else { Flavour::Mysql };
        // Old clients were told `5.5.5-` before MariaDB's own number.
        let own = text.strip_prefix("5.5.5-").unwrap_or(text);
        let mut numbers = own.split(['.', '-', '+']).map(|part| u16::from_str(part).unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self { flavour, number: (next(), next(), next()), text: text.to_owned() }
    }
}

impl Server {
    /// The server that the configuration names.
    pub(super) fn new(settings: &config::Mysql) -> Self {
        Self {
            address: settings.address.clone(),
            password: settings.password.clone(),
            tls: settings.tls.clone(),
            lock_wait: settings.lock_wait,
            idle_timeout: settings.idle_timeout,
            call_time: CALL_TIME,
            turn: Mutex::new(()),
        }
    }

    /// The same with another time limit of one call.
    pub(super) fn with_call_time(self, call_time: Duration) -> Self {
        Self { call_time, ..self }
    }

    /// The longest time of one call.
    pub(super) fn call_time(&self) -> Duration {
        self.call_time
    }

    /// A lane that was idle for so long closes its own.
    pub(super) fn idle_after(&self) -> Duration {
        self.idle_timeout / 2
    }

    /// A session that was idle for so long is not used again: the server is about to end it.
    pub(super) fn idle_max(&self) -> Duration {
        self.idle_timeout.mul_f64(0.8)
    }

    /// Opens a connection with the host's settings. Nothing is lost when it is given up in the middle: nothing was
    /// begun on it.
    ///
    /// # Errors
    /// [`StoreError::Denied`] when the server does not let the user in; otherwise [`StoreError::Away`].
    pub(super) async fn connect(&self) -> Result<(MySqlConnection, Facts), StoreError> {
        let options = self.options()?;
        let opened = tokio::time::timeout(CONNECT_TIME, async {
            let mut connection = options.connect().await?;
            let facts = greet(&mut connection, &self.settings()).await?;
            Ok((connection, facts))
        });
        match opened.await {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) if is_refusal(&error) => {
                Err(StoreError::Denied { message: format!("{}: {}", self.address, words(&error)) })
            }
            Ok(Err(error)) => Err(self.away(&words(&error))),
            Err(_) => Err(self.away(&format!("no session within {} s", CONNECT_TIME.as_secs()))),
        }
    }

    fn away(&self, message: &str) -> StoreError {
        StoreError::Away { message: format!("cannot connect to {} ([store] url): {message}", self.address) }
    }

    fn options(&self) -> Result<MySqlConnectOptions, StoreError> {
        let mut options = MySqlConnectOptions::new()
            .host(&self.address.host)
            .port(self.address.port)
            .username(&self.address.user)
            .database(&self.address.space)
            .ssl_mode(match self.tls.mode {
                TlsMode::Off => MySqlSslMode::Disabled,
                TlsMode::Required => MySqlSslMode::Required,
                TlsMode::VerifyCa => MySqlSslMode::VerifyCa,
                TlsMode::VerifyIdentity => MySqlSslMode::VerifyIdentity,
            })
            // It never fills up: the session lets all go before, at once.
            .statement_cache_capacity(STATEMENTS_MAX + 1)
            // The driver's own session settings are off: they are set whole in `settings`.
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .timezone(None)
            .set_names(false)
            .disable_statement_logging();
        if let Some(password) = &self.password {
            let Hidden(password) = secret(password).map_err(|error| self.away(&error.to_string()))?;
            options = options.password(&password);
        }
        if let Some(file) = &self.tls.ca_file {
            options = options.ssl_ca(file);
        }
        if let Some(client) = &self.tls.client {
            options = options.ssl_client_cert(&client.cert_file).ssl_client_key(&client.key_file);
        }
        Ok(options)
    }

    /// All settings that a promise depends on, whatever the server's own are, and what must be known of it: one trip.
    fn settings(&self) -> String {
        let (lock_wait, idle) = (self.lock_wait.as_secs().max(1), self.idle_timeout.as_secs().max(1));
        format!(
            "SET NAMES utf8mb4, autocommit = 1, completion_type = 'NO_CHAIN', time_zone = '+00:00', lc_messages = 'en_US',
               sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
                           NO_ENGINE_SUBSTITUTION',
               foreign_key_checks = 1, unique_checks = 1, sql_safe_updates = 0, sql_select_limit = DEFAULT,
               innodb_lock_wait_timeout = {lock_wait}, lock_wait_timeout = {lock_wait}, wait_timeout = {idle};
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
             SELECT VERSION(), CONNECTION_ID(), @@max_allowed_packet,
               CONCAT_WS(':', @@hostname, @@port, @@server_id), 0.5"
        )
    }
}

/// Whether the server answers and does not let the user in: a wrong password, a missing right, no such database.
fn is_refusal(error: &sqlx::Error) -> bool {
    server_error(error).is_some_and(|error| matches!(error.number(), 1044 | 1045 | 1049 | 1130 | 1698))
}

/// Sends the settings and reads the answer.
async fn greet(connection: &mut MySqlConnection, settings: &str) -> Result<Facts, sqlx::Error> {
    let mut answers = sqlx::raw_sql(AssertSqlSafe(settings)).fetch_many(&mut *connection);
    let mut found: Option<MySqlRow> = None;
    while let Some(answer) = answers.try_next().await? {
        if let Either::Right(row) = answer {
            found = Some(row);
        }
    }
    let row = found.ok_or(sqlx::Error::RowNotFound)?;
    Ok(Facts {
        version: Version::read(&row.try_get_unchecked::<String, _>(0)?),
        id: columns::unsigned(&row, 1)?,
        packet_max: usize::try_from(columns::unsigned(&row, 2)?).unwrap_or(usize::MAX),
        place: row.try_get_unchecked(3)?,
        decimal: row.column(4).type_info().clone(),
    })
}

/// What the server or the driver says of a connection that does not come about.
fn words(error: &sqlx::Error) -> String {
    server_error(error)
        .map_or_else(|| error.to_string(), |server| format!("{} (error {})", server.message(), server.number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_the_servers_say() {
        for (text, flavour, number) in [
            ("9.7.4-2", Flavour::Mysql, (9, 7, 4)),
            ("8.4.0", Flavour::Mysql, (8, 4, 0)),
            ("8.0.39-0ubuntu0.22.04.1", Flavour::Mysql, (8, 0, 39)),
            ("10.11.19-MariaDB-0+deb12u1-log", Flavour::Mariadb, (10, 11, 19)),
            ("5.5.5-10.11.2-MariaDB", Flavour::Mariadb, (10, 11, 2)),
            ("11.8.1-mariadb", Flavour::Mariadb, (11, 8, 1)),
            ("nonsense", Flavour::Mysql, (0, 0, 0)),
        ] {
            assert_eq!(Version::read(text), Version { flavour, number, text: text.to_owned() }, "{text}");
        }
    }
}
