//! Reading `[host]`.

use std::{path::PathBuf, time::Duration};

use super::{Host, HostLimits, keys};
use crate::document::Table;

/// Reads the host's table.
pub(super) fn read_host(table: &Table<'_>) -> Host {
    table.refuse_unknown(&keys::HOST_SECTION);
    Host {
        name: table.value(&keys::HOST_NAME_KEY),
        data_dir: PathBuf::from(table.value(&keys::DATA_DIR)),
        // The form of the key has made sure that it is an address or empty.
        listen: table.value(&keys::LISTEN).parse().ok(),
        drain_time: Duration::from_millis(table.value(&keys::DRAIN_TIME_MS)),
        lease_time: Duration::from_millis(table.value(&keys::LEASE_TIME_MS)),
        heartbeat: Duration::from_secs(5),
        boot_timeout: Duration::from_secs(20),
        log: table.value(&keys::LOG),
        limits: read_limits(&table.table_or_empty(&keys::HOST_LIMITS)),
    }
}

fn read_limits(table: &Table<'_>) -> HostLimits {
    table.refuse_unknown(&keys::HOST_LIMITS_SECTION);
    HostLimits {
        memory_bytes_max: table.value(&keys::HOST_MEMORY_BYTES_MAX),
        instances_max: table.value(&keys::INSTANCES_MAX),
        module_bytes_max: table.value(&keys::MODULE_BYTES_MAX),
        payload_bytes_max: table.value(&keys::PAYLOAD_BYTES_MAX),
        key_bytes_max: table.value(&keys::KEY_BYTES_MAX),
        hops_max: table.value(&keys::HOPS_MAX),
        connections_max: 64,
    }
}
