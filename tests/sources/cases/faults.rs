//! What a broker, a network and an operator may do to a source.

use std::time::Duration;

use oncebox_core::config::{Declare, Hidden, Secret};
use oncebox_tests::services::{Counts, PrivateServer, Vhost};
use serde_json::json;

use crate::bench::{Bench, QUEUE, Settings, bodies, connection, eventually, receipts};

pub(crate) async fn a_deleted_queue_is_consumed_again_when_it_is_made_again(bench: Bench) {
    bench.send(&["a"]).await;
    let host = bench.host();
    let old = host.take_all(1).await;
    bench.vhost().delete_queue(QUEUE);
    let reason = host.wait_for_reason("failed to find queue `orders`").await;
    assert!(reason.contains("queues declare --name orders --type quorum"), "{reason}");
    bench.vhost().declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
    host.consumes().await;
    bench.send(&["b"]).await;
    let new = host.take_all(1).await;
    host.settle(&receipts(&old)).await;
    bench.vhost().wait_for(QUEUE, Counts { ready: 0, unacked: 1 });
    host.settle(&receipts(&new)).await;
    bench.vhost().wait_for(QUEUE, Counts::EMPTY);
}

pub(crate) async fn a_consumer_timeout_is_survived(bench: Bench) {
    bench.vhost().delete_queue(QUEUE);
    bench.vhost().declare_queue(QUEUE, &json!({ "x-queue-type": "quorum", "x-consumer-timeout": 3_000 }));
    bench.send(&["slow"]).await;
    let host = bench.host();
    let old = host.take_all(1).await;
    let new = host.take_all(1).await;
    assert_eq!(bodies(&new), ["slow"]);
    host.settle(&receipts(&old)).await;
    assert_eq!(host.rabbitmq().counters().too_late, 1);
    host.settle(&receipts(&new)).await;
    bench.vhost().wait_for(QUEUE, Counts::EMPTY);
    bench.send(&["next"]).await;
    assert_eq!(bodies(&host.take_all(1).await), ["next"]);
}

pub(crate) async fn a_missing_queue_is_told_and_waited_for(bench: Bench) {
    bench.vhost().delete_queue(QUEUE);
    let host = bench.host();
    host.wait_for_reason("failed to find queue `orders`").await;
    bench.vhost().declare_queue(QUEUE, &json!({ "x-queue-type": "classic" }));
    host.consumes().await;
    bench.send(&["a"]).await;
    assert_eq!(bodies(&host.take_all(1).await), ["a"]);
}

pub(crate) async fn a_queue_of_another_kind_is_told(bench: Bench) {
    let host = bench.host_with(&Settings { declare: Declare::Classic, ..Settings::default() });
    let reason = host.wait_for_reason("failed to declare queue `orders` as a durable classic queue").await;
    assert!(reason.contains("'x-queue-type'") && reason.contains("'quorum'"), "what differs: {reason}");
    assert!(reason.contains("declare = \"passive\"") && reason.contains("delete the queue"), "{reason}");
    let right = bench.host_with(&Settings { declare: Declare::Quorum, ..Settings::default() });
    right.consumes().await;
}

pub(crate) async fn a_wrong_password_is_told_and_a_right_one_taken(bench: Bench) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    let mut settings = connection(&bench.vhost().url());
    let Some(Secret::Plain(Hidden(right))) = settings.password.replace(Secret::File(file.clone())) else { panic!() };
    let host = bench.host_at(Some(settings), &Settings::default());
    host.wait_for_reason("failed to get the password of connection `broker`").await;
    std::fs::write(&file, "wrong\n").unwrap();
    let reason = host.wait_for_reason("failed to log in").await;
    assert!(reason.contains("ACCESS_REFUSED") && !reason.contains("wrong"), "{reason}");
    std::fs::write(&file, format!("{right}\n")).unwrap();
    host.consumes().await;
}

pub(crate) async fn a_missing_virtual_host_is_told_and_waited_for(bench: Bench) {
    let mut settings = connection(&bench.vhost().url());
    let name = format!("{}_late", settings.address.space);
    settings.address.space.clone_from(&name);
    let host = bench.host_at(Some(settings), &Settings::default());
    host.wait_for_reason(&format!("failed to open virtual host `{name}`")).await;
    let api = bench.vhost().api();
    api.ask("PUT", &format!("/vhosts/{name}"), Some(&json!({})));
    host.wait_for_reason("failed to find queue `orders`").await;
    host.stop().await;
    api.ask("DELETE", &format!("/vhosts/{name}"), None);
}

