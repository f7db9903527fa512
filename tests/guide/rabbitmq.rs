//! `docs/rabbitmq.md`: its commands do what it says, its rights are enough and no more than needed, and its table has
//! every text that `/readyz` may show.

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions},
};
use oncebox::source::SourceError;
use oncebox_tests::{
    host::Site,
    patience::{PATIENCE, eventually},
    script::{self, Block, Shell},
    services::{Counts, Vhost},
};
use serde_json::json;

use crate::servers::Servers;

const QUEUE: &str = "orders";

/// The page's commands whose text has one of these, in the page's order.
fn run(servers: &Servers, parts: &[&str]) {
    let blocks = servers.page(&script::page("docs/rabbitmq.md"), "shop");
    let mut shell = Shell::start(&format!("API={}\n", servers.api()));
    let commands: Vec<&Block> = blocks.iter().filter(|block| block.language == "sh").collect();
    for part in parts {
        let block = commands.iter().find(|block| block.text.contains(part));
        let block = block.unwrap_or_else(|| panic!("docs/rabbitmq.md has no command with `{part}` any more"));
        shell.run(&block.text);
    }
}

#[test]
fn queue_binding_user_and_rights_are_made_by_the_pages_commands_and_an_ordered_queue_by_others() {
    let servers = Servers::new();
    run(&servers, &["\"topic\"", "choose-one"]);
    let vhost = &servers.vhost;
    assert_eq!(vhost.queue(QUEUE).unwrap()["arguments"]["x-queue-type"], "quorum");
    let body = json!({ "properties": {}, "routing_key": "order.paid", "payload": "{}", "payload_encoding": "string" });
    let publish =
        || vhost.api().ask("POST", &format!("/exchanges/{}/events/publish", vhost.name), Some(&body))["routed"].clone();
    assert_eq!(publish(), true);
    vhost.purge_queue(QUEUE);
    run(&servers, &["x-single-active-consumer"]);
    assert_eq!(vhost.queue(QUEUE).unwrap()["arguments"]["x-single-active-consumer"], true);
    assert_eq!(publish(), true, "bound again");
}

/// Sends a message, and loses the channel with it in hand so often.
fn lose(vhost: &Vhost, times: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::connect(&vhost.url(), ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let properties = BasicProperties::default().with_delivery_mode(2);
        let sent = channel.basic_publish("".into(), QUEUE.into(), BasicPublishOptions::default(), b"x", properties);
        sent.await.unwrap().await.unwrap();
        for _ in 0..times {
            let channel = connection.create_channel().await.unwrap();
            // What was lost before may not be back yet.
            for _ in 0..200 {
                if channel.basic_get(QUEUE.into(), BasicGetOptions { no_ack: false }).await.unwrap().is_some() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            channel.close(200, "OK".into()).await.unwrap();
        }
        connection.close(200, "OK".into()).await.unwrap();
    });
}

const ONE: Counts = Counts { ready: 1, unacked: 0 };
const NONE: Counts = Counts { ready: 0, unacked: 0 };

#[test]
fn a_quorum_queue_drops_what_was_lost_too_often_and_both_of_the_pages_policies_keep_it() {
    let servers = Servers::new();
    run(&servers, &["\"topic\""]);
    let vhost = &servers.vhost;
    lose(vhost, 21);
    vhost.wait_for(QUEUE, NONE);
    run(&servers, &["never-drop"]);
    lose(vhost, 25);
    vhost.wait_for(QUEUE, ONE);
    vhost.purge_queue(QUEUE);
    run(&servers, &["keep-dropped"]);
    lose(vhost, 21);
    vhost.wait_for(QUEUE, NONE);
    vhost.wait_for("orders-dropped", ONE);
}

/// A host that does nothing but consume the queue as a user with these rights.
fn site(servers: &Servers, source: &str, ordering: &str, rights: [&str; 3]) -> Site {
    let vhost = &servers.vhost;
    let [configure, write, read] = rights;
    let path = format!("/permissions/{}/{}", vhost.name, servers.broker_user());
    vhost.api().ask("PUT", &path, Some(&json!({ "configure": configure, "write": write, "read": read })));
    let site = Site::new(&format!(
        r#"[host]
data_dir = "data"
listen = "127.0.0.1:0"
log = "json"
[tenants.shop]
tables = ["points_account"]
store = {{ kind = "sqlite", path = "shop.db", schema = "schema.sql" }}
connections.broker = {{ kind = "rabbitmq", url = "{}" }}
sources.orders = {{ kind = "rabbitmq", connection = "broker", queue = "{QUEUE}"{source} }}
routes = [{{ source = "orders", handlers = ["award"] }}]
destinations.kept = {{ kind = "table" }}
handlers.award = {{ destinations = {{ out = "kept" }}{ordering} }}
"#,
        servers.broker_url()
    ));
    site.write(
        "schema.sql",
        "CREATE TABLE points_account (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL) STRICT;",
    );
    site.deploy(&crate::good_module(), "shop/award");
    site
}

