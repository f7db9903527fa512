//! A local source: messages in the tenant's own database, offered by `oncebox send` or by another handler.
//!
//! A message is taken under a lease and settled by deleting its row under the lease's token, in the unit of work.
//! What is held in memory is bounded by the source's prefetch; leases of what is held are renewed.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use oncebox_core::ids::LeaseToken;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{Intake, Origin, Receipt, Source, Taken};
use crate::store::{Store, StoreError};

/// The longest wait before a source is looked at again without a sign that something came.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a local source works with.
pub struct Supply {
    /// The tenant's database.
    pub store: Arc<dyn Store>,
    /// Messages taken and not settled, at most.
    pub prefetch: usize,
    /// Messages taken at once, at most.
    pub batch_max: usize,
    /// Lifetime of a lease.
    pub lease_time: Duration,
    /// Whether all handlers of the source are served.
    pub served: watch::Receiver<bool>,
    /// Whether the host stops.
    pub stopping: watch::Receiver<bool>,
}

/// One local source of a tenant.
pub struct LocalSource {
    intake: Intake,
    supply: Supply,
    prefetch: Arc<Semaphore>,
    held: Mutex<Vec<(LeaseToken, Weak<Origin>)>>,
}

impl LocalSource {
    /// The source, with what it works with.
    #[must_use]
    pub fn new(intake: Intake, supply: Supply) -> Self {
        let prefetch = Arc::new(Semaphore::new(supply.prefetch));
        Self { intake, supply, prefetch, held: Mutex::new(Vec::new()) }
    }

    async fn claim(&self, first: OwnedSemaphorePermit) -> Result<Vec<Taken>, StoreError> {
        let mut permits = vec![first];
        while permits.len() < self.supply.batch_max {
            let Ok(permit) = self.prefetch.clone().try_acquire_owned() else { break };
            permits.push(permit);
        }
        let token = LeaseToken(rand::random());
        let Supply { store, lease_time, .. } = &self.supply;
        let messages = store.local_claim(&self.intake.name, permits.len(), token, *lease_time).await?;
        let taken = messages.into_iter().zip(permits).map(|(local, permit)| Taken {
            receipt: Receipt::Local { id: local.id, token },
            message: Arc::new(local.message),
            hops: local.hops,
            received_us: local.received_us,
            permit: Some(permit),
            is_redelivered: local.deliveries > 1,
            at_risk: None,
        });
        Ok(taken.collect())
    }

    fn tokens(&self) -> Vec<LeaseToken> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(_, origin)| origin.strong_count() > 0);
        let mut tokens: Vec<LeaseToken> = held.iter().map(|(token, _)| *token).collect();
        tokens.dedup();
        tokens
    }
}

#[async_trait]
impl Source for LocalSource {
    fn intake(&self) -> &Intake {
        &self.intake
    }

    async fn take(&self) -> Option<Vec<Taken>> {
        let mut changes = self.supply.store.changes();
        let (mut stopping, mut served) = (self.supply.stopping.clone(), self.supply.served.clone());
        loop {
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                served = served.wait_for(|served| *served) => drop(served.ok()?),
            }
            // Before the look, so that what comes during it is looked for again.
            changes.mark_unchanged();
            let first = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                permit = self.prefetch.clone().acquire_owned() => permit.ok()?,
            };
            match self.claim(first).await {
                Ok(taken) if !taken.is_empty() => return Some(taken),
                Ok(_) => {}
                Err(error) => {
                    let Intake { tenant, name, .. } = &self.intake;
                    tracing::warn!(%tenant, source = %name, code = error.code(), %error, "cannot take");
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn watch(&self, origin: &Arc<Origin>) {
        if let Some((_, token)) = origin.settle.as_ref().and_then(|settle| settle.receipt.local()) {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).push((token, Arc::downgrade(origin)));
        }
    }

    /// Renews the leases of what is held in memory, at a third of their time.
    async fn keep(&self) {
        let Supply { store, lease_time, .. } = &self.supply;
        let mut stopping = self.supply.stopping.clone();
        while tokio::time::timeout(*lease_time / 3, stopping.wait_for(|stopping| *stopping)).await.is_err() {
            let tokens = self.tokens();
            if tokens.is_empty() {
                continue;
            }
            if let Err(error) = store.local_renew(&tokens, *lease_time).await {
                let Intake { tenant, name, .. } = &self.intake;
                tracing::warn!(%tenant, source = %name, code = error.code(), %error, "cannot renew leases");
            }
        }
    }

    async fn settle(&self, receipts: &[Receipt]) {
        let messages: Vec<_> = receipts.iter().filter_map(Receipt::local).collect();
        if let Err(error) = self.supply.store.local_settle(&messages).await {
            // The verdicts stand; the messages come again after their lease and are found to be duplicates.
            let Intake { tenant, name, .. } = &self.intake;
            tracing::warn!(%tenant, source = %name, code = error.code(), %error, "could not settle after the commit");
        }
    }

    /// Leases that are not renewed any more end by themselves.
    async fn close(&self) {}
}
