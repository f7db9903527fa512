//! What the database alone can do: the batches of `bench-batched`, without a broker.

use anyhow::{Result, ensure};
use oncebox_bench_peers::{Event, Settings, batch::apply, is_in_the_way, pause, until_told};
use tokio::task::JoinSet;

/// Users that have an account.
const USERS: u64 = 1_000;

#[tokio::main]
async fn main() -> Result<()> {
    let (settings, events) = (Settings::read()?, Settings::events()?);
    let pool = settings.pool().await?;
    let mut workers = JoinSet::new();
    for first in 0..u64::from(settings.concurrency) {
        let (pool, batch, step) = (pool.clone(), u64::from(settings.batch), u64::from(settings.concurrency));
        workers.spawn(async move {
            for start in (first * batch..events).step_by(usize::try_from(step * batch)?) {
                let mut made = (start..events.min(start + batch)).map(event).collect::<Result<Vec<_>>>()?;
                made.sort_unstable_by(|one, other| one.key.cmp(&other.key));
                loop {
                    match apply(&pool, &made).await {
                        Ok(is_new) => break ensure!(is_new, "a key is there already"),
                        Err(error) if error.downcast_ref().is_some_and(is_in_the_way) => pause().await,
                        Err(error) => return Err(error),
                    }
                }
            }
            // Until it is told to end: whoever watches ends it when all of them are there.
            std::future::pending().await
        });
    }
    until_told(workers).await
}

fn event(n: u64) -> Result<Event> {
    let user = n % USERS;
    let body = format!("{{\"orderId\": {n}, \"userId\": {user}, \"amount\": 1, \"receiptNo\": \"R-{n}\"}}");
    Event::read(body.as_bytes(), format!("m-{n}"))
}
