//! The sources of a tenant on this host, and when each may begin.

use std::{collections::BTreeMap, sync::Arc};

use oncebox_core::{config, identify::Limits};
use tokio::sync::watch;

use crate::{
    source::{Intake, LocalSource, Source, Supply},
    store::Store,
};

/// The sources of a tenant by name.
#[derive(Default)]
pub struct Sources {
    by_name: BTreeMap<Arc<str>, Opened>,
}

struct Opened {
    source: Arc<dyn Source>,
    /// Whether all handlers that it may have to give an event to are served.
    served: watch::Sender<bool>,
}

impl Sources {
    /// Makes the sources of a tenant; each begins when its handlers are served.
    #[must_use]
    pub fn open(
        tenant: &Arc<str>,
        own: &config::Tenant,
        host: &config::Host,
        store: &Arc<dyn Store>,
        stopping: &watch::Receiver<bool>,
    ) -> Self {
        let opened = own.sources.iter().filter_map(|(name, settings)| {
            let intake = Intake::new(tenant, own, name, settings, Limits::from(&host.limits));
            let (served, receiver) = watch::channel(false);
            let source: Arc<dyn Source> = match &settings.kind {
                config::SourceKind::Local => Arc::new(LocalSource::new(
                    intake,
                    Supply {
                        store: store.clone(),
                        prefetch: settings.prefetch,
                        batch_max: own.batch_max,
                        lease_time: host.lease_time,
                        served: receiver,
                        stopping: stopping.clone(),
                    },
                )),
                config::SourceKind::Rabbitmq(_) => return None,
            };
            Some((Arc::from(name.as_str()), Opened { source, served }))
        });
        Self { by_name: opened.collect() }
    }

    /// The source of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Source>> {
        self.by_name.get(name).map(|opened| &opened.source)
    }

    /// All sources.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        self.by_name.values().map(|opened| &opened.source)
    }

    /// Lets the sources begin whose handlers are all served.
    pub fn begin_where(&self, is_served: impl Fn(&str) -> bool) {
        for opened in self.by_name.values() {
            opened.served.send_replace(opened.source.intake().all_handlers().all(&is_served));
        }
    }
}
