//! The events of one unit of work: their staged writes, in event order and without those that fail, and what each of them
//! comes to. Nothing here decides a verdict: `oncebox_core::life` and `oncebox_core::retry` do.

use std::{
    borrow::Cow,
    collections::HashMap,
    time::{Duration, Instant},
};

use oncebox_core::{
    failure::{Answer, Class, Failure},
    life::{Happening, HeldChange, InboxState, step},
    order::{Ahead, Passed},
    retry::{Counted, Decision, decide},
};

use super::{
    delivery::{Delivery, Target},
    inside,
    lane::LaneContext,
    marks::Marks,
    order::{OrderRows, Pass},
    run::{Attempted, Item, Ran},
    unit_of_work::{Fate, Standing},
    writes::{self, Fault, Together},
};
use crate::{
    planted::{self, Fault as Planted},
    plugin::Outcome,
    store::{Savepoint, StoreError, UnitOfWork},
};

/// How an event that ran ended, as far as this unit is concerned.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// Its writes stand.
    Applied,
    /// The guest skipped it, or the state is newer than the event.
    Skipped {
        /// Why.
        code: String,
    },
    /// It failed, in its run or in its writes.
    Failed(Failure),
    /// An earlier event of its ordering key is held: it waits for that one, whatever its run came to.
    Behind(Failure),
}

/// Events after which savepoints of their own are cheaper than doing all the others again.
const ROUNDS_MAX: u32 = 3;
/// Waits for a lock that a unit bears; what comes after them is left to the next one, so that those who wait for this
/// unit's own locks do not wait for all of them in turn.
const WAITS_MAX: usize = 2;

/// The events of a unit and what has become of them so far.
pub(super) struct Round<'a> {
    lane: &'a LaneContext,
    began: Instant,
    batch: &'a [Item],
    standings: &'a [Standing],
    order: &'a OrderRows,
    /// Ends of events that own their key, by index.
    ends: HashMap<usize, (End, Option<Cow<'a, Attempted>>)>,
    /// Events that this unit has no time for.
    undecided: Vec<usize>,
    /// Of these, those that waited too long for a lock.
    waited: Vec<usize>,
}

impl<'a> Round<'a> {
    /// Nothing is written yet; `standings` are those of `batch`, one each.
    pub(super) fn new(
        lane: &'a LaneContext,
        batch: &'a [Item],
        standings: &'a [Standing],
        order: &'a OrderRows,
        began: Instant,
    ) -> Self {
        Self { lane, began, batch, standings, order, ends: HashMap::new(), undecided: Vec::new(), waited: Vec::new() }
    }

    /// Writes what was staged, in event order. An event that fails is taken out: the savepoint undoes all writes, and
    /// those of the rest are done again.
    pub(super) async fn write(&mut self, unit: &mut dyn UnitOfWork) -> Result<(), StoreError> {
        if self.write_together(unit).await? {
            return Ok(());
        }
        let mut rounds = 0;
        while !self.pass(unit, rounds >= ROUNDS_MAX).await? {
            rounds += 1;
        }
        Ok(())
    }

    /// All writes at once, in few trips and those alike as one statement; false: they have to be written event by event, or
    /// something failed. Which event it was is found out by going through them one by one; but one that waited for a lock
    /// until its time was over shall not wait again.
    async fn write_together(&mut self, unit: &mut dyn UnitOfWork) -> Result<bool, StoreError> {
        let (batch, mut pass) = (self.batch, Pass::default());
        let (mut events, mut places) = (Vec::new(), Vec::new());
        if batch.iter().any(|item| matches!(item.ran, Ran::Inside)) {
            return Ok(false);
        }
        for (at, Item { delivery, ran }) in batch.iter().enumerate() {
            if self.is_passed_over(at, &mut pass) {
                continue;
            }
            match pass.ahead(self.order, delivery) {
                Ahead::Nobody => drop(self.end_of_run(at, unit).await?),
                Ahead::Held => drop(self.ends.insert(at, (End::Behind(behind(delivery)), None))),
                Ahead::Undecided => self.leave_undecided(at),
            }
            pass.note(delivery, self.passed(at));
            if let (Some((End::Applied, _)), Ran::Over(attempted)) = (self.ends.get(&at), ran) {
                events.push((delivery, &attempted.outcome));
                places.push(at);
            }
        }
        // One by itself is written in one trip in any case, and judged at once.
        let together = match events.as_slice() {
            [_, _, ..] => writes::write_together(unit, &events, self.lane.tenant.host_limits.hops_max).await?,
            [] | [_] => None,
        };
        match together {
            Some(Together::Stand) => return Ok(true),
            Some(Together::Fail) => unit.rollback_to(Savepoint::Marks).await?,
            Some(Together::Wait(event)) => {
                self.leave_waiting(places[event]);
                if !planted::is(Planted::NoRollbackOn1205) {
                    unit.rollback_to(Savepoint::Marks).await?;
                }
            }
            None => {}
        }
        Ok(false)
    }

