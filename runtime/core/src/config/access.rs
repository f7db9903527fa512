//! How a server is reached: its address, the password, TLS.

use std::{fmt, path::PathBuf};

/// Where a server is, and as whom it is spoken to. From `url`, with everything percent-decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Database of MySQL, virtual host of RabbitMQ.
    pub space: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, user, space } = self;
        write!(f, "{user}@{host}:{port}/{space}")
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