pub(crate) async fn a_user_without_permission_is_told(mut bench: Bench) {
    let user = bench.vhost_mut().add_user("^$");
    let url = bench.vhost().url_of(&user);
    let host = bench.host_at(Some(connection(&url)), &Settings::default());
    let reason = host.wait_for_reason("ACCESS_REFUSED").await;
    assert!(reason.contains("queue `orders`"), "{reason}");
    bench.vhost().permit(&user.name, "orders");
    host.consumes().await;
}

pub(crate) async fn a_broker_that_is_away_is_waited_for(bench: Bench) {
    let mut server = PrivateServer::rabbitmq();
    let vhost = Vhost::create(&server.server);
    vhost.declare_queue(QUEUE, &json!({ "x-queue-type": "quorum" }));
    // A node notes the name of a new quorum queue some time later or at its end, and forgets what the queue holds if it
    // is killed before (RabbitMQ 4.3.6: "configured member was not found on this node").
    server.stop();
    server.start_again();
    vhost.publish(QUEUE, "a", &json!({}));
    let host = bench.host_at(Some(connection(&vhost.url())), &Settings::default());
    let old = host.take_all(1).await;
    server.kill9();
    host.wait_for_reason("failed to").await;
    server.start_again();
    let again = host.take_all(1).await;
    assert_eq!(bodies(&again), ["a"]);
    host.settle(&receipts(&old)).await;
    assert_eq!(host.rabbitmq().counters().too_late, 1);
    assert_eq!(host.rabbitmq().counters().acks_up_to, 0);
    host.settle(&receipts(&again)).await;
    vhost.wait_for(QUEUE, Counts::EMPTY);
    host.stop().await;
}

pub(crate) async fn a_silent_address_is_told(bench: Bench) {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = connection(&bench.vhost().url());
    settings.address.port = silent.local_addr().unwrap().port();
    let host = bench.host_at(Some(settings), &Settings::default());
    host.wait_for_reason("no answer in 10 s").await;
    host.stop().await;
}

pub(crate) async fn a_database_that_is_away_pauses_the_consumer_and_keeps_its_deliveries(bench: Bench) {
    bench.send(&["a"]).await;
    let host = bench.host_with(&Settings { cancel_after: Duration::from_millis(1_000), ..Settings::default() });
    let held = host.take_all(1).await;
    assert!(consumers(&bench).contains(QUEUE));
    host.away.send_replace(Some(oncebox::clock::monotonic()));
    bench.send(&["b"]).await;
    assert_eq!(bodies(&host.take_all(1).await), ["b"], "a short absence changes nothing");
    // The queue itself counts a cancelled consumer as long as it holds deliveries.
    eventually("cancelled", async || consumers(&bench).is_empty().then_some(())).await;
    bench.send(&["c"]).await;
    host.takes_nothing().await;
    bench.vhost().wait_for(QUEUE, Counts { ready: 1, unacked: 2 });
    host.settle(&receipts(&held)).await;
    bench.vhost().wait_for(QUEUE, Counts { ready: 1, unacked: 1 });
    host.away.send_replace(None);
    assert_eq!(bodies(&host.take_all(1).await), ["c"]);
    assert_eq!(host.rabbitmq().counters().channels, 1, "on the same channel");
}

fn consumers(bench: &Bench) -> String {
    let list = bench.vhost().ctl(&["--quiet", "list_consumers", "--vhost", &bench.vhost().name]);
    list.trim().to_owned()
}

pub(crate) async fn a_handler_that_is_not_served_any_more_pauses_the_consumer(bench: Bench) {
    let host = bench.host();
    host.consumes().await;
    host.served.send_replace(false);
    eventually("cancelled", async || (bench.rabbit().admin.look(QUEUE).await == Some((0, 0))).then_some(())).await;
    bench.send(&["a"]).await;
    host.takes_nothing().await;
    host.served.send_replace(true);
    assert_eq!(bodies(&host.take_all(1).await), ["a"]);
}
