//! Secrets of the configuration: read where they are kept, at each connect, so that a rotated password is taken without
//! a restart. None of their text is ever part of a message.

use std::{
    env::{self, VarError},
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use oncebox_core::config::{Hidden, Secret, Server, ServerUrl, UrlError};

use crate::code::codes;

/// Bytes of a secret; a whole url is among them.
const SECRET_BYTES_MAX: usize = 4_096;

/// A secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A variable of the environment.
    #[error("failed to read the secret {{ env = \"{name}\" }}: the variable {why}")]
    Env {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file.
    #[error("failed to read the secret {{ file = \"{path}\" }}: {why}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// What was read is no url.
    #[error("failed to use the url from {place}: it {error}; {help}")]
    Url {
        /// Where it was read.
        place: String,
        /// What is wrong with it.
        error: UrlError,
        /// How to mend it.
        help: String,
    },
}

codes! { AccessError {
    Env "secret-env" Config
        "a variable of the host's environment that should hold a secret is not there, or holds none"
        "set the variable where the host is started, or name another one in the configuration"
    File "secret-file" Config
        "a file that should hold a secret cannot be read, or holds none"
        "let the host's user read the file, or name another one in the configuration"
    Url "secret-url" Config
        "what is read in place of a url is none"
        "write the whole url as the message says, and nothing else"
} }

/// Reads a secret as it is now. Waits for the file system if it is a file.
///
/// # Errors
/// [`AccessError::Env`], [`AccessError::File`]: where it should be, and what is wrong there.
pub fn secret(secret: &Secret) -> Result<Hidden, AccessError> {
    match secret {
        Secret::Plain(hidden) => Ok(hidden.clone()),
        Secret::Env(name) => of_variable(env::var(name)).map_err(|why| AccessError::Env { name: name.clone(), why }),
        Secret::File(path) => {
            let failed = |why| AccessError::File { path: path.display().to_string(), why };
            let bytes = read(path).map_err(|error| failed(error.to_string()))?;
            of_file(bytes).map_err(|why| failed(format!("it {why}")))
        }
    }
}

/// Reads a whole url, password included, and takes it apart.
///
/// # Errors
/// Those of [`secret`]; [`AccessError::Url`]: what was read is no url of such a server.
pub fn url(kept: &Secret, server: Server) -> Result<ServerUrl, AccessError> {
    let text = secret(kept)?;
    ServerUrl::parse(&text.0, server).map_err(|error| {
        let place = match kept {
            Secret::Plain(_) => "the configuration".to_owned(),
            Secret::Env(name) => format!("{{ env = \"{name}\" }}"),
            Secret::File(path) => format!("{{ file = \"{}\" }}", path.display()),
        };
        AccessError::Url { place, error, help: error.help(server) }
    })
}

fn of_variable(value: Result<String, VarError>) -> Result<Hidden, &'static str> {
    match value {
        Ok(text) => checked(text).map(Hidden),
        Err(VarError::NotPresent) => Err("is not set"),
        Err(VarError::NotUnicode(_)) => Err("is not UTF-8"),
    }
}

/// One byte more than allowed at most: what is named may be no file of a secret at all.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SECRET_BYTES_MAX as u64 + 3).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn of_file(bytes: Vec<u8>) -> Result<Hidden, &'static str> {
    let mut text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    // Editors and `echo` end a line that is not part of the secret.
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    checked(text).map(Hidden)
}

