//! What events have cost: the server's counters and processor time between two moments.

use anyhow::{Context as _, Result};
use oncebox_tests::{counters::Counters, services::Session};

use crate::processes::{cpu_us, database_us, peak_mib};

/// What one event costs, and the most memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// fsync and the like of the server.
    pub fsyncs: f64,
    /// Of them those of its logs, which transactions cause.
    pub log_fsyncs: f64,
    /// Statements.
    pub round_trips: f64,
    /// Bytes of redo log.
    pub redo_bytes: f64,
    /// Transactions.
    pub commits: f64,
    /// Processor time of whoever consumes, microseconds.
    pub host_us: f64,
    /// Processor time of the server, microseconds.
    pub database_us: f64,
    /// The most memory that whoever consumes has had.
    pub peak_mib: u64,
}

/// All that had been spent at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    counters: Counters,
    database_us: u64,
    consumer_us: u64,
    peak_mib: u64,
}

impl Moment {
    /// Before the consumer is started.
    #[must_use]
    pub fn before(session: &Session) -> Self {
        Self { counters: Counters::read(session), database_us: database_us(), consumer_us: 0, peak_mib: 0 }
    }

    /// While the consumer runs.
    ///
    /// # Errors
    /// It has ended.
    pub fn of(session: &Session, consumer: u32) -> Result<Self> {
        let consumer_us = cpu_us(consumer).context("its processor time cannot be read")?;
        let peak_mib = peak_mib(consumer).context("its memory cannot be read")?;
        Ok(Self { consumer_us, peak_mib, ..Self::before(session) })
    }

    /// What each of so many events has cost from `before` to this moment.
    #[must_use]
    pub fn since(&self, before: &Self, events: u32) -> Cost {
        #[expect(clippy::cast_precision_loss, reason = "far below what a float tells apart")]
        let each = |total: u64| total as f64 / f64::from(events);
        let used = self.counters - before.counters;
        Cost {
            fsyncs: each(used.fsyncs),
            log_fsyncs: each(used.log_fsyncs),
            round_trips: each(used.round_trips),
            redo_bytes: each(used.redo_bytes),
            commits: each(used.commits),
            host_us: each(self.consumer_us.saturating_sub(before.consumer_us)),
            database_us: each(self.database_us.saturating_sub(before.database_us)),
            peak_mib: self.peak_mib,
        }
    }
}
