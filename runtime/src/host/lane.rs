//! What a lane has and does beside the road itself: its units of work, its patience with the database.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    gate::Alone,
    link::Link,
    queue::{BatchLimits, LaneQueue},
    run::{Item, Ran, Work},
    tenant::Tenant,
    turns::{LaneTurn, Turns},
    unit_of_work::{Done, unit_of_work},
};
use crate::{clock, store::StoreError};

/// One worker of a tenant.
pub struct LaneContext {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// Its number in the books, slow lanes after the others.
    pub number: u16,
    /// What it is for.
    pub kind: LaneKind,
    /// What waits for it.
    pub queue: Arc<LaneQueue<Work>>,
    /// Whose turn it is among all lanes of the host.
    pub turns: Arc<Turns>,
    /// Set when the host stops: what the database does not take now stays undecided.
    pub stopping: watch::Receiver<bool>,
}

/// What a lane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneKind {
    /// What comes, unless it is for one of the others.
    Normal,
    /// What can wait.
    Back,
    /// Slow runs.
    Slow,
}

/// So long a batch that is not full waits for its turn at most.
const TURN_WAIT: Duration = Duration::from_millis(25);

/// So long the back lane lets come together what can wait, for one commit.
const GATHER: Duration = Duration::from_millis(25);

/// The waits between two tries while the database is away.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl LaneContext {
    /// What one batch may hold.
    #[must_use]
    pub fn batch_limits(&self) -> BatchLimits {
        let settings = &self.tenant.settings;
        let (events, gather) = match self.kind {
            LaneKind::Normal => (settings.batch_max, TURN_WAIT),
            LaneKind::Back => (settings.batch_max, GATHER),
            LaneKind::Slow => (settings.slow_batch_max(), Duration::ZERO),
        };
        BatchLimits { events, bytes: settings.batch_bytes_max, gather }
    }

    /// Waits until something is ready, and then for the lane's turn or for more to come, whichever is its way.
    pub(super) async fn gather(&self, limits: BatchLimits) -> Option<LaneTurn> {
        match self.kind {
            LaneKind::Normal => self.queue.gather(limits, self.turns.turn()).await.flatten(),
            LaneKind::Back | LaneKind::Slow => self.queue.gather(limits, std::future::pending()).await,
        }
    }

    /// Whether it takes slow runs.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.kind == LaneKind::Slow
    }

    /// The slow lane that takes over a run of this lane.
    #[must_use]
    pub fn slow_queue(&self) -> &Arc<LaneQueue<Work>> {
        &self.tenant.slow_lanes[usize::from(self.number) % self.tenant.slow_lanes.len()]
    }

    /// Does a unit of work until it is through. A batch that fails for another reason than an absent database is cut
    /// in halves; what is in the way of another unit is tried again, some times; what fails alone is logged and tried
    /// again later, and so is what stands behind it in its line, so that it does not hold up the others.
    ///
    /// `alone`: the pass of a suspect, which is the whole batch. It is not kept while the database is away: the other
    /// tenants must go on.
    pub async fn decide(&self, link: &mut Link, batch: Vec<Item>, alone: Option<Alone>) -> Vec<(Vec<Item>, Done)> {
        let mut patience = Patience::new(self);
        let (mut todo, mut done) = (vec![batch], Vec::new());
        let (mut later, mut lines, mut tries) = (Vec::new(), HashSet::new(), 0);
        while let Some(mut batch) = todo.pop() {
            later.extend(batch.extract_if(.., |item| item.delivery.line().is_some_and(|line| lines.contains(&line))));
            if batch.is_empty() {
                continue;
            }
            let Some(connection) = link.open(self).await else { return done };
            // Before the unit: inside, nobody may wait for a pass.
            let runs_inside = alone.is_none() && batch.iter().any(|item| matches!(item.ran, Ran::Inside));
            let beside = if runs_inside { Some(self.tenant.gate.beside().await) } else { None };
            let ended = unit_of_work(self, connection, &batch).await;
            drop(beside);
            match ended {
                Ok(outcome) => {
                    patience.over();
                    // What another half of the batch holds of their lines waits with them.
                    let undecided = batch.iter().zip(&outcome.fates).filter(|(_, fate)| fate.is_undecided());
                    lines.extend(undecided.filter_map(|(item, _)| item.delivery.line()));
                    done.push((batch, outcome));
                }
                Err(error) if error.is_away() && alone.is_some() => {
                    link.lost();
                    tracing::warn!(tenant = %self.tenant.name, code = error.code(), %error, "a suspect has to run again");
                    later.append(&mut batch);
                }
                Err(error) if error.is_away() => {
                    todo.push(batch);
                    link.lost();
                    if patience.wait(&error).await.is_none() {
                        return done;
                    }
                }
                Err(error) if batch.len() > 1 => {
                    self.tell_cut(batch.len(), &error);
                    let rest = batch.split_off(batch.len() / 2);
                    todo.push(rest);
                    todo.push(batch);
                }
                Err(error) if error.is_busy() && tries + 1 < self.tenant.settings.defer_after => {
                    tries += 1;
                    todo.push(batch);
                    if self.pause().await.is_none() {
                        return done;
                    }
                }
                Err(error) => {
                    tries = 0;
                    self.tell_undecided(&batch, &error);
                    lines.extend(batch[0].delivery.line());
                    // A claim comes again by itself when its lease is over.
                    batch.retain(|item| item.delivery.claim.is_none());
                    later.append(&mut batch);
                }
            }
        }
        self.try_later(later.into_iter().map(|item| Work::from(item.delivery)).collect());
        done
    }

    fn tell_cut(&self, events: usize, error: &StoreError) {
        // Two units in each other's way are no fault of anybody.
        if error.is_busy() {
            tracing::debug!(tenant = %self.tenant.name, events, %error, "cut a batch in halves");
        } else {
            tracing::warn!(tenant = %self.tenant.name, events, %error, "cut a batch in halves");
        }
    }

    fn tell_undecided(&self, batch: &[Item], error: &StoreError) {
        let key =
            batch.first().and_then(|item| item.delivery.key()).map_or_else(String::new, |(_, key)| key.to_string());
        if error.is_busy() {
            tracing::warn!(tenant = %self.tenant.name, %key, code = error.code(), %error, "left undecided for a while");
        } else {
            tracing::error!(tenant = %self.tenant.name, %key, code = error.code(), %error, "left undecided");
        }
        self.tenant.metrics.undecided(&self.tenant.name);
    }

    /// A short, random wait, so that two who were in each other's way are not so again. `None`: the host stops.
    async fn pause(&self) -> Option<()> {
        let mut stopping = self.stopping.clone();
        let wait = Duration::from_millis(rand::random_range(5..50));
        let stopped = tokio::time::timeout(wait, stopping.wait_for(|stopping| *stopping)).await.is_ok();
        (!stopped).then_some(())
    }

    /// Lets deliveries wait in memory before they come to this lane again.
    pub(super) fn try_later(&self, work: Vec<Work>) {
        if work.is_empty() {
            return;
        }
        let queue = self.queue.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LONGEST_WAIT).await;
            queue.put_back(work);
        });
    }
}

