//! A suspect's run: alone in the process, and not before that is written down.

use std::sync::Arc;

use super::{
    delivery::{Claim, Delivery},
    gate::Alone,
    handler::{Deployed, Handler},
    lane::LaneContext,
    link::Link,
    run::{Ran, whole},
};
use crate::store::{StoreError, Suspect};

/// What became of a suspect's turn.
pub(super) enum Turn {
    /// It has run, or is to run inside its unit of work; the pass is kept until that is committed.
    Taken(Alone, Ran),
    /// It could not be written down: another time.
    Later,
    /// The claim is no longer ours.
    Lost,
}

/// Waits until nothing else runs, writes down that the suspect does, and runs it to its end.
pub(super) async fn run(
    lane: &LaneContext,
    link: &mut Link,
    delivery: &Delivery,
    handler: &Arc<Handler>,
    deployed: &Deployed,
) -> Turn {
    let alone = lane.tenant.gate.alone().await;
    // Behind the gate: were it written before, another plugin's end of the process would be laid to this one.
    match written_down(lane, link, delivery).await {
        Ok(Some(true)) => {}
        Ok(Some(false)) => {
            tracing::info!(tenant = %lane.tenant.name, "a suspect is no longer ours");
            return Turn::Lost;
        }
        Ok(None) => return Turn::Later,
        Err(error) => {
            if error.is_away() {
                link.lost();
            }
            tracing::warn!(tenant = %lane.tenant.name, handler = %handler.name, code = error.code(), %error,
                "cannot write down that a suspect is about to run");
            return Turn::Later;
        }
    }
    lane.tenant.metrics.suspect_ran(&lane.tenant.name, &handler.name);
    let ran =
        if deployed.has_queries() { Ran::Inside } else { Ran::Over(whole(lane, handler, deployed, delivery).await) };
    Turn::Taken(alone, ran)
}

/// `None`: there is no connection now, and nobody waits for one behind the gate: lanes that wait before it may have all
/// the places.
async fn written_down(lane: &LaneContext, link: &mut Link, delivery: &Delivery) -> Result<Option<bool>, StoreError> {
    let Some(connection) = link.connection() else { return Ok(None) };
    connection.start_alone(&suspect(delivery), lane.tenant.start()).await.map(Some)
}

fn suspect(delivery: &Delivery) -> Suspect {
    match delivery.claim {
        Some(Claim { held, token, .. }) => Suspect::Claimed(held, token),
        None => {
            let origin = &delivery.origin;
            Suspect::Delivered((origin.source.clone(), origin.hash), delivery.handler_id())
        }
    }
}
