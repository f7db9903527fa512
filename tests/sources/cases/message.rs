//! What comes through of a message.

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};
use oncebox_core::{identify::message_hash, message::Header};

use crate::{
    bench::{Bench, QUEUE, bodies, connection, receipts},
    raw::{Raw, long, short},
};

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

/// Flags of a content header.
const HEADERS: u16 = 1 << 13;
const MESSAGE_ID: u16 = 1 << 7;

pub(crate) async fn a_message_that_the_library_cannot_read_comes_through(bench: Bench) {
    bench.send(&["before"]).await;
    let mut raw = Raw::connect(&connection(&bench.vhost().url()));
    let id = [&MESSAGE_ID.to_be_bytes(), short(b"id-\xff").as_slice()].concat();
    raw.publish(b"", QUEUE.as_bytes(), &id, b"no text for an id");
    let table = [short(b"name-\xff"), b"S".to_vec(), long(b"value")].concat();
    let headers = [&HEADERS.to_be_bytes(), long(&table).as_slice()].concat();
    raw.publish(b"", QUEUE.as_bytes(), &headers, b"no text for a name");
    bench.rabbit().admin.bind(QUEUE, "amq.fanout").await;
    raw.publish(b"amq.fanout", b"key-\xff", &[0, 0], b"no text for a key");
    bench.send(&["behind"]).await;
    let host = bench.host();
    let held = host.take_all(5).await;
    assert_eq!(bodies(&held)[1..4], ["no text for an id", "no text for a name", "no text for a key"]);
    assert_eq!(held[1].message.property("amqp:message-id"), Some(b"id-\xff".as_slice()));
    assert_eq!(held[2].message.headers, [Header::new("name-%FF", "value")]);
    assert_eq!(held[3].message.property("amqp:routing-key"), Some(b"key-\xff".as_slice()));
    assert_eq!(held[4].message.property("amqp:routing-key"), Some(QUEUE.as_bytes()));
    assert_eq!(host.rabbitmq().counters().channels, 1, "the connection was lost");
    host.settle(&receipts(&held)).await;
    bench.all_settled();
}

pub(crate) async fn tables_nested_without_an_end_harm_nobody(bench: Bench) {
    let mut raw = Raw::connect(&connection(&bench.vhost().url()));
    // As deep as a frame of 128 KiB lets them be.
    let deep = (0..15_000).fold(Vec::new(), |inner, _| [short(b"n"), b"F".to_vec(), long(&inner)].concat());
    let headers = [&HEADERS.to_be_bytes(), long(&deep).as_slice()].concat();
    raw.publish(b"", QUEUE.as_bytes(), &headers, b"deep");
    let host = bench.host();
    let held = host.take_all(1).await;
    assert_eq!(bodies(&held), ["deep"]);
    let value = String::from_utf8_lossy(&held[0].message.headers[0].value).into_owned();
    assert!(value.contains("(nested too deeply)"), "{value}");
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
