//! How a server is reached: its address, the password, TLS.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

use super::{Config, Connection, Store};

/// Where a server is, and as whom it is spoken to. From `url`, with everything percent-decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host name in lower case, or an address; an IPv6 one without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Database of MySQL, virtual host of RabbitMQ.
    pub space: String,
}

impl Address {
    /// Whether the host is this machine by its very name, so that nobody listens in between.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_v4 = |host: &str| host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        let is_v6 = |host: &str| host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
        self.host == "localhost" || is_v4(&self.host) || is_v6(&self.host)
    }

    /// Whether both mean the same database of the same server, as far as their texts tell.
    #[must_use]
    pub fn is_same_space(&self, other: &Self) -> bool {
        let is_this_machine = |address: &Self| matches!(address.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        let is_same_host = self.host == other.host || is_this_machine(self) && is_this_machine(other);
        is_same_host && self.port == other.port && self.space == other.space
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, user, space } = self;
        match host.contains(':') {
            true => write!(f, "{user}@[{host}]:{port}/{space}"),
            false => write!(f, "{user}@{host}:{port}/{space}"),
        }
    }
}

/// A text that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A text that is not kept in the configuration, or is at least hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// It stands in the file.
    Plain(Hidden),
    /// `{ env = "NAME" }`.
    Env(String),
    /// `{ file = "PATH" }`; a line break at its end does not count. Relative to the configuration file's folder.
    File(PathBuf),
}

/// How far a server's TLS is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS.
    Off,
    /// Encrypted, with whomever.
    Required,
    /// The certificate is signed by a known authority.
    VerifyCa,
    /// And it names the host.
    VerifyIdentity,
}

/// TLS of a connection. Paths are relative to the configuration file's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// `tls`.
    pub mode: TlsMode,
    /// `ca_file`: PEM; `None`: the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// `cert_file` and `key_file`: PEM, for mutual TLS.
    pub client: Option<TlsClient>,
}

/// What this side shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsClient {
    /// `cert_file`.
    pub cert_file: PathBuf,
    /// `key_file`.
    pub key_file: PathBuf,
}

impl Config {
    /// Lets every relative path of a secret or of TLS start at this folder. The others are left as they are written.
    pub fn start_access_paths_at(&mut self, folder: &Path) {
        for tenant in self.tenants.values_mut() {
            if let Store::Mysql(own) = &mut tenant.store {
                own.tls.start_at(folder);
                for secret in [&mut own.password, &mut own.migrate_url].into_iter().flatten() {
                    secret.start_at(folder);
                }
            }
            for Connection::Rabbitmq(own) in tenant.connections.values_mut() {
                own.tls.start_at(folder);
                if let Some(secret) = &mut own.password {
                    secret.start_at(folder);
                }
            }
        }
    }
}

impl Secret {
    fn start_at(&mut self, folder: &Path) {
        if let Self::File(path) = self {
            *path = folder.join(&path);
        }
    }
}

impl Tls {
    fn start_at(&mut self, folder: &Path) {
        let client = self.client.iter_mut().flat_map(|client| [&mut client.cert_file, &mut client.key_file]);
        for path in client.chain(&mut self.ca_file) {
            *path = folder.join(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str) -> Address {
        Address { host: host.into(), port: 3306, user: "shop".into(), space: "s".into() }
    }

    #[test]
    fn only_names_of_this_very_machine_are_local() {
        for (host, is_local) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.255.0.9", true),
            ("::1", true),
            ("128.0.0.1", false),
            ("::2", false),
            ("localhost.example.com", false),
            ("127.example.com", false),
        ] {
            assert_eq!(at(host).is_local(), is_local, "{host}");
        }
    }

    #[test]
    fn the_same_database_is_known_by_host_port_and_name() {
        assert!(at("localhost").is_same_space(&at("127.0.0.1")) && at("::1").is_same_space(&at("localhost")));
        assert!(at("db").is_same_space(&Address { user: "other".into(), ..at("db") }));
        assert!(!at("db").is_same_space(&at("db2")) && !at("127.0.0.2").is_same_space(&at("127.0.0.1")));
        assert!(!at("db").is_same_space(&Address { port: 3307, ..at("db") }));
        assert!(!at("db").is_same_space(&Address { space: "S".into(), ..at("db") }));
    }

    #[test]
    fn an_address_is_shown_so_that_it_can_be_written_again() {
        assert_eq!(at("db").to_string(), "shop@db:3306/s");
        assert_eq!(at("::1").to_string(), "shop@[::1]:3306/s");
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        assert_eq!(format!("{:?}", Secret::Plain(Hidden("s3".into()))), "Plain((hidden))");
    }
}
