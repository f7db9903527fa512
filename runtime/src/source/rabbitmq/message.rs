//! From a delivery of RabbitMQ to a message: what the producer sent, without what the broker added.

use std::fmt::Write as _;

use lapin::{
    BasicProperties,
    message::Delivery,
    types::{AMQPValue, DecimalValue, FieldTable},
};
use oncebox_core::message::{Header, Message};

use super::sieve::RAW;

/// Headers that the broker itself writes: they differ from one delivery to the next, so they are no part of the message.
const BROKERS_OWN: [&str; 11] = [
    "x-acquired-count",
    "x-death",
    "x-delivery-count",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    "x-received-from",
    "x-stream-offset",
];

/// How often a quorum queue has handed the message over before; 0 where the queue does not count.
///
/// The broker writes the header from the second delivery on; in a first one it could only be the producer's own.
pub(super) fn earlier_deliveries(delivery: &Delivery) -> u64 {
    let count = delivery.properties.headers().as_ref().and_then(|headers| headers.inner().get("x-delivery-count"));
    count.filter(|_| delivery.redelivered).and_then(integer).and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// The message as the producer sent it, and where it lies.
pub(super) fn message(queue: &str, delivery: Delivery) -> Message {
    let table = delivery.properties.headers().as_ref();
    let mut properties = properties(&delivery.properties, delivery.routing_key.as_str());
    for (name, value) in table.into_iter().flat_map(FieldTable::inner) {
        if let Some(name) = name.as_str().strip_prefix(RAW) {
            let name = format!("amqp:{name}");
            properties.retain(|(other, _)| *other != name);
            properties.push((name, bytes(value)));
        }
    }
    Message {
        headers: table.map_or_else(Vec::new, headers),
        content_type: delivery.properties.content_type().as_ref().map(|text| text.as_str().to_owned()),
        properties,
        position: [
            ("queue", queue),
            ("exchange", delivery.exchange.as_str()),
            ("routing-key", delivery.routing_key.as_str()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        body: delivery.data,
    }
}

fn headers(table: &FieldTable) -> Vec<Header> {
    let is_own = |name: &str| !BROKERS_OWN.contains(&name) && !name.starts_with(RAW);
    let own = table.inner().iter().filter(|(name, _)| is_own(name.as_str()));
    own.map(|(name, value)| Header::new(name.as_str(), bytes(value))).collect()
}

fn properties(all: &BasicProperties, routing_key: &str) -> Vec<(String, Vec<u8>)> {
    let text = |value: &Option<lapin::types::ShortString>| value.as_ref().map(|text| text.as_str().to_owned());
    let facts = [
        ("amqp:routing-key", Some(routing_key.to_owned())),
        ("amqp:message-id", text(all.message_id())),
        ("amqp:correlation-id", text(all.correlation_id())),
        ("amqp:timestamp", all.timestamp().map(|seconds| seconds.to_string())),
        ("amqp:type", text(all.kind())),
        ("amqp:app-id", text(all.app_id())),
        ("amqp:user-id", text(all.user_id())),
        ("amqp:reply-to", text(all.reply_to())),
        ("amqp:expiration", text(all.expiration())),
        ("amqp:content-encoding", text(all.content_encoding())),
        ("amqp:priority", all.priority().map(|number| number.to_string())),
        ("amqp:delivery-mode", all.delivery_mode().map(|number| number.to_string())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into_bytes()))).collect()
}

/// A header's value: texts and bytes as they are, other scalars as text, tables and arrays as JSON.
fn bytes(value: &AMQPValue) -> Vec<u8> {
    match value {
        AMQPValue::LongString(text) => text.as_bytes().to_vec(),
        AMQPValue::ShortString(text) => text.as_str().as_bytes().to_vec(),
        AMQPValue::ByteArray(bytes) => bytes.as_slice().to_vec(),
        AMQPValue::Void => Vec::new(),
        AMQPValue::Boolean(_)
        | AMQPValue::ShortShortInt(_)
        | AMQPValue::ShortShortUInt(_)
        | AMQPValue::ShortInt(_)
        | AMQPValue::ShortUInt(_)
        | AMQPValue::LongInt(_)
        | AMQPValue::LongUInt(_)
        | AMQPValue::LongLongInt(_)
        | AMQPValue::Float(_)
        | AMQPValue::Double(_)
        | AMQPValue::DecimalValue(_)
        | AMQPValue::Timestamp(_)
        | AMQPValue::FieldArray(_)
        | AMQPValue::FieldTable(_) => {
            let mut text = String::new();
            write_json(value, &mut text);
            text.into_bytes()
        }
    }
}

/// A value as JSON. Bytes that are no text become `{"bytes": "<hex>"}`, so that different bytes stay different; numbers
/// that JSON does not have (NaN, infinity) become texts.
fn write_json(value: &AMQPValue, out: &mut String) {
    match value {
        AMQPValue::Boolean(yes) => push(out, yes),
        AMQPValue::ShortShortInt(number) => push(out, number),
        AMQPValue::ShortShortUInt(number) => push(out, number),
        AMQPValue::ShortInt(number) => push(out, number),
        AMQPValue::ShortUInt(number) => push(out, number),
        AMQPValue::LongInt(number) => push(out, number),
        AMQPValue::LongUInt(number) => push(out, number),
        AMQPValue::LongLongInt(number) => push(out, number),
        AMQPValue::Timestamp(seconds) => push(out, seconds),
        AMQPValue::Float(number) if number.is_finite() => push(out, number),
        AMQPValue::Float(number) => push(out, serde_json::Value::from(number.to_string())),
        AMQPValue::Double(number) if number.is_finite() => push(out, number),
        AMQPValue::Double(number) => push(out, serde_json::Value::from(number.to_string())),
        AMQPValue::DecimalValue(decimal) => out.push_str(&plain(*decimal)),
        AMQPValue::ShortString(text) => push(out, serde_json::Value::from(text.as_str())),
        AMQPValue::LongString(text) => write_text(text.as_bytes(), out),
        AMQPValue::ByteArray(bytes) => write_text(bytes.as_slice(), out),
        AMQPValue::Void => out.push_str("null"),
        AMQPValue::FieldArray(values) => {
            out.push('[');
            for (place, value) in values.as_slice().iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                write_json(value, out);
            }
            out.push(']');
        }
        AMQPValue::FieldTable(table) => {
            out.push('{');
            for (place, (name, value)) in table.inner().iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                push(out, serde_json::Value::from(name.as_str()));
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
    }
}

fn push(out: &mut String, shown: impl std::fmt::Display) {
    let _ = write!(out, "{shown}");
}

fn write_text(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push(out, serde_json::Value::from(text)),
        Err(_) => {
            out.push_str("{\"bytes\":\"");
            bytes.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
            out.push_str("\"}");
        }
    }
}

/// The digits with the point where the scale says.
fn plain(DecimalValue { scale, value }: DecimalValue) -> String {
    let scale = usize::from(scale);
    let digits = format!("{value:0>width$}", width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    if scale == 0 { whole.to_owned() } else { format!("{whole}.{rest}") }
}

/// Any of the integer types.
fn integer(value: &AMQPValue) -> Option<i64> {
    match value {
        AMQPValue::ShortShortInt(number) => Some((*number).into()),
        AMQPValue::ShortShortUInt(number) => Some((*number).into()),
        AMQPValue::ShortInt(number) => Some((*number).into()),
        AMQPValue::ShortUInt(number) => Some((*number).into()),
        AMQPValue::LongInt(number) => Some((*number).into()),
        AMQPValue::LongUInt(number) => Some((*number).into()),
        AMQPValue::LongLongInt(number) => Some(*number),
        AMQPValue::Boolean(_)
        | AMQPValue::Float(_)
        | AMQPValue::Double(_)
        | AMQPValue::DecimalValue(_)
        | AMQPValue::ShortString(_)
        | AMQPValue::LongString(_)
        | AMQPValue::FieldArray(_)
        | AMQPValue::Timestamp(_)
        | AMQPValue::FieldTable(_)
        | AMQPValue::ByteArray(_)
        | AMQPValue::Void => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(redelivered: bool, headers: &[(&str, AMQPValue)]) -> Delivery {
        let mut table = FieldTable::default();
        for (name, value) in headers {
            table.insert((*name).into(), value.clone());
        }
        let mut delivery = Delivery::mock(7, "shop".into(), "order.paid".into(), redelivered, b"body".to_vec());
        delivery.properties = BasicProperties::default().with_headers(table);
        delivery
    }

    fn table(entries: &[(&str, AMQPValue)]) -> AMQPValue {
        let mut table = FieldTable::default();
        for (name, value) in entries {
            table.insert((*name).into(), value.clone());
        }
        AMQPValue::FieldTable(table)
    }

    #[test]
    fn a_value_of_every_type_becomes_text() {
        let decimal = |scale, value| AMQPValue::DecimalValue(DecimalValue { scale, value });
        let rows: [(AMQPValue, &[u8]); 22] = [
            (AMQPValue::Boolean(true), b"true"),
            (AMQPValue::ShortShortInt(-1), b"-1"),
            (AMQPValue::ShortShortUInt(255), b"255"),
            (AMQPValue::ShortInt(-300), b"-300"),
            (AMQPValue::ShortUInt(300), b"300"),
            (AMQPValue::LongInt(-70_000), b"-70000"),
            (AMQPValue::LongUInt(70_000), b"70000"),
            (AMQPValue::LongLongInt(i64::MIN), b"-9223372036854775808"),
            (AMQPValue::Float(1.5), b"1.5"),
            (AMQPValue::Double(0.1), b"0.1"),
            (AMQPValue::Double(f64::NAN), b"\"NaN\""),
            (decimal(2, 1_234), b"12.34"),
            (decimal(3, 7), b"0.007"),
            (decimal(0, 7), b"7"),
            (AMQPValue::ShortString("short".into()), b"short"),
            (AMQPValue::LongString("with \" quotes".into()), b"with \" quotes"),
            (AMQPValue::LongString(vec![0xff, 0].into()), b"\xff\0"),
            (AMQPValue::ByteArray(vec![1, 2].into()), b"\x01\x02"),
            (AMQPValue::Timestamp(1_795_953_600), b"1795953600"),
            (AMQPValue::Void, b""),
            (
                AMQPValue::FieldArray(vec![AMQPValue::Void, AMQPValue::LongString(vec![0xff].into())].into()),
                br#"[null,{"bytes":"ff"}]"#,
            ),
            (
                table(&[("a", AMQPValue::LongInt(1)), ("b\"", AMQPValue::LongString("x\n".into()))]),
                br#"{"a":1,"b\"":"x\n"}"#,
            ),
        ];
        for (value, expected) in rows {
            assert_eq!(bytes(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn what_the_broker_adds_is_no_part_of_the_message() {
        let counts = [
            ("x-delivery-count", AMQPValue::LongLongInt(3)),
            ("x-acquired-count", AMQPValue::LongLongInt(4)),
            ("x-death", AMQPValue::FieldArray(vec![table(&[])].into())),
            ("x-own", AMQPValue::LongString("kept".into())),
        ];
        let first = message("orders", delivery(false, &[("x-own", AMQPValue::LongString("kept".into()))]));
        assert_eq!(message("orders", delivery(true, &counts)), first);
        assert_eq!(first.headers, [Header::new("x-own", "kept")]);
        assert_eq!(first.body, b"body");
        let position = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected =
            [position("queue", "orders"), position("exchange", "shop"), position("routing-key", "order.paid")];
        assert_eq!(first.position, expected);
    }

    #[test]
    fn a_property_that_is_no_text_is_bytes() {
        let raw = |name: &str, bytes: &[u8]| (format!("{RAW}{name}"), AMQPValue::LongString(bytes.into()));
        let (key, id) = (raw("routing-key", b"\xff"), raw("message-id", b"\xfe"));
        let message = message("orders", delivery(false, &[(&key.0, key.1.clone()), (&id.0, id.1.clone())]));
        assert_eq!(message.headers, []);
        assert_eq!(message.property("amqp:routing-key"), Some(b"\xff".as_slice()));
        assert_eq!(message.property("amqp:message-id"), Some(b"\xfe".as_slice()));
        assert_eq!(message.properties.len(), 2);
    }

    #[test]
    fn properties_go_by_the_names_of_the_placeholders() {
        let mut delivery = delivery(false, &[]);
        delivery.properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_message_id("m-1".into())
            .with_correlation_id("c-1".into())
            .with_timestamp(1_795_953_600)
            .with_type("order.paid".into())
            .with_priority(3)
            .with_delivery_mode(2);
        let message = message("orders", delivery);
        assert_eq!(message.content_type.as_deref(), Some("application/json"));
        let rows = [
            ("amqp:message-id", "m-1"),
            ("amqp:correlation-id", "c-1"),
            ("amqp:timestamp", "1795953600"),
            ("amqp:type", "order.paid"),
            ("amqp:priority", "3"),
            ("amqp:delivery-mode", "2"),
            ("amqp:routing-key", "order.paid"),
        ];
        for (name, value) in rows {
            assert_eq!(message.property(name), Some(value.as_bytes()), "{name}");
        }
        assert_eq!(message.properties.len(), rows.len());
    }

    #[test]
    fn the_count_is_the_brokers_own_and_of_any_integer_type() {
        let rows = [
            (true, AMQPValue::LongLongInt(7), 7),
            (true, AMQPValue::LongInt(7), 7),
            (true, AMQPValue::LongUInt(7), 7),
            (true, AMQPValue::ShortShortUInt(7), 7),
            (true, AMQPValue::LongLongInt(-1), 0),
            (true, AMQPValue::LongString("7".into()), 0),
            (false, AMQPValue::LongLongInt(7), 0),
        ];
        for (redelivered, value, expected) in rows {
            let delivery = delivery(redelivered, &[("x-delivery-count", value.clone())]);
            assert_eq!(earlier_deliveries(&delivery), expected, "{redelivered} {value:?}");
        }
        assert_eq!(earlier_deliveries(&delivery(true, &[])), 0);
    }
}