#[test]
fn the_rights_of_the_page_are_enough_and_each_of_them_is_needed() {
    let ordering = ", ordering = \"{/orderId}\"";
    let single = json!({ "x-queue-type": "quorum", "x-single-active-consumer": true });
    let with_exchange = json!({
        "x-queue-type": "quorum", "x-single-active-consumer": true, "x-dead-letter-exchange": "gone",
    });
    let plain = json!({ "x-queue-type": "quorum" });
    let declare = ", declare = \"quorum\"";
    let rows = [
        ("", "", &plain, ["^$", "^$", "^orders$"], None),
        ("", "", &plain, ["^orders$", "^orders$", "^$"], Some("failed to go on with queue `orders`: ")),
        ("", ordering, &single, ["^orders$", "^$", "^orders$"], None),
        (
            "",
            ordering,
            &single,
            ["^$", "^$", "^orders$"],
            Some("failed to find out whether queue `orders` has a single"),
        ),
        ("", ordering, &with_exchange, ["^orders$", "^$", "^orders$"], None),
        (declare, "", &plain, ["^orders$", "^$", "^orders$"], None),
        (declare, "", &plain, ["^$", "^$", "^orders$"], Some("failed to declare queue `orders`: ")),
    ];
    for (source, ordering, arguments, rights, refused) in rows {
        let servers = Servers::new();
        servers.vhost.declare_queue(QUEUE, arguments);
        let site = site(&servers, source, ordering, rights);
        let host = site.start();
        let what = format!("{source}{ordering} {rights:?}");
        match refused {
            None => drop(host.ready()),
            Some(text) => {
                let reason =
                    eventually(&what, PATIENCE, || Some(host.get("/readyz").1).filter(|said| said.contains(text)));
                assert!(reason.contains("ACCESS_REFUSED"), "{what}: {reason}");
            }
        }
    }
}

const ANY_REFUSAL: &str = "failed to … queue";

/// Each text of a source, with `…` for what differs.
fn texts() -> Vec<SourceError> {
    let any = || "…".to_owned();
    let (connection, address, user, reason, queue, vhost) = (any(), any(), any(), any(), any(), any());
    let all = vec![
        SourceError::Password { connection: connection.clone(), reason: reason.clone() },
        SourceError::Tls {
            connection: connection.clone(),
            setting: "ca_file",
            path: "…".into(),
            reason: reason.clone(),
        },
        SourceError::Unreachable { connection: connection.clone(), address: address.clone(), reason: reason.clone() },
        SourceError::NoAnswer { connection: connection.clone(), address: address.clone(), what: "…", seconds: 10 },
        SourceError::LoginRefused {
            connection: connection.clone(),
            address: address.clone(),
            user: user.clone(),
            reason: reason.clone(),
        },
        SourceError::VhostRefused {
            connection: connection.clone(),
            address: address.clone(),
            user,
            vhost: vhost.clone(),
            reason: reason.clone(),
        },
        SourceError::QueueMissing { queue: queue.clone(), vhost, single_active: "" },
        SourceError::QueueDiffers { queue: queue.clone(), declared: any(), difference: any() },
        SourceError::QueueRefused { queue: queue.clone(), what: "…", reason: reason.clone() },
        SourceError::NotSingleActive { queue: queue.clone() },
        SourceError::OrderUnknown { queue: queue.clone(), reason: reason.clone() },
        SourceError::Cancelled { queue: queue.clone() },
        SourceError::Lost { queue, reason: reason.clone() },
        SourceError::Blocked { connection, address, reason },
    ];
    // One that is new must be added above.
    assert!(all.iter().all(|error| match error {
        SourceError::Password { .. }
        | SourceError::Tls { .. }
        | SourceError::Unreachable { .. }
        | SourceError::NoAnswer { .. }
        | SourceError::LoginRefused { .. }
        | SourceError::VhostRefused { .. }
        | SourceError::QueueMissing { .. }
        | SourceError::QueueDiffers { .. }
        | SourceError::QueueRefused { .. }
        | SourceError::NotSingleActive { .. }
        | SourceError::OrderUnknown { .. }
        | SourceError::Cancelled { .. }
        | SourceError::Lost { .. }
        | SourceError::Blocked { .. } => true,
    }));
    all
}

#[test]
fn the_page_has_a_line_for_every_text_of_readyz() {
    let page = script::page("docs/rabbitmq.md");
    let lines: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| failed to ")?.split_once(" | "))
        .map(|(said, _)| format!("failed to {said}"))
        .collect();
    let texts: Vec<String> = texts().iter().map(|error| error.to_string().replace(['`', '"'], "")).collect();
    for text in &texts {
        // The line of any refusal is for none of the others.
        let own = |line: &&String| line.starts_with(ANY_REFUSAL) == text.starts_with(ANY_REFUSAL);
        assert!(
            lines.iter().filter(own).any(|line| begins(text, line)),
            "docs/rabbitmq.md has no line for\n{text}\nonly\n{lines:#?}"
        );
    }
    for line in &lines {
        assert!(texts.iter().any(|text| begins(text, line)), "docs/rabbitmq.md has a line that nothing says: {line}");
    }
}

/// Whether a text begins as the line says, whatever stands for `…`.
fn begins(text: &str, line: &str) -> bool {
    let mut rest = text;
    line.split('…').map(str::trim).filter(|part| !part.is_empty()).enumerate().all(|(number, part)| {
        let found = rest.find(part).filter(|at| number > 0 || *at == 0);
        rest = found.map_or("", |at| &rest[at + part.len()..]);
        found.is_some()
    })
}
