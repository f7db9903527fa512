//! The url of a server: `mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE`, `amqp[s]://USER[:PASSWORD]@HOST[:PORT]/VHOST`.
//!
//! A part of the text may be a password, wherever the slip of the pen is: no message repeats any of it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Address, Hidden};

/// Bytes of a whole url.
const URL_BYTES_MAX: usize = 4_096;

/// Bytes of a host name (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// Characters of a database's name (MySQL 8.4 manual, 11.2.1).
const DATABASE_CHARS_MAX: usize = 64;

/// Bytes of a vhost's name: a short string of AMQP 0-9-1.
const VHOST_BYTES_MAX: usize = 255;

/// What kind of server a url is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// `mysql://`.
    Mysql,
    /// `amqp://` and `amqps://`.
    Rabbitmq,
}

impl Server {
    /// The form of its urls.
    #[must_use]
    pub fn form(self) -> &'static str {
        match self {
            Self::Mysql => "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE",
            Self::Rabbitmq => "amqp[s]://USER[:PASSWORD]@HOST[:PORT][/VHOST]",
        }
    }

    /// Every scheme with its port and whether it speaks TLS.
    fn schemes(self) -> &'static [(&'static str, u16, bool)] {
        match self {
            Self::Mysql => &[("mysql://", 3306, false)],
            Self::Rabbitmq => &[("amqp://", 5672, false), ("amqps://", 5671, true)],
        }
    }
}

/// What a url says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// All but the password.
    pub address: Address,
    /// The password, if it stands there.
    pub password: Option<Hidden>,
    /// Whether the scheme asks for TLS.
    pub is_tls: bool,
}

/// Why a url cannot be used. Words that go on after what the url is called; none of its own text is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not even a url.
    #[error("is empty")]
    Empty,
    /// Above the limit of 4,096 bytes.
    #[error("is longer than 4_096 bytes")]
    TooLong,
    /// Another scheme, or none.
    #[error("does not begin with {}", match .0 { Server::Mysql => "mysql://", Server::Rabbitmq => "amqp:// or amqps://" })]
    Scheme(Server),
    /// `?` or `#`.
    #[error("has a ? or #, and nothing is read from what follows it")]
    Query,
    /// No `@`, or nothing before it.
    #[error("names no user")]
    NoUser,
    /// Nothing after the `@`.
    #[error("names no host")]
    NoHost,
    /// The host's own form.
    #[error("has a host that is neither a name, nor an IPv4 address, nor an IPv6 address in brackets")]
    Host,
    /// The port's own form.
    #[error("has a port that is no number from 1 to 65535")]
    Port,
    /// A `%` by itself.
    #[error("has a % without two hexadecimal digits after it")]
    Percent,
    /// What the percent-encoding stands for is no text.
    #[error("is not UTF-8 when its percent-encoding is undone")]
    NotText,
    /// A control character, percent-encoded or not.
    #[error("has a control character")]
    Control,
    /// No path.
    #[error("names no database")]
    NoDatabase,
    /// A database's own form.
    #[error("has a database's name of more than 64 characters")]
    LongDatabase,
    /// A path of several parts.
    #[error("has a second / after the host")]
    Slash,
    /// `amqp://host/`.
    #[error("ends with a / after the host, which means the vhost with the empty name")]
    EmptyVhost,
    /// A vhost's own form.
    #[error("has a vhost's name of more than 255 bytes")]
    LongVhost,
}

impl UrlError {
    /// How to mend it.
    #[must_use]
    pub fn help(self, server: Server) -> String {
        let form = server.form();
        match self {
            Self::Empty | Self::TooLong | Self::Scheme(_) | Self::NoHost | Self::Host | Self::NoDatabase => {
                format!("write {form}")
            }
            Self::NoUser | Self::Port => {
                format!("write {form}; in user and password write : as %3a, / as %2f and @ as %40")
            }
            Self::Query => {
                "other settings have keys of their own; in user and password write ? as %3f and # as %23".into()
            }
            Self::Percent => "write % itself as %25".into(),
            Self::NotText | Self::Control | Self::LongDatabase | Self::LongVhost => {
                "see that every part is written as the server knows it".into()
            }
            Self::Slash => "write a / that belongs to the name as %2f; otherwise leave it out".into(),
            Self::EmptyVhost => "write no path for the vhost `/`, or `/%2f`".into(),
        }
    }
}

