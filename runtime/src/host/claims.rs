//! Brings parked rows back to the lanes when they are due.

use std::{sync::Arc, time::Duration};

use oncebox_core::{
    envelope,
    failure::Failure,
    identify::{Identity, message_hash},
    ids::LeaseToken,
    retry::Counted,
};
use tokio::sync::watch;

use super::{
    delivery::{Claim, Delivery, Origin, Target},
    handler::{Deployed, Handler},
    tenant::Tenant,
};
use crate::store::{ClaimedRow, StoreError};

/// The longest time between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Rows of a slow handler that are claimed at once: its runs must be over before their lease is.
const SLOW_CLAIMS_MAX: usize = 8;

/// Claims what is due, for every handler that is served, until the host stops.
pub(super) async fn claims(tenant: Arc<Tenant>, mut stopping: watch::Receiver<bool>) {
    while !*stopping.borrow() {
        if let Err(error) = look(&tenant).await {
            tracing::warn!(tenant = %tenant.name, %error, "cannot claim parked events");
        }
        let wait = until_due(&tenant).await;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = tenant.parked.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

async fn until_due(tenant: &Tenant) -> Duration {
    let (Ok(due), Ok(now)) = (tenant.store.next_due_us().await, tenant.store.now_us().await) else { return LOOK_AGAIN };
    let wait = due.map_or(LOOK_AGAIN, |due| Duration::from_micros(u64::try_from(due.saturating_sub(now)).unwrap_or(0)));
    // Something due that cannot be claimed now (a full queue) must not make a busy loop.
    wait.clamp(Duration::from_millis(10), LOOK_AGAIN)
}

async fn look(tenant: &Tenant) -> Result<(), StoreError> {
    for handler in tenant.handlers.values() {
        let Some(deployed) = handler.current() else { continue };
        let max = if handler.is_slow() { SLOW_CLAIMS_MAX } else { tenant.settings.batch_max };
        let Some(room) = max.checked_sub(tenant.waiting(handler.id)).filter(|room| *room > 0) else { continue };
        let token = LeaseToken(rand::random());
        for row in tenant.store.held_claim(handler.id, room, token, tenant.lease_time).await? {
            tenant.spread(delivery(tenant, handler, &deployed, row, token));
        }
    }
    Ok(())
}

/// A parked row is what it was when it was parked: key, fingerprint and time are the recorded ones.
fn delivery(
    tenant: &Tenant,
    handler: &Arc<Handler>,
    deployed: &Arc<Deployed>,
    row: ClaimedRow,
    token: LeaseToken,
) -> Delivery {
    let rule = tenant.settings.sources.get(&row.source).map(|source| source.envelope.clone()).unwrap_or_default();
    let opened = envelope::open(&row.body, &rule, &tenant.identify_limits());
    let identity = match &opened {
        Ok(_) => Ok(Identity { key: row.key, fingerprint: row.fingerprint, ordering_key: None }),
        Err(poison) => Err(Failure::from(poison.clone())),
    };
    let origin = Origin {
        source: row.source.as_str().into(),
        hash: message_hash(&row.body),
        message: Arc::new(row.body),
        envelope: opened.ok(),
        hops: row.hops,
        received_us: row.received_us,
        settle: None,
    };
    Delivery {
        target: Target::Handler(handler.clone(), deployed.clone()),
        origin: Arc::new(origin),
        identity,
        counted: Counted { attempts: row.attempts, attempts_short: row.attempts_short },
        claim: Some(Claim { held: row.held, token, generation: row.generation }),
        unrun: None,
        in_hand: tenant.in_hand.clone(),
    }
}
