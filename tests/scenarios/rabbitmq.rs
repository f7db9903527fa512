//! A queue of RabbitMQ, from the broker to the ack.

use std::time::Duration;

use lapin::{
    BasicProperties, Confirmation, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use oncebox_tests::{
    checker::{check_feed_delivered_again, check_promise},
    database::Database,
    feed::{Chance, Feed, entry},
    host::Site,
    patience::{PATIENCE, eventually, pass},
    services::{Counts, Server, Vhost},
};
use serde_json::json;

use crate::support::{ONE, Plan, ledger};

const QUEUE: &str = "entries";

/// A virtual host with a quorum queue, and a site whose source consumes it.
fn place(tenant: &'static str) -> (Vhost, Site) {
    let vhost = Vhost::create(&Server::rabbitmq());
    vhost.declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
    let plan = Plan { tenant, ..ONE };
    let source = format!("kind = \"rabbitmq\"\nconnection = \"broker\"\nqueue = \"{QUEUE}\"");
    let connection = format!("[tenants.t.connections.broker]\nkind = \"rabbitmq\"\nurl = \"{}\"\n", vhost.url());
    let site = plan.bare_site();
    site.write("oncebox.toml", plan.config().replace("kind = \"local\"", &source) + &connection);
    site.deploy(ledger(), "t/a");
    (vhost, site)
}

/// Publishes and waits until the broker has it all.
fn publish(vhost: &Vhost, lines: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::connect(&vhost.url(), ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let mut confirms = Vec::new();
        for line in lines {
            let properties = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
            let published = channel.basic_publish("".into(), QUEUE.into(), options, line.as_bytes(), properties);
            confirms.push(published.await.unwrap());
        }
        for confirm in confirms {
            assert!(matches!(confirm.await.unwrap(), Confirmation::Ack(None)));
        }
    });
}

/// Waits until nothing is left to do, at the broker and here.
fn settled(vhost: &Vhost, database: &Database) {
    vhost.wait_for(QUEUE, Counts::EMPTY);
    let left = "SELECT count(*) FROM ob_held WHERE state = 0";
    eventually("everything is decided", PATIENCE, || (database.number(left) == 0).then_some(()));
}

#[test]
fn a_queue_is_worked_off_while_its_connections_are_cut() {
    let (vhost, site) = place("batch_max = 16\n");
    let feed = Feed::seeded(11, 600);
    let host = site.start().ready();
    for some in feed.lines.chunks(100) {
        publish(&vhost, some);
        eventually("a connection to be cut", PATIENCE, || {
            (vhost.close_connections_of("oncebox t/in") > 0).then_some(())
        });
    }
    let database = site.database("t.db");
    settled(&vhost, &database);
    check_promise(&database);
    check_feed_delivered_again(&database, "a", &feed);
    assert!(host.logged("consumes").len() >= 3, "no connection was cut");
    host.stop();
    assert_eq!(vhost.counts(QUEUE), Counts::EMPTY);
}

#[test]
fn killed_hosts_leave_nothing_undone_and_do_nothing_twice() {
    let (vhost, site) = place("batch_max = 16\n");
    let feed = Feed::seeded(12, 400);
    publish(&vhost, &feed.lines);
    let (database, mut chance) = (site.database("t.db"), Chance::new(12));
    for _ in 0..8 {
        let host = site.start();
        pass(Duration::from_millis(500 + chance.below(1_000)));
        host.kill();
        check_promise(&database);
    }
    let host = site.start().ready();
    settled(&vhost, &database);
    check_promise(&database);
    check_feed_delivered_again(&database, "a", &feed);
    host.stop();
}

#[test]
fn a_host_is_ready_when_it_consumes_and_gives_back_what_it_has_not_decided() {
    let (vhost, site) = place("");
    vhost.delete_queue(QUEUE);
    let host = site.start();
    let reason = eventually("the reason", PATIENCE, || {
        let (status, text) = host.get("/readyz");
        (status == 503 && text.contains("tenant t: source in")).then_some(text).filter(|text| text.contains("entries"))
    });
    assert!(reason.contains("queues declare --name entries"), "{reason}");
    assert_eq!(host.get("/livez").0, 200);
    vhost.declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
    let host = host.ready();
    publish(&vhost, &[entry("e-1", "k", 5)]);
    let database = site.database("t.db");
    settled(&vhost, &database);
    host.stop();
    assert_eq!(database.number("SELECT total FROM counter WHERE handler = 'a'"), 5);
    assert_eq!(host_lines_of_lapin(&site), 0, "each fault is logged once, by us");
}

/// Lines that the client library logs by itself.
fn host_lines_of_lapin(site: &Site) -> usize {
    let log = std::fs::read_to_string(site.path("host-1.log")).unwrap();
    log.lines().filter(|line| line.contains("\"target\":\"lapin")).count()
}
