//! `host/unit_of_work.rs`: one transaction that makes a batch of verdicts durable.
//!
//! Insert (or lock) the inbox rows under a new token, one savepoint, the staged writes in event order without those that
//! fail, then the marks of all that is not just applied, then COMMIT. Verdicts are drawn by the host's own functions:
//! `life::step`, `retry::decide`, `order::ahead`.
//!
//! Between the savepoint and the marks nothing is written that another session could meet, so all rounds of staged writes
//! are one step here.

use std::{sync::LazyLock, time::Duration};

use oncebox_core::{
    failure::{Class, Failure},
    life::{Happening, HeldChange, HeldState, InboxState, Step, Verdict, step},
    order::{Ahead, Arrival, Passed, ahead},
    retry::{Counted, Decision, RetryPolicy, decide},
};

use crate::{
    database::{Age, Blocked, Due, InboxRow, OrderRow, Row, small},
    fault::Fault,
    lane, marks,
    scenario::{Message, Outcome},
    state::{At, BATCH, Fate, Item, Mark, Ran, Standing, Token},
    world::World,
};

/// BEGIN, and then the inbox rows of the batch, sorted, one after the other: `inbox_insert` of deliveries, `inbox_lock`
/// of claims. Each may have to be waited for.
pub(crate) fn inbox(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    if world.state.hosts[host].session.is_none() {
        begin(world, host);
    }
    let rows = sorted(world, host);
    if let Some(at) = rows.get(usize::from(world.state.hosts[host].rows)).copied()
        && let Some(item) = world.state.hosts[host].batch[at]
    {
        if item.delivery.claim.is_some() {
            inbox_lock(world, host, &item)?;
        } else {
            inbox_insert(world, host, &item)?;
        }
        world.state.hosts[host].rows += 1;
    }
    if usize::from(world.state.hosts[host].rows) >= rows.len() {
        world.state.hosts[host].at = At::Stand;
    }
    Ok(())
}

/// A new token, also when a batch is done again: no row anywhere carries it.
fn begin(world: &mut World<'_>, host: usize) {
    world.session(host);
    world.state.hosts[host].rows = 0;
    world.state.hosts[host].mark_at_begin = world.state.purge.mark;
    if !world.scenario.has(Fault::TokenReusedAfterLostCommit) {
        for tables in world.state.views() {
            tables.forget_unit(Token::of(host));
        }
    }
}

/// The items of the unit that take part in the insert, all of them, by key.
fn sorted(world: &World<'_>, host: usize) -> Vec<usize> {
    let own = &world.state.hosts[host];
    let takes_part = |at: &usize| own.batch[*at].is_some_and(|item| item.ran != Ran::SawConflict);
    let mut rows: Vec<usize> = own.in_unit().filter(takes_part).collect();
    rows.sort_by_key(|at| own.batch[*at].map(|item| message(world, &item).key));
    if world.scenario.has(Fault::KeysUnsorted) && host == 1 {
        rows.reverse();
    }
    rows
}

pub(crate) fn message(world: &World<'_>, item: &Item) -> Message {
    world.scenario.messages[usize::from(item.delivery.message)]
}

/// Inserts the row in state `applied`, or counts a duplicate on the one that is there: either way it is locked.
fn inbox_insert(world: &mut World<'_>, host: usize, item: &Item) -> Result<(), Blocked> {
    let message = message(world, item);
    world.lock(host, Row::Inbox(message.key))?;
    let is_there = world.state.tables.inbox[usize::from(message.key)].is_some();
    let name = message_name(item);
    world.say(|| {
        format!("host {}: inbox_insert of {name}: {}", host + 1, if is_there { "a row is there" } else { "a new row" })
    });
    if is_there {
        return Ok(());
    }
    if world.scenario.has(Fault::InsertIgnore) && world.oracle.pick(2) == 1 {
        world.say(|| "… which the server refuses for a reason of its own, and IGNORE says nothing".to_owned());
        return Ok(());
    }
    let row = InboxRow {
        state: InboxState::Applied,
        fingerprint: message.fingerprint,
        authorised: 0,
        token: Token::of(host),
        age: if message.is_newer { Age::New } else { Age::Young },
    };
    world.write_inbox(host, message.key, Some(row));
    Ok(())
}

fn inbox_lock(world: &mut World<'_>, host: usize, item: &Item) -> Result<(), Blocked> {
    let key = message(world, item).key;
    world.lock(host, Row::Inbox(key))?;
    let name = message_name(item);
    world.say(|| format!("host {}: inbox_lock of {name}", host + 1));
    Ok(())
}

pub(crate) fn message_name(item: &Item) -> String {
    format!("message {}", item.delivery.message + 1)
}

