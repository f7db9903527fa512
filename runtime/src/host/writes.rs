//! Staged writes, of one event or of a whole batch, with what their answers mean.

use std::collections::HashMap;

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
    failpoint::{is_between_writes, written},
    plugin::{Outcome, StagedEvent, StagedWrite},
    store::{Staged, StagedText, StatementError, StoreError, UnitOfWork},
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

/// A write of an event.
struct Write<'a> {
    ready: &'a ReadyStatement,
    name: &'a str,
    params: &'a [Value],
    /// The event's place among them.
    event: usize,
}

impl<'a> Write<'a> {
    /// `None`: its handler has no such statement.
    fn of(deployed: &'a Deployed, StagedWrite { statement, params }: &'a StagedWrite, event: usize) -> Option<Self> {
        let (name, ready) = deployed.statements.get_key_value(statement)?;
        Some(Self { ready, name, params, event })
    }

    fn text(&self) -> StagedText<'a> {
        StagedText { sql: &self.ready.sql, marks: &self.ready.marks }
    }

    fn one(&self) -> Staged<'a> {
        Staged::One(self.text(), self.params)
    }
}

/// Writes a whole batch in as few trips as it fits in, and folded what can be folded. `None`: it has to be written event by
/// event. The caller undoes what does not stand.
pub(super) async fn write_together(
    unit: &mut dyn UnitOfWork,
    events: &[(&Delivery, &Outcome)],
    hops_max: u8,
) -> Result<Option<Together>, StoreError> {
    let Some(writes) = writes_of(events, hops_max) else { return Ok(None) };
    let planned: Vec<fold::Write<'_, usize>> = numbered(&writes)
        .zip(&writes)
        .map(|(statement, write)| fold::Write { statement, facts: &write.ready.fold, params: write.params })
        .collect();
    let steps = fold::plan(&planned).unwrap_or_else(|| (0..writes.len()).map(Step::One).collect());
    let staged: Vec<Staged<'_>> = steps.iter().map(|step| staged(step, &writes)).collect();
    let mut matched = Vec::with_capacity(staged.len());
    for trip in staged.chunks(trip_of(staged.len())) {
        match unit.staged_writes(trip).await {
            Ok(rows) => matched.extend(rows),
            Err(halted) => {
                matched.extend(halted.matched);
                let all = steps[matched.len()].all();
                let first = &writes[all[0]];
                return match (refused(first.name, first.ready, &halted.error), all) {
                    (Fault::Store(error), _) => Err(error),
                    (Fault::Waited(_), [_]) => Ok(Some(Together::Wait(first.event))),
                    (Fault::Waited(_) | Fault::Obsolete | Fault::Failed(_), _) => Ok(Some(Together::Fail)),
                };
            }
        }
        written(matched.len(), staged.len());
    }
    let stands = |(step, rows): (&Step, &u64)| match step {
        Step::One(at) => expected(&writes[*at], *rows).is_ok(),
        Step::Folded(all) => writes[all[0]].ready.fold.rows.met(all.len() as u64, *rows),
    };
    Ok(Some(if steps.iter().zip(&matched).all(stands) { Together::Stand } else { Together::Fail }))
}

/// Numbers of the writes' statements: one text of which the same is known is one statement, whichever handler or version
/// has it. A statement of one name may be another one in the next version.
fn numbered<'w>(writes: &'w [Write<'_>]) -> impl Iterator<Item = usize> + 'w {
    let mut known: HashMap<&str, Vec<(&ReadyStatement, usize)>> = HashMap::new();
    let mut count = 0;
    writes.iter().map(move |Write { ready, .. }| {
        let alike = known.entry(&*ready.sql).or_default();
        let is_same = |other: &ReadyStatement| {
            std::ptr::eq(other, *ready) || (other.fold == ready.fold && other.marks == ready.marks)
        };
        if let Some((_, number)) = alike.iter().find(|(other, _)| is_same(other)) {
            return *number;
        }
        alike.push((*ready, count));
        count += 1;
        count - 1
    })
}

/// All writes of a batch, in event order; `None`: an event among them has to be looked at by itself.
fn writes_of<'a>(events: &[(&'a Delivery, &'a Outcome)], hops_max: u8) -> Option<Vec<Write<'a>>> {
    let mut writes = Vec::new();
    for (at, (delivery, outcome)) in events.iter().enumerate() {
        let (Outcome::Applied { writes: staged, events, .. }, Target::Handler(_, deployed)) =
            (*outcome, &delivery.target)
        else {
            continue;
        };
        if deployed.asks_last_insert_id()
            || events.iter().any(|event| hops(delivery, deployed, event, hops_max).is_err())
        {
            return None;
        }
        for write in staged {
            writes.push(Write::of(deployed, write, at)?);
        }
    }
    Some(writes)
}

fn staged<'a>(step: &Step, writes: &[Write<'a>]) -> Staged<'a> {
    let all = step.all();
    let first = &writes[all[0]];
    let rows = || all.iter().map(|&at| writes[at].params).collect();
    match (step, &first.ready.fold.form) {
        (Step::One(_), _) | (Step::Folded(_), None) => first.one(),
        (Step::Folded(_), Some(Form::Insert(group))) => Staged::InsertMany(first.text(), group.clone(), rows()),
        (Step::Folded(_), Some(Form::Update(form))) => Staged::UpdateMany(first.text(), form, rows()),
    }
}

/// How many of these writes go in one trip.
fn trip_of(writes: usize) -> usize {
    if is_between_writes() { 1 } else { writes.max(1) }
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
    let known: Vec<Write<'_>> = writes.iter().map_while(|write| Write::of(deployed, write, 0)).collect();
    let staged: Vec<Staged<'_>> = known.iter().map(Write::one).collect();
    let mut done = 0;
    for trip in staged.chunks(trip_of(staged.len())) {
        let (matched, failed) = match unit.staged_writes(trip).await {
            Ok(matched) => (matched, None),
            Err(halted) => (halted.matched, Some(halted.error)),
        };
        // The first that is not as it should be decides, in call order.
        for rows in matched {
            expected(&known[done], rows)?;
            done += 1;
        }
        if let Some(error) = failed {
            return Err(refused(known[done].name, known[done].ready, &error));
        }
        written(done, writes.len());
    }
    if let Some(unknown) = writes.get(known.len()) {
        let message = format!("statement `{}` is unknown", unknown.statement);
        return Err(Fault::Failed(Failure::new(Class::Abi, "unknown-statement", message)));
    }
    events.iter().try_for_each(|event| hops(delivery, deployed, event, hops_max))
}

/// Whether so many rows are what the manifest expects.
fn expected(Write { ready, name, .. }: &Write<'_>, rows: u64) -> Result<(), Fault> {
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