impl ServerUrl {
    /// Takes a url apart; every part is percent-decoded.
    ///
    /// # Errors
    /// [`UrlError`]: what is wrong with it.
    pub fn parse(text: &str, server: Server) -> Result<Self, UrlError> {
        match text.len() {
            0 => return Err(UrlError::Empty),
            length if length > URL_BYTES_MAX => return Err(UrlError::TooLong),
            _ => {}
        }
        let scheme = server.schemes().iter().find_map(|(scheme, port, is_tls)| {
            // RFC 3986, 3.1: schemes are compared without regard to case.
            let start = text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
            Some((&text[start.len()..], *port, *is_tls))
        });
        let (rest, port, is_tls) = scheme.ok_or(UrlError::Scheme(server))?;
        if rest.contains(['?', '#']) {
            return Err(UrlError::Query);
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], Some(&rest[slash + 1..])),
            None => (rest, None),
        };
        // A host has no @, so that the last one ends the password.
        let (access, place) = authority.rsplit_once('@').ok_or(UrlError::NoUser)?;
        let (user, password) = access.split_once(':').unwrap_or((access, ""));
        if user.is_empty() {
            return Err(UrlError::NoUser);
        }
        let (host, port) = host_and_port(place, port)?;
        let space = match server {
            Server::Mysql => database(path)?,
            Server::Rabbitmq => vhost(path)?,
        };
        let password = decoded(password)?;
        Ok(Self {
            address: Address { host, port, user: decoded(user)?, space },
            password: (!password.is_empty()).then_some(Hidden(password)),
            is_tls,
        })
    }
}

fn host_and_port(place: &str, default: u16) -> Result<(String, u16), UrlError> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(UrlError::Host)?;
            let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host)?;
            let port = match port.strip_prefix(':') {
                Some(port) => Some(port),
                None if port.is_empty() => None,
                None => return Err(UrlError::Host),
            };
            (address.to_string(), port)
        }
        None => {
            let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
            (named_host(host)?, port)
        }
    };
    let port = match port {
        None => default,
        // `parse` would take a sign.
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| UrlError::Port)?,
        Some(_) => return Err(UrlError::Port),
    };
    if port == 0 { Err(UrlError::Port) } else { Ok((host, port)) }
}

/// A host name in lower case, or an IPv4 address.
fn named_host(host: &str) -> Result<String, UrlError> {
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let fits = |label: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && label.bytes().all(allowed)
    };
    // A dot at the end keeps a resolver from adding a search domain.
    let labels = host.strip_suffix('.').unwrap_or(host);
    let is_number = labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    let is_good = match is_number {
        true => host.parse::<Ipv4Addr>().is_ok(),
        false => host.len() <= HOST_BYTES_MAX && labels.split('.').all(fits),
    };
    if is_good { Ok(host.to_ascii_lowercase()) } else { Err(UrlError::Host) }
}

fn database(path: Option<&str>) -> Result<String, UrlError> {
    let name = path.filter(|name| !name.is_empty()).ok_or(UrlError::NoDatabase)?;
    if name.contains('/') {
        return Err(UrlError::Slash);
    }
    let name = decoded(name)?;
    if name.chars().count() > DATABASE_CHARS_MAX { Err(UrlError::LongDatabase) } else { Ok(name) }
}

/// RabbitMQ URI specification: no path at all leaves the vhost to the default, `/`; a path of only `/` names the vhost
/// with the empty name, which hardly anybody means.
fn vhost(path: Option<&str>) -> Result<String, UrlError> {
    match path {
        None => Ok("/".to_owned()),
        Some("") => Err(UrlError::EmptyVhost),
        Some(name) if name.contains('/') => Err(UrlError::Slash),
        Some(name) => {
            let name = decoded(name)?;
            if name.len() > VHOST_BYTES_MAX { Err(UrlError::LongVhost) } else { Ok(name) }
        }
    }
}