/// The rest of `stand`, the savepoint, the staged writes, and what is concluded.
pub(crate) fn stand(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    if world.state.hosts[host].has_claims() {
        order_lock(world, host, true)?;
        held_lock(world, host)?;
    } else {
        read_standings(world, host);
        let own = &world.state.hosts[host];
        let any_first = own.batch.iter().flatten().any(|item| item.standing == Some(Standing::First));
        order_lock(world, host, any_first)?;
    }
    world.say(|| format!("host {}: order and held rows are locked, SAVEPOINT", host + 1));
    Round::of(world, host).write(world);
    world.state.hosts[host].at = At::Marks;
    // What they write is decided, and nobody else can change it: only their locks may have to be waited for.
    marks::write(world, host)
}

/// A row is first only if it carries this unit's token. The purge mark is read here, after the insert.
fn read_standings(world: &mut World<'_>, host: usize) {
    let (tables, scenario) = (world.seen(host), world.scenario);
    let early = scenario.has(Fault::PurgeMarkReadEarly);
    let mark = if early { world.state.hosts[host].mark_at_begin } else { world.state.purge.mark };
    let in_unit: Vec<usize> = world.state.hosts[host].in_unit().collect();
    for at in in_unit {
        let Some(item) = &mut world.state.hosts[host].batch[at] else { continue };
        if item.standing.is_some() {
            continue;
        }
        let message = scenario.messages[usize::from(item.delivery.message)];
        let row = tables.inbox[usize::from(message.key)];
        let believes_look_up = scenario.has(Fault::SelectThenInsert) && item.ran == Ran::Runs;
        let is_first = believes_look_up || row.is_some_and(|row| row.token == Token::of(host));
        item.standing = Some(match (is_first, item.ran) {
            (true, Ran::Known) => Standing::Reborn,
            (true, Ran::Runs) if mark && !message.is_newer => Standing::Late,
            (true, Ran::Runs) => Standing::First,
            (true, Ran::SawConflict) | (false, _) => Standing::Known,
        });
    }
}

/// The order row, made if it is not there: an absent row locks nothing.
fn order_lock(world: &mut World<'_>, host: usize, is_needed: bool) -> Result<(), Blocked> {
    if !world.scenario.is_ordered || !is_needed || world.scenario.has(Fault::OrderReadWithoutLock) {
        return Ok(());
    }
    world.lock(host, Row::Order)?;
    if world.seen(host).order.is_none() {
        world.write_order(host, OrderRow::default());
    }
    Ok(())
}

/// Ours only if the held row is parked and still carries our token, and the inbox row is parked.
fn held_lock(world: &mut World<'_>, host: usize) -> Result<(), Blocked> {
    let in_unit: Vec<usize> = world.state.hosts[host].in_unit().collect();
    for at in in_unit {
        let Some((item, claim)) = world.state.hosts[host].batch[at].and_then(|item| Some((item, item.delivery.claim?)))
        else {
            continue;
        };
        world.lock(host, Row::Held(claim.held))?;
        let tables = world.seen(host);
        let inbox = tables.inbox[usize::from(message(world, &item).key)];
        let held = tables.held[usize::from(claim.held)];
        let is_parked = inbox.is_some_and(|row| row.state == InboxState::Parked);
        let is_held = held.is_some_and(|row| row.state == HeldState::Parked);
        let is_leased = held.is_some_and(|row| row.lease == Token::of(host));
        let ours = match world.scenario.fault {
            Some(Fault::UnfencedClaim) => true,
            Some(Fault::LeaseTokenNotCompared) => is_parked && is_held,
            _ => is_parked && is_held && is_leased,
        };
        if let Some(item) = &mut world.state.hosts[host].batch[at] {
            item.standing = Some(if ours { Standing::Claimed } else { Standing::Lost });
        }
    }
    Ok(())
}

/// How an event that ran ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Applied,
    Failed(Outcome),
    Behind,
}

/// `unit_of_work.rs::Round`.
struct Round {
    host: usize,
    items: [Option<Item>; BATCH],
    in_unit: Vec<usize>,
    /// Lowest place of a held row of the ordering key.
    head: Option<u64>,
    ends: [Option<End>; BATCH],
    undecided: [bool; BATCH],
    /// A planted fault's: marks that were written at once, and those of them that a later ROLLBACK TO has undone.
    marked: [bool; BATCH],
    unmarked: [bool; BATCH],
}

impl Round {
    fn of(world: &World<'_>, host: usize) -> Self {
        let held = world.seen(host).held;
        let head = held.iter().flatten().filter(|row| row.holds()).filter_map(|row| row.place).min();
        Self {
            host,
            items: world.state.hosts[host].batch,
            in_unit: world.state.hosts[host].in_unit().collect(),
            head: head.map(u64::from),
            ends: [None; BATCH],
            undecided: [false; BATCH],
            marked: [false; BATCH],
            unmarked: [false; BATCH],
        }
    }

