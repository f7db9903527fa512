//! The unit of work: one transaction that makes a batch of verdicts durable (DESIGN, chapter 4).
//!
//! Top to bottom: insert (or lock) the inbox rows under a new token, set one savepoint, write what was staged in event
//! order and take out what fails, mark every event that is not applied, raise the books, settle what lives in the same
//! database, release, commit. Nothing here decides a verdict: `oncebox_core::life` and `oncebox_core::retry` do.

use std::{collections::HashMap, time::Duration};

use oncebox_core::{
    ids::LeaseToken,
    life::{InboxState, Verdict},
};

use super::{
    blame::ends,
    delivery::{Delivery, Target},
    lane::LaneContext,
    order::OrderRows,
    round::Round,
    run::{Item, Ran, traceparent},
};
use crate::{
    clock,
    failpoint::{Place, reach},
    planted::{self, Fault as Planted},
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
pub(super) enum Standing {
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
    let mut round = Round::new(lane, batch, &standings, &order, began);
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
        let rows: Vec<NewInbox> = order.iter().filter_map(|&at| new_inbox(&batch[at])).collect();
        let found = unit.inbox_insert(token, &rows).await?;
        reach(Place::AfterInboxInsert);
        for (&at, row) in order.iter().zip(found) {
            let is_own = row.token == token || planted::is(Planted::SelectThenInsert);
            standings[at] = match (is_own, &batch[at].ran) {
                (true, Ran::Known(_)) => Standing::Reborn,
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

fn new_inbox(Item { delivery, ran }: &Item) -> Option<NewInbox> {
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
        seen: if let Ran::Known(row) = ran { Some(row.clone()) } else { None },
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
