//! Reads how far an offered deployment is; what follows is decided in `oncebox_core::rollout`.

use std::time::Duration;

use oncebox_core::{ids::BootId, rollout::Rollout};

use crate::store::{DeploymentId, Store, StoreError};

/// The answers of the hosts that live now: those seen within `boot_timeout`.
///
/// # Errors
/// The database's.
pub async fn rollout(
    store: &dyn Store,
    deployment: DeploymentId,
    boot_timeout: Duration,
) -> Result<Rollout, StoreError> {
    let live = store.boots_live(boot_timeout).await?;
    let answers = store.deployment_answers(deployment).await?;
    let answers: Vec<(BootId, Result<(), &str>)> =
        answers.iter().map(|one| (one.boot, one.answer.as_ref().copied().map_err(String::as_str))).collect();
    Ok(Rollout::new(live.iter().map(|live| (live.boot, live.host.as_str())), &answers))
}
