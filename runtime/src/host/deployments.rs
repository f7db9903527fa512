//! Follows the deployments of a tenant: answers what is offered, lets serve what is active, the old one until then.
//!
//! An offer becomes active when every live host is ready (`oncebox_core::rollout` decides); whichever host sees that
//! writes it down, and each switches when it sees it. How one is made ready is in `prepare.rs`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use oncebox_core::{
    retry::BLOCKED_DELAY,
    rollout::{Rollout, Step},
};
use tokio::sync::watch;

use super::{
    admission::AdmissionError,
    handler::{Deployed, Handler},
    prepare::{Preparer, Unready},
    rollout::rollout,
    tenant::Tenant,
};
use crate::{
    clock,
    failpoint::{Place, reach},
    store::{Deployment, DeploymentId, DeploymentState, HandlerId, StoreError},
};

/// The longest time between two looks; a sign that the database has changed makes it sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The shortest: many commits a second must not make many looks.
const LOOK_AT_MOST: Duration = Duration::from_millis(200);

/// Follows the deployments of one tenant.
pub(super) struct Deployments {
    tenant: Arc<Tenant>,
    preparer: Preparer,
    boot_timeout: Duration,
    /// What this host thinks of the offered and active ones: found out, logged and answered once per schema version.
    tried: BTreeMap<DeploymentId, Tried>,
    /// How far the offers are that nobody could decide yet.
    waiting: BTreeMap<DeploymentId, Rollout>,
    schema_version: Option<i64>,
    /// When a handler that is blocked was last held against the gate.
    checked: BTreeMap<HandlerId, Instant>,
}

/// What became of an attempt to make a deployment ready.
struct Tried {
    version: i64,
    outcome: Result<Arc<Deployed>, Refused>,
    answered: bool,
}

#[derive(Clone)]
struct Refused {
    reason: String,
    /// A table that is missing now may be made: then it is tried again.
    is_mendable: bool,
}

impl Deployments {
    /// For a tenant; a host that was not seen for `boot_timeout` is not waited for.
    #[must_use]
    pub(super) fn new(tenant: Arc<Tenant>, preparer: Preparer, boot_timeout: Duration) -> Self {
        Self {
            tenant,
            preparer,
            boot_timeout,
            tried: BTreeMap::new(),
            waiting: BTreeMap::new(),
            schema_version: None,
            checked: BTreeMap::new(),
        }
    }

