//! The unit of work: one transaction that makes a batch of verdicts durable (DESIGN, chapter 4).
//!
//! Top to bottom: insert (or lock) the inbox rows under a new token, set one savepoint, write what was staged in event
//! order and take out what fails, mark every event that is not applied, raise the books, settle what lives in the same
//! database, release, commit. Nothing here decides a verdict: `oncebox_core::life` and `oncebox_core::retry` do.

use std::{collections::HashMap, time::Duration};

use oncebox_core::{
    failure::{Answer, Class, Failure},
    ids::LeaseToken,
    life::{Happening, HeldChange, InboxState, Verdict, step},
    order::{Ahead, Passed},
    retry::{Counted, Decision, decide},
};

use super::{
    blame::ends,
    delivery::{Delivery, Target},
    inside,
    lane::LaneContext,
    marks::Marks,
    order::{OrderRows, Pass},
    run::{Attempted, Item, Ran, traceparent},
    writes::{self, Fault, Together},
};
use crate::{
    clock,
    failpoint::{Place, reach},
    planted::{self, Fault as Planted},
    plugin::Outcome,
    source::{Receipt, Settle},
    store::{InboxRow, Lane, LocalId, NewInbox, Savepoint, StartEnd, StoreError, UnitOfWork},
};

/// What became of an item of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Committed, with this verdict.
    Decided(Verdict),
    /// Left undecided by this unit: it goes into the next one.
    Again,
    /// The same, because a lock was not to be had in time.
    Waited,
    /// No longer ours: whoever has the row now decides.
    Lost,
}

impl Fate {
    /// Whether it is still to be decided by this host.
    #[must_use]
    pub fn is_undecided(self) -> bool {
        match self {
            Self::Again | Self::Waited => true,
            Self::Decided(_) | Self::Lost => false,
        }
    }
}

/// What is known of an item's key once its inbox row is inserted or locked.
enum Standing {
    /// It has no key.
    Keyless,
    /// This unit's row: the item owns the key.
    First,
    /// It is a claim, still under our lease.
    Claimed,
    /// There was a row before.
    Known(InboxRow),
    /// Left undecided, see [`Fate::Again`]: its row was gone since the look-up.
    Reborn,
    /// The claim is no longer ours.
    Lost,
}

/// One transaction's work. `batch` holds either deliveries or claims, no key twice.
///
/// # Errors
/// Nothing was committed, or (an error of COMMIT) it is not known: the whole batch is done again, with a new token.
pub async fn unit_of_work(lane: &LaneContext, connection: &mut dyn Lane, batch: &[Item]) -> Result<Done, StoreError> {
    let mut lost = Vec::new();
    loop {
        match attempt(lane, connection, batch, &lost).await? {
            Ending::Committed(done) => return Ok(done),
            // Their deliveries are left out; with them gone the rest is done again.
            Ending::NotOurs(more) => lost.extend(more),
        }
    }
}

/// What a unit of work has made durable.
#[derive(Debug)]
pub struct Done {
    /// What became of each item, in the batch's order.
    pub fates: Vec<Fate>,
    /// Local messages that were settled in the same transaction.
    pub settled: Vec<LocalId>,
    /// Messages that came again whose ends were written in the same transaction; those of a run alone of one do not
    /// count: there are starts left of the message itself.
    pub ended: Vec<Receipt>,
    /// Something was parked.
    pub has_parked: bool,
    /// Something that was parked was made due.
    pub has_due: bool,
    /// From BEGIN to COMMIT.
    pub took: Duration,
}

enum Ending {
    Committed(Done),
    NotOurs(Vec<LocalId>),
}

/// What stands in the open transaction, waiting for its end.
enum Written {
    Whole { fates: Vec<Fate>, settled: Vec<LocalId>, ended: Vec<Receipt>, has_parked: bool, has_due: bool },
    NotOurs(Vec<LocalId>),
}

async fn attempt(
    lane: &LaneContext,
    connection: &mut dyn Lane,
    batch: &[Item],
    lost: &[LocalId],
) -> Result<Ending, StoreError> {
    let began = clock::monotonic();
    let mut unit = connection.begin().await?;
    match write(lane, unit.as_mut(), batch, lost).await {
        Ok(Written::Whole { fates, settled, ended, has_parked, has_due }) => {
            reach(Place::BeforeCommit);
            unit.commit().await?;
            reach(Place::AfterCommit);
            Ok(Ending::Committed(Done { fates, settled, ended, has_parked, has_due, took: began.elapsed() }))
        }
        Ok(Written::NotOurs(ids)) => {
            unit.give_up().await?;
            Ok(Ending::NotOurs(ids))
        }
        Err(error) => {
            // Nothing may stay locked while the host waits for a better time.
            if let Err(second) = unit.give_up().await {
                tracing::debug!(tenant = %lane.tenant.name, error = %second, "could not give up");
            }
            Err(error)
        }
    }
}

