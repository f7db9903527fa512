//! Reading `[host]`.

use std::{path::PathBuf, time::Duration};

use super::{Host, HostLimits, keys};
use crate::document::{Table, key::grouped};

/// Heartbeats of which two may be lost before a host counts as gone.
const HEARTBEATS_MIN: u64 = 3;

/// Reads the host's table.
pub(super) fn read_host(table: &Table<'_>) -> Host {
    table.refuse_unknown(&keys::HOST_SECTION);
    let (heartbeat, boot_timeout) = read_heartbeat(table);
    Host {
        name: table.value(&keys::HOST_NAME_KEY),
        data_dir: PathBuf::from(table.value(&keys::DATA_DIR)),
        // The form of the key has made sure that it is an address or empty.
        listen: table.value(&keys::LISTEN).parse().ok(),
        drain_time: Duration::from_millis(table.value(&keys::DRAIN_TIME_MS)),
        lease_time: Duration::from_millis(table.value(&keys::LEASE_TIME_MS)),
        heartbeat,
        boot_timeout,
        log: table.value(&keys::LOG),
        limits: read_limits(&table.table_or_empty(&keys::HOST_LIMITS)),
    }
}

/// A living host must not be taken for gone because one heartbeat was late.
fn read_heartbeat(table: &Table<'_>) -> (Duration, Duration) {
    let (heartbeat, timeout) = (table.value(&keys::HEARTBEAT_MS), table.value(&keys::BOOT_TIMEOUT_MS));
    let least = heartbeat * HEARTBEATS_MIN;
    if timeout < least {
        // The one that is written is the one to mend.
        let (written, complaint) = match table.item(keys::BOOT_TIMEOUT_MS.name) {
            Some(item) => {
                (Some(item), format!("is {}, below 3 × heartbeat_ms {}", grouped(timeout), grouped(heartbeat)))
            }
            None => (
                table.item(keys::HEARTBEAT_MS.name),
                format!("is {}, above a third of boot_timeout_ms {}", grouped(heartbeat), grouped(timeout)),
            ),
        };
        if let Some(item) = written {
            let lower = grouped(timeout / HEARTBEATS_MIN);
            item.refuse(
                complaint,
                format!("raise boot_timeout_ms to {}, or lower heartbeat_ms to {lower}", grouped(least)),
            );
        }
    }
    (Duration::from_millis(heartbeat), Duration::from_millis(timeout))
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
        connections_max: table.value(&keys::CONNECTIONS_MAX),
    }
}
