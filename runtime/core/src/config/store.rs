//! Reading `[store]`.

use std::{path::PathBuf, time::Duration};

use super::{
    Address, Mysql, Secret, Server, Store, Tls, TlsMode, keys,
    server::{read_password, read_tls_files, read_url, refuse_idle, warn_of_plain},
};
use crate::document::Table;

/// Reads the tenant's store, and refuses what the tenant says that would do nothing with it.
pub(super) fn read_store(tenant: &Table<'_>) -> Store {
    if tenant.item(keys::STORE.name).is_none() {
        let help = "add [store] with kind = \"sqlite\" and path, or with kind = \"mysql\" and url";
        tenant.spot.refuse(format!("{}.store is missing", tenant.path), Some(help.to_owned()));
    }
    // What reading goes on with after an error that is kept.
    let nothing = Store::Sqlite { path: PathBuf::new(), schema: None };
    let Some(table) = tenant.table(&keys::STORE) else { return nothing };
    let Some(kind) = table.value(&keys::STORE_KIND) else { return nothing };
    table.refuse_unknown(&keys::STORE_SECTION);
    match kind {
        keys::StoreKind::Sqlite => {
            let of_lanes = [keys::LANES.name, keys::SLOW_LANES.name, keys::DEFER_AFTER.name];
            refuse_idle(tenant, &of_lanes, "a store of kind \"sqlite\"", "leave it out");
            refuse_idle(&table, &keys::MYSQL_KEYS, "kind \"sqlite\"", "leave it out");
            Store::Sqlite {
                path: PathBuf::from(table.value(&keys::STORE_PATH)),
                schema: table.value(&keys::SCHEMA).map(PathBuf::from),
            }
        }
        keys::StoreKind::Mysql => {
            refuse_idle(&table, &keys::SQLITE_KEYS, "kind \"mysql\"", "leave it out");
            read_mysql(&table).map_or(nothing, |own| Store::Mysql(Box::new(own)))
        }
    }
}

fn read_mysql(table: &Table<'_>) -> Option<Mysql> {
    let url = table.value(&keys::STORE_URL);
    let password = read_password(table, url.as_ref());
    let address = url.map(|url| url.address);
    let migrate_url = read_migrate_url(table, address.as_ref());
    let tls = read_tls(table, address.as_ref());
    let lock_wait = Duration::from_secs(table.value(&keys::LOCK_WAIT_S));
    let idle_timeout = Duration::from_secs(table.value(&keys::IDLE_TIMEOUT_S));
    let durability = table.value(&keys::DURABILITY);
    Some(Mysql { address: address?, password, migrate_url, tls, lock_wait, idle_timeout, durability })
}

/// One that stands here is a url of the same database; any other is looked at when it is used.
fn read_migrate_url(table: &Table<'_>, own: Option<&Address>) -> Option<Secret> {
    let secret = table.value(&keys::MIGRATE_URL)?;
    if let (Secret::Plain(text), Some(item)) = (&secret, table.item(keys::MIGRATE_URL.name)) {
        let url = read_url(&item, &text.0, Server::Mysql)?;
        if own.is_some_and(|own| own.space != url.address.space) {
            item.refuse("names another database than url", "write the same database after the host in both");
        }
        if url.password.is_some() {
            warn_of_plain(table, keys::MIGRATE_URL.name);
        }
    }
    Some(secret)
}

fn read_tls(table: &Table<'_>, address: Option<&Address>) -> Tls {
    let said = table.value(&keys::STORE_TLS);
    let is_local = address.is_some_and(Address::is_local);
    let mode = said.unwrap_or(if is_local { TlsMode::Off } else { TlsMode::VerifyIdentity });
    let off = match said {
        Some(_) => "tls \"off\"",
        None => "tls \"off\", which is the default for this machine's own address",
    };
    match mode {
        TlsMode::Off => {
            refuse_idle(table, &keys::TLS_KEYS, off, "leave it out, or say another tls");
            Tls { mode, ca_file: None, client: None }
        }
        TlsMode::Required => {
            let with = "tls \"required\", which believes any certificate";
            refuse_idle(
                table,
                &[keys::CA_FILE.name],
                with,
                "leave it out, or say tls = \"verify-ca\" or \"verify-identity\"",
            );
            let (_, client) = read_tls_files(table);
            Tls { mode, ca_file: None, client }
        }
        TlsMode::VerifyCa | TlsMode::VerifyIdentity => {
            let (ca_file, client) = read_tls_files(table);
            Tls { mode, ca_file, client }
        }
    }
}
