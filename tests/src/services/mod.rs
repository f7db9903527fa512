//! Real servers for tests: those that `cargo services up` started, or those that environment variables give.
//!
//! Everything here blocks, and may be called in an async test too. What a test makes (a database, a virtual host, a
//! server of its own) is removed when its value is dropped.

#![expect(clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod api;
mod database;
mod list;
mod private;
mod process;
mod vhost;

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
};

pub use api::Api;
pub use database::{MysqlDatabase, Session, User};
pub use private::PrivateServer;
pub use vhost::{Counts, Vhost};

use self::list::Template;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// MySQL 8.4 or newer.
    Mysql,
    /// MariaDB 10.11 or newer.
    Mariadb,
    /// RabbitMQ 4.
    Rabbitmq,
}

impl Kind {
    /// Its name for `cargo services up` and in `servers.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
            Self::Rabbitmq => "rabbitmq",
        }
    }

    /// The table of a database server that lists the sessions.
    #[must_use]
    pub const fn process_list(self) -> &'static str {
        match self {
            // The other one of MySQL reads the running texts, and fails where one has bytes that are no text (3854).
            Self::Mysql => "performance_schema.processlist",
            Self::Mariadb | Self::Rabbitmq => "information_schema.processlist",
        }
    }

    /// The environment variable that gives one.
    const fn variable(self) -> &'static str {
        match self {
            Self::Mysql => "ONCEBOX_TEST_MYSQL_URL",
            Self::Mariadb => "ONCEBOX_TEST_MARIADB_URL",
            Self::Rabbitmq => "ONCEBOX_TEST_RABBITMQ_URL",
        }
    }
}

/// Certificates by which a server is trusted, and a client's own.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The authority that signed the server's certificate (for `localhost` and `127.0.0.1`) and the client's.
    pub ca_file: PathBuf,
    /// An authority that signed neither.
    pub other_ca_file: PathBuf,
    /// The client's certificate.
    pub client_cert_file: PathBuf,
    /// Its key.
    pub client_key_file: PathBuf,
}

/// A server that all tests share: none may stop it or change what others see.
#[derive(Debug, Clone)]
pub struct Server {
    /// Which one.
    pub kind: Kind,
    /// Its URL with the user that may do everything, without a path.
    pub url: String,
    /// RabbitMQ's URL with TLS.
    pub tls_url: Option<String>,
    /// Where its certificates are, when it is one of `cargo services up`.
    pub tls: Option<Tls>,
    /// RabbitMQ's management API, `http://USER:PASSWORD@HOST:PORT`.
    pub api: Option<String>,
    /// What a command for this RabbitMQ begins with (`…/rabbitmqctl`); empty: there is none.
    pub ctl: Vec<String>,
    private: Option<Template>,
}

impl Server {
    /// The MySQL of the tests.
    ///
    /// # Panics
    /// There is none; the text says how to get one.
    #[must_use]
    #[track_caller]
    pub fn mysql() -> Self {
        Self::of(Kind::Mysql)
    }

    /// The MariaDB of the tests.
    ///
    /// # Panics
    /// There is none; the text says how to get one.
    #[must_use]
    #[track_caller]
    pub fn mariadb() -> Self {
        Self::of(Kind::Mariadb)
    }

    /// The RabbitMQ of the tests.
    ///
    /// # Panics
    /// There is none; the text says how to get one.
    #[must_use]
    #[track_caller]
    pub fn rabbitmq() -> Self {
        Self::of(Kind::Rabbitmq)
    }

    /// The server of that kind.
    ///
    /// # Panics
    /// There is none; the text says how to get one.
    #[must_use]
    #[track_caller]
    pub fn of(kind: Kind) -> Self {
        Self::find(kind).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The server of that kind, or how to get one.
    ///
    /// # Errors
    /// There is none.
    pub fn find(kind: Kind) -> Result<Self, String> {
        if let Ok(url) = std::env::var(kind.variable())
            && !url.is_empty()
        {
            return Ok(Self::given(kind, url.trim_end_matches('/').to_owned()));
        }
        list::read(kind).ok_or_else(|| {
            let (name, variable) = (kind.name(), kind.variable());
            format!("this test needs a {name} server: run `cargo services up {name}`, or set {variable}")
        })
    }

    /// One that a person gave. Its management API is where its URL says, at the usual port.
    fn given(kind: Kind, url: String) -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let usual = || {
            let (_, rest) = url.split_once("://")?;
            let host =
                rest.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(rest, |(host, _)| host);
            Some(format!("http://{host}:15672"))
        };
        let api = if kind == Kind::Rabbitmq { set("ONCEBOX_TEST_RABBITMQ_API_URL").or_else(usual) } else { None };
        Self { kind, url, tls_url: None, tls: None, api, ctl: Vec::new(), private: None }
    }

    /// The management API.
    ///
    /// # Panics
    /// This is no RabbitMQ.
    #[must_use]
    pub fn api(&self) -> Api {
        Api::new(self.api.as_deref().expect("only RabbitMQ has a management API"))
    }

    /// `HOST:PORT` of the URL.
    ///
    /// # Panics
    /// The URL has no host.
    #[must_use]
    pub fn address(&self) -> String {
        let (_, rest) = self.url.split_once("://").expect("a URL has a scheme");
        rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned()
    }
}

/// A name that nobody else has.
fn fresh_name() -> String {
    // Each state has keys of its own, from the system's random numbers.
    format!("ob_t_{:016x}", RandomState::new().hash_one(std::process::id()))
}
