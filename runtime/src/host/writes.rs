//! One event's staged writes, with what their answers mean.

use oncebox_core::{
    config,
    failure::{Class, Failure},
    fold::{self, Step},
    manifest::{Reaction, RowExpectation},
    value::Value,
};

use super::{
    delivery::{Delivery, Target},
    handler::{Deployed, ReadyStatement},
};
use crate::{
    failpoint::{is_between_writes, written},
    plugin::{Outcome, StagedEvent, StagedWrite},
    store::{HandlerId, Staged, StatementError, StoreError, UnitOfWork},
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

/// What became of the writes of a whole batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    /// All stand.
    Stand,
    /// Something is wrong with one of them; which event is at fault is found out one by one.
    Fail,
    /// A write of this event (its place among them) waited too long for a lock.
    Wait(usize),
}

/// A write of a batch, and what it is for.
struct Write<'a> {
    ready: &'a ReadyStatement,
    name: &'a str,
    handler: HandlerId,
    params: &'a [Value],
    /// The event's place.
    event: usize,
}

/// Writes a whole batch: what can be folded folded, and the rest in few trips. `None`: nothing is gained by it. The
/// caller undoes what does not stand.
pub(super) async fn write_together(
    unit: &mut dyn UnitOfWork,
    events: &[(&Delivery, &Outcome)],
    hops_max: u8,
) -> Result<Option<Together>, StoreError> {
    let mut writes: Vec<Write<'_>> = Vec::new();
    for (at, (delivery, outcome)) in events.iter().enumerate() {
        let (Outcome::Applied { writes: staged, events, .. }, Target::Handler(handler, deployed)) =
            (outcome, &delivery.target)
        else {
            continue;
        };
        if deployed.asks_last_insert_id() {
            return Ok(None);
        }
        for StagedWrite { statement, params } in staged {
            let Some((name, ready)) = deployed.statements.get_key_value(statement) else { return Ok(None) };
            writes.push(Write { ready, name, handler: handler.id, params, event: at });
        }
        if events.iter().any(|event| hops(delivery, deployed, event, hops_max).is_err()) {
            return Ok(None);
        }
    }
    let statements: Vec<_> = writes.iter().map(|write| ((write.handler, write.name), &write.ready.fold)).collect();
    let steps = match fold::plan(&statements) {
        Some(steps) => steps,
        None if unit.saves_trips() && writes.len() > 1 => (0..writes.len()).map(Step::One).collect(),
        None => return Ok(None),
    };
    let (of, mut done, mut waiting) = (steps.len(), 0, Vec::new());
    for step in steps {
        let all = match step {
            Step::One(at) => {
                waiting.push(&writes[at]);
                if is_between_writes() {
                    let outcome = in_few_trips(unit, &mut waiting, &mut done, of).await?;
                    if outcome != Together::Stand {
                        return Ok(Some(outcome));
                    }
                }
                continue;
            }
            Step::Folded(all) => all,
        };
        let outcome = in_few_trips(unit, &mut waiting, &mut done, of).await?;
        if outcome != Together::Stand {
            return Ok(Some(outcome));
        }
        let Write { ready, name, .. } = writes[all[0]];
        let rows: Vec<&[Value]> = all.iter().map(|&at| writes[at].params).collect();
        if !folded(unit, ready, name, &rows).await? {
            return Ok(Some(Together::Fail));
        }
        done += 1;
        written(done, of);
    }
    in_few_trips(unit, &mut waiting, &mut done, of).await.map(Some)
}

/// Writes that stand between folded ones, one after the other; `done` of `of` steps are behind them afterwards.
async fn in_few_trips(
    unit: &mut dyn UnitOfWork,
    waiting: &mut Vec<&Write<'_>>,
    done: &mut usize,
    of: usize,
) -> Result<Together, StoreError> {
    let writes = std::mem::take(waiting);
    let staged: Vec<Staged<'_>> = writes
        .iter()
        .map(|write| Staged { sql: &write.ready.sql, marks: &write.ready.marks, params: write.params })
        .collect();
    let matched = match staged.as_slice() {
        [] => return Ok(Together::Stand),
        staged => unit.staged_writes(staged).await,
    };
    let matched = match matched {
        Ok(matched) => matched,
        Err((at, error)) => {
            let Some(write) = writes.get(at) else { return Ok(Together::Fail) };
            return match refused(write.name, write.ready, &error) {
                Fault::Store(error) => Err(error),
                Fault::Waited(why) => {
                    tracing::debug!(why = why.message, "taken out of its unit");
                    Ok(Together::Wait(write.event))
                }
                Fault::Obsolete | Fault::Failed(_) => Ok(Together::Fail),
            };
        }
    };
    for (write, rows) in writes.iter().zip(matched) {
        if expected(write.ready, write.name, rows).is_err() {
            return Ok(Together::Fail);
        }
        *done += 1;
        written(*done, of);
    }
    Ok(Together::Stand)
}

async fn folded(
    unit: &mut dyn UnitOfWork,
    ready: &ReadyStatement,
    name: &str,
    rows: &[&[Value]],
) -> Result<bool, StoreError> {
    let Some(group) = &ready.fold.group else { return Ok(false) };
    match unit.staged_insert_many(&ready.sql, group.clone(), rows).await {
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
    expected(ready, name, rows)
}

/// Whether so many rows are what the manifest expects.
fn expected(ready: &ReadyStatement, name: &str, rows: u64) -> Result<(), Fault> {
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
