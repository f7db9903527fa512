//! The servers that the tests need, and what is asked of each.

use super::version::Version;

/// A server that tests can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// MySQL, a store.
    Mysql,
    /// RabbitMQ, a source and destination.
    Rabbitmq,
    /// MariaDB, which speaks MySQL's protocol and differs in what it promises.
    Mariadb,
}

impl Server {
    /// All of them, in the order in which they are brought up.
    pub(crate) const ALL: [Self; 3] = [Self::Mysql, Self::Rabbitmq, Self::Mariadb];

    /// Its name on the command line, in the folder and in `servers.json`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Rabbitmq => "rabbitmq",
            Self::Mariadb => "mariadb",
        }
    }

    /// The server of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|server| server.name() == name)
    }

    /// Its name for people.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Mysql => "MySQL",
            Self::Rabbitmq => "RabbitMQ",
            Self::Mariadb => "MariaDB",
        }
    }

    /// The oldest version that the tests are written for.
    pub(super) const fn oldest(self) -> Version {
        match self {
            Self::Mysql => Version(8, 4),
            Self::Rabbitmq => Version(4, 0),
            Self::Mariadb => Version(10, 11),
        }
    }

    /// The environment variable that gives one, and a value that it may have.
    pub(super) const fn variable(self) -> (&'static str, &'static str) {
        match self {
            Self::Mysql => ("ONCEBOX_TEST_MYSQL_URL", "mysql://root:secret@127.0.0.1:3306"),
            Self::Rabbitmq => ("ONCEBOX_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672"),
            Self::Mariadb => ("ONCEBOX_TEST_MARIADB_URL", "mysql://root:secret@127.0.0.1:3306"),
        }
    }

    /// The port of its URL where the URL names none.
    pub(super) const fn usual_port(self) -> u16 {
        match self {
            Self::Mysql | Self::Mariadb => 3306,
            Self::Rabbitmq => 5672,
        }
    }

    /// The ports that it needs, and the ones that are tried first. None is a default of anybody's.
    pub(super) const fn ports(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Mysql => &[("port", 13306)],
            Self::Mariadb => &[("port", 13307)],
            Self::Rabbitmq => {
                &[("port", 15673), ("tls_port", 15671), ("api_port", 15675), ("dist_port", 15677), ("epmd_port", 15679)]
            }
        }
    }
}