    /// One pass over all events; false: one was taken out, and with it all writes were undone. `alone`: each has a
    /// savepoint of its own, so that only its own writes are.
    async fn pass(&mut self, unit: &mut dyn UnitOfWork, alone: bool) -> Result<bool, StoreError> {
        let (batch, mut pass) = (self.batch, Pass::default());
        for (at, Item { delivery, .. }) in batch.iter().enumerate() {
            if self.is_passed_over(at, &mut pass) {
                continue;
            }
            match pass.ahead(self.order, delivery) {
                Ahead::Nobody if self.undecided.contains(&at) => {}
                Ahead::Nobody => {
                    if !self.write_one(at, unit, alone).await? {
                        return Ok(false);
                    }
                }
                Ahead::Held => drop(self.ends.insert(at, (End::Behind(behind(delivery)), None))),
                Ahead::Undecided => self.leave_undecided(at),
            }
            pass.note(delivery, self.passed(at));
        }
        Ok(true)
    }

    /// Whether an event does not own its key. One that comes again in the next unit holds those behind it.
    fn is_passed_over(&self, at: usize, pass: &mut Pass) -> bool {
        match &self.standings[at] {
            Standing::First | Standing::Claimed => false,
            Standing::Reborn => {
                pass.note(&self.batch[at].delivery, Passed::Undecided);
                true
            }
            Standing::Keyless | Standing::Known(_) | Standing::Lost => true,
        }
    }

    /// The run and the writes of one event; false as for [`Round::pass`].
    async fn write_one(&mut self, at: usize, unit: &mut dyn UnitOfWork, alone: bool) -> Result<bool, StoreError> {
        if !self.ends.contains_key(&at) && !self.end_of_run(at, unit).await? {
            return Ok(true);
        }
        let Some((End::Applied, Some(attempted))) = self.ends.get(&at) else { return Ok(true) };
        if alone {
            unit.savepoint(Savepoint::Event).await?;
        }
        let delivery = &self.batch[at].delivery;
        let hops_max = self.lane.tenant.host_limits.hops_max;
        let Err(fault) = writes::write(unit, delivery, &attempted.outcome, hops_max).await else {
            if alone {
                unit.release(Savepoint::Event).await?;
            }
            return Ok(true);
        };
        let end = match fault {
            Fault::Store(error) => return Err(error),
            Fault::Waited(why) => {
                tracing::debug!(tenant = %self.lane.tenant.name, why = why.message, "taken out of its unit");
                None
            }
            Fault::Obsolete => Some(End::Skipped { code: "obsolete".to_owned() }),
            Fault::Failed(failure) => Some(End::Failed(failure)),
        };
        match end {
            None => self.leave_waiting(at),
            Some(end) => {
                if let Some((was, _)) = self.ends.get_mut(&at) {
                    *was = end;
                }
            }
        }
        if alone {
            unit.rollback_to(Savepoint::Event).await?;
            unit.release(Savepoint::Event).await?;
        } else if !(self.waited.contains(&at) && planted::is(Planted::NoRollbackOn1205)) {
            unit.rollback_to(Savepoint::Marks).await?;
        }
        Ok(alone)
    }

