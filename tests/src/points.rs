//! The example `points-award` on MySQL and RabbitMQ, for what measures with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{fs, process::Command};

use crate::{host::binary, script::checkout};

/// The module, built as its author builds it.
///
/// # Panics
/// It cannot be built.
#[must_use]
pub fn points_award() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("points-award.wasm");
    let mut build = Command::new(binary());
    build.arg("build").arg(checkout().join("plugins/points-award")).arg("--out").arg(&path);
    assert!(build.status().unwrap().success(), "plugins/points-award cannot be built");
    fs::read(path).unwrap()
}

/// A host's configuration with one tenant `shop`, whose source `orders` takes raw messages from a queue; its handlers and
/// routes come behind it. What the example sends goes to the destination `kept`.
#[must_use]
pub fn shop(database: &str, broker: &str, queue: &str) -> String {
    format!(
        r#"[host]
data_dir = "data"
listen = "127.0.0.1:0"
log = "json"

[tenants.shop]
tables = ["points_account", "points_ledger"]
store = {{ kind = "mysql", url = "{database}" }}
connections.broker = {{ kind = "rabbitmq", url = "{broker}" }}
destinations.kept = {{ kind = "table" }}

[tenants.shop.sources.orders]
kind = "rabbitmq"
connection = "broker"
queue = "{queue}"
envelope = {{ format = "raw", event_type = "{{header:event-type}}", id = "{{amqp:message-id}}" }}
"#
    )
}

/// A handler of [`shop`] that is the example.
#[must_use]
pub fn awards(handler: &str) -> String {
    format!(
        "\n[tenants.shop.handlers.{handler}]\nconfig = {{ points_per_yuan = \"1\" }}\n\
         destinations = {{ points-awarded = \"kept\" }}\n"
    )
}

/// A route of [`shop`].
#[must_use]
pub fn route(event_type: &str, handler: &str) -> String {
    format!(
        "\n[[tenants.shop.routes]]\nsource = \"orders\"\nevent_types = [\"{event_type}\"]\nhandlers = [\"{handler}\"]\n"
    )
}
