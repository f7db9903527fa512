//! Opening a connection: the password of now, TLS as configured, an end to every wait.

use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_rs::Runtime;
use lapin::{
    ConnectionProperties, ErrorKind,
    tcp::{AMQPUriTcpExt as _, AsyncTcpStream, RustlsConnector, RustlsConnectorConfig},
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo},
};
use oncebox_core::config::{Rabbitmq, Tls, TlsClient, TlsMode};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use super::wire::{self, Kit, Wire};
use crate::{access, clock, source::SourceError};

/// The longest wait for any answer of the broker.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What is connected to, and under which name.
pub(super) struct Target<'a> {
    /// The connection's name in the configuration.
    pub(super) name: &'a str,
    /// What the operator says of it.
    pub(super) settings: &'a Rabbitmq,
    /// What the broker shows it as.
    pub(super) shown_as: String,
}

impl Target<'_> {
    /// Host and port.
    pub(super) fn address(&self) -> String {
        let address = &self.settings.address;
        format!("{}:{}", address.host, address.port)
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// [`SourceError`]: what to mend, as far as it can be told.
    pub(super) async fn connect(&self) -> Result<lapin::Connection, SourceError> {
        let uri = self.uri()?;
        let tls = self.connector()?;
        let properties = ConnectionProperties::default().with_connection_name(self.shown_as.as_str().into());
        let until = tokio::time::Instant::from(clock::monotonic() + ANSWER_MAX);
        let connected = Arc::new(AtomicBool::new(false));
        let is_connected = connected.clone();
        let dial = async move |uri: AMQPUri, _: Runtime<Kit>| {
            let plain = AMQPUri { scheme: AMQPScheme::AMQP, ..uri.clone() };
            let opened = async {
                let stream = plain.connect_async(&Runtime::tokio_current()).await?;
                match &tls {
                    Some(connector) => stream.into_rustls(connector, &uri.authority.host).await,
                    None => Ok(stream),
                }
            };
            let opened = tokio::time::timeout_at(until, opened).await;
            let stream = opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
            Ok(AsyncTcpStream::Plain(Wire::new(stream, until, is_connected.clone())))
        };
        let connecting = lapin::Connection::connector(uri, wire::runtime(), dial, properties);
        let connection = match tokio::time::timeout_at(until, connecting).await {
            Ok(connection) => connection.map_err(|error| self.failed(&error))?,
            Err(_) => return Err(self.no_answer("connect")),
        };
        connected.store(true, Ordering::Relaxed);
        Ok(connection)
    }

    /// The broker did not answer in time.
    pub(super) fn no_answer(&self, what: &'static str) -> SourceError {
        let seconds = ANSWER_MAX.as_secs();
        SourceError::NoAnswer { connection: self.name.to_owned(), address: self.address(), what, seconds }
    }

    fn uri(&self) -> Result<AMQPUri, SourceError> {
        let Rabbitmq { address, password, tls, heartbeat } = self.settings;
        let password = password
            .as_ref()
            .map(access::secret)
            .transpose()
            .map_err(|error| SourceError::Password { connection: self.name.to_owned(), reason: error.to_string() })?;
        Ok(AMQPUri {
            scheme: if tls.mode == TlsMode::Off { AMQPScheme::AMQP } else { AMQPScheme::AMQPS },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: address.user.clone(),
                    password: password.map_or_else(String::new, |hidden| hidden.0),
                },
                host: address.host.clone(),
                port: address.port,
            },
            vhost: address.space.clone(),
            query: AMQPQueryString {
                heartbeat: Some(u16::try_from(heartbeat.as_secs()).unwrap_or(u16::MAX)),
                ..AMQPQueryString::default()
            },
        })
    }

    /// With a `ca_file`, only its authorities are trusted.
    fn connector(&self) -> Result<Option<RustlsConnector>, SourceError> {
        let Tls { mode, ca_file, client } = &self.settings.tls;
        if *mode == TlsMode::Off {
            return Ok(None);
        }
        let of = |setting, path: &Path, reason: String| SourceError::Tls {
            connection: self.name.to_owned(),
            setting,
            path: path.to_owned(),
            reason,
        };
        let roots = match ca_file {
            Some(path) => {
                let certificates = certificates(path).map_err(|reason| of("ca_file", path, reason))?;
                RustlsConnectorConfig::default().with_parsable_certificates(certificates)
            }
            None => RustlsConnectorConfig::new_with_native_certs().map_err(|error| {
                self.unreachable(format!("this machine knows no authorities of TLS ({error}); give a ca_file"))
            })?,
        };
        let built = match client {
            Some(TlsClient { cert_file, key_file }) => {
                let chain = certificates(cert_file).map_err(|reason| of("cert_file", cert_file, reason))?;
                let key = key(key_file).map_err(|reason| of("key_file", key_file, reason))?;
                let built = roots.connector_with_single_cert(chain, key);
                built.map_err(|error| of("cert_file", cert_file, error.to_string()))
            }
            None => roots
                .connector_with_no_client_auth()
                .map_err(|error| self.unreachable(format!("TLS cannot be set up: {error}"))),
        };
        built.map(Some)
    }

    fn unreachable(&self, reason: String) -> SourceError {
        SourceError::Unreachable { connection: self.name.to_owned(), address: self.address(), reason }
    }

    fn failed(&self, error: &lapin::Error) -> SourceError {
        let (connection, address, user) = (self.name.to_owned(), self.address(), self.settings.address.user.clone());
        match refusal(error) {
            Some((403, reason)) => SourceError::LoginRefused { connection, address, user, reason },
            Some((530, reason)) => SourceError::VhostRefused {
                connection,
                address,
                user,
                vhost: self.settings.address.space.clone(),
                reason,
            },
            Some((_, reason)) => SourceError::Unreachable { connection, address, reason },
            None if matches!(error.kind(), ErrorKind::IOError(cause) if cause.kind() == io::ErrorKind::TimedOut) => {
                self.no_answer("connect")
            }
            None => SourceError::Unreachable { connection, address, reason: plainly(error) },
        }
    }
}

/// The broker's own words and their number, where the error is its answer.
pub(super) fn refusal(error: &lapin::Error) -> Option<(u16, String)> {
    let ErrorKind::ProtocolError(answer) = error.kind() else { return None };
    Some((answer.get_id(), answer.get_message().to_string()))
}

/// The library's words; of the system's errors the system's own.
pub(super) fn plainly(error: &lapin::Error) -> String {
    if let ErrorKind::IOError(cause) = error.kind() { cause.to_string() } else { error.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if all.is_empty() => Err("there is no certificate in it (PEM is expected)".to_owned()),
        Ok(all) => Ok(all),
        Err(error) => Err(format!("it is no PEM: {error}")),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|error| format!("there is no private key in it (PEM is expected): {error}"))
}
