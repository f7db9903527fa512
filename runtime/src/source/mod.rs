//! The seam to where deliveries come from: `local`, a table of the tenant's own database, and queues of brokers.
//!
//! A source hands over messages as they came and is told, after the commit and only then, which of them are done. What
//! is understood of a message, and what becomes of it, is the same for every kind: the road decides.

mod error;
mod intake;
mod local;
mod origin;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use oncebox_core::{failure::Failure, message::Message};
use tokio::sync::{OwnedSemaphorePermit, watch};

#[cfg(feature = "rabbitmq")]
pub use self::rabbitmq::{RabbitmqCounters, RabbitmqSource, RabbitmqSupply};
pub use self::{
    error::SourceError,
    intake::Intake,
    local::{LocalSource, Supply},
    origin::{Origin, Receipt, Settle},
};

use crate::host::Health;

/// One source of a tenant.
#[async_trait]
pub trait Source: Send + Sync {
    /// What is the same for every kind: how its messages are understood and routed.
    fn intake(&self) -> &Intake;

    /// Waits until messages are there and takes what is ready now, as far as the prefetch goes; waits as long as one of
    /// its handlers is not served. `None`: the host stops.
    async fn take(&self) -> Option<Vec<Taken>>;

    /// Whether it has deliveries in memory that their broker will drop soon, see [`Taken::at_risk`].
    fn has_at_risk(&self) -> bool {
        false
    }

    /// Notes what is held in memory, so that it stays ours until the last reference to it is gone.
    fn watch(&self, origin: &Arc<Origin>);

    /// Keeps what is held ours, until the host stops.
    async fn keep(&self);

    /// Settles messages whose verdicts are all committed. Local ones are mostly settled by the unit of work itself; then
    /// this is not called for them.
    async fn settle(&self, receipts: &[Receipt]);

    /// Ends in good order, after the host has stopped and the lanes have decided what they had: settles what is decided,
    /// gives back what is not. Bounded in time.
    async fn close(&self);
}

/// A message that was taken, with its place in the prefetch.
pub struct Taken {
    /// By what it is settled.
    pub receipt: Receipt,
    /// The message.
    pub message: Arc<Message>,
    /// Handlers that it went through on its way.
    pub hops: u8,
    /// First receipt, microseconds since 1970.
    pub received_us: i64,
    /// Its place in the prefetch, where the host counts it; a broker counts by itself.
    pub permit: Option<OwnedSemaphorePermit>,
    /// It was handed over before: by the broker's word, or because a lease on it ended.
    pub is_redelivered: bool,
    /// The broker has handed it over so often that it will drop it soon: it is put aside without a run, for this reason,
    /// before all others.
    pub at_risk: Option<Failure>,
}

/// What a source goes by beside its own messages.
#[derive(Clone)]
pub struct Conditions {
    /// Whether all handlers that it may have to give an event to are served.
    pub served: watch::Receiver<bool>,
    /// Whether one of them asks for order: then messages are handed over in the order they came, without exception.
    pub keeps_order: watch::Receiver<bool>,
    /// Whether the host stops.
    pub stopping: watch::Receiver<bool>,
    /// Since when the tenant's database has been away, if it is.
    pub database_away: watch::Receiver<Option<Instant>>,
    /// Where it says what is missing, under the name `tenant NAME: source NAME`.
    pub health: Arc<Health>,
}
