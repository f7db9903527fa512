//! Waits until the live hosts have answered an offered deployment, and tells which did what.

use std::time::Duration;

use oncebox_core::rollout::{Refusal, Rollout, Step};
use serde_json::{Value as Json, json};

use super::{
    args::Pair,
    failed::{Failed, Wrong},
    output::Output,
};
use crate::{
    clock,
    host::rollout,
    store::{Deployment, DeploymentState, Store, StoreError},
};

/// How long a live host may take to answer, after one that is over has dropped out of those that are awaited.
const WAIT: Duration = Duration::from_secs(10);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);
/// What takes no longer than this needs no word on the way.
const SILENT: Duration = Duration::from_secs(1);
/// Hosts that all refuse an offer write that down within a second, unless nothing serves the handler yet.
const REFUSED_FOR_GOOD: Duration = Duration::from_secs(3);

/// An offer that is waited for.
pub(super) struct Offer<'a> {
    pub(super) output: Output,
    pub(super) place: &'a Pair,
    pub(super) store: &'a dyn Store,
    pub(super) deployment: Deployment,
    /// `host.boot_timeout`.
    pub(super) boot_timeout: Duration,
    pub(super) force: bool,
}

impl Offer<'_> {
    /// Waits until the deployment is active, or it is clear that it will not be.
    pub(super) async fn rolled_out(self) -> Result<(Deployment, Rollout), Failed> {
        let began = clock::monotonic();
        let (mut told, mut refused_since) = (Rollout::default(), None);
        loop {
            let now = self.store.deployment_read(self.deployment.id).await?.unwrap_or_else(|| self.deployment.clone());
            let rollout = rollout(self.store, self.deployment.id, self.boot_timeout).await?;
            let waited = began.elapsed();
            let step = match now.state {
                DeploymentState::Active => return Ok((now, rollout)),
                DeploymentState::Refused => return Err(self.refused(&now.reason.unwrap_or_default())),
                DeploymentState::Replaced => return Err(self.overtaken()),
                DeploymentState::Offered => rollout.step(),
            };
            let is_over = waited > self.boot_timeout + WAIT;
            let may_force = self.force && !rollout.ready.is_empty();
            if step != Step::Refuse {
                refused_since = None;
            }
            match step {
                // A host that has just begun is not among the live ones yet.
                Step::Wait if rollout == Rollout::default() && waited > WAIT => return Ok((now, rollout)),
                Step::Wait if is_over && !may_force => {
                    return Err(self.awaited(&rollout));
                }
                Step::Wait if is_over => self.activate().await?,
                Step::Split if !self.force => return Err(self.split(&rollout)),
                Step::Split | Step::Activate => self.activate().await?,
                Step::Refuse if refused_since.get_or_insert_with(clock::monotonic).elapsed() > REFUSED_FOR_GOOD => {
                    let mendable = "\nIt stays offered, for nothing serves the handler yet: it is tried again when a table changes";
                    return Err(self.refused(&(rollout.reasons() + mendable)));
                }
                Step::Wait | Step::Refuse => {}
            }
            if waited > SILENT && rollout != told {
                self.output
                    .progress(|| format!("{}: deployment {} is offered; {}", self.place, now.id, line(&rollout)));
                told = rollout;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn activate(&self) -> Result<(), StoreError> {
        self.store.deployment_activate(&self.deployment).await
    }

    fn refused(&self, reasons: &str) -> Failed {
        let id = self.deployment.id;
        let message = format!("every live host refuses deployment {id}; what served before serves on: {reasons}");
        Failed::new(Wrong::RefusedByHost, message)
    }

    fn split(&self, rollout: &Rollout) -> Failed {
        let Self { place, deployment, .. } = self;
        let (ready, refusing) = (rollout.ready.join(", "), names(&rollout.refusing));
        let message = format!(
            "deployment {} is ready on {ready} and refused by {refusing}; what served before serves on:\n{}\n\
             It stays offered. Mend it there: a host answers anew when it starts (its configuration is read then) and \
             when a table changes, and when all are ready the deployment becomes active by itself. With `--force` it \
             serves at once, on {ready} alone: {refusing} would take nothing for {place} any more, and say so in /readyz",
            deployment.id,
            rollout.reasons()
        );
        Failed::new(Wrong::RefusedBySome, message)
    }

    fn awaited(&self, rollout: &Rollout) -> Failed {
        let message = format!(
            "deployment {} is not active yet: {}. It stays offered, and becomes active by itself when all live hosts are \
             ready; see the log of those that are awaited, or end them",
            self.deployment.id,
            line(rollout)
        );
        Failed::new(Wrong::HostsAwaited, message)
    }

    fn overtaken(&self) -> Failed {
        let message = format!("deployment {} was overtaken by a newer one", self.deployment.id);
        Failed::new(Wrong::Overtaken, message)
    }
}

/// The hosts in one line, by their answers.
pub(super) fn line(rollout: &Rollout) -> String {
    let parts = [
        ("ready", rollout.ready.join(", ")),
        ("refused by", names(&rollout.refusing)),
        ("awaited", rollout.awaited.join(", ")),
    ];
    let parts = parts.into_iter().filter(|(_, hosts)| !hosts.is_empty());
    parts.map(|(what, hosts)| format!("{what}: {hosts}")).collect::<Vec<_>>().join("; ")
}

/// The same, for programs.
pub(super) fn json(rollout: &Rollout) -> Json {
    let ready = rollout.ready.iter().map(|host| json!({ "host": host, "answer": "ready" }));
    let refusing = rollout.refusing.iter();
    let refusing = refusing.map(|one| json!({ "host": one.host, "answer": "refused", "reason": one.reason }));
    let awaited = rollout.awaited.iter().map(|host| json!({ "host": host, "answer": "awaited" }));
    ready.chain(refusing).chain(awaited).collect()
}

fn names(refusing: &[Refusal]) -> String {
    refusing.iter().map(|refusal| refusal.host.as_str()).collect::<Vec<_>>().join(", ")
}
