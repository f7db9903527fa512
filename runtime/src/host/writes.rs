//! One event's staged writes, with what their answers mean.

use oncebox_core::{
    config,
    failure::{Class, Failure},
    manifest::{Reaction, RowExpectation},
};

use super::{
    delivery::{Delivery, Target},
    handler::{Deployed, ReadyStatement},
};
use crate::{
    plugin::{Outcome, StagedEvent, StagedWrite},
    store::{StatementError, StoreError, UnitOfWork},
};

/// Why an event's writes do not stand.
#[derive(Debug)]
pub(super) enum Fault {
    /// The whole unit cannot go on; nothing is counted.
    Store(StoreError),
    /// A lock was waited for too long: the statement is undone, the unit goes on without the event.
    Waited(Failure),
    /// The state is newer than the event.
    Obsolete,
    /// The attempt failed.
    Failed(Failure),
}

/// Runs an event's staged writes in call order; checks what will be sent.
pub(super) async fn write(
    unit: &mut dyn UnitOfWork,
    delivery: &Delivery,
    outcome: &Outcome,
    hops_max: u8,
) -> Result<(), Fault> {
    let (Outcome::Applied { writes, events, .. }, Target::Handler(_, deployed)) = (outcome, &delivery.target) else {
        return Ok(());
    };
    if deployed.asks_last_insert_id() {
        unit.last_insert_id_reset().await.map_err(Fault::Store)?;
    }
    for write in writes {
        statement(unit, deployed, write).await?;
    }
    events.iter().try_for_each(|event| hops(delivery, deployed, event, hops_max))
}

async fn statement(unit: &mut dyn UnitOfWork, deployed: &Deployed, write: &StagedWrite) -> Result<(), Fault> {
    let name = &write.statement;
    let Some(ready) = deployed.statements.get(name) else {
        return Err(Fault::Failed(Failure::new(
            Class::Abi,
            "unknown-statement",
            format!("statement `{name}` is unknown"),
        )));
    };
    let rows = unit.staged_write(&ready.sql, &write.params).await.map_err(|error| refused(name, ready, &error))?;
    let (met, expected) = match ready.rows {
        RowExpectation::Any => return Ok(()),
        RowExpectation::Between { min, max } if min == max => (rows == min, min.to_string()),
        RowExpectation::Between { min, max } => ((min..=max).contains(&rows), format!("{min} to {max}")),
        // MySQL says 1 for an insert and 2 for an update of the one key; SQLite says 1 for both.
        RowExpectation::OneKey => (rows == 1 || rows == 2, "one key".to_owned()),
    };
    if met {
        return Ok(());
    }
    let message = format!("statement `{name}` matched {rows} rows, the manifest expects {expected}");
    Err(reaction(&ready.mismatch, "rows-mismatch", message))
}

fn refused(name: &str, ready: &ReadyStatement, error: &StatementError) -> Fault {
    if error.class == Class::Infrastructure {
        let what = format!("statement `{name}`");
        return error.lock_wait(&what).map_or_else(|| Fault::Store(error.store_error(&what)), Fault::Waited);
    }
    match error.number.and_then(|number| ready.errors.get(&number)) {
        Some(own) => reaction(own, error.code, format!("statement `{name}`: {error}")),
        None => Fault::Failed(error.failure(name)),
    }
}

fn reaction(reaction: &Reaction, code: &str, message: String) -> Fault {
    match reaction {
        Reaction::Reject(code) => Fault::Failed(Failure::new(Class::MismatchReject, code.as_str(), message)),
        Reaction::Retry => Fault::Failed(Failure::new(Class::Mismatch, code, message)),
        Reaction::Obsolete => Fault::Obsolete,
    }
}

/// An event that goes round and round between handlers is stopped where it would pass the limit.
fn hops(delivery: &Delivery, deployed: &Deployed, event: &StagedEvent, hops_max: u8) -> Result<(), Fault> {
    let local = deployed
        .destinations
        .get(&event.destination)
        .is_some_and(|bound| matches!(bound.kind, config::Destination::Local { .. }));
    if local && delivery.origin.hops >= hops_max {
        let message = format!(
            "event {} for destination `{}` would be hop {} over `local`, the limit is {hops_max} (host.limits.hops_max)",
            event.event_id,
            event.destination,
            u16::from(delivery.origin.hops) + 1,
        );
        return Err(Fault::Failed(Failure::new(Class::Quota, "hop-limit", message)));
    }
    Ok(())
}