    fn write(mut self, world: &mut World<'_>) {
        // After how many failures savepoints of their own are cheaper is left open: here it may be after the first.
        let mut alone = false;
        while !self.pass(world, alone) {
            alone = alone || world.oracle.pick(2) == 1;
        }
        for at in self.in_unit.clone() {
            let concluded = self.conclude(world, at);
            if let (Some(item), (fate, mark)) = (&mut world.state.hosts[self.host].batch[at], concluded) {
                (item.fate, item.mark) = (Some(fate), mark);
            }
        }
    }

    /// One pass over all events; false: one was taken out, and with it all writes were undone.
    fn pass(&mut self, world: &mut World<'_>, alone: bool) -> bool {
        let mut earlier = None;
        for at in self.in_unit.clone() {
            let Some(item) = self.items[at] else { continue };
            match item.standing {
                Some(Standing::First | Standing::Claimed) => {}
                // It comes again in the next unit: nothing behind it may pass.
                Some(Standing::Reborn) if !world.scenario.has(Fault::RebornIsPassed) => {
                    earlier = earlier.max(Some(Passed::Undecided));
                    continue;
                }
                Some(Standing::Reborn | Standing::Late | Standing::Known | Standing::Lost) | None => continue,
            }
            match self.ahead(world, &item, earlier, at) {
                Ahead::Nobody if self.undecided[at] => {}
                Ahead::Nobody => {
                    if !self.write_one(world, at, alone) {
                        return false;
                    }
                }
                Ahead::Held => self.ends[at] = Some(End::Behind),
                Ahead::Undecided => self.leave_undecided(at),
            }
            earlier = earlier.max(Some(self.passed(at)));
        }
        true
    }

    fn ahead(&self, world: &World<'_>, item: &Item, earlier: Option<Passed>, at: usize) -> Ahead {
        if !world.scenario.is_ordered {
            return Ahead::Nobody;
        }
        let arrival = item.delivery.claim.map_or(Arrival::New, |claim| Arrival::Claimed(claim.place.map(u64::from)));
        let decided = ahead(arrival, self.head, earlier);
        match world.scenario.fault {
            Some(Fault::SuccessorKeepsItsVerdict) if self.ends[at].is_some() => Ahead::Nobody,
            Some(Fault::SuccessorOfUndecidedPasses) if decided == Ahead::Undecided => Ahead::Nobody,
            _ => decided,
        }
    }

    /// The run and the staged writes of one event.
    fn write_one(&mut self, world: &mut World<'_>, at: usize, alone: bool) -> bool {
        let Some(item) = self.items[at] else { return true };
        if matches!(self.ends[at], Some(End::Failed(_) | End::Behind)) {
            return true;
        }
        let outcome =
            if item.delivery.at_risk { Outcome::Unrun } else { world.oracle.one_of(&world.scenario.outcomes) };
        let name = message_name(&item);
        match outcome {
            Outcome::Applied => {
                world.say(|| format!("… staged writes of {name} stand"));
                self.ends[at] = Some(End::Applied);
                return true;
            }
            Outcome::Waited => {
                world.say(|| format!("… a statement of {name} waits too long (1205)"));
                self.leave_undecided(at);
                if world.scenario.has(Fault::NoRollbackOn1205) {
                    world.session(self.host).torn |= 1 << item.delivery.message;
                    return true;
                }
            }
            Outcome::Retry | Outcome::Reject | Outcome::Unrun => {
                world.say(|| format!("… {name} fails: {outcome:?}"));
                self.ends[at] = Some(End::Failed(outcome));
            }
        }
        if !alone {
            world.say(|| "… ROLLBACK TO SAVEPOINT, once more without it".to_owned());
            for other in 0..BATCH {
                self.unmarked[other] |= self.marked[other];
            }
        }
        self.marked[at] = world.scenario.has(Fault::MarksLostBySecondFailure);
        alone
    }

    fn leave_undecided(&mut self, at: usize) {
        self.ends[at] = None;
        self.undecided[at] = true;
    }

    /// What an event means for its successors.
    fn passed(&self, at: usize) -> Passed {
        match self.ends[at] {
            None => Passed::Undecided,
            Some(End::Applied) => Passed::Over,
            Some(End::Behind | End::Failed(_)) => Passed::Held,
        }
    }

    /// From ends to verdicts, and to what has to be written for them.
    fn conclude(&self, world: &mut World<'_>, at: usize) -> (Fate, Option<Mark>) {
        let Some(item) = self.items[at] else { return (Fate::Lost, None) };
        match item.standing {
            Some(Standing::Lost) => (Fate::Lost, None),
            Some(Standing::Reborn) => (Fate::Again, None),
            Some(Standing::Late) => {
                let held = HeldChange::Hold(HeldState::Late);
                let mark = Mark { inbox: InboxState::Dead, held, due: Due::Never, attempts: 0 };
                (Fate::Decided(Verdict::Late), Some(mark))
            }
            Some(Standing::Known) | None => self.conclude_known(world, &item),
            Some(Standing::First | Standing::Claimed) => self.conclude_own(&item, at),
        }
    }

