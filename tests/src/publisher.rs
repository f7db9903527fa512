//! A producer that does it right: persistent messages, confirms, and again whatever was not confirmed. Each message has a
//! header that tells its body.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::time::Duration;

use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldTable},
};
use oncebox::clock;
use tokio::runtime::{Builder, Runtime};

use crate::checker::sent::{ORIGIN, origin};

/// How long a broker may take for a confirm, or for a connection.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long a broker may be away in all: it is stopped and started again on a busy machine.
const AWAY_MAX: Duration = Duration::from_secs(180);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// Publishes to one queue.
pub struct Publisher {
    runtime: Runtime,
    url: String,
    queue: String,
    open: Option<(Connection, Channel)>,
    /// Messages that were published once more, because the broker had not confirmed them.
    pub again: usize,
}

impl Publisher {
    /// Not connected yet.
    ///
    /// # Panics
    /// There is no runtime.
    #[must_use]
    pub fn new(url: &str, queue: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { runtime, url: url.to_owned(), queue: queue.to_owned(), open: None, again: 0 }
    }

    /// Publishes messages, and returns when the broker has confirmed every one.
    ///
    /// # Panics
    /// The broker is away for too long.
    #[track_caller]
    pub fn publish<B: AsRef<[u8]>>(&mut self, bodies: &[B]) {
        let began = clock::monotonic();
        let mut left: Vec<&[u8]> = bodies.iter().map(AsRef::as_ref).collect();
        let mut first = true;
        while !left.is_empty() {
            if !first {
                self.again += left.len();
                assert!(began.elapsed() < AWAY_MAX, "{}: {} not confirmed in {AWAY_MAX:?}", self.url, left.len());
            }
            let Self { runtime, url, queue, open, .. } = self;
            let unconfirmed = runtime.block_on(async {
                match tokio::time::timeout(ANSWER_MAX, offer(url, queue, open, &left)).await {
                    Ok(Ok(unconfirmed)) if unconfirmed.is_empty() => unconfirmed,
                    failed => {
                        *open = None;
                        tokio::time::sleep(BETWEEN_TRIES).await;
                        failed.ok().and_then(Result::ok).unwrap_or_else(|| left.clone())
                    }
                }
            });
            (left, first) = (unconfirmed, false);
        }
    }
}

/// Those that were not confirmed.
async fn offer<'a>(
    url: &str,
    queue: &str,
    open: &mut Option<(Connection, Channel)>,
    bodies: &[&'a [u8]],
) -> Result<Vec<&'a [u8]>, lapin::Error> {
    if open.as_ref().is_none_or(|(_, channel)| !channel.status().connected()) {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        *open = Some((connection, channel));
    }
    let Some((_, channel)) = open else { return Ok(bodies.to_vec()) };
    let mut confirms = Vec::new();
    for body in bodies {
        // Without `mandatory`, a message that no queue takes is confirmed too.
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let mut headers = FieldTable::default();
        headers.insert(ORIGIN.into(), AMQPValue::LongString(origin(body).into()));
        let properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
        confirms.push(channel.basic_publish("".into(), queue.into(), options, body, properties).await?);
    }
    let mut unconfirmed = Vec::new();
    for (body, confirm) in bodies.iter().zip(confirms) {
        if !matches!(confirm.await, Ok(Confirmation::Ack(None))) {
            unconfirmed.push(*body);
        }
    }
    Ok(unconfirmed)
}