    fn leave_undecided(&mut self, at: usize) {
        self.ends.remove(&at);
        if !self.undecided.contains(&at) {
            self.undecided.push(at);
        }
    }

    /// A lock was not to be had in time; after too many of these the unit ends with what it has.
    fn leave_waiting(&mut self, at: usize) {
        self.leave_undecided(at);
        self.waited.push(at);
        if self.waited.len() >= WAITS_MAX {
            for later in at + 1..self.batch.len() {
                if matches!(self.standings[later], Standing::First | Standing::Claimed) {
                    self.leave_undecided(later);
                }
            }
        }
    }

    /// What an event that owns its key means for its successors, as far as it is known in this pass.
    fn passed(&self, at: usize) -> Passed {
        match self.ends.get(&at) {
            None => Passed::Undecided,
            Some((End::Applied | End::Skipped { .. }, _)) => Passed::Over,
            Some((End::Behind(_), _)) => Passed::Held,
            Some((End::Failed(failure), _)) => match failure.class.answer() {
                Answer::AgainUncounted => Passed::Undecided,
                Answer::ParkUncounted | Answer::ParkCounted | Answer::ParkShort | Answer::Dead => Passed::Held,
            },
        }
    }

    /// Notes how the run of an event ended; one that runs inside the unit is run now, if there is time for it.
    async fn end_of_run(&mut self, at: usize, unit: &mut dyn UnitOfWork) -> Result<bool, StoreError> {
        let Item { delivery, ran } = &self.batch[at];
        let attempted = match ran {
            Ran::Refused(failure) | Ran::Unrun(failure) => {
                self.ends.insert(at, (End::Failed(failure.clone()), None));
                return Ok(false);
            }
            // A look-up's knowledge never makes a key first: `stand` has sent it away.
            Ran::Known(_) => return Ok(false),
            Ran::Over(attempted) => Cow::Borrowed(attempted),
            // One runs in any case: a unit that waited long for its right to write must not come to nothing.
            Ran::Inside if !self.ends.is_empty() && self.began.elapsed() > self.lane.tenant.settings.unit_time_max => {
                self.leave_undecided(at);
                return Ok(false);
            }
            Ran::Inside => Cow::Owned(inside::run(self.lane, unit, delivery).await?),
        };
        let end = match &attempted.outcome {
            Outcome::Applied { .. } => End::Applied,
            Outcome::Skipped { reason } => End::Skipped { code: short(reason) },
            Outcome::Failed(failure) if failure.class == Class::Infrastructure => {
                match failure.code.as_str() {
                    "lock-wait" => self.leave_waiting(at),
                    _ => self.leave_undecided(at),
                }
                return Ok(false);
            }
            Outcome::Failed(failure) => End::Failed(failure.clone()),
        };
        self.ends.insert(at, (end, Some(attempted)));
        Ok(true)
    }

    /// From ends to verdicts, and to all that has to be written for them, in arrival order.
    pub(super) fn conclude(&self, now_us: i64) -> Result<(Marks, Vec<Fate>), StoreError> {
        let mut marks = Marks::new(now_us, self.order);
        let mut fates = Vec::with_capacity(self.batch.len());
        for (at, item) in self.batch.iter().enumerate() {
            fates.push(match &self.standings[at] {
                Standing::Lost => Fate::Lost,
                Standing::Reborn => Fate::Again,
                Standing::Keyless => match (&item.ran, item.delivery.claim) {
                    (Ran::Refused(failure), None) => Fate::Decided(marks.keyless(&item.delivery, failure)),
                    (Ran::Refused(_), Some(_)) => return Err(illegal("a claim has no key")),
                    (Ran::Unrun(_) | Ran::Known(_) | Ran::Inside | Ran::Over(_), _) => {
                        return Err(illegal("an item without a key has run"));
                    }
                },
                Standing::Known(row) => {
                    let equal = item.delivery.equals(row, &self.lane.tenant.identify_limits());
                    let happening = if equal { Happening::DeliveredEqual } else { Happening::DeliveredOther };
                    let step = step(Some(row.state), happening).map_err(|error| illegal(&error.to_string()))?;
                    if step.held != HeldChange::None {
                        marks.conflict(&item.delivery, row);
                    }
                    marks.count(item.delivery.handler_id(), step.verdict);
                    Fate::Decided(step.verdict)
                }
                Standing::First | Standing::Claimed => self.conclude_own(at, &mut marks)?,
            });
        }
        Ok((marks, fates))
    }

