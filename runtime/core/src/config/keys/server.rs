//! The keys of whatever is reached over a network, and those of `[tenants.NAME.connections.NAME]`.

use crate::{
    config::{
        Server,
        server::{MaybeSecret, UrlOf},
    },
    document::{
        form::{ENV_NAME, PATH},
        key::{Key, Section},
        shape::{Integer, Kind, MaybeText},
    },
};

pub(crate) static PASSWORD: Key<MaybeSecret> = Key {
    name: "password",
    shape: MaybeSecret { absent: "the one in `url`, else none" },
    means: "the user's password, read anew at each connect; refused where `url` has one; a warning where it stands in the \
            file itself",
};
pub(crate) static CA_FILE: Key<MaybeText> = Key {
    name: "ca_file",
    shape: MaybeText { form: &PATH, absent: "the system's authorities" },
    means: "PEM file of the authorities whose certificates are believed; only where they are looked at",
};
pub(crate) static CERT_FILE: Key<MaybeText> = Key {
    name: "cert_file",
    shape: MaybeText { form: &PATH, absent: "none" },
    means: "PEM file of the certificate that this host shows (mutual TLS); only with TLS, and with `key_file`",
};
pub(crate) static KEY_FILE: Key<MaybeText> = Key {
    name: "key_file",
    shape: MaybeText { form: &PATH, absent: "none" },
    means: "PEM file of that certificate's key",
};

pub(crate) static SECRET_ENV: Key<MaybeText> = Key {
    name: "env",
    shape: MaybeText { form: &ENV_NAME, absent: "`file`" },
    means: "the variable of the host's environment that holds it",
};
pub(crate) static SECRET_FILE: Key<MaybeText> = Key {
    name: "file",
    shape: MaybeText { form: &PATH, absent: "`env`" },
    means: "the file that holds it, relative to the configuration file's folder; a line break at its end does not count",
};

/// A secret that is not in the file.
pub(crate) static SECRET_SECTION: Section = Section {
    path: "….password",
    about: "A secret that does not stand in the configuration: one of the two keys. `migrate_url` is written the same way.",
    keys: &[&SECRET_ENV, &SECRET_FILE],
};

/// The kinds of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    Rabbitmq,
}

pub(crate) static CONNECTION_KIND: Key<Kind<ConnectionKind>> = Key {
    name: "kind",
    shape: Kind { known: &[("rabbitmq", ConnectionKind::Rabbitmq)], elsewhere: &["kafka"], later: &[] },
    means: "what the broker is",
};
pub(crate) static CONNECTION_URL: Key<UrlOf> = Key {
    name: "url",
    shape: UrlOf(Server::Rabbitmq),
    means: "where the broker is, and as whom it is spoken to; user, password and vhost percent-encoded; ports 5672 and \
            5671; without a path the vhost is `/`; with `amqps` the broker's certificate must name the host",
};
pub(crate) static HEARTBEAT_S: Key<Integer<u16>> = Key {
    name: "heartbeat_s",
    shape: Integer { min: 1, max: 600, default: 10 },
    means: "seconds of AMQP's heartbeat; a broker that is silent for twice as long is gone",
};

/// `[tenants.NAME.connections.NAME]`.
pub(crate) static CONNECTION: Section = Section {
    path: "tenants.NAME.connections.NAME",
    about: "A broker that sources take messages from ([RabbitMQ](../rabbitmq.md)). `ca_file`, `cert_file` and `key_file` are \
            for `amqps` only.",
    keys: &[&CONNECTION_KIND, &CONNECTION_URL, &PASSWORD, &CA_FILE, &CERT_FILE, &KEY_FILE, &HEARTBEAT_S],
};

/// The keys of TLS that are refused without it.
pub(crate) static TLS_KEYS: [&str; 3] = [CA_FILE.name, CERT_FILE.name, KEY_FILE.name];
