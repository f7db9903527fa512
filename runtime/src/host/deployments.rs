//! Follows the deployments of a tenant: loads what was offered, lets it serve when it is ready, the old one until then.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use oncebox_core::ids::ModuleDigest;
use tokio::sync::watch;

use super::{
    admission::{AdmissionError, Place, admit},
    handler::{Deployed, Handler},
    tenant::Tenant,
};
use crate::{
    plugin::{Engine, Module, PluginError},
    store::{Deployment, DeploymentId, DeploymentState, StoreError},
};

/// The longest time between two looks; a sign that the database has changed makes it sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The shortest: many commits a second must not make many looks.
const LOOK_AT_MOST: Duration = Duration::from_millis(200);

/// Follows the deployments of one tenant.
pub(super) struct Deployments {
    tenant: Arc<Tenant>,
    engine: Arc<Engine>,
    cache_dir: PathBuf,
    /// Modules in use, so that handlers that share one load it once.
    modules: BTreeMap<ModuleDigest, std::sync::Weak<Module>>,
    /// Deployments that could not be served, so that each is tried and logged once per schema version.
    failed: BTreeMap<DeploymentId, i64>,
    schema_version: Option<i64>,
}

/// Why a deployment does not serve.
#[derive(Debug, thiserror::Error)]
enum Unready {
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("module {0} is not in the tenant's tables")]
    NoModule(ModuleDigest),
}

impl Deployments {
    /// For a tenant; `cache_dir` holds compiled modules.
    #[must_use]
    pub(super) fn new(tenant: Arc<Tenant>, engine: Arc<Engine>, cache_dir: PathBuf) -> Self {
        Self { tenant, engine, cache_dir, modules: BTreeMap::new(), failed: BTreeMap::new(), schema_version: None }
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
        let schema_changed = self.schema_version.replace(version).is_some_and(|old| old != version);
        let deployments = self.tenant.store.deployments().await?;
        let handlers: Vec<Arc<Handler>> = self.tenant.handlers.values().cloned().collect();
        for handler in handlers {
            if schema_changed {
                self.check_again(&handler).await?;
            }
            // Newest first: an offered one before the active one that it would replace.
            let own = deployments.iter().rev().filter(|deployment| deployment.handler == handler.id);
            self.serve_newest(&handler, own, version).await?;
        }
        Ok(())
    }

    async fn serve_newest<'a>(
        &mut self,
        handler: &Arc<Handler>,
        newest_first: impl Iterator<Item = &'a Deployment>,
        version: i64,
    ) -> Result<(), StoreError> {
        let name = self.tenant.reason(&format!("handler {}", handler.name));
        let mut reason =
            Some(format!("has no deployment: `oncebox deploy MODULE {}/{}`", self.tenant.name, handler.name));
        for deployment in newest_first {
            if handler.current().is_some_and(|current| current.id == deployment.id) {
                reason = None;
                break;
            }
            if self.failed.get(&deployment.id) == Some(&version) {
                reason = Some(format!("deployment {} cannot be served: see the log", deployment.id));
                continue;
            }
            match self.make_ready(handler, deployment).await {
                Ok(deployed) => {
                    self.tenant.store.deployment_activate(deployment).await?;
                    tracing::info!(tenant = %self.tenant.name, handler = %handler.name, deployment = %deployment.id,
                        version = %deployment.version, module = %deployment.digest, "serves from now on");
                    handler.serve(Arc::new(deployed));
                    self.tenant.open_sources();
                    reason = None;
                    break;
                }
                Err(Unready::Store(error) | Unready::Admission(AdmissionError::Store(error))) => return Err(error),
                Err(error) => {
                    self.failed.insert(deployment.id, version);
                    tracing::error!(tenant = %self.tenant.name, handler = %handler.name,
                        deployment = %deployment.id, %error, "cannot be served");
                    // Where nothing serves, a table that is missing now may be made: then it is tried again, not refused.
                    let mendable = matches!(error, Unready::Admission(_)) && handler.current().is_none();
                    if deployment.state == DeploymentState::Offered && !mendable {
                        self.tenant.store.deployment_refuse(deployment, &error.to_string()).await?;
                    }
                    reason = Some(format!("deployment {} cannot be served: {error}", deployment.id));
                }
            }
        }
        match reason {
            // What serves goes on serving: a refused newer one does not make the host unready.
            Some(reason) if handler.current().is_none() => {
                if self.tenant.health.missing(name, &reason) {
                    tracing::warn!(tenant = %self.tenant.name, handler = %handler.name, reason, "is not served");
                }
            }
            Some(_) | None => drop(self.tenant.health.mended(&name)),
        }
        Ok(())
    }

    /// A table's definition has changed: what serves is held against the gate again.
    async fn check_again(&self, handler: &Handler) -> Result<(), StoreError> {
        let Some(current) = handler.current() else { return Ok(()) };
        let name = self.tenant.reason(&format!("handler {} after a change of tables", handler.name));
        match admit(self.place(handler), current.module.manifest(), self.tenant.store.as_ref()).await {
            Ok(_) => drop(self.tenant.health.mended(&name)),
            Err(AdmissionError::Store(error)) => return Err(error),
            Err(AdmissionError::Refused(refused)) => {
                tracing::error!(tenant = %self.tenant.name, handler = %handler.name, %refused,
                    "tables have changed under a deployed handler");
                self.tenant.health.missing(name, refused.to_string());
            }
        }
        Ok(())
    }

    async fn make_ready(&mut self, handler: &Handler, deployment: &Deployment) -> Result<Deployed, Unready> {
        let module = self.module(deployment.digest).await?;
        let admitted = admit(self.place(handler), module.manifest(), self.tenant.store.as_ref()).await?;
        module.dry_run().await?;
        let rules: BTreeMap<_, _> = self.tenant.store.rules(handler.id).await?.into_iter().collect();
        // The rule is the deployment's, not today's configuration's.
        let rule = rules.get(&deployment.rule).cloned().unwrap_or_else(|| admitted.rule.clone());
        if rule.hash() != admitted.rule.hash() {
            tracing::warn!(tenant = %self.tenant.name, handler = %handler.name, serves = rule.key().source(),
                "key, fingerprint or ordering in the configuration differ from the deployment's; the deployment's stay in \
                 force until `oncebox deploy --new-rule`");
        }
        Ok(Deployed {
            id: deployment.id,
            module,
            rule_id: deployment.rule,
            rule,
            rules,
            limits: Arc::new(admitted.limits),
            retry: admitted.retry,
            config: Arc::new(admitted.config),
            statements: admitted.statements,
            queries: admitted.queries,
            destinations: admitted.destinations,
        })
    }

    async fn module(&mut self, digest: ModuleDigest) -> Result<Arc<Module>, Unready> {
        self.modules.retain(|_, module| module.strong_count() > 0);
        if let Some(module) = self.modules.get(&digest).and_then(std::sync::Weak::upgrade) {
            return Ok(module);
        }
        let bytes = self.tenant.store.module_read(digest).await?.ok_or(Unready::NoModule(digest))?;
        let module = self.engine.load(&bytes, &self.cache_dir).await?;
        self.modules.insert(digest, Arc::downgrade(&module));
        Ok(module)
    }

    fn place<'a>(&'a self, handler: &'a Handler) -> Place<'a> {
        Place {
            host_limits: &self.tenant.host_limits,
            tenant_name: &self.tenant.name,
            tenant: &self.tenant.settings,
            name: &handler.name,
            handler: &handler.settings,
        }
    }
}
