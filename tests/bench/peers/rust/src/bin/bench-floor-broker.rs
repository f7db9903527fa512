//! What the broker alone can do: everything is consumed and acked, a hundred at once, and nothing is done with it. Prints
//! `rate N`, events per second behind the first tenth.

use tokio::time::Instant;

use anyhow::Result;
use oncebox_bench_peers::{Settings, ack, take, until_told};
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<()> {
    let (settings, events) = (Settings::read()?, Settings::events()?);
    let broker = settings.broker().await?;
    let (channel, mut consumer) = settings.consume(&broker, 1_000).await?;
    let mut workers = JoinSet::new();
    workers.spawn(async move {
        let (mut taken, mut began) = (0, None);
        while let Some(deliveries) = take(&mut consumer, 100).await? {
            if let Some(last) = deliveries.last() {
                ack(&channel, last.delivery_tag, true).await?;
            }
            taken += deliveries.len() as u64;
            if taken >= events / 10 && began.is_none() {
                began = Some((taken, Instant::now()));
            }
            if let (true, Some((before, began))) = (taken >= events, began) {
                let counted = u32::try_from(taken - before)?;
                println!("rate {}", f64::from(counted) / began.elapsed().as_secs_f64());
            }
        }
        Ok(())
    });
    until_told(workers).await
}
