//! Reading `[tenants.NAME]`: each part by itself, then the names that parts use of each other.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{Destination, HostLimits, Store, Tenant, handler, keys, routes, source};
use crate::{
    document::{Table, form::NAME},
    text::quoted,
};

/// Reads one tenant.
pub(super) fn read_tenant(table: &Table<'_>, ceilings: &HostLimits) -> Tenant {
    table.refuse_unknown(&keys::TENANT);
    let batch_max = usize::from(table.value(&keys::BATCH_MAX));
    let tables = table.value(&keys::TABLES);
    refuse_strange_triggers(table, &tables);
    let sources = table.named_tables(&keys::SOURCES, &NAME);
    let handlers = table.named_tables(&keys::HANDLERS, &NAME);
    let destinations = table.named_tables(&keys::DESTINATIONS, &NAME);
    let routes = table.tables(&keys::ROUTES);
    routes::cross_check(&routes, &sources, &handlers);
    refuse_unknown_sources(&destinations, &sources);
    handler::cross_check_destinations(&handlers, &destinations);
    Tenant {
        lanes: 4,
        slow_lanes: 2,
        slow_run: Duration::from_millis(table.value(&keys::SLOW_RUN_MS)),
        unit_time_max: Duration::from_millis(table.value(&keys::UNIT_TIME_MS_MAX)),
        batch_max,
        batch_bytes_max: table.value(&keys::BATCH_BYTES_MAX),
        defer_after: 3,
        ack_gap: Duration::from_millis(100),
        tables,
        triggers: table.value(&keys::TRIGGERS),
        store: read_store(table),
        connections: BTreeMap::new(),
        sources: read_each(&sources, |table| source::read_source(table, batch_max)),
        routes: routes.iter().map(routes::read_route).collect(),
        handlers: read_each(&handlers, |table| Some(handler::read_handler(table, ceilings))),
        destinations: read_each(&destinations, read_destination),
    }
}

fn read_each<T>(tables: &[(String, Table<'_>)], read: impl Fn(&Table<'_>) -> Option<T>) -> BTreeMap<String, T> {
    tables.iter().filter_map(|(name, table)| Some((name.clone(), read(table)?))).collect()
}

fn read_store(tenant: &Table<'_>) -> Store {
    if tenant.item(keys::STORE.name).is_none() {
        let help = "add [store] with kind = \"sqlite\" and path";
        tenant.spot.refuse(format!("{}.store is missing", tenant.path), Some(help.to_owned()));
    }
    // What reading goes on with after an error that is kept.
    let mut store = Store::Sqlite { path: PathBuf::new(), schema: None };
    if let Some(table) = tenant.table(&keys::STORE)
        && let Some(kind) = table.value(&keys::STORE_KIND)
    {
        table.refuse_unknown(&keys::STORE_SECTION);
        store = match kind {
            keys::StoreKind::Sqlite => Store::Sqlite {
                path: PathBuf::from(table.value(&keys::STORE_PATH)),
                schema: table.value(&keys::SCHEMA).map(PathBuf::from),
            },
        };
    }
    store
}

fn read_destination(table: &Table<'_>) -> Option<Destination> {
    let kind = table.value(&keys::DESTINATION_KIND)?;
    table.refuse_unknown(&keys::DESTINATION);
    match kind {
        keys::DestinationKind::Local => Some(Destination::Local { source: table.value(&keys::DESTINATION_SOURCE) }),
        keys::DestinationKind::Table => {
            if let Some(item) = table.item(keys::DESTINATION_SOURCE.name) {
                item.refuse("would do nothing with kind \"table\"", "leave it out");
            }
            Some(Destination::Table)
        }
    }
}

/// A trigger is allowed on a table that plugins may name; on another it would allow nothing.
fn refuse_strange_triggers(tenant: &Table<'_>, tables: &[String]) {
    for (trigger, spot) in tenant.texts_with_spots(keys::TRIGGERS.name) {
        let Some((table, _)) = trigger.split_once('.') else { continue };
        if !tables.iter().any(|known| known == table) {
            let message =
                format!("the trigger {} is on table {}, which is not in tables", quoted(trigger), quoted(table));
            spot.refuse(message, Some("add the table to tables, or leave the trigger out".to_owned()));
        }
    }
}

/// Every source of this version is local, so that a local destination may name any that is there.
fn refuse_unknown_sources(destinations: &[(String, Table<'_>)], sources: &[(String, Table<'_>)]) {
    for (_, table) in destinations {
        let Some(item) = table.item(keys::DESTINATION_SOURCE.name) else { continue };
        let Some(name) = item.value.as_str() else { continue };
        if (NAME.check)(name).is_ok() && !sources.iter().any(|(known, _)| known == name) {
            item.refuse(
                format!("is {}, and the tenant has no such source", quoted(name)),
                known_names("sources", sources),
            );
        }
    }
}

/// The help of a name that is not there.
pub(super) fn known_names(what: &str, tables: &[(String, Table<'_>)]) -> String {
    match tables.is_empty() {
        true => format!("the tenant has no {what}"),
        false => format!("{what}: {}", tables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")),
    }
}
