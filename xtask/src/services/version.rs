//! Versions of servers, as their programs and their greetings say them.

use std::fmt;

/// The part of a version that decides whether a server fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32);

impl Version {
    /// Reads `9.7.4-2` or `10.11.19-MariaDB`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(|c: char| !c.is_ascii_digit());
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Whose server says so: `mysqld` is the name of two.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// MySQL or a build of it.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// Reads what `mysqld --version` and `mariadbd --version` print: whose it is, and its full version.
pub(super) fn program_version(printed: &str) -> Option<(Maker, String)> {
    let mut words = printed.split_whitespace();
    words.find(|word| *word == "Ver")?;
    let version = words.next()?.to_owned();
    Version::read(&version)?;
    let maker = if version.contains("MariaDB") { Maker::Mariadb } else { Maker::Mysql };
    Some((maker, version))
}

/// Reads the version from the first packet that a MySQL server sends. Source: the protocol's handshake, version 10: a
/// header of four bytes, the byte 10, the version up to a zero byte.
pub(super) fn greeting_version(packet: &[u8]) -> Option<String> {
    let text = packet.get(4..)?.strip_prefix(&[10])?;
    let end = text.iter().position(|byte| *byte == 0)?;
    let version = std::str::from_utf8(&text[..end]).ok()?;
    // MariaDB puts this before its own, for old replicas of MySQL.
    Some(version.strip_prefix("5.5.5-").unwrap_or(version).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_whose_it_is_whatever_it_is_called() {
        let mysql = "/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n";
        assert_eq!(program_version(mysql), Some((Maker::Mysql, "9.7.4-2".to_owned())));
        let mariadb = "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)";
        assert_eq!(program_version(mariadb), Some((Maker::Mariadb, "10.11.19-MariaDB-0+deb12u1".to_owned())));
        assert_eq!(program_version("mysqld: command not found"), None);
        assert_eq!(program_version("mysqld  Ver unknown"), None);
    }

    #[test]
    fn versions_compare_by_number() {
        let read = |text| Version::read(text).unwrap();
        assert!(read("10.11.19-MariaDB") > read("10.6.1"));
        assert!(read("8.4.0") >= Version(8, 4));
        assert!(read("8.0.42") < Version(8, 4));
        assert_eq!(Version::read("4.3.6"), Some(Version(4, 3)));
        assert_eq!(Version::read("nine"), None);
        assert_eq!(Version::read("9"), None);
    }

    #[test]
    fn a_greeting_has_the_version_without_mariadbs_prefix() {
        let packet = |version: &str| [&[74, 0, 0, 0, 10], version.as_bytes(), &[0, 8, 0, 0, 0]].concat();
        assert_eq!(greeting_version(&packet("9.7.4-2")).as_deref(), Some("9.7.4-2"));
        assert_eq!(greeting_version(&packet("5.5.5-10.11.19-MariaDB")).as_deref(), Some("10.11.19-MariaDB"));
        // An error packet (too many connections) is no greeting, nor is another protocol or half a packet.
        assert_eq!(greeting_version(&[23, 0, 0, 0, 255, 16, 4, b'T', 0]), None);
        assert_eq!(greeting_version(b"SSH-2.0-x"), None);
        assert_eq!(greeting_version(&packet("9.7")[..6]), None);
    }
}