    fn conclude_known(&self, world: &mut World<'_>, item: &Item) -> (Fate, Option<Mark>) {
        let message = message(world, item);
        let row = world.seen(self.host).inbox[usize::from(message.key)];
        let Some(row) = row else { return (Fate::Decided(Verdict::Duplicate), None) };
        let believes_key = world.scenario.has(Fault::FingerprintNotCompared);
        let equal = item.ran != Ran::SawConflict && (believes_key || row.equals(message.fingerprint));
        let step = step(Some(row.state), if equal { Happening::DeliveredEqual } else { Happening::DeliveredOther });
        let step = legal(step);
        let bit = 1 << item.delivery.message;
        if step.verdict == Verdict::Conflict {
            world.session(self.host).conflicts |= bit;
        } else if row.state == InboxState::Applied {
            world.session(self.host).proven |= bit;
        }
        if equal && message.is_newer && !world.scenario.has(Fault::DuplicateKeepsTheAge) {
            world.write_inbox(self.host, message.key, Some(InboxRow { age: Age::New, ..row }));
        }
        let mark = Mark { inbox: step.inbox, held: step.held, due: Due::Never, attempts: 0 };
        (Fate::Decided(step.verdict), Some(mark).filter(|mark| mark.held != HeldChange::None))
    }

    fn conclude_own(&self, item: &Item, at: usize) -> (Fate, Option<Mark>) {
        let Some(end) = self.ends[at] else { return (Fate::Again, None) };
        let counted = item.delivery.claim.map_or(0, |claim| claim.attempts);
        let (happening, due, attempts) = match end {
            End::Applied => (Happening::RanApplied, Due::Never, counted + 1),
            End::Behind => (Happening::RanToPark, Due::Never, counted),
            End::Failed(outcome) => match decided(outcome, counted) {
                Decision::Park { counted, .. } => (Happening::RanToPark, Due::Now, attempts(counted)),
                Decision::Die { counted } => (Happening::RanToDeath, Due::Never, attempts(counted)),
                Decision::Again => return (Fate::Again, None),
            },
        };
        let before = item.delivery.claim.map(|_| InboxState::Parked);
        let step = legal(step(before, happening));
        let mark = Mark { inbox: step.inbox, held: step.held, due, attempts };
        (Fate::Decided(step.verdict), Some(mark).filter(|_| !self.unmarked[at]))
    }
}

fn legal(step: Result<Step, oncebox_core::life::IllegalTransition>) -> Step {
    #[expect(clippy::expect_used, reason = "an illegal transition is a fault of the model, and no finding")]
    step.expect("the life table has every pair that the unit of work asks for")
}

fn attempts(counted: Counted) -> u8 {
    u8::try_from(counted.attempts).unwrap_or(u8::MAX)
}

/// Dead at the second counted attempt.
fn decided(outcome: Outcome, attempts: u8) -> Decision {
    static POLICY: LazyLock<RetryPolicy> = LazyLock::new(|| RetryPolicy { attempts_max: 2, ..RetryPolicy::default() });
    static FAILURES: LazyLock<[Failure; 3]> = LazyLock::new(|| {
        [Class::GuestRetry, Class::GuestReject, Class::Unrun].map(|class| Failure::new(class, "model", ""))
    });
    let failure = match outcome {
        Outcome::Applied | Outcome::Waited => return Decision::Again,
        Outcome::Retry => &FAILURES[0],
        Outcome::Reject => &FAILURES[1],
        Outcome::Unrun => &FAILURES[2],
    };
    let before = Counted { attempts: attempts.into(), attempts_short: 0 };
    decide(failure, before, Duration::ZERO, &POLICY, 0.0)
}

/// RELEASE and COMMIT, with an answer.
pub(crate) fn commit(world: &mut World<'_>, host: usize) {
    if let Some(session) = world.state.hosts[host].session.take() {
        world.say(|| format!("host {}: RELEASE, COMMIT", host + 1));
        commit_session(world, &session);
    }
    lane::next_unit(world, host);
}

/// A COMMIT that the server gets.
pub(crate) fn commit_session(world: &mut World<'_>, session: &crate::database::Session) {
    let before = world.state.tables;
    world.make_durable(session);
    if world.scenario.has(Fault::InsertIgnoreDeadlocks) {
        for row in (0..before.inbox.len()).filter(|key| before.inbox[*key].is_none()).map(small).map(Row::Inbox) {
            if session.written.has(row) {
                world.deadlock_waiters(row, true);
            }
        }
    }
}