/// Waiting for a database that is away: longer each time, said once, visible in /readyz.
pub(super) struct Patience<'a> {
    tenant: &'a Tenant,
    /// Among those that wait.
    number: u16,
    /// Who waits.
    name: String,
    stopping: watch::Receiver<bool>,
    wait: Duration,
}

impl<'a> Patience<'a> {
    /// A lane's; nothing was waited for yet.
    #[must_use]
    pub(super) fn new(lane: &'a LaneContext) -> Self {
        Self::of(&lane.tenant, lane.number, &format!("lane {}", lane.number), &lane.stopping)
    }

    /// Somebody else's, with a number that no lane has.
    #[must_use]
    pub(super) fn of(tenant: &'a Tenant, number: u16, name: &str, stopping: &watch::Receiver<bool>) -> Self {
        Self { tenant, number, name: tenant.reason(name), stopping: stopping.clone(), wait: FIRST_WAIT }
    }

    /// The database is there.
    pub(super) fn over(&mut self) {
        self.wait = FIRST_WAIT;
        self.tenant.database_away.back(self.number);
        if self.tenant.health.mended(&self.name) {
            tracing::info!(tenant = %self.tenant.name, who = %self.name, "the database is back");
        }
    }

    /// Waits before the next try; `None`: the host stops.
    pub(super) async fn wait(&mut self, error: &StoreError) -> Option<()> {
        self.tenant.database_away.missed(self.number, clock::monotonic());
        if self.tenant.health.missing(self.name.clone(), error.to_string()) {
            tracing::warn!(tenant = %self.tenant.name, code = error.code(), %error, "waiting for the database");
        }
        let stopped = tokio::time::timeout(self.wait, self.stopping.wait_for(|stopping| *stopping)).await.is_ok();
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        (!stopped).then_some(())
    }
}
