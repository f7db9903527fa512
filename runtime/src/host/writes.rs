//! One event's staged writes, with what their answers mean.

use oncebox_core::{
    config,
    failure::{Class, Failure},
    fold::{self, Form, Step},
    manifest::{Reaction, RowExpectation},
    value::Value,
};

use super::{
    delivery::{Delivery, Target},
    handler::{Deployed, ReadyStatement},
};
use crate::{
    failpoint::written,
    plugin::{Outcome, StagedEvent, StagedWrite},
    store::{DeploymentId, StatementError, StoreError, UnitOfWork},
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

/// Whether the writes of a whole batch stand, done with what can be folded folded; `None`: nothing can be. False says
/// nothing of any event: the caller undoes all and does it again, event by event.
pub(super) async fn write_folded(
    unit: &mut dyn UnitOfWork,
    events: &[(&Delivery, &Outcome)],
    hops_max: u8,
) -> Result<Option<bool>, StoreError> {
    let mut writes: Vec<(&ReadyStatement, &str, &StagedWrite)> = Vec::new();
    let mut planned: Vec<fold::Write<'_, (DeploymentId, &str)>> = Vec::new();
    for (delivery, outcome) in events {
        let (Outcome::Applied { writes: staged, events, .. }, Target::Handler(_, deployed)) =
            (outcome, &delivery.target)
        else {
            continue;
        };
        if deployed.asks_last_insert_id() {
            return Ok(None);
        }
        for write in staged {
            let Some((name, ready)) = deployed.statements.get_key_value(&write.statement) else { return Ok(None) };
            writes.push((ready, name, write));
            // A batch may hold runs of two versions of a handler: a statement of one name is another one in each.
            planned.push(fold::Write { statement: (deployed.id, name), facts: &ready.fold, params: &write.params });
        }
        if events.iter().any(|event| hops(delivery, deployed, event, hops_max).is_err()) {
            return Ok(None);
        }
    }
    let Some(steps) = fold::plan(&planned) else { return Ok(None) };
    let of = steps.len();
    for (done, step) in (1..).zip(steps) {
        let stands = match step {
            Step::One(at) => {
                let (ready, name, write) = writes[at];
                match statement(unit, ready, name, write).await {
                    Ok(()) => true,
                    Err(Fault::Store(error)) => return Err(error),
                    Err(Fault::Waited(_) | Fault::Obsolete | Fault::Failed(_)) => false,
                }
            }
            Step::Folded(all) => {
                let (ready, name, ..) = writes[all[0]];
                let rows: Vec<&[Value]> = all.iter().map(|&at| writes[at].2.params.as_slice()).collect();
                folded(unit, ready, name, &rows).await?
            }
        };
        if !stands {
            return Ok(Some(false));
        }
        written(done, of);
    }
    Ok(Some(true))
}

async fn folded(
    unit: &mut dyn UnitOfWork,
    ready: &ReadyStatement,
    name: &str,
    rows: &[&[Value]],
) -> Result<bool, StoreError> {
    let matched = match &ready.fold.form {
        None => return Ok(false),
        Some(Form::Insert(group)) => unit.staged_insert_many(&ready.sql, group.clone(), rows).await,
        Some(Form::Update(form)) => unit.staged_update_many(&ready.sql, form, rows).await,
    };
    match matched {
        Ok(matched) => Ok(ready.fold.rows.met(rows.len() as u64, matched)),
        Err(error) => match refused(name, ready, &error) {
            Fault::Store(error) => Err(error),
            // Which event waited too long for a lock, or is at fault, is found out one by one.
            Fault::Waited(_) | Fault::Obsolete | Fault::Failed(_) => Ok(false),
        },
    }
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
    for (done, write) in (1..).zip(writes) {
        let name = &write.statement;
        let Some(ready) = deployed.statements.get(name) else {
            let message = format!("statement `{name}` is unknown");
            return Err(Fault::Failed(Failure::new(Class::Abi, "unknown-statement", message)));
        };
        statement(unit, ready, name, write).await?;
        written(done, writes.len());
    }
    events.iter().try_for_each(|event| hops(delivery, deployed, event, hops_max))
}

async fn statement(
    unit: &mut dyn UnitOfWork,
    ready: &ReadyStatement,
    name: &str,
    write: &StagedWrite,
) -> Result<(), Fault> {
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
