//! A local source: messages in the tenant's own database, offered by `oncebox send` or by another handler.
//!
//! A message is taken under a lease and settled by deleting its row under the lease's token, in the unit of work.
//! What is held in memory is bounded by the source's prefetch; leases of what is held are renewed.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use oncebox_core::{
    config::{self, Route, Unrouted},
    envelope::EnvelopeRule,
    identify::Limits,
    ids::LeaseToken,
    message::Message,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::{
    clock,
    host::{Origin, Tenant},
    store::LocalId,
};

/// A message under our lease, with its place in the prefetch.
pub struct Taken {
    /// The row.
    pub id: LocalId,
    /// Our lease on it.
    pub token: LeaseToken,
    /// The message.
    pub message: Arc<Message>,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// When it was sent.
    pub received_us: i64,
    /// Its place in the prefetch.
    pub permit: OwnedSemaphorePermit,
}

/// The longest wait before a source is looked at again without a sign that something came.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// One local source of a tenant.
pub struct LocalSource {
    name: Arc<str>,
    tenant: Arc<Tenant>,
    settings: config::Source,
    routes: Vec<Route>,
    prefetch: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
    held: Mutex<Vec<(LeaseToken, Weak<Origin>)>>,
}

impl LocalSource {
    /// The source of that name, with the routes that begin at it.
    #[must_use]
    pub fn new(name: &str, tenant: Arc<Tenant>, settings: config::Source, stopping: watch::Receiver<bool>) -> Self {
        let routes = tenant.settings.routes.iter().filter(|route| route.source == name).cloned().collect();
        let prefetch = Arc::new(Semaphore::new(settings.prefetch));
        Self { name: name.into(), tenant, settings, routes, prefetch, stopping, held: Mutex::new(Vec::new()) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How its messages are to be understood.
    #[must_use]
    pub fn envelope(&self) -> &EnvelopeRule {
        &self.settings.envelope
    }

    /// What becomes of a message that no route takes.
    #[must_use]
    pub fn unrouted(&self) -> Unrouted {
        self.settings.unrouted
    }

    /// Limits of its messages.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.tenant.identify_limits()
    }

    /// The handlers that a route gives events of this type to.
    #[must_use]
    pub fn handlers(&self, event_type: &str) -> Vec<&str> {
        let takes = |route: &&Route| {
            route.event_types.is_empty()
                || route.event_types.iter().any(|pattern| config::type_matches(pattern, event_type))
        };
        self.routes.iter().filter(takes).flat_map(|route| &route.handlers).map(String::as_str).collect()
    }

    /// Notes what is held under a token, so that its lease is renewed until it is gone from memory.
    pub fn watch(&self, token: LeaseToken, origin: &Arc<Origin>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push((token, Arc::downgrade(origin)));
    }

    /// Waits for messages and takes what is due now, as far as the prefetch goes. `None`: the host stops.
    pub async fn take(&self) -> Option<Vec<Taken>> {
        let mut changes = self.tenant.store.changes();
        let mut stopping = self.stopping.clone();
        loop {
            if *stopping.borrow() {
                return None;
            }
            changes.mark_unchanged();
            if self.is_served() {
                let first = tokio::select! {
                    permit = self.prefetch.clone().acquire_owned() => permit.ok()?,
                    _ = stopping.wait_for(|stopping| *stopping) => return None,
                };
                match self.claim(first).await {
                    Ok(taken) if !taken.is_empty() => return Some(taken),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(tenant = %self.tenant.name, source = %self.name, %error, "cannot take")
                    }
                }
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.tenant.served.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }

    /// A source begins when every handler that it may have to give an event to is served.
    fn is_served(&self) -> bool {
        let mut handlers = self.routes.iter().flat_map(|route| &route.handlers);
        handlers.all(|name| self.tenant.handlers.get(name).is_some_and(|handler| handler.current().is_some()))
    }

    async fn claim(&self, first: OwnedSemaphorePermit) -> Result<Vec<Taken>, crate::store::StoreError> {
        let mut permits = vec![first];
        while permits.len() < self.tenant.settings.batch_max {
            let Ok(permit) = self.prefetch.clone().try_acquire_owned() else { break };
            permits.push(permit);
        }
        let token = LeaseToken(rand::random());
        let messages = self.tenant.store.local_claim(&self.name, permits.len(), token, self.tenant.lease_time).await?;
        let taken = messages.into_iter().zip(permits).map(|(local, permit)| Taken {
            id: local.id,
            token,
            message: Arc::new(local.message),
            hops: local.hops,
            received_us: local.received_us,
            permit,
        });
        Ok(taken.collect())
    }

    /// Renews the leases of what is held in memory, at a third of their time, until the host stops.
    pub async fn renew(self: Arc<Self>) {
        let mut stopping = self.stopping.clone();
        let every = self.tenant.lease_time / 3;
        let mut last = clock::monotonic();
        while tokio::time::timeout(every, stopping.wait_for(|stopping| *stopping)).await.is_err() {
            let tokens = self.tokens();
            if tokens.is_empty() {
                continue;
            }
            match self.tenant.store.local_renew(&tokens, self.tenant.lease_time).await {
                Ok(()) => last = clock::monotonic(),
                Err(error) => {
                    let since_ms = last.elapsed().as_millis();
                    tracing::warn!(tenant = %self.tenant.name, source = %self.name, since_ms, %error, "cannot renew leases");
                }
            }
        }
    }

    fn tokens(&self) -> Vec<LeaseToken> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(_, origin)| origin.strong_count() > 0);
        let mut tokens: Vec<LeaseToken> = held.iter().map(|(token, _)| *token).collect();
        tokens.dedup();
        tokens
    }
}