async fn write(
    lane: &LaneContext,
    unit: &mut dyn UnitOfWork,
    batch: &[Item],
    lost: &[LocalId],
) -> Result<Written, StoreError> {
    let began = clock::monotonic();
    let token = draw_token(batch);
    let (standings, order) = stand(unit, token, batch, lost).await?;
    let now_us = unit.now_us().await?;
    unit.savepoint(Savepoint::Marks).await?;
    let mut round = Round {
        lane,
        began,
        batch,
        standings: &standings,
        order: &order,
        ends: HashMap::new(),
        undecided: Vec::new(),
        waited: Vec::new(),
    };
    round.write(unit).await?;
    let (marks, fates) = round.conclude(now_us)?;
    marks.write(unit, lane).await?;
    reach(Place::AfterMarks);
    let taken_back: Vec<_> = fates
        .iter()
        .zip(batch)
        .filter(|(fate, item)| matches!(fate, Fate::Again | Fate::Waited) && item.delivery.claim.is_none())
        .filter_map(|(_, item)| item.delivery.key())
        .collect();
    unit.inbox_delete(token, &taken_back).await?;
    let settled = settled(batch, &fates);
    let not_ours = unit.local_settle(&settled).await?;
    if !not_ours.is_empty() {
        return Ok(Written::NotOurs(not_ours));
    }
    let ends = ends(batch, &fates);
    let ended = ends.iter().filter(|(_, end)| end.handler.is_none()).map(|(receipt, _)| *receipt).collect();
    let ends: Vec<StartEnd> = ends.into_iter().map(|(_, end)| end).collect();
    unit.start_end(&ends).await?;
    reach(Place::BeforeRelease);
    unit.release(Savepoint::Marks).await?;
    let settled = settled.into_iter().map(|(id, _)| id).collect();
    Ok(Written::Whole { fates, settled, ended, has_parked: marks.has_parked(), has_due: marks.has_due() })
}

/// New for every try: whoever finds its own token in a row knows that this very transaction has inserted it.
fn draw_token(batch: &[Item]) -> LeaseToken {
    if planted::is(Planted::TokenReusedAfterLostCommit)
        && let Some(first) = batch.first()
        && let Some(reused) = LeaseToken::from_slice(&first.delivery.origin.hash.as_bytes()[..16])
    {
        return reused;
    }
    LeaseToken(rand::random())
}

/// Inserts the rows of deliveries, all of them and sorted, or locks those of claims; then locks the order rows of what
/// this unit may decide.
async fn stand(
    unit: &mut dyn UnitOfWork,
    token: LeaseToken,
    batch: &[Item],
    lost: &[LocalId],
) -> Result<(Vec<Standing>, OrderRows), StoreError> {
    let is_lost = |delivery: &Delivery| delivery.local().is_some_and(|(id, _)| lost.contains(&id));
    let mut order: Vec<usize> = (0..batch.len()).filter(|&at| !is_lost(&batch[at].delivery)).collect();
    let mut standings: Vec<Standing> = batch.iter().map(|_| Standing::Keyless).collect();
    for (at, item) in batch.iter().enumerate() {
        if is_lost(&item.delivery) {
            standings[at] = Standing::Lost;
        }
    }
    order.retain(|&at| batch[at].delivery.key().is_some());
    order.sort_by_cached_key(|&at| batch[at].delivery.key());
    let claims: Vec<_> = order.iter().filter_map(|&at| batch[at].delivery.claim.map(|c| (c.held, c.token))).collect();
    if claims.is_empty() {
        let rows: Vec<NewInbox> = order.iter().filter_map(|&at| new_inbox(&batch[at].delivery)).collect();
        let found = unit.inbox_insert(token, &rows).await?;
        reach(Place::AfterInboxInsert);
        for (&at, row) in order.iter().zip(found) {
            let is_own = row.token == token || planted::is(Planted::SelectThenInsert);
            standings[at] = match (is_own, &batch[at].ran) {
                (true, Ran::Known) => Standing::Reborn,
                (true, Ran::Refused(_) | Ran::Unrun(_) | Ran::Inside | Ran::Over(_)) => Standing::First,
                (false, _) => Standing::Known(row),
            };
        }
        let first = |at: &&usize| matches!(standings[**at], Standing::First);
        let ordered = OrderRows::lock(unit, order.iter().filter(first).map(|&at| &batch[at].delivery)).await?;
        return Ok((standings, ordered));
    }
    let keys: Vec<_> = order.iter().filter_map(|&at| batch[at].delivery.key()).collect();
    let rows = unit.inbox_lock(&keys).await?;
    let ordered = OrderRows::lock(unit, order.iter().map(|&at| &batch[at].delivery)).await?;
    let ours = unit.held_lock(&claims).await?;
    reach(Place::ClaimLocked);
    for ((&at, row), ours) in order.iter().zip(rows).zip(ours) {
        let parked = row.is_some_and(|row| row.state == InboxState::Parked);
        standings[at] =
            if parked && (ours || planted::is(Planted::UnfencedClaim)) { Standing::Claimed } else { Standing::Lost };
    }
    Ok((standings, ordered))
}

