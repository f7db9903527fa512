//! What the hand-written consumers share: where everything is, what a message is, how a delivery is taken and acked.
//! `../README.md` has the job.

pub mod batch;

use std::{collections::BTreeMap, str::FromStr as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use futures_util::StreamExt as _;
use lapin::{
    Channel, Connection, ConnectionProperties, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions},
    types::FieldTable,
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use sqlx::{
    Executor as _, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

/// The handler's name in the inbox.
pub const HANDLER: &str = "points";

/// MySQL: a row with that key is there already.
pub const DUPLICATE_KEY: u16 = 1062;
/// MySQL: the transaction was undone because of a deadlock.
pub const DEADLOCK: u16 = 1213;
/// MySQL: a lock was not to be had in time.
pub const LOCK_WAIT: u16 = 1205;

/// Where everything is, and how much at once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The broker.
    pub amqp_url: String,
    /// The queue.
    pub queue: String,
    /// The database.
    pub mysql_url: String,
    /// Messages, or batches, in flight.
    pub concurrency: u16,
    /// Messages of one transaction.
    pub batch: u16,
}

impl Settings {
    /// How many events there are, for what ends by itself or measures itself.
    ///
    /// # Errors
    /// `BENCH_EVENTS` is missing or no number.
    pub fn events() -> Result<u64> {
        let text = std::env::var("BENCH_EVENTS").context("BENCH_EVENTS is not set")?;
        text.parse().context("BENCH_EVENTS is no number")
    }

    /// From the environment.
    ///
    /// # Errors
    /// A variable is missing or no number.
    pub fn read() -> Result<Self> {
        let text = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        let number = |name: &str| text(name)?.parse::<u16>().with_context(|| format!("{name} is no number"));
        let settings = Self {
            amqp_url: text("BENCH_AMQP_URL")?,
            queue: text("BENCH_QUEUE")?,
            mysql_url: text("BENCH_MYSQL_URL")?,
            concurrency: number("BENCH_CONCURRENCY")?,
            batch: number("BENCH_BATCH")?,
        };
        ensure!(settings.concurrency > 0 && settings.batch > 0, "BENCH_CONCURRENCY and BENCH_BATCH begin at 1");
        Ok(settings)
    }

    /// A connection to the database for each transaction in flight. Texts for up to a whole batch stay prepared.
    ///
    /// # Errors
    /// The database does not let us in.
    pub async fn pool(&self) -> Result<MySqlPool> {
        let options = MySqlConnectOptions::from_str(&self.mysql_url)?.statement_cache_capacity(1_024);
        let session = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
        let pool = MySqlPoolOptions::new()
            .min_connections(self.concurrency.into())
            .max_connections(self.concurrency.into())
            .test_before_acquire(false)
            .after_connect(move |connection, _| Box::pin(async move { connection.execute(session).await.map(drop) }));
        Ok(pool.connect_with(options).await?)
    }

    /// A channel with so many messages on their way.
    ///
    /// # Errors
    /// The broker's.
    pub async fn consume(&self, connection: &Connection, prefetch: u16) -> Result<(Channel, Consumer)> {
        let channel = connection.create_channel().await?;
        channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let consumer =
            channel.basic_consume(self.queue.as_str().into(), "".into(), options, FieldTable::default()).await?;
        Ok((channel, consumer))
    }

    /// Connects to the broker.
    ///
    /// # Errors
    /// The broker's.
    pub async fn broker(&self) -> Result<Connection> {
        Ok(Connection::connect(&self.amqp_url, ConnectionProperties::default()).await?)
    }
}

/// The body of a message.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The order's number.
    pub order_id: u64,
    /// Whose it is.
    pub user_id: u64,
    /// What it was worth.
    pub amount: i64,
    /// The receipt's number.
    pub receipt_no: String,
}

/// A message that was understood.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its body.
    pub order: Order,
    /// The business key.
    pub key: String,
    /// SHA-256 of the body.
    pub fingerprint: [u8; 32],
    /// The property `message-id`.
    pub event_id: String,
}

impl Event {
    /// Reads a delivery.
    ///
    /// # Errors
    /// It is no order.
    pub fn of(delivery: &Delivery) -> Result<Self> {
        let event_id = delivery.properties.message_id().as_ref().map_or_else(String::new, ToString::to_string);
        Self::read(&delivery.data, event_id)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// It is no order.
    pub fn read(body: &[u8], event_id: String) -> Result<Self> {
        let order: Order = serde_json::from_slice(body)?;
        Ok(Self {
            key: format!("order:{}:paid", order.order_id),
            fingerprint: Sha256::digest(body).into(),
            event_id,
            order,
        })
    }

    /// The outgoing event's id.
    #[must_use]
    pub fn out_id(&self) -> String {
        format!("points:{}", self.key)
    }

    /// The outgoing event's payload.
    #[must_use]
    pub fn payload(&self) -> String {
        let Order { order_id, user_id, amount, .. } = &self.order;
        format!("{{\"orderId\":{order_id},\"userId\":{user_id},\"points\":{amount}}}")
    }
}

/// Points by account, in the order of accounts: two batches never lock them crosswise.
#[must_use]
pub fn by_account(events: &[Event]) -> BTreeMap<u64, i64> {
    let mut sums = BTreeMap::new();
    for event in events {
        *sums.entry(event.order.user_id).or_default() += event.order.amount;
    }
    sums
}

/// The number of the database's error, if it is one.
#[must_use]
pub fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some(error.number())
}

/// Whether the transaction may be done again at once.
#[must_use]
pub fn is_in_the_way(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(DEADLOCK | LOCK_WAIT))
}

/// Takes what is there, at least one and at most so many. `None`: the consumer has ended.
///
/// # Errors
/// The broker's.
pub async fn take(consumer: &mut Consumer, max: usize) -> Result<Option<Vec<Delivery>>> {
    let Some(first) = consumer.next().await else { return Ok(None) };
    let mut taken = vec![first?];
    while taken.len() < max {
        match futures_util::FutureExt::now_or_never(consumer.next()) {
            Some(Some(next)) => taken.push(next?),
            Some(None) | None => break,
        }
    }
    Ok(Some(taken))
}

/// Acks one delivery, or all up to it.
///
/// # Errors
/// The broker's.
pub async fn ack(channel: &Channel, tag: u64, multiple: bool) -> Result<()> {
    Ok(channel.basic_ack(tag, BasicAckOptions { multiple }).await?)
}

/// Says that it consumes, and goes on until SIGTERM or until one of the workers ends.
///
/// # Errors
/// A worker's.
pub async fn until_told(mut workers: tokio::task::JoinSet<Result<()>>) -> Result<()> {
    let mut told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    println!("ready");
    tokio::select! {
        _ = told.recv() => Ok(()),
        Some(ended) = workers.join_next() => ended?,
    }
}

/// A pause before a transaction is done again.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
