//! Publishing at a steady pace, whatever becomes of what was published.

#![expect(clippy::unwrap_used, reason = "what measures may stop where something is wrong")]

use std::{collections::VecDeque, time::Duration};

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable},
};
use oncebox::clock;
use tokio::time::MissedTickBehavior;

use crate::points;

/// Confirms that may be awaited at once.
const AWAITED_MAX: usize = 256;

/// An event that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its place among the event types.
    pub kind: usize,
    /// The order's number.
    pub order: u32,
    /// When, in microseconds since 1970: before it went to the broker.
    pub at_us: i64,
}

/// Publishes events of the example `points-award` under these types in turn, `rate` a second in all, for a time. What falls
/// behind is made up for: whoever is slow to take an event is not asked for fewer.
///
/// # Panics
/// The broker does not take one.
pub async fn pace(url: &str, queue: &str, event_types: &[&str], rate: f64, time: Duration) -> Vec<Published> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let (mut published, mut awaited) = (Vec::new(), VecDeque::new());
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let began = clock::monotonic();
    for (order, (kind, event_type)) in (1..).zip(event_types.iter().enumerate().cycle()) {
        pace.tick().await;
        if began.elapsed() >= time {
            break;
        }
        let at_us = clock::now_us();
        let mut headers = FieldTable::default();
        headers.insert("event-type".into(), AMQPValue::LongString((*event_type).into()));
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_message_id(format!("m-{order}").into())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let body = points::body(order);
        let confirm = channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties);
        awaited.push_back(confirm.await.unwrap());
        published.push(Published { kind, order, at_us });
        if awaited.len() >= AWAITED_MAX
            && let Some(confirm) = awaited.pop_front()
        {
            confirm.await.unwrap();
        }
    }
    for confirm in awaited {
        confirm.await.unwrap();
    }
    connection.close(200, "OK".into()).await.unwrap();
    published
}
