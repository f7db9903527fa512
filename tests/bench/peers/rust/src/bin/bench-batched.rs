//! A hundred messages per transaction: the best that a skilled engineer writes when the consumer has to be fast.

use std::collections::HashSet;

use anyhow::Result;
use lapin::{Channel, Consumer};
use oncebox_bench_peers::{
    Event, Settings, ack,
    batch::{apply, unknown},
    is_in_the_way, pause, take, until_told,
};
use sqlx::MySqlPool;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<()> {
    let settings = Settings::read()?;
    let pool = settings.pool().await?;
    let broker = settings.broker().await?;
    let mut workers = JoinSet::new();
    for _ in 0..settings.concurrency {
        // One batch is being worked on, the next ones are here already.
        let (channel, consumer) = settings.consume(&broker, settings.batch.saturating_mul(4)).await?;
        workers.spawn(work(pool.clone(), channel, consumer, settings.batch.into()));
    }
    until_told(workers).await
}

async fn work(pool: MySqlPool, channel: Channel, mut consumer: Consumer, batch: usize) -> Result<()> {
    // Duplicates seldom come alone: while there were some in the last batch, the next one is looked up first.
    let mut looks_first = false;
    while let Some(deliveries) = take(&mut consumer, batch).await? {
        let mut seen = HashSet::new();
        let mut events = Vec::with_capacity(deliveries.len());
        for delivery in &deliveries {
            let event = Event::of(delivery)?;
            if seen.insert(event.key.clone()) {
                events.push(event);
            }
        }
        // Two batches that have keys in common insert them in one order.
        events.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let mut has_known = false;
        loop {
            let new = if looks_first || has_known { unknown(&pool, &events).await? } else { events.clone() };
            has_known |= new.len() < events.len();
            match apply(&pool, &new).await {
                Ok(true) => break,
                // Somebody has inserted one of them just now.
                Ok(false) => has_known = true,
                Err(error) if error.downcast_ref().is_some_and(is_in_the_way) => pause().await,
                Err(error) => return Err(error),
            }
        }
        looks_first = has_known || seen.len() < deliveries.len();
        if let Some(last) = deliveries.last() {
            ack(&channel, last.delivery_tag, true).await?;
        }
    }
    Ok(())
}
