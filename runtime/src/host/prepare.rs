//! Makes a deployment ready on this host: its module loaded, held against the gate, and instantiated once.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Weak},
};

use oncebox_core::{ids::ModuleDigest, sql::Catalogue};

use super::{
    admission::{AdmissionError, Place, admit},
    handler::{Deployed, Handler},
    tenant::Tenant,
};
use crate::{
    plugin::{Engine, Module, PluginError},
    store::{Deployment, StoreError},
};

/// Makes the deployments of one tenant ready.
pub(super) struct Preparer {
    tenant: Arc<Tenant>,
    engine: Arc<Engine>,
    cache_dir: PathBuf,
    /// Modules in use, so that handlers that share one load it once.
    modules: BTreeMap<ModuleDigest, Weak<Module>>,
    /// The tables of a schema version, so that a thousand handlers read them once.
    catalogue: Option<(i64, Arc<Catalogue>)>,
}

/// Why a deployment is not ready here.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    /// The module does not run.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It may not serve the handler, or the database could not be asked.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tables do not have it.
    #[error("module {0} is not in the tenant's tables")]
    NoModule(ModuleDigest),
}

impl Unready {
    /// The database is away: nothing was found out about the deployment.
    pub(super) fn into_away(self) -> Result<StoreError, Self> {
        match self {
            Self::Store(error) | Self::Admission(AdmissionError::Store(error)) if error.is_away() => Ok(error),
            Self::Store(_) | Self::Admission(_) | Self::Plugin(_) | Self::NoModule(_) => Err(self),
        }
    }
}

impl Preparer {
    /// For a tenant; `cache_dir` holds compiled modules.
    #[must_use]
    pub(super) fn new(tenant: Arc<Tenant>, engine: Arc<Engine>, cache_dir: PathBuf) -> Self {
        Self { tenant, engine, cache_dir, modules: BTreeMap::new(), catalogue: None }
    }

    /// Loads a deployment and checks it, against tables that are as new as this schema version.
    ///
    /// # Errors
    /// [`Unready`].
    pub(super) async fn make_ready(
        &mut self,
        handler: &Handler,
        deployment: &Deployment,
        version: i64,
    ) -> Result<Deployed, Unready> {
        let module = self.module(deployment.digest).await?;
        let catalogue = self.catalogue(version).await?;
        let admitted = admit(self.place(handler), module.manifest(), self.tenant.store.as_ref(), &catalogue).await?;
        {
            let _beside = self.tenant.gate.beside().await;
            module.dry_run().await?;
        }
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

    /// Holds what serves a handler against the gate again.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub(super) async fn admit_again(&self, handler: &Handler, serves: &Deployed) -> Result<(), AdmissionError> {
        let store = self.tenant.store.as_ref();
        let catalogue = store.catalogue().await?;
        admit(self.place(handler), serves.module.manifest(), store, &catalogue).await.map(|_| ())
    }

    /// The tables as they were when that version had been read, or later: what changes after it is another version, and
    /// all handlers are looked at again.
    async fn catalogue(&mut self, version: i64) -> Result<Arc<Catalogue>, StoreError> {
        if let Some((of, kept)) = &self.catalogue
            && *of == version
        {
            return Ok(kept.clone());
        }
        let read = Arc::new(self.tenant.store.catalogue().await?);
        self.catalogue = Some((version, read.clone()));
        Ok(read)
    }

    async fn module(&mut self, digest: ModuleDigest) -> Result<Arc<Module>, Unready> {
        self.modules.retain(|_, module| module.strong_count() > 0);
        if let Some(module) = self.modules.get(&digest).and_then(Weak::upgrade) {
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