fn new_inbox(delivery: &Delivery) -> Option<NewInbox> {
    let (Ok(identity), Target::Handler(handler, deployed)) = (&delivery.identity, &delivery.target) else {
        return None;
    };
    Some(NewInbox {
        handler: handler.id,
        key: identity.key.clone(),
        fingerprint: identity.fingerprint,
        rule: deployed.rule_id,
        deployment: deployed.id,
        event_id: delivery.origin.envelope.as_ref().map_or_else(String::new, |envelope| envelope.id.clone()),
        source: delivery.origin.source.clone(),
        traceparent: traceparent(delivery),
        received_us: delivery.origin.received_us,
    })
}

/// Messages that live in the same database and that this unit decides for good: settled in the same transaction.
fn settled(batch: &[Item], fates: &[Fate]) -> Vec<(LocalId, LeaseToken)> {
    let mut decided: HashMap<Receipt, (&Settle, usize)> = HashMap::new();
    for (item, fate) in batch.iter().zip(fates) {
        if let (Fate::Decided(_), Some(settle)) = (fate, &item.delivery.origin.settle) {
            decided.entry(settle.receipt).or_insert((settle, 0)).1 += 1;
        }
    }
    let done = decided.into_values().filter(|(settle, n)| settle.is_done_by(*n));
    let mut messages: Vec<_> = done.filter_map(|(settle, _)| settle.receipt.local()).collect();
    messages.sort_unstable_by_key(|(id, _)| *id);
    messages
}

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

struct Round<'a> {
    lane: &'a LaneContext,
    began: std::time::Instant,
    batch: &'a [Item],
    standings: &'a [Standing],
    order: &'a OrderRows,
    /// Ends of events that own their key, by index.
    ends: HashMap<usize, (End, Option<Attempted>)>,
    /// Events that this unit has no time for.
    undecided: Vec<usize>,
    /// Of these, those that waited too long for a lock.
    waited: Vec<usize>,
}

impl Round<'_> {
    /// Writes what was staged, in event order. An event that fails is taken out: the savepoint undoes all writes, and
    /// those of the rest are done again.
    async fn write(&mut self, unit: &mut dyn UnitOfWork) -> Result<(), StoreError> {
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
            Some(end) => drop(self.ends.insert(at, (end, Some(attempted.clone())))),
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
        let delivery = &self.batch[at].delivery;
        let attempted = match &self.batch[at].ran {
            Ran::Refused(failure) | Ran::Unrun(failure) => {
                self.ends.insert(at, (End::Failed(failure.clone()), None));
                return Ok(false);
            }
            // A look-up's knowledge never makes a key first: `stand` has sent it away.
            Ran::Known => return Ok(false),
            Ran::Over(attempted) => attempted.clone(),
            // One runs in any case: a unit that waited long for its right to write must not come to nothing.
            Ran::Inside if !self.ends.is_empty() && self.began.elapsed() > self.lane.tenant.settings.unit_time_max => {
                self.leave_undecided(at);
                return Ok(false);
            }
            Ran::Inside => inside::run(self.lane, unit, delivery).await?,
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
    fn conclude(&self, now_us: i64) -> Result<(Marks, Vec<Fate>), StoreError> {
        let mut marks = Marks::new(now_us, self.order);
        let mut fates = Vec::with_capacity(self.batch.len());
        for (at, item) in self.batch.iter().enumerate() {
            fates.push(match &self.standings[at] {
                Standing::Lost => Fate::Lost,
                Standing::Reborn => Fate::Again,
                Standing::Keyless => match (&item.ran, item.delivery.claim) {
                    (Ran::Refused(failure), None) => Fate::Decided(marks.keyless(&item.delivery, failure)),
                    (Ran::Refused(_), Some(_)) => return Err(illegal("a claim has no key")),
                    (Ran::Unrun(_) | Ran::Known | Ran::Inside | Ran::Over(_), _) => {
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
            marks.own(delivery, end, attempted.as_ref(), decision, step);
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
