//! Reading `[handlers.NAME]`.

use std::{collections::BTreeMap, time::Duration};

use super::{Handler, HandlerLimits, HandlerRetry, HostLimits, keys, tenant::known_names};
use crate::{
    document::{
        Table,
        form::{CONFIG_NAME, NAME},
        key::{Nested, grouped},
        shape::Form,
    },
    text::quoted,
};

/// Reads one handler.
pub(super) fn read_handler(table: &Table<'_>, ceilings: &HostLimits) -> Handler {
    table.refuse_unknown(&keys::HANDLER);
    Handler {
        owner: table.value(&keys::OWNER),
        config: read_texts(table, &keys::CONFIG, &CONFIG_NAME, keys::VALUE),
        destinations: read_texts(table, &keys::BINDINGS, &NAME, &NAME),
        key: table.value(&keys::KEY_OVERRIDE),
        fingerprint: table.value(&keys::FINGERPRINT_OVERRIDE),
        ordering: table.value(&keys::ORDERING_OVERRIDE),
        limits: read_limits(&table.table_or_empty(&keys::LIMITS), ceilings),
        retry: read_retry(&table.table_or_empty(&keys::RETRY)),
    }
}

fn read_texts(table: &Table<'_>, key: &Nested, names: &Form, texts: &Form) -> BTreeMap<String, String> {
    let items = table.named(key, names).into_iter();
    items.filter_map(|(name, item)| Some((name, texts.read(&item)?))).collect()
}

fn read_limits(table: &Table<'_>, ceilings: &HostLimits) -> HandlerLimits {
    table.refuse_unknown(&keys::LIMITS_SECTION);
    let memory_bytes_max = table.value(&keys::MEMORY_BYTES_MAX);
    if let (Some(bytes), Some(item)) = (memory_bytes_max, table.item(keys::MEMORY_BYTES_MAX.name))
        && bytes > ceilings.memory_bytes_max
    {
        let ceiling = grouped(ceilings.memory_bytes_max);
        let complaint = format!("is {}, above host.limits.memory_bytes_max {ceiling}", grouped(bytes));
        item.refuse(complaint, "lower it, or raise host.limits.memory_bytes_max");
    }
    HandlerLimits {
        run_time_max: table.value(&keys::RUN_TIME_MS_MAX).map(Duration::from_millis),
        memory_bytes_max,
        staged_rows_max: table.value(&keys::STAGED_ROWS_MAX),
        staged_bytes_max: table.value(&keys::STAGED_BYTES_MAX),
        events_max: table.value(&keys::EVENTS_MAX),
        host_calls_max: table.value(&keys::HOST_CALLS_MAX),
        log_lines_max: table.value(&keys::LOG_LINES_MAX),
        result_bytes_max: table.value(&keys::RESULT_BYTES_MAX),
    }
}

fn read_retry(table: &Table<'_>) -> HandlerRetry {
    table.refuse_unknown(&keys::RETRY_SECTION);
    let (first_ms, delay_ms_max) = (table.value(&keys::FIRST_MS), table.value(&keys::DELAY_MS_MAX));
    if let (Some(first), Some(max), Some(item)) = (first_ms, delay_ms_max, table.item(keys::FIRST_MS.name))
        && first > max
    {
        let complaint = format!("is {}, above delay_ms_max {}", grouped(first), grouped(max));
        item.refuse(complaint, "lower it, or raise delay_ms_max");
    }
    HandlerRetry {
        attempts_max: table.value(&keys::ATTEMPTS_MAX),
        first: first_ms.map(Duration::from_millis),
        factor: table.value(&keys::FACTOR),
        delay_max: delay_ms_max.map(Duration::from_millis),
        deadline: table.value(&keys::DEADLINE_S).map(Duration::from_secs),
        short_attempts_max: table.value(&keys::SHORT_ATTEMPTS_MAX),
        deaths_max: table.value(&keys::DEATHS_MAX),
    }
}

/// Refuses bindings to destinations that are not there; warns of destinations that no handler is bound to.
pub(super) fn cross_check_destinations(handlers: &[(String, Table<'_>)], destinations: &[(String, Table<'_>)]) {
    let mut bound = Vec::new();
    for (_, handler) in handlers {
        let Some(bindings) = handler.item(keys::BINDINGS.name).and_then(|item| item.as_table()) else { continue };
        for (_, _, item) in bindings.entries() {
            let Some(name) = item.value.as_str() else { continue };
            bound.push(name);
            if (NAME.check)(name).is_ok() && !destinations.iter().any(|(known, _)| known == name) {
                let complaint = format!("is {}, and the tenant has no such destination", quoted(name));
                item.refuse(complaint, known_names("destinations", destinations));
            }
        }
    }
    for (name, table) in destinations {
        if !bound.contains(&name.as_str()) {
            let message = format!("destination {} is bound to no handler", quoted(name));
            table.spot.warn(message, "bind it in a handler's destinations, or leave it out");
        }
    }
}
