//! Reading how a server is reached: its url, the password, TLS.

use std::path::PathBuf;

use super::{Hidden, Secret, Server, ServerUrl, TlsClient, keys};
use crate::document::{
    Item, Table,
    form::SECRET_TEXT,
    key::Key,
    shape::{MaybeText, Shape},
};

/// The url of a server, which must be given.
#[derive(Debug)]
pub(super) struct UrlOf(pub(super) Server);

impl Shape for UrlOf {
    type Value = Option<ServerUrl>;

    fn read(&self, item: &Item<'_>) -> Option<Option<ServerUrl>> {
        let Some(text) = item.value.as_str() else {
            item.refuse_type("a string");
            return None;
        };
        read_url(item, text, self.0).map(Some)
    }

    fn absent(&self) -> Option<ServerUrl> {
        None
    }

    fn required(&self) -> bool {
        true
    }

    fn shown(&self) -> String {
        format!("`{}`", self.0.form())
    }

    fn absent_shown(&self) -> String {
        "required".to_owned()
    }
}

/// Takes a url apart, or refuses it.
pub(super) fn read_url(item: &Item<'_>, text: &str, server: Server) -> Option<ServerUrl> {
    match ServerUrl::parse(text, server) {
        Ok(url) => Some(url),
        Err(error) => {
            item.refuse(error.to_string(), error.help(server));
            None
        }
    }
}

/// A text, or where it is read from; may be left out.
#[derive(Debug)]
pub(super) struct MaybeSecret {
    /// What holds without one, for the page.
    pub(super) absent: &'static str,
}

impl Shape for MaybeSecret {
    type Value = Option<Secret>;

    fn read(&self, item: &Item<'_>) -> Option<Option<Secret>> {
        let Some(table) = item.as_table() else {
            if item.value.as_str().is_none() {
                item.refuse_type("a string, { env = \"NAME\" } or { file = \"PATH\" }");
                return None;
            }
            return SECRET_TEXT.read(item).map(|text| Some(Secret::Plain(Hidden(text))));
        };
        table.refuse_unknown(&keys::SECRET_SECTION);
        let secret = match (table.value(&keys::SECRET_ENV), table.value(&keys::SECRET_FILE)) {
            (Some(name), None) => Secret::Env(name),
            (None, Some(path)) => Secret::File(PathBuf::from(path)),
            (Some(_), Some(_)) => {
                item.refuse("names both env and file", "leave one of them out");
                return None;
            }
            (None, None) => {
                // A refused one has its own error.
                if table.item(keys::SECRET_ENV.name).is_none() && table.item(keys::SECRET_FILE.name).is_none() {
                    item.refuse("names neither env nor file", "write { env = \"NAME\" } or { file = \"PATH\" }");
                }
                return None;
            }
        };
        Some(Some(secret))
    }

    fn absent(&self) -> Option<Secret> {
        None
    }

    fn shown(&self) -> String {
        "text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`".to_owned()
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
}

/// The password of `url` or `password`: of one of them only.
pub(super) fn read_password(table: &Table<'_>, url: Option<&ServerUrl>) -> Option<Secret> {
    let own = table.value(&keys::PASSWORD);
    let of_url = url.and_then(|url| url.password.clone()).map(Secret::Plain);
    match (own, of_url) {
        (Some(_), Some(_)) => {
            if let Some(item) = table.item(keys::PASSWORD.name) {
                item.refuse("is given, and url has a password too", "leave one of them out, best the one in url");
            }
            None
        }
        (Some(secret @ Secret::Plain(_)), None) => {
            warn_of_plain(table, keys::PASSWORD.name);
            Some(secret)
        }
        (Some(secret @ (Secret::Env(_) | Secret::File(_))), None) => Some(secret),
        (None, Some(secret)) => {
            let help = "leave it out there, and write password = { env = \"NAME\" } or { file = \"PATH\" }";
            warn(table, "url", "holds its password in clear text", help);
            Some(secret)
        }
        (None, None) => None,
    }
}

/// Warns of a secret that everybody sees who sees the file.
pub(super) fn warn_of_plain(table: &Table<'_>, name: &str) {
    let help = format!("write {name} = {{ env = \"NAME\" }} or {{ file = \"PATH\" }}");
    warn(table, name, "stands here in clear text", &help);
}

fn warn(table: &Table<'_>, name: &str, complaint: &str, help: &str) {
    if let Some(item) = table.item(name) {
        item.spot.warn(format!("{} {complaint}", item.path), help);
    }
}

/// The files of TLS: the authorities, and what this side shows of itself.
pub(super) fn read_tls_files(table: &Table<'_>) -> (Option<PathBuf>, Option<TlsClient>) {
    let path = |key: &'static Key<MaybeText>| table.value(key).map(PathBuf::from);
    let client = match (path(&keys::CERT_FILE), path(&keys::KEY_FILE)) {
        (Some(cert_file), Some(key_file)) => Some(TlsClient { cert_file, key_file }),
        (cert_file, _) => {
            let names = (keys::CERT_FILE.name, keys::KEY_FILE.name);
            let (given, other) = if cert_file.is_some() { names } else { (names.1, names.0) };
            // One that is there and refused has its own error.
            if let (Some(item), None) = (table.item(given), table.item(other)) {
                item.refuse(format!("is given without {other}"), "give both, or none");
            }
            None
        }
    };
    (path(&keys::CA_FILE), client)
}

/// Refuses keys that belong to something else.
pub(super) fn refuse_idle(table: &Table<'_>, names: &[&str], with: &str, help: &str) {
    for item in names.iter().filter_map(|name| table.item(name)) {
        item.refuse(format!("would do nothing with {with}"), help);
    }
}