    /// Looks until the host stops.
    pub(super) async fn follow(mut self, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.tenant.store.changes();
        while !*stopping.borrow() {
            changes.mark_unchanged();
            match self.look().await {
                Ok(()) => drop(self.tenant.health.mended(&self.tenant.reason("deployments"))),
                Err(error) => {
                    if self.tenant.health.missing(self.tenant.reason("deployments"), error.to_string()) {
                        tracing::warn!(tenant = %self.tenant.name, %error, "cannot read deployments");
                    }
                }
            }
            let paused = tokio::time::sleep(LOOK_AT_MOST);
            tokio::select! {
                () = async { paused.await; let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await; } => {}
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
        }
    }

    /// One look at the tables.
    async fn look(&mut self) -> Result<(), StoreError> {
        let version = self.tenant.store.schema_version().await?;
        let is_changed = self.schema_version.is_some_and(|old| old != version);
        for handler in self.tenant.handlers.values().cloned().collect::<Vec<_>>() {
            if is_changed || self.is_time_to_free(&handler).await? {
                self.check_again(&handler).await?;
            }
        }
        self.schema_version = Some(version);
        let mut deployments = self.tenant.store.deployments().await?;
        self.tried.retain(|id, _| deployments.iter().any(|deployment| deployment.id == *id));
        self.waiting.clear();
        let offered = |deployment: &&Deployment| deployment.state == DeploymentState::Offered;
        let offers: Vec<Deployment> = deployments.iter().filter(offered).cloned().collect();
        for offer in &offers {
            let refused = self.answer(offer, version).await?;
            self.roll_out(offer, refused.as_ref()).await?;
        }
        if !offers.is_empty() {
            // Some may be active or refused by now, through this host or another.
            deployments = self.tenant.store.deployments().await?;
        }
        for handler in self.tenant.handlers.values().cloned().collect::<Vec<_>>() {
            let of = |state| deployments.iter().rfind(|one| one.handler == handler.id && one.state == state);
            self.serve(&handler, of(DeploymentState::Active), of(DeploymentState::Offered), version).await?;
        }
        Ok(())
    }

    /// Answers an offer, once per schema version; the result is why this host refuses it, if it does.
    async fn answer(&mut self, offer: &Deployment, version: i64) -> Result<Option<Refused>, StoreError> {
        let tenant = self.tenant.clone();
        let handler = tenant.handlers.values().find(|handler| handler.id == offer.handler);
        let tried = match handler {
            Some(handler) => self.tried(handler, offer, version).await?,
            // Its sources would settle messages that the handler has to see.
            None => self.tried.entry(offer.id).or_insert_with(|| Tried {
                version,
                outcome: Err(Refused {
                    reason: "the configuration with which this host was started does not have the handler: give all \
                             hosts the same configuration and start them anew"
                        .to_owned(),
                    is_mendable: false,
                }),
                answered: false,
            }),
        };
        let refused = tried.outcome.as_ref().err().cloned();
        if !tried.answered {
            let answer = refused.as_ref().map_or(Ok(()), |refused| Err(refused.reason.as_str()));
            tenant.store.deployment_answer(offer.id, tenant.boot, answer).await?;
            reach(Place::ReadyWritten);
            tried.answered = true;
        }
        Ok(refused)
    }

    /// Holds the answers of all live hosts against each other and writes down what follows.
    async fn roll_out(&mut self, offer: &Deployment, refused: Option<&Refused>) -> Result<(), StoreError> {
        let (tenant, store) = (&self.tenant.name, &self.tenant.store);
        let rollout = rollout(store.as_ref(), offer.id, self.boot_timeout).await?;
        match rollout.step() {
            Step::Activate => {
                store.deployment_activate(offer).await?;
                reach(Place::Activated);
                tracing::info!(%tenant, deployment = %offer.id, hosts = rollout.ready.join(", "), "all hosts are ready");
            }
            // Where nothing serves, what can be mended is waited for instead.
            Step::Refuse if refused.is_some_and(|refused| !refused.is_mendable) => {
                store.deployment_refuse(offer, &rollout.reasons()).await?;
            }
            Step::Wait | Step::Split | Step::Refuse => drop(self.waiting.insert(offer.id, rollout)),
        }
        Ok(())
    }

    /// Lets the active deployment of a handler serve, or nothing if it cannot be served here.
    async fn serve(
        &mut self,
        handler: &Arc<Handler>,
        active: Option<&Deployment>,
        offer: Option<&Deployment>,
        version: i64,
    ) -> Result<(), StoreError> {
        let reason = match active {
            Some(active) if handler.current().is_some_and(|current| current.id == active.id) => None,
            Some(active) => self.switch(handler, active, version).await?,
            None if handler.current().is_some() => None,
            None => Some(self.unserved(handler, offer)),
        };
        let name = self.tenant.reason(&format!("handler {}", handler.name));
        match reason {
            Some(reason) => {
                if self.tenant.health.missing(name, &reason) {
                    tracing::warn!(tenant = %self.tenant.name, handler = %handler.name, reason, "is not served");
                }
            }
            None => drop(self.tenant.health.mended(&name)),
        }
        Ok(())
    }

    /// Goes over to the active deployment; batches in flight end on the version that they began with. The answer is why
    /// it cannot be served here.
    async fn switch(
        &mut self,
        handler: &Arc<Handler>,
        active: &Deployment,
        version: i64,
    ) -> Result<Option<String>, StoreError> {
        let outcome = self.tried(handler, active, version).await?.outcome.clone();
        match outcome {
            Ok(deployed) => {
                handler.serve(deployed);
                tracing::info!(tenant = %self.tenant.name, handler = %handler.name, deployment = %active.id,
                    version = %active.version, module = %active.digest, "serves from now on");
                self.free(handler).await?;
                self.tenant.open_sources();
                Ok(None)
            }
            Err(refused) => {
                // The old one must not go on beside the new one of the other hosts.
                if handler.withdraw() {
                    self.tenant.open_sources();
                }
                Ok(Some(format!("deployment {} cannot be served: {}", active.id, refused.reason)))
            }
        }
    }

    /// Makes a deployment ready, once per schema version.
    async fn tried(
        &mut self,
        handler: &Arc<Handler>,
        deployment: &Deployment,
        version: i64,
    ) -> Result<&mut Tried, StoreError> {
        let tried = match self.tried.remove(&deployment.id).filter(|tried| tried.version == version) {
            Some(tried) => tried,
            None => Tried { version, outcome: self.make_ready(handler, deployment, version).await?, answered: false },
        };
        Ok(self.tried.entry(deployment.id).insert_entry(tried).into_mut())
    }

    async fn make_ready(
        &mut self,
        handler: &Handler,
        deployment: &Deployment,
        version: i64,
    ) -> Result<Result<Arc<Deployed>, Refused>, StoreError> {
        match self.preparer.make_ready(handler, deployment, version).await.map_err(Unready::into_away) {
            Ok(deployed) => Ok(Ok(Arc::new(deployed))),
            Err(Ok(away)) => Err(away),
            Err(Err(unready)) => {
                tracing::error!(tenant = %self.tenant.name, handler = %handler.name, deployment = %deployment.id,
                    error = %unready, "cannot be served");
                let is_mendable = matches!(unready, Unready::Admission(_)) && handler.current().is_none();
                Ok(Err(Refused { reason: unready.to_string(), is_mendable }))
            }
        }
    }

    /// Why nothing serves a handler of which no deployment is active.
    fn unserved(&self, handler: &Handler, offer: Option<&Deployment>) -> String {
        let Some(offer) = offer else {
            return format!("has no deployment: `oncebox deploy MODULE {}/{}`", self.tenant.name, handler.name);
        };
        if let Some(Tried { outcome: Err(refused), .. }) = self.tried.get(&offer.id) {
            return format!("deployment {} cannot be served: {}", offer.id, refused.reason);
        }
        let rollout = self.waiting.get(&offer.id).cloned().unwrap_or_default();
        if rollout.refusing.is_empty() {
            return format!("deployment {} is offered; awaited: {}", offer.id, rollout.awaited.join(", "));
        }
        format!("deployment {} is offered, and refused by {}", offer.id, rollout.reasons())
    }

    /// Whether a blocked handler shall be held against the gate once more. One that a unit of work has blocked since the
    /// last look is told of first.
    async fn is_time_to_free(&mut self, handler: &Handler) -> Result<bool, StoreError> {
        let Some(reason) = handler.blocked() else {
            self.checked.remove(&handler.id);
            return Ok(false);
        };
        if self.tenant.health.missing(self.blocked(handler), &*reason) || !self.checked.contains_key(&handler.id) {
            self.tenant.store.handler_block(handler.id, Some(&reason)).await?;
        }
        let now = clock::monotonic();
        let checked = self.checked.entry(handler.id).or_insert(now);
        let is_time = now.duration_since(*checked) >= BLOCKED_DELAY;
        if is_time {
            *checked = now;
        }
        Ok(is_time)
    }

    /// A table's definition has changed, or the handler is blocked: what serves is held against the gate again.
    async fn check_again(&self, handler: &Handler) -> Result<(), StoreError> {
        let Some(current) = handler.current() else { return Ok(()) };
        match self.preparer.admit_again(handler, &current).await {
            Ok(()) => self.free(handler).await,
            Err(AdmissionError::Store(error)) => Err(error),
            Err(AdmissionError::Refused(refused)) => {
                let reason = refused.to_string();
                if handler.block(Some(&reason)) {
                    tracing::error!(tenant = %self.tenant.name, handler = %handler.name, reason,
                        "blocked: tables have changed under it; its events are put aside, uncounted, until this is mended");
                }
                self.tenant.health.missing(self.blocked(handler), &reason);
                self.tenant.store.handler_block(handler.id, Some(&reason)).await
            }
        }
    }

    /// What serves fits its tables.
    async fn free(&self, handler: &Handler) -> Result<(), StoreError> {
        self.tenant.store.handler_block(handler.id, None).await?;
        if handler.block(None) {
            tracing::info!(tenant = %self.tenant.name, handler = %handler.name, "is no longer blocked");
            self.tenant.calls.due.notify_one();
        }
        self.tenant.health.mended(&self.blocked(handler));
        Ok(())
    }

    fn blocked(&self, handler: &Handler) -> String {
        self.tenant.reason(&format!("handler {} is blocked", handler.name))
    }
}
