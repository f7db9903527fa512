//! The example `points-award` on MySQL and RabbitMQ, for what measures with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    ops::Range,
    process::Command,
    sync::Arc,
    time::Duration,
};

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable},
};
use oncebox::plugin::{Attempt, Context, Event, RunLimits};

use crate::{host::binary, script::checkout};

/// Accounts that events add to, in turn.
pub const USERS: u32 = 1_000;
/// Confirms that may be awaited at once.
const AWAITED_MAX: usize = 1_000;

/// The statement that makes the accounts, each without points.
#[must_use]
pub fn accounts() -> String {
    let accounts: Vec<String> = (0..USERS).map(|user| format!("({user}, 0)")).collect();
    format!("INSERT INTO points_account (user_id, points) VALUES {}", accounts.join(", "))
}

/// The body of an event: one point for an account.
#[must_use]
pub fn body(n: u32) -> String {
    let user = n % USERS;
    format!("{{\"orderId\": {n}, \"userId\": {user}, \"amount\": 1, \"receiptNo\": \"R-{n}\"}}")
}

/// An attempt of the handler at an event, by itself, within the limits of a host's defaults.
#[must_use]
pub fn attempt(n: u32) -> Attempt {
    let limits = RunLimits {
        run_time_max: Duration::from_secs(1),
        memory_bytes_max: 8_388_608, // what its manifest asks for
        staged_rows_max: 1_000,
        staged_bytes_max: 1 << 20,
        events_max: 16,
        host_calls_max: 1_000,
        log_lines_max: 0,
        result_bytes_max: 1_024,
    };
    let event = Event {
        id: format!("m-{n}"),
        event_type: "order.paid".to_owned(),
        business_key: format!("order:{n}:paid").into_bytes(),
        payload: body(n).into_bytes().into(),
        ..Event::default()
    };
    Attempt {
        event: Arc::new(event),
        limits: Arc::new(limits),
        config: Arc::new(BTreeMap::from([("points_per_yuan".to_owned(), "1".to_owned())])),
        context: Context {
            now_us: 0,
            attempt: 1,
            generation: 0,
            tenant: "shop".to_owned(),
            handler: "points".to_owned(),
            traceparent: None,
            random_key: [0; 32],
        },
        queries: None,
    }
}

/// Puts events into a queue; every one is confirmed.
///
/// # Errors
/// The broker's.
pub async fn preload(url: &str, queue: &str, events: Range<u32>) -> Result<(), lapin::Error> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let mut awaited = VecDeque::new();
    for n in events {
        let mut headers = FieldTable::default();
        headers.insert("event-type".into(), AMQPValue::LongString("order.paid".into()));
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_message_id(format!("m-{n}").into())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        awaited
            .push_back(channel.basic_publish("".into(), queue.into(), options, body(n).as_bytes(), properties).await?);
        if awaited.len() >= AWAITED_MAX
            && let Some(confirm) = awaited.pop_front()
        {
            confirm.await?;
        }
    }
    for confirm in awaited {
        confirm.await?;
    }
    connection.close(200, "OK".into()).await
}

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