    fn conclude_own(&self, at: usize, marks: &mut Marks) -> Result<Fate, StoreError> {
        let delivery = &self.batch[at].delivery;
        let Some((end, attempted)) = self.ends.get(&at) else {
            return Ok(if self.waited.contains(&at) { Fate::Waited } else { Fate::Again });
        };
        let decision = match end {
            End::Failed(failure) => Some(self.decide(delivery, failure, marks.now_us)),
            End::Applied | End::Skipped { .. } | End::Behind(_) => None,
        };
        let happening = match (end, decision) {
            (End::Applied, _) => Happening::RanApplied,
            (End::Skipped { .. }, _) => Happening::RanSkipped,
            (End::Behind(_), _) => Happening::RanToPark,
            (End::Failed(_), Some(Decision::Park { .. })) => Happening::RanToPark,
            (End::Failed(_), Some(Decision::Die { .. })) => Happening::RanToDeath,
            (End::Failed(_), Some(Decision::Again) | None) => return Ok(Fate::Again),
        };
        self.block_if_refused(delivery, end);
        let before = delivery.claim.map(|_| InboxState::Parked);
        let step = step(before, happening).map_err(|error| illegal(&error.to_string()))?;
        if !(planted::is(Planted::MarksLostBySecondFailure) && self.failed_before_another(at)) {
            marks.own(delivery, end, attempted.as_deref(), decision, step);
        }
        marks.count(delivery.handler_id(), step.verdict);
        Ok(Fate::Decided(step.verdict))
    }

    /// For [`Planted::MarksLostBySecondFailure`]: whether an event behind it has failed too.
    fn failed_before_another(&self, at: usize) -> bool {
        let failed = |(end, _): &(End, _)| matches!(end, End::Failed(_));
        self.ends.get(&at).is_some_and(failed) && self.ends.iter().any(|(other, end)| *other > at && failed(end))
    }

    /// A statement that was good at deployment is refused now: nothing of the handler can be applied until it is mended.
    fn block_if_refused(&self, delivery: &Delivery, end: &End) {
        let (End::Failed(failure), Target::Handler(handler, _)) = (end, &delivery.target) else { return };
        if failure.class == Class::Blocked && handler.block(Some(&failure.message)) {
            tracing::error!(tenant = %self.lane.tenant.name, handler = %handler.name, reason = failure.message,
                "blocked: its events are put aside, uncounted, until this is mended");
        }
    }

    fn decide(&self, delivery: &Delivery, failure: &Failure, now_us: i64) -> Decision {
        let age = now_us.saturating_sub(delivery.origin.received_us);
        let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
        match &delivery.target {
            Target::Handler(_, deployed) => {
                decide(failure, delivery.counted, age, &deployed.retry, rand::random_range(0.0..1.0))
            }
            Target::Nobody => Decision::Die { counted: Counted::default() },
        }
    }
}

fn behind(delivery: &Delivery) -> Failure {
    let ordering_key = delivery.identity.as_ref().ok().and_then(|identity| identity.ordering_key.as_deref());
    let ordering_key = oncebox_core::ids::shown(ordering_key.unwrap_or_default());
    let message = format!("waits until the earlier events of its ordering key {ordering_key} are decided");
    Failure::new(Class::Unrun, "behind", message)
}

fn illegal(message: &str) -> StoreError {
    StoreError::Statement { what: "the unit of work", message: message.to_owned() }
}

/// A guest's free text as a code column takes it.
fn short(reason: &str) -> String {
    let mut end = reason.len().min(64);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default().to_owned()
}
