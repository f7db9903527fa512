//! The sources of a tenant on this host, and when each may begin.

use std::{collections::BTreeMap, sync::Arc};

use oncebox_core::{config, identify::Limits};
use tokio::sync::watch;

use super::{away::DatabaseAway, health::Health};
use crate::{
    source::{Conditions, Intake, LocalSource, Source, Supply},
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
    /// Whether one of them asks for order.
    keeps_order: watch::Sender<bool>,
}

/// What every source of a tenant goes by.
pub struct Surroundings<'a> {
    /// Whether the host stops.
    pub stopping: &'a watch::Receiver<bool>,
    /// Since when the tenant's database has been away.
    pub database_away: &'a DatabaseAway,
    /// Where a source says what is missing.
    pub health: &'a Arc<Health>,
}

impl Sources {
    /// Makes the sources of a tenant; each begins when its handlers are served.
    #[must_use]
    pub fn open(
        tenant: &Arc<str>,
        own: &config::Tenant,
        host: &config::Host,
        store: &Arc<dyn Store>,
        surroundings: &Surroundings<'_>,
    ) -> Self {
        let opened = own.sources.iter().filter_map(|(name, settings)| {
            let intake = Intake::new(tenant, own, name, settings, Limits::from(&host.limits));
            let (served, is_served) = watch::channel(false);
            let (keeps_order, order_is_kept) = watch::channel(false);
            let conditions = Conditions {
                served: is_served,
                keeps_order: order_is_kept,
                stopping: surroundings.stopping.clone(),
                database_away: surroundings.database_away.since(),
                health: surroundings.health.clone(),
            };
            let source: Arc<dyn Source> = match &settings.kind {
                config::SourceKind::Local => Arc::new(LocalSource::new(
                    intake,
                    Supply {
                        store: store.clone(),
                        prefetch: settings.prefetch,
                        batch_max: own.batch_max,
                        lease_time: host.lease_time,
                        served: conditions.served,
                        stopping: conditions.stopping,
                    },
                )),
                config::SourceKind::Rabbitmq(queue) => rabbitmq(own, settings, queue, intake, conditions)?,
            };
            Some((Arc::from(name.as_str()), Opened { source, served, keeps_order }))
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

    /// Lets the sources begin whose handlers are all served, in order where one of them asks for it.
    pub fn begin_where(&self, is_served: impl Fn(&str) -> bool, asks_for_order: impl Fn(&str) -> bool) {
        for opened in self.by_name.values() {
            // Before it may begin: a queue that must keep the order is looked at before it is consumed.
            opened.keeps_order.send_if_modified(|kept| {
                let asked = opened.source.intake().all_handlers().any(&asks_for_order);
                std::mem::replace(kept, asked) != asked
            });
            opened.served.send_replace(opened.source.intake().all_handlers().all(&is_served));
        }
    }
}

#[cfg(feature = "rabbitmq")]
fn rabbitmq(
    own: &config::Tenant,
    settings: &config::Source,
    queue: &config::RabbitmqQueue,
    intake: Intake,
    conditions: Conditions,
) -> Option<Arc<dyn Source>> {
    // The configuration's reader has seen to it that the connection is there.
    let config::Connection::Rabbitmq(connection) = own.connections.get(&queue.connection)?;
    Some(Arc::new(crate::source::RabbitmqSource::new(
        intake,
        crate::source::RabbitmqSupply {
            connection: config::Rabbitmq::clone(connection),
            queue: queue.clone(),
            prefetch: u16::try_from(settings.prefetch).unwrap_or(u16::MAX),
            ack_gap: own.ack_gap,
            conditions,
        },
    )))
}

/// Without the feature nothing is received, and the host never becomes ready.
#[cfg(not(feature = "rabbitmq"))]
fn rabbitmq(
    _own: &config::Tenant,
    _settings: &config::Source,
    _queue: &config::RabbitmqQueue,
    intake: Intake,
    conditions: Conditions,
) -> Option<Arc<dyn Source>> {
    let name = format!("tenant {}: source {}", intake.tenant, intake.name);
    conditions.health.missing(name, "needs a build with the feature rabbitmq");
    None
}
