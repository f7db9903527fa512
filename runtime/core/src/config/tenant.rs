//! Reading `[tenants.NAME]`: each part by itself, then the names that parts use of each other.

use std::{collections::BTreeMap, time::Duration};

use super::{Destination, HostLimits, Tenant, connection, handler, keys, routes, server::refuse_idle, source, store};
use crate::{
    document::{Table, form::NAME},
    text::quoted,
};

/// Reads one tenant.
pub(super) fn read_tenant(table: &Table<'_>, ceilings: &HostLimits) -> Tenant {
    table.refuse_unknown(&keys::TENANT);
    let batch_max = usize::from(table.value(&keys::BATCH_MAX));
    let lanes = table.value(&keys::LANES);
    let tables = table.value(&keys::TABLES);
    refuse_strange_triggers(table, &tables);
    let connections = table.named_tables(&keys::CONNECTIONS, &NAME);
    let sources = table.named_tables(&keys::SOURCES, &NAME);
    let handlers = table.named_tables(&keys::HANDLERS, &NAME);
    let destinations = table.named_tables(&keys::DESTINATIONS, &NAME);
    let routes = table.tables(&keys::ROUTES);
    routes::cross_check(&routes, &sources, &handlers);
    refuse_unfit_sources(&destinations, &sources);
    connection::warn_of_unused(&connections, &sources);
    handler::cross_check_destinations(&handlers, &destinations);
    Tenant {
        lanes,
        slow_lanes: table.value(&keys::SLOW_LANES),
        slow_run: Duration::from_millis(table.value(&keys::SLOW_RUN_MS)),
        unit_time_max: Duration::from_millis(table.value(&keys::UNIT_TIME_MS_MAX)),
        batch_max,
        batch_bytes_max: table.value(&keys::BATCH_BYTES_MAX),
        defer_after: table.value(&keys::DEFER_AFTER),
        ack_gap: Duration::from_millis(table.value(&keys::ACK_GAP_MS)),
        tables,
        triggers: table.value(&keys::TRIGGERS),
        store: store::read_store(table),
        connections: read_each(&connections, connection::read_connection),
        sources: read_each(&sources, |table| source::read_source(table, batch_max, lanes, &connections)),
        routes: routes.iter().map(routes::read_route).collect(),
        handlers: read_each(&handlers, |table| Some(handler::read_handler(table, ceilings))),
        destinations: read_each(&destinations, read_destination),
    }
}

fn read_each<T>(tables: &[(String, Table<'_>)], read: impl Fn(&Table<'_>) -> Option<T>) -> BTreeMap<String, T> {
    tables.iter().filter_map(|(name, table)| Some((name.clone(), read(table)?))).collect()
}

fn read_destination(table: &Table<'_>) -> Option<Destination> {
    let kind = table.value(&keys::DESTINATION_KIND)?;
    table.refuse_unknown(&keys::DESTINATION);
    match kind {
        keys::DestinationKind::Local => Some(Destination::Local { source: table.value(&keys::DESTINATION_SOURCE) }),
        keys::DestinationKind::Table => {
            refuse_idle(table, &[keys::DESTINATION_SOURCE.name], "kind \"table\"", "leave it out");
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

/// A local destination names a source that is there, and that takes its events from the tenant's own database.
fn refuse_unfit_sources(destinations: &[(String, Table<'_>)], sources: &[(String, Table<'_>)]) {
    for (_, table) in destinations {
        let Some(item) = table.item(keys::DESTINATION_SOURCE.name) else { continue };
        let Some(name) = item.value.as_str() else { continue };
        if (NAME.check)(name).is_err() {
            continue;
        }
        let Some((_, source)) = sources.iter().find(|(known, _)| known == name) else {
            let complaint = format!("is {}, and the tenant has no such source", quoted(name));
            item.refuse(complaint, known_names("sources", sources));
            continue;
        };
        let kind = source.item(keys::SOURCE_KIND.name);
        if let Some(kind) = kind.as_ref().and_then(|kind| kind.value.as_str()).filter(|kind| *kind != "local") {
            let complaint = format!("is {}, a source of kind {}: nothing can be put there", quoted(name), quoted(kind));
            item.refuse(complaint, "name a source of kind \"local\"");
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