fn checked(text: String) -> Result<String, &'static str> {
    match text.len() {
        0 => Err("is empty"),
        length if length > SECRET_BYTES_MAX => Err("holds more than 4,096 bytes"),
        _ if text.chars().any(char::is_control) => Err("holds a control character, such as a second line"),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(content: &[u8]) -> (tempfile::TempDir, Secret) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pw");
        std::fs::write(&path, content).unwrap();
        (folder, Secret::File(path))
    }

    #[test]
    fn a_secret_is_read_where_it_is_kept_without_its_last_line_break() {
        assert_eq!(secret(&Secret::Plain(Hidden("s3".into()))).unwrap().0, "s3");
        // Cargo sets it for every test.
        assert_eq!(secret(&Secret::Env("CARGO_PKG_NAME".into())).unwrap().0, "oncebox");
        let most = "x".repeat(SECRET_BYTES_MAX);
        for (content, text) in [
            ("s3", "s3"),
            ("s3\n", "s3"),
            ("s3\r\n", "s3"),
            (" s 3 \n", " s 3 "),
            ("密", "密"),
            (&format!("{most}\r\n"), &most),
        ] {
            let (_folder, kept) = kept(content.as_bytes());
            assert_eq!(secret(&kept).unwrap().0, text);
        }
    }

    #[test]
    fn a_rotated_secret_is_taken_at_the_next_reading() {
        let (folder, kept) = kept(b"old\n");
        assert_eq!(secret(&kept).unwrap().0, "old");
        std::fs::write(folder.path().join("pw"), "new\n").unwrap();
        assert_eq!(secret(&kept).unwrap().0, "new");
    }

    #[test]
    fn a_secret_that_cannot_be_had_is_named_by_its_place_and_never_shown() {
        let long = "s3".repeat(SECRET_BYTES_MAX);
        for (content, why) in [
            (b"".as_slice(), "is empty"),
            (b"\n", "is empty"),
            (b"s3\n\n", "holds a control character, such as a second line"),
            (b"s3\0", "holds a control character, such as a second line"),
            (b"s3\xff", "is not UTF-8"),
            (long.as_bytes(), "holds more than 4,096 bytes"),
        ] {
            let (folder, kept) = kept(content);
            let path = folder.path().join("pw").display().to_string();
            let error = secret(&kept).unwrap_err();
            assert_eq!(error.to_string(), format!("failed to read the secret {{ file = \"{path}\" }}: it {why}"));
            assert_eq!(error.code(), "secret-file");
        }
        let missing = secret(&Secret::File("/nowhere/pw".into())).unwrap_err().to_string();
        assert!(missing.starts_with("failed to read the secret { file = \"/nowhere/pw\" }: No such file"), "{missing}");
        let folder = secret(&Secret::File("/".into())).unwrap_err().to_string();
        assert!(folder.contains("directory"), "{folder}");
    }

    #[test]
    fn a_variable_that_holds_no_secret_is_named() {
        let error = secret(&Secret::Env("ONCEBOX_NOT_SET".into())).unwrap_err();
        let message = "failed to read the secret { env = \"ONCEBOX_NOT_SET\" }: the variable is not set";
        assert_eq!((error.code(), error.to_string().as_str()), ("secret-env", message));
        assert_eq!(of_variable(Ok(String::new())).unwrap_err(), "is empty");
        assert_eq!(of_variable(Ok("a\nb".into())).unwrap_err(), "holds a control character, such as a second line");
        assert_eq!(of_variable(Err(VarError::NotUnicode("s3".into()))).unwrap_err(), "is not UTF-8");
    }

    #[test]
    fn a_url_that_is_kept_elsewhere_is_taken_apart_and_never_shown() {
        let (_folder, good) = kept(b"mysql://root:s3@db/shop\n");
        let parsed = url(&good, Server::Mysql).unwrap();
        assert_eq!(
            (parsed.address.to_string().as_str(), parsed.password),
            ("root@db:3306/shop", Some(Hidden("s3".into())))
        );
        let (folder, bad) = kept(b"mysql://root:s3/x@db/shop");
        let error = url(&bad, Server::Mysql).unwrap_err();
        assert_eq!(error.code(), "secret-url");
        let start = format!(
            "failed to use the url from {{ file = \"{}/pw\" }}: it names no user; write mysql://",
            folder.path().display()
        );
        assert!(error.to_string().starts_with(&start), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3"));
    }
}
