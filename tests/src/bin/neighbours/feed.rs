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

use crate::stage::{QUEUE, USERS};

/// Confirms that may be awaited at once.
const AWAITED_MAX: usize = 256;

/// Which handler an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    Slow,
    Failing,
}

impl Kind {
    /// The event type.
    pub(crate) const fn event_type(self) -> &'static str {
        match self {
            Self::Good => "order.paid",
            Self::Slow => "order.slow",
            Self::Failing => "order.failing",
        }
    }

    /// The handler's name.
    pub(crate) const fn handler(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Slow => "slow",
            Self::Failing => "failing",
        }
    }
}

/// Publishes events of these kinds in turn, `rate` a second, for a time. The answer: of each good one the order's number
/// and when it was published, in microseconds since 1970.
pub(crate) async fn feed(url: &str, kinds: &[Kind], rate: f64, time: Duration) -> Vec<(u64, i64)> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let (mut published, mut awaited) = (Vec::new(), VecDeque::new());
    let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let began = clock::monotonic();
    let mut order = 0;
    for kind in kinds.iter().cycle() {
        pace.tick().await;
        if began.elapsed() >= time {
            break;
        }
        order += 1;
        let now_us = clock::now_us();
        let body = format!(
            "{{\"orderId\": {order}, \"userId\": {}, \"amount\": 1, \"receiptNo\": \"R-{order}\", \"publishedUs\": {now_us}}}",
            order % USERS
        );
        let mut headers = FieldTable::default();
        headers.insert("event-type".into(), AMQPValue::LongString(kind.event_type().into()));
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_message_id(format!("m-{order}").into())
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let confirm = channel.basic_publish("".into(), QUEUE.into(), options, body.as_bytes(), properties);
        awaited.push_back(confirm.await.unwrap());
        if *kind == Kind::Good {
            published.push((order, now_us));
        }
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
