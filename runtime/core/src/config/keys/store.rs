//! The keys of `[tenants.NAME.store]`.

use super::server::{CA_FILE, CERT_FILE, KEY_FILE, PASSWORD};
use crate::{
    config::{
        Durability, Server, TlsMode,
        server::{MaybeSecret, UrlOf},
    },
    document::{
        form::PATH,
        key::{Key, Section},
        shape::{Absent, Form, Integer, Kind, MaybeOneOf, MaybeText, OneOf, Text},
    },
    text::quoted,
};

/// SQLite takes some names for something else than a file (sqlite.org, "In-Memory Databases", "URI Filenames").
static STORE_PATH_FORM: Form = Form {
    shown: "path of a file, 1 to 4_096 bytes",
    check: |text| {
        (PATH.check)(text)?;
        match text.starts_with(':') || text.starts_with("file:") {
            true => Err(format!("is {}, which names no file", quoted(text))),
            false => Ok(()),
        }
    },
};

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Mysql,
}

pub(crate) static STORE_KIND: Key<Kind<StoreKind>> = Key {
    name: "kind",
    shape: Kind { known: &[("sqlite", StoreKind::Sqlite), ("mysql", StoreKind::Mysql)], elsewhere: &[], later: &[] },
    means: "what the store is; `\"sqlite\"` is the embedded one, for one host; `\"mysql\"` is MySQL or MariaDB",
};
pub(crate) static STORE_PATH: Key<Text> = Key {
    name: "path",
    shape: Text { form: &STORE_PATH_FORM, default: None },
    means: "with kind `\"sqlite\"`, and required there: the database's file, relative to `host.data_dir`; no two \
            tenants have the same",
};
pub(crate) static SCHEMA: Key<MaybeText> = Key {
    name: "schema",
    shape: MaybeText { form: &PATH, absent: "none" },
    means: "with kind `\"sqlite\"`: a file of SQL that is run once, when the database's file is made; relative to the \
            configuration file's folder",
};
pub(crate) static STORE_URL: Key<UrlOf> = Key {
    name: "url",
    shape: UrlOf(Server::Mysql),
    means: "with kind `\"mysql\"`, as all keys below, and required there: where the database is, and as whom it is spoken \
            to; user, password and database percent-encoded; port 3306; no two tenants have the same database",
};
pub(crate) static MIGRATE_URL: Key<MaybeSecret> = Key {
    name: "migrate_url",
    shape: MaybeSecret { absent: "`url`" },
    means: "a whole url of the same database with the user whom `oncebox migrate` speaks as; nothing else reads it",
};
pub(crate) static STORE_TLS: Key<MaybeOneOf<TlsMode>> = Key {
    name: "tls",
    shape: MaybeOneOf {
        choices: &[
            ("off", TlsMode::Off),
            ("required", TlsMode::Required),
            ("verify-ca", TlsMode::VerifyCa),
            ("verify-identity", TlsMode::VerifyIdentity),
        ],
        absent: "`\"off\"` for `localhost`, `127.0.0.0/8` and `::1`, else `\"verify-identity\"`",
    },
    means: "none; encrypted, with whomever; with a certificate of a known authority; with one that names the host, too",
};
pub(crate) static LOCK_WAIT_S: Key<Integer<u64>> = Key {
    name: "lock_wait_s",
    shape: Integer { min: 1, max: 60, default: 1 },
    means: "seconds that a statement waits for a lock at most",
};
pub(crate) static IDLE_TIMEOUT_S: Key<Integer<u64>> = Key {
    name: "idle_timeout_s",
    shape: Integer { min: 2, max: 3_600, default: 30 },
    means: "seconds after which the server ends a session that does nothing",
};
pub(crate) static DURABILITY: Key<OneOf<Durability>> = Key {
    name: "durability",
    shape: OneOf {
        choices: &[("strict", Durability::Strict), ("warn", Durability::Warn)],
        absent: Absent::Default(Durability::Strict),
    },
    means: "what becomes of server settings under which a committed unit of work could be lost: the host does not start, \
            or warns",
};

/// `[tenants.NAME.store]`.
pub(crate) static STORE_SECTION: Section = Section {
    path: "tenants.NAME.store",
    about: "The tenant's own database; on a server: [MySQL and MariaDB](../mysql.md). A key of another kind is refused, \
            because it would do nothing.",
    keys: &[
        &STORE_KIND,
        &STORE_PATH,
        &SCHEMA,
        &STORE_URL,
        &PASSWORD,
        &MIGRATE_URL,
        &STORE_TLS,
        &CA_FILE,
        &CERT_FILE,
        &KEY_FILE,
        &LOCK_WAIT_S,
        &IDLE_TIMEOUT_S,
        &DURABILITY,
    ],
};

/// Keys of kind `sqlite` only.
pub(crate) static SQLITE_KEYS: [&str; 2] = [STORE_PATH.name, SCHEMA.name];

/// Keys of kind `mysql` only.
pub(crate) static MYSQL_KEYS: [&str; 10] = [
    STORE_URL.name,
    PASSWORD.name,
    MIGRATE_URL.name,
    STORE_TLS.name,
    CA_FILE.name,
    CERT_FILE.name,
    KEY_FILE.name,
    LOCK_WAIT_S.name,
    IDLE_TIMEOUT_S.name,
    DURABILITY.name,
];
