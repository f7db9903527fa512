//! Writes down, again and again, that this host lives: whoever has not been seen for `host.boot_timeout` is over for the
//! others.

use std::{pin::pin, sync::Arc, time::Duration};

use oncebox_core::config;
use tokio::sync::watch;

use super::tenant::Tenant;
use crate::{clock, store::StoreError};

/// This host's life in one tenant's tables.
pub(super) struct Heartbeat {
    /// The tenant.
    pub(super) tenant: Arc<Tenant>,
    /// This host's name.
    pub(super) host: Arc<str>,
    /// `host.heartbeat`.
    pub(super) every: Duration,
    /// A failure is told once it has lasted so long: half of `host.boot_timeout`.
    pub(super) patience: Duration,
}

impl Heartbeat {
    /// With the host's pace.
    #[must_use]
    pub(super) fn new(tenant: Arc<Tenant>, host: Arc<str>, settings: &config::Host) -> Self {
        Self { tenant, host, every: settings.heartbeat, patience: settings.boot_timeout / 2 }
    }

    /// Beats until the last lane has ended (`over`). Once the host stops, at once: it is draining.
    pub(super) async fn beat(self, mut stopping: watch::Receiver<bool>, mut over: watch::Receiver<bool>) {
        let mut seen = clock::monotonic();
        while !*over.borrow() {
            let is_draining = *stopping.borrow();
            match self.write(is_draining, self.patience.saturating_sub(seen.elapsed()).max(self.every)).await {
                Ok(()) => {
                    seen = clock::monotonic();
                    self.tenant.health.mended(&self.reason());
                }
                Err(error) if seen.elapsed() >= self.patience => self.tell(&error.to_string()),
                Err(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                _ = stopping.wait_for(|stopping| *stopping), if !is_draining => {}
                _ = over.wait_for(|over| *over) => return,
            }
        }
    }

    /// One beat. A call that does not come back is seen through, and told meanwhile.
    async fn write(&self, is_draining: bool, patience: Duration) -> Result<(), StoreError> {
        let mut beat = pin!(self.tenant.store.boot_beat(self.tenant.boot, &self.host, is_draining));
        match tokio::time::timeout(patience, beat.as_mut()).await {
            Ok(done) => done,
            Err(_) => {
                self.tell("the database does not answer");
                beat.await
            }
        }
    }

    fn tell(&self, error: &str) {
        let reason = format!("this host's life cannot be written down, the others take it for over: {error}");
        if self.tenant.health.missing(self.reason(), reason) {
            tracing::warn!(tenant = %self.tenant.name, error, "cannot write the heartbeat");
        }
    }

    fn reason(&self) -> String {
        self.tenant.reason("heartbeat")
    }
}
