//! Opens the tenants' databases for `oncebox run`: at once where that can be, again and again where it cannot yet, while
//! the tenants that are served work.

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use oncebox_core::config;
use tokio::task::JoinSet;

use super::{
    failed::{Failed, Wrong},
    open::Opened,
};
use crate::{
    host::{Health, OpenTenant},
    store::{Store, Use},
};

/// Between two tries to open the database of a tenant that is not served.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// A tenant, and the answer to one try to open its store.
type Tried = (String, Result<Arc<dyn Store>, Failed>);

/// Tenants that are not served yet.
pub(super) struct Arrivals {
    opened: Arc<Opened>,
    /// One task for each: it ends with the answer to one try.
    tries: JoinSet<Tried>,
    /// Why the last try of each failed; those whose first try is not over are not here.
    failed: BTreeMap<String, Failed>,
    /// Once a tenant is served, the host goes on whatever becomes of the others.
    any_served: bool,
}

impl Arrivals {
    /// Opens the embedded stores. Those on servers come later: one that is away is waited for, and keeps nobody waiting.
    ///
    /// # Errors
    /// No tenant could be opened, and there is none to wait for.
    pub(super) async fn begin(opened: &Arc<Opened>) -> Result<(Vec<OpenTenant>, Self), Failed> {
        let mut arrivals =
            Self { opened: opened.clone(), tries: JoinSet::new(), failed: BTreeMap::new(), any_served: false };
        let mut open = Vec::new();
        for (name, settings) in opened.tenants(None)? {
            match &settings.store {
                config::Store::Mysql(_) => arrivals.try_to_open(name, Duration::ZERO),
                config::Store::Sqlite { .. } => match opened.store(name, settings, Use::Host).await {
                    Ok(store) => {
                        open.push(OpenTenant { name: name.to_owned(), settings: settings.clone(), store });
                        arrivals.any_served = true;
                    }
                    Err(failed) => arrivals.put_back(name, failed),
                },
            }
        }
        arrivals.may_go_on()?;
        Ok((open, arrivals))
    }

    /// Notes in [`Health`] who is missing, and logs what is news.
    pub(super) fn tell(&self, health: &Health) {
        for name in self.opened.config.tenants.keys() {
            let Some(failed) = self.failed.get(name) else { continue };
            if health.missing(reason(name), &failed.message) {
                tracing::error!(tenant = name, code = failed.code, error = failed.message, "is not served");
            }
        }
    }

    /// The same of those that nothing is known of yet.
    pub(super) fn tell_awaited(&self, health: &Health) {
        for (name, tenant) in &self.opened.config.tenants {
            if matches!(tenant.store, config::Store::Mysql(_)) {
                health.missing(reason(name), "its database is being opened");
            }
        }
    }

    /// Waits until one more was opened, or could not be (`None`). Nothing is lost when this is not waited for to its end.
    ///
    /// # Errors
    /// No tenant was ever served, and there is none left to wait for.
    pub(super) async fn next(&mut self, health: &Health) -> Result<Option<OpenTenant>, Failed> {
        let Some(ended) = self.tries.join_next().await else { return pending().await };
        let (name, outcome) =
            ended.map_err(|error| Failed::new(Wrong::Bug, format!("opening a tenant's store broke: {error}")))?;
        match (outcome, self.opened.config.tenants.get(&name)) {
            (Ok(store), Some(settings)) => Ok(Some(OpenTenant { name, settings: settings.clone(), store })),
            (Err(failed), _) => self.failed(&name, failed, health).map(|()| None),
            (Ok(_), None) => Ok(None),
        }
    }

    /// One that was opened is served now.
    pub(super) fn served(&mut self, name: &str, health: &Health) {
        self.any_served = true;
        self.failed.remove(name);
        health.mended(&reason(name));
    }

    /// One that was opened, or was tried to, cannot be served yet.
    ///
    /// # Errors
    /// As [`Arrivals::next`].
    pub(super) fn failed(&mut self, name: &str, failed: Failed, health: &Health) -> Result<(), Failed> {
        self.put_back(name, failed);
        self.may_go_on()?;
        self.tell(health);
        Ok(())
    }

    fn put_back(&mut self, name: &str, failed: Failed) {
        self.failed.insert(name.to_owned(), failed);
        self.try_to_open(name, TRY_AGAIN);
    }

    fn try_to_open(&mut self, name: &str, after: Duration) {
        let (opened, name) = (self.opened.clone(), name.to_owned());
        self.tries.spawn(async move {
            tokio::time::sleep(after).await;
            let store = match opened.tenant(&name) {
                Ok(settings) => opened.store(&name, settings, Use::Host).await,
                Err(failed) => Err(failed),
            };
            (name, store)
        });
    }

    /// A host that serves nobody, and waits for nobody who may come by himself, has nothing to do.
    fn may_go_on(&mut self) -> Result<(), Failed> {
        let tenants = &self.opened.config.tenants;
        let waits = |(name, tenant): (&String, &config::Tenant)| match (&tenant.store, self.failed.get(name)) {
            (_, None) => true,
            (config::Store::Mysql(_), Some(failed)) => failed.is_away,
            (config::Store::Sqlite { .. }, Some(_)) => false,
        };
        if self.any_served || tenants.iter().any(waits) {
            return Ok(());
        }
        self.failed.pop_first().map_or(Ok(()), |(_, failed)| Err(failed))
    }
}

/// The tenant's name as a reason of [`Health`].
fn reason(tenant: &str) -> String {
    format!("tenant {tenant}")
}
