//! The seam to where deliveries come from. This build has one kind: `local`, a table of the tenant's own database.
//!
//! A source hands over messages as they came and is told, after the commit and only then, which of them are done. What
//! is understood of a message, and what becomes of it, is the same for every kind: the road decides.

mod intake;
mod local;
mod origin;

use std::sync::Arc;

use async_trait::async_trait;
use oncebox_core::message::Message;
use tokio::sync::OwnedSemaphorePermit;

pub use self::{
    intake::Intake,
    local::{LocalSource, Supply},
    origin::{Origin, Receipt, Settle},
};

/// One source of a tenant.
#[async_trait]
pub trait Source: Send + Sync {
    /// What is the same for every kind: how its messages are understood and routed.
    fn intake(&self) -> &Intake;

    /// Waits until messages are there and takes what is ready now, as far as the prefetch goes; waits as long as one of
    /// its handlers is not served. `None`: the host stops.
    async fn take(&self) -> Option<Vec<Taken>>;

    /// Notes what is held in memory, so that it stays ours until the last reference to it is gone.
    fn watch(&self, origin: &Arc<Origin>);

    /// Keeps what is held ours, until the host stops.
    async fn keep(&self);

    /// Settles messages whose verdicts are all committed. Local ones are mostly settled by the unit of work itself; then
    /// this is not called for them.
    async fn settle(&self, receipts: &[Receipt]);
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
    /// Its place in the prefetch.
    pub permit: OwnedSemaphorePermit,
}
