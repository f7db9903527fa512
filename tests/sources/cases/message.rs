//! What comes through of a message.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};
use oncebox_core::{identify::message_hash, message::Header};

use crate::bench::{Bench, QUEUE, bodies};

pub(crate) async fn properties_and_headers_come_through(bench: Bench) {
    let mut headers = FieldTable::default();
    headers.insert("x-own".into(), AMQPValue::LongString("kept".into()));
    headers.insert("count".into(), AMQPValue::LongInt(7));
    headers.insert("bytes".into(), AMQPValue::LongString(vec![0xff, 0].into()));
    // Forged: a first delivery has been counted by nobody.
    headers.insert("x-delivery-count".into(), AMQPValue::LongLongInt(19));
    let properties = BasicProperties::default()
        .with_headers(headers)
        .with_content_type("application/json".into())
        .with_message_id("m-1".into())
        .with_timestamp(1_795_953_600)
        .with_type("order.paid".into());
    bench.rabbit().admin.publish(QUEUE, &["{}"], properties).await;
    let host = bench.host();
    let held = host.take_all(1).await;
    let message = &held[0].message;
    assert_eq!(held[0].at_risk, None);
    let kept = [Header::new("bytes", [0xff, 0]), Header::new("count", "7"), Header::new("x-own", "kept")];
    assert_eq!(message.headers, kept);
    assert_eq!(message.content_type.as_deref(), Some("application/json"));
    for (name, value) in [
        ("amqp:message-id", "m-1"),
        ("amqp:timestamp", "1795953600"),
        ("amqp:type", "order.paid"),
        ("amqp:routing-key", "orders"),
        ("amqp:delivery-mode", "2"),
    ] {
        assert_eq!(message.property(name), Some(value.as_bytes()), "{name}");
    }
    assert_eq!(message.position[0], ("queue".to_owned(), "orders".to_owned()));
}

pub(crate) async fn a_redelivered_message_has_the_same_hash(bench: Bench) {
    let properties = BasicProperties::default().with_message_id("m-1".into());
    bench.rabbit().admin.publish(QUEUE, &["body"], properties).await;
    let mut hashes = Vec::new();
    for _ in 0..3 {
        let host = bench.host();
        let held = host.take_all(1).await;
        assert_eq!(bodies(&held), ["body"]);
        hashes.push(message_hash(&held[0].message));
        host.crash().await;
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}
