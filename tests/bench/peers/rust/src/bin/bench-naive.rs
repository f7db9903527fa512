//! One transaction per message: what is written by hand in most consumers, done right.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use lapin::{Channel, message::Delivery};
use oncebox_bench_peers::{DUPLICATE_KEY, Event, HANDLER, Settings, ack, is_in_the_way, number, pause, until_told};
use sqlx::MySqlPool;
use tokio::{sync::Semaphore, task::JoinSet};

#[tokio::main]
async fn main() -> Result<()> {
    let settings = Settings::read()?;
    let pool = settings.pool().await?;
    let broker = settings.broker().await?;
    // The next ones are here when a worker is free.
    let (channel, mut consumer) = settings.consume(&broker, settings.concurrency.saturating_mul(4).max(16)).await?;
    let places = Arc::new(Semaphore::new(settings.concurrency.into()));
    let mut workers = JoinSet::new();
    workers.spawn(async move {
        let mut running = JoinSet::new();
        loop {
            let place = places.clone().acquire_owned().await?;
            while let Some(ended) = running.try_join_next() {
                ended??;
            }
            let Some(delivery) = consumer.next().await else { return Ok(()) };
            let (delivery, pool, channel) = (delivery?, pool.clone(), channel.clone());
            running.spawn(async move {
                let handled = handle(&pool, &channel, &delivery).await;
                drop(place);
                handled
            });
        }
    });
    until_told(workers).await
}

async fn handle(pool: &MySqlPool, channel: &Channel, delivery: &Delivery) -> Result<()> {
    let event = Event::of(delivery)?;
    loop {
        match apply(pool, &event).await {
            Ok(()) => break,
            Err(error) if error.downcast_ref().is_some_and(is_in_the_way) => pause().await,
            Err(error) => return Err(error),
        }
    }
    ack(channel, delivery.delivery_tag, false).await
}

async fn apply(pool: &MySqlPool, event: &Event) -> Result<()> {
    let mut unit = pool.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO inbox (handler, business_key, fingerprint, event_id, state, decided_at)
         VALUES (?, ?, ?, ?, 0, UTC_TIMESTAMP(6))",
    )
    .bind(HANDLER)
    .bind(&event.key)
    .bind(event.fingerprint.as_slice())
    .bind(&event.event_id)
    .execute(&mut *unit)
    .await;
    match inserted {
        Err(error) if number(&error) == Some(DUPLICATE_KEY) => {
            let known: Vec<u8> =
                sqlx::query_scalar("SELECT fingerprint FROM inbox WHERE handler = ? AND business_key = ?")
                    .bind(HANDLER)
                    .bind(&event.key)
                    .fetch_one(&mut *unit)
                    .await?;
            ensure!(known == event.fingerprint, "{}: a conflict", event.key);
            return Ok(unit.rollback().await?);
        }
        inserted => drop(inserted?),
    }
    let order = &event.order;
    sqlx::query("INSERT INTO points_ledger (receipt_no, order_id, user_id, points) VALUES (?, ?, ?, ?)")
        .bind(&order.receipt_no)
        .bind(order.order_id)
        .bind(order.user_id)
        .bind(order.amount)
        .execute(&mut *unit)
        .await?;
    let updated = sqlx::query("UPDATE points_account SET points = points + ? WHERE user_id = ?")
        .bind(order.amount)
        .bind(order.user_id)
        .execute(&mut *unit)
        .await?;
    ensure!(updated.rows_affected() == 1, "user {} has no account", order.user_id);
    sqlx::query(
        "INSERT INTO outbox (event_id, event_type, business_key, payload, created_at)
         VALUES (?, 'points.awarded', ?, ?, UTC_TIMESTAMP(6))",
    )
    .bind(event.out_id())
    .bind(&event.key)
    .bind(event.payload())
    .execute(&mut *unit)
    .await?;
    Ok(unit.commit().await?)
}