/// Undoes percent-encoding (RFC 3986, 2.1).
fn decoded(text: &str) -> Result<String, UrlError> {
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or(UrlError::Percent);
    let (mut bytes, mut out) = (text.bytes(), Vec::with_capacity(text.len()));
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let value = digit(bytes.next())? * 16 + digit(bytes.next())?;
                u8::try_from(value).map_err(|_| UrlError::Percent)?
            }
            other => other,
        };
        out.push(byte);
    }
    let text = String::from_utf8(out).map_err(|_| UrlError::NotText)?;
    if text.chars().any(char::is_control) { Err(UrlError::Control) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'a> = (&'a str, Option<&'a str>, &'a str, u16, &'a str);

    #[track_caller]
    fn assert_parts(text: &str, server: Server, (user, password, host, port, space): Parts<'_>, is_tls: bool) {
        let address = Address { host: host.into(), port, user: user.into(), space: space.into() };
        let password = password.map(|password| Hidden(password.into()));
        assert_eq!(ServerUrl::parse(text, server), Ok(ServerUrl { address, password, is_tls }), "{text}");
    }

    #[test]
    fn a_url_of_mysql_is_taken_apart() {
        for (text, parts) in [
            ("mysql://shop@db/orders", ("shop", None, "db", 3306, "orders")),
            ("mysql://shop:pw@db.internal:3307/orders", ("shop", Some("pw"), "db.internal", 3307, "orders")),
            ("MySQL://shop@DB.Internal/Orders", ("shop", None, "db.internal", 3306, "Orders")),
            ("mysql://shop@10.0.0.7/s", ("shop", None, "10.0.0.7", 3306, "s")),
            ("mysql://shop@[::1]/s", ("shop", None, "::1", 3306, "s")),
            ("mysql://shop:p@[2001:DB8::7]:1/s", ("shop", Some("p"), "2001:db8::7", 1, "s")),
            ("mysql://a%40b:c%3ad%2fe@db/s", ("a@b", Some("c:d/e"), "db", 3306, "s")),
            ("mysql://shop:p:q@db/s", ("shop", Some("p:q"), "db", 3306, "s")),
            ("mysql://shop:p@q@db/s", ("shop", Some("p@q"), "db", 3306, "s")),
            ("mysql://shop:%E5%AF%86@db/%e5%ba%97", ("shop", Some("密"), "db", 3306, "店")),
            ("mysql://shop:@db/s", ("shop", None, "db", 3306, "s")),
            ("mysql://shop:100%25@db/a%2Fb", ("shop", Some("100%"), "db", 3306, "a/b")),
            ("mysql://shop@db_1-x.:65535/s", ("shop", None, "db_1-x.", 65_535, "s")),
        ] {
            assert_parts(text, Server::Mysql, parts, false);
        }
    }

    #[test]
    fn a_url_of_rabbitmq_is_taken_apart() {
        for (text, parts, is_tls) in [
            ("amqp://shop@mq", ("shop", None, "mq", 5672, "/"), false),
            ("amqps://shop@mq", ("shop", None, "mq", 5671, "/"), true),
            ("AMQPS://shop:pw@mq:1/orders", ("shop", Some("pw"), "mq", 1, "orders"), true),
            ("amqp://shop@mq/%2f", ("shop", None, "mq", 5672, "/"), false),
            ("amqp://shop@mq/%2Fa%2Fb", ("shop", None, "mq", 5672, "/a/b"), false),
            (
                "amqp://user%20one:p%3fq%23@[fe80::1]:5673/a%20b",
                ("user one", Some("p?q#"), "fe80::1", 5673, "a b"),
                false,
            ),
        ] {
            assert_parts(text, Server::Rabbitmq, parts, is_tls);
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        let long = "x".repeat(64);
        for (text, error) in [
            ("", UrlError::Empty),
            ("shop", UrlError::Scheme(Server::Mysql)),
            ("shop:pw@db/s", UrlError::Scheme(Server::Mysql)),
            ("mysql:/shop@db/s", UrlError::Scheme(Server::Mysql)),
            ("mariadb://shop@db/s", UrlError::Scheme(Server::Mysql)),
            ("amqp://shop@db/s", UrlError::Scheme(Server::Mysql)),
            ("密://shop@db/s", UrlError::Scheme(Server::Mysql)),
            ("mysql://shop@db/s?ssl-mode=off", UrlError::Query),
            ("mysql://shop:p#w@db/s", UrlError::Query),
            ("mysql://", UrlError::NoUser),
            ("mysql://db/s", UrlError::NoUser),
            ("mysql://@db/s", UrlError::NoUser),
            ("mysql://:pw@db/s", UrlError::NoUser),
            ("mysql://shop:p/w@db/s", UrlError::NoUser),
            ("mysql://shop@/s", UrlError::NoHost),
            ("mysql://shop@:3306/s", UrlError::NoHost),
            ("mysql://shop@::1/s", UrlError::NoHost),
            ("mysql://shop@[::1/s", UrlError::Host),
            ("mysql://shop@[db]/s", UrlError::Host),
            ("mysql://shop@[fe80::1%25eth0]/s", UrlError::Host),
            ("mysql://shop@[::1]3306/s", UrlError::Host),
            ("mysql://shop@d b/s", UrlError::Host),
            ("mysql://shop@-db/s", UrlError::Host),
            ("mysql://shop@db..x/s", UrlError::Host),
            ("mysql://shop@127.1/s", UrlError::Host),
            ("mysql://shop@256.0.0.1/s", UrlError::Host),
            ("mysql://shop@büro/s", UrlError::Host),
            (&format!("mysql://shop@{long}/s"), UrlError::Host),
            ("mysql://shop@db:/s", UrlError::Port),
            ("mysql://shop@db:0/s", UrlError::Port),
            ("mysql://shop@db:65536/s", UrlError::Port),
            ("mysql://shop@db:+1/s", UrlError::Port),
            ("mysql://shop@db:pw/s", UrlError::Port),
            ("mysql://shop@[::1]:x/s", UrlError::Port),
            ("mysql://shop:100%@db/s", UrlError::Percent),
            ("mysql://shop:%4@db/s", UrlError::Percent),
            ("mysql://sh%zzop@db/s", UrlError::Percent),
            ("mysql://shop:%+1@db/s", UrlError::Percent),
            ("mysql://shop:%ff@db/s", UrlError::NotText),
            ("mysql://shop:a%0ab@db/s", UrlError::Control),
            ("mysql://shop@db/a%00", UrlError::Control),
            ("mysql://shop@db", UrlError::NoDatabase),
            ("mysql://shop@db/", UrlError::NoDatabase),
            ("mysql://shop@db/s/", UrlError::Slash),
            ("mysql://shop@db/a/b", UrlError::Slash),
            (&format!("mysql://shop@db/x{long}"), UrlError::LongDatabase),
            (&format!("mysql://shop@db/{}", long.repeat(64)), UrlError::TooLong),
        ] {
            assert_eq!(ServerUrl::parse(text, Server::Mysql), Err(error), "{text}");
        }
        for (text, error) in [
            ("mysql://shop@mq/s", UrlError::Scheme(Server::Rabbitmq)),
            ("amqp://mq", UrlError::NoUser),
            ("amqp://shop@mq/", UrlError::EmptyVhost),
            ("amqp://shop@mq//", UrlError::Slash),
            ("amqp://shop@mq/a/b", UrlError::Slash),
            ("amqps://shop@mq?heartbeat=5", UrlError::Query),
            (&format!("amqp://shop@mq/{}", long.repeat(4)), UrlError::LongVhost),
        ] {
            assert_eq!(ServerUrl::parse(text, Server::Rabbitmq), Err(error), "{text}");
        }
    }

    #[test]
    fn the_trap_of_the_empty_vhost_is_explained() {
        let help = UrlError::EmptyVhost.help(Server::Rabbitmq);
        assert_eq!(help, "write no path for the vhost `/`, or `/%2f`");
    }
}
