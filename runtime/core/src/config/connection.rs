//! Reading `[connections.NAME]`, and checking that each is used.

use std::time::Duration;

use super::{
    Connection, Rabbitmq, Tls, TlsMode, keys,
    server::{read_password, read_tls_files, refuse_idle},
};
use crate::{document::Table, text::quoted};

/// Reads one connection; `None` when its kind or url is refused.
pub(super) fn read_connection(table: &Table<'_>) -> Option<Connection> {
    match table.value(&keys::CONNECTION_KIND)? {
        keys::ConnectionKind::Rabbitmq => read_rabbitmq(table).map(|own| Connection::Rabbitmq(Box::new(own))),
    }
}

fn read_rabbitmq(table: &Table<'_>) -> Option<Rabbitmq> {
    table.refuse_unknown(&keys::CONNECTION);
    let url = table.value(&keys::CONNECTION_URL);
    let password = read_password(table, url.as_ref());
    let heartbeat = Duration::from_secs(table.value(&keys::HEARTBEAT_S).into());
    let url = url?;
    let tls = if url.is_tls {
        let (ca_file, client) = read_tls_files(table);
        Tls { mode: TlsMode::VerifyIdentity, ca_file, client }
    } else {
        refuse_idle(
            table,
            &keys::TLS_KEYS,
            "an amqp:// url, which has no TLS",
            "write amqps:// in url, or leave it out",
        );
        Tls { mode: TlsMode::Off, ca_file: None, client: None }
    };
    Some(Rabbitmq { address: url.address, password, tls, heartbeat })
}

/// Warns of connections that no source names.
pub(super) fn warn_of_unused(connections: &[(String, Table<'_>)], sources: &[(String, Table<'_>)]) {
    for (name, table) in connections {
        let is_its_own = |source: &Table<'_>| {
            let item = source.item(keys::SOURCE_CONNECTION.name);
            item.is_some_and(|item| item.value.as_str() == Some(name.as_str()))
        };
        if !sources.iter().any(|(_, source)| is_its_own(source)) {
            let message = format!("connection {} is used by no source", quoted(name));
            table.spot.warn(message, "name it in a source, or leave it out");
        }
    }
}
