//! A queue whose handlers ask for order must have a single active consumer.

use oncebox_core::config::Declare;
use serde_json::{Value, json};

use crate::bench::{Bench, Held, Host, QUEUE, Settings, bodies, receipts};

const ORDERED: fn(Declare) -> Settings = |declare| Settings { keeps_order: true, declare, ..Settings::default() };

pub(crate) async fn a_declared_queue_keeps_the_order_where_it_is_asked_for(bench: Bench) {
    for (declare, kind) in [(Declare::Quorum, "quorum"), (Declare::Classic, "classic")] {
        bench.vhost().delete_queue(QUEUE);
        let host = bench.host_with(&ORDERED(declare));
        host.consumes().await;
        let queue = bench.vhost().queue(QUEUE).unwrap();
        assert_eq!(queue["arguments"]["x-single-active-consumer"], true, "{queue}");
        assert_eq!((&queue["arguments"]["x-queue-type"], &queue["durable"]), (&json!(kind), &json!(true)));
        host.stop().await;
        // Nobody asks for order any more, and the queue still keeps it: nothing is wrong with that.
        bench.host_with(&Settings { declare, ..Settings::default() }).consumes().await;
    }
    // Of a queue that does not keep it.
    bench.vhost().delete_queue(QUEUE);
    bench.host_with(&Settings { declare: Declare::Quorum, ..Settings::default() }).consumes().await;
    let host = bench.host_with(&ORDERED(Declare::Quorum));
    host.wait_for_reason("has no single active consumer").await;
}

pub(crate) async fn a_queue_that_somebody_made_is_looked_at(bench: Bench) {
    let rows: [(Value, bool); 8] = [
        (json!({ "x-queue-type": "quorum", "x-single-active-consumer": true }), true),
        (json!({ "x-queue-type": "quorum" }), false),
        (json!({ "x-queue-type": "quorum", "x-single-active-consumer": false }), false),
        (json!({ "x-queue-type": "classic" }), false),
        (json!({ "x-queue-type": "classic", "x-single-active-consumer": true, "x-max-length": 100 }), true),
        (
            json!({
                "x-queue-type": "quorum", "x-single-active-consumer": true, "x-delivery-limit": 7, "x-max-length": 9,
                "x-overflow": "reject-publish", "x-dead-letter-exchange": "it's 'dead'", "x-dead-letter-strategy": "at-least-once",
                "x-message-ttl": 600_000, "x-expires": 600_000, "x-consumer-timeout": 60_000,
            }),
            true,
        ),
        (json!({ "x-queue-type": "quorum", "x-delivery-limit": 7, "x-max-length-bytes": 900_000_000_000_i64 }), false),
        (json!({ "x-single-active-consumer": true, "x-max-priority": 3 }), true),
    ];
    for (arguments, keeps_order) in rows {
        bench.vhost().delete_queue(QUEUE);
        bench.vhost().declare_queue(QUEUE, &arguments);
        let before = bench.vhost().queue(QUEUE).unwrap()["arguments"].clone();
        let host = bench.host_with(&ORDERED(Declare::Passive));
        if keeps_order {
            host.consumes().await;
        } else {
            let reason = host.wait_for_reason("has no single active consumer").await;
            assert!(reason.contains("x-single-active-consumer"), "{reason}");
            assert_eq!(bench.rabbit().admin.look(QUEUE).await, Some((0, 0)), "{arguments}: it consumes");
        }
        assert_eq!(bench.vhost().queue(QUEUE).unwrap()["arguments"], before, "the look has changed the queue");
        host.stop().await;
    }
}

pub(crate) async fn order_that_is_asked_for_later_is_looked_at_then(bench: Bench) {
    let host = bench.host();
    host.consumes().await;
    host.keeps_order.send_replace(true);
    host.wait_for_reason("has no single active consumer").await;
    assert_eq!(bench.rabbit().admin.look(QUEUE).await, Some((0, 0)));
    host.keeps_order.send_replace(false);
    host.consumes().await;
}

/// Two hosts at a queue that keeps the order; the second one waits for its turn.
async fn pair(bench: &Bench, kind: &str) -> (Host, Host, Vec<Held>) {
    bench.vhost().delete_queue(QUEUE);
    bench.vhost().declare_queue(QUEUE, &json!({ "x-queue-type": kind, "x-single-active-consumer": true }));
    bench.send(&["a", "b", "c", "d"]).await;
    let settings = Settings { prefetch: 2, ..ORDERED(Declare::Passive) };
    let first = bench.host_with(&settings);
    let held = first.take_all(2).await;
    let second = bench.host_with(&settings);
    second.consumes().await;
    (first, second, held)
}

async fn stop(bench: &Bench, kind: &str) {
    let (mut first, second, held) = pair(bench, kind).await;
    first.stop.send_replace(true);
    first.kept().await;
    // The lanes still decide what they have.
    second.takes_nothing().await;
    first.settle(&receipts(&held[..1])).await;
    second.takes_nothing().await;
    first.close().await;
    assert_eq!(bodies(&second.take_all(2).await), ["b", "c"]);
}

pub(crate) async fn a_host_that_stops_lets_nothing_of_a_quorum_queue_pass_what_it_decides(bench: Bench) {
    stop(&bench, "quorum").await;
}

pub(crate) async fn a_host_that_stops_lets_nothing_of_a_classic_queue_pass_what_it_decides(bench: Bench) {
    stop(&bench, "classic").await;
}

pub(crate) async fn what_a_paused_host_has_not_decided_goes_first_to_the_next_one(bench: Bench) {
    let (first, second, held) = pair(&bench, "quorum").await;
    first.settle(&receipts(&held[..1])).await;
    first.served.send_replace(false);
    assert_eq!(bodies(&second.take_all(2).await), ["b", "c"]);
    // What the first one decides now is done twice by nobody: the second one finds it to be a duplicate.
    first.settle(&receipts(&held[1..])).await;
    assert_eq!(first.rabbitmq().counters().too_late, 1);
}
