//! The road of a batch through the host, top to bottom:
//!
//! source → take batch → identify → look up → run → unit of work → settle
//!
//! Nothing is settled as done before the database has committed the verdict. Each step's details are one file away:
//! `source/` (take), `oncebox_core::identify` (identify), `run.rs` and `running.rs` (run), `unit_of_work.rs` and
//! `round.rs`; `link.rs` has the lane's connection, `lane.rs` its patience with the database.

use std::{collections::HashMap, sync::Arc, time::Duration};

use oncebox_core::{
    blame::Suspicion,
    config::Unrouted,
    envelope,
    failure::{Class, Failure},
    identify::identify,
    retry::Counted,
};

use super::{
    blame::{Begun, Counter, charge, end_late},
    delivery::{Delivery, Target},
    lane::{LaneContext, Patience},
    link::Link,
    mistakes,
    run::{Item, LookedUp, Work, put_back_undecided, run},
    tenant::Tenant,
    unit_of_work::{Done, Fate},
};
use crate::{
    clock,
    failpoint::{Place, reach},
    planted::{self, Fault},
    source::{Intake, Origin, Receipt, Settle, Source},
    store::{InboxKey, InboxRow},
};

/// So long an intake works before the other tasks of its thread have their turn. A thousand large messages are read in
/// seconds: runs that wait behind it would be over their time.
const TURN: Duration = Duration::from_millis(10);

/// From a source into the lanes: what is ready is taken, counted, identified, and spread by handler and key.
pub(super) async fn intake(tenant: Arc<Tenant>, source: Arc<dyn Source>, counter: Counter) {
    while let Some(messages) = source.take().await {
        reach(Place::AfterTake);
        let Some(messages) = counter.count(messages).await else { return };
        let mut began = clock::monotonic();
        for begun in messages {
            // Not among those that their broker drops soon: all of them have to be in one unit of work.
            if began.elapsed() >= TURN && begun.taken.at_risk.is_none() {
                tokio::task::yield_now().await;
                began = clock::monotonic();
            }
            let deliveries = identified(&tenant, source.as_ref(), begun);
            reach(Place::AfterIdentify);
            for delivery in deliveries {
                tenant.spread(delivery);
            }
        }
    }
}

/// A lane's life: one batch after the other, each to its end, until the host stops.
pub(super) async fn lane(lane: LaneContext, mut link: Link) {
    while let Some(batch) = link.take(&lane).await {
        let Some(looked_up) = look_up(&lane, &mut link, batch).await else { return };
        reach(Place::AfterLookUp);
        let (ran, alone) = run(&lane, &mut link, looked_up).await;
        let ran = put_back_undecided(&lane.queue, ran).await;
        reach(Place::AfterRun);
        if planted::is(Fault::AckBeforeCommit) {
            mistakes::settle_undecided(&lane, &ran).await;
        }
        for (items, done) in lane.decide(&mut link, ran, alone).await {
            settle(&lane, items, done).await;
        }
        link.make_way().await;
    }
}

/// Identify: one delivery for each handler that a route gives the message to.
fn identified(tenant: &Tenant, source: &dyn Source, begun: Begun) -> Vec<Delivery> {
    let Intake { name, envelope: rule, limits, unrouted, .. } = source.intake();
    let Begun { taken, hash, against } = begun;
    let opened = envelope::open(&taken.message, rule, limits);
    let event_type = opened.as_ref().map_or("", |envelope| envelope.event_type.as_str());
    let handlers = source.intake().handlers(event_type);
    // What was not understood is one delivery, for nobody, whatever a route would take.
    let deliveries = if opened.is_ok() { handlers.len().max(1) } else { 1 };
    let settle = Settle::new(taken.receipt, deliveries, taken.permit);
    let (envelope, poison) = match opened {
        Ok(envelope) => (Some(envelope), None),
        Err(poison) => (None, Some(Failure::from(poison))),
    };
    let origin = Arc::new(Origin {
        source: name.clone(),
        hash,
        message: taken.message,
        envelope,
        hops: taken.hops,
        received_us: taken.received_us,
        is_begun: taken.is_redelivered,
        is_at_risk: taken.at_risk.is_some(),
        settle: Some(settle),
    });
    source.watch(&origin);
    let delivery = |target, identity| Delivery {
        target,
        origin: origin.clone(),
        identity,
        counted: Counted::default(),
        claim: None,
        unrun: taken.at_risk.clone(),
        suspicion: Suspicion::default(),
        lock_waits: 0,
        turn: None,
        in_hand: tenant.in_hand.clone(),
    };
    let Some(envelope) = &origin.envelope else {
        return poison.into_iter().map(|failure| delivery(Target::Nobody, Err(failure))).collect();
    };
    if handlers.is_empty() {
        let code = match unrouted {
            Unrouted::Dead => "no-route",
            Unrouted::Ignore => Failure::IGNORED,
        };
        let message = format!("no route of source `{name}` takes event type `{}`", envelope.event_type);
        return vec![delivery(Target::Nobody, Err(Failure::new(Class::NoRoute, code, message)))];
    }
    let served = handlers.iter().filter_map(|name| {
        let handler = tenant.handlers.get(*name)?;
        // Its source takes nothing while it is not served; what was taken just before ends on what served it then.
        Some((handler.clone(), handler.last()?))
    });
    served
        .map(|(handler, deployed)| {
            let identity = identify(envelope, &origin.message, &deployed.rule, limits).map_err(Failure::from);
            let mut delivery = delivery(Target::Handler(handler, deployed), identity);
            let suspicion = against.suspicion(tenant, delivery.handler_id());
            charge(tenant, &mut delivery, suspicion);
            delivery.turn = delivery.order_key().map(|key| tenant.lines.enter(key));
            delivery
        })
        .collect()
}

/// Look up: one query for the batch. An equal row is good enough for a duplicate; anything else is decided under the
/// row's lock. `None`: the host stops while the database is away.
async fn look_up(lane: &LaneContext, link: &mut Link, mut batch: Vec<Work>) -> Option<Vec<LookedUp>> {
    let keys: Vec<InboxKey> =
        batch.iter().filter(|work| work.delivery.claim.is_none()).filter_map(|work| work.delivery.key()).collect();
    let mut patience = Patience::new(lane);
    let rows = loop {
        match link.open(lane).await?.inbox_look_up(&keys).await {
            Ok(rows) => break rows,
            Err(error) => {
                link.lost();
                patience.wait(&error).await?;
            }
        }
    };
    patience.over();
    let mut rows: HashMap<InboxKey, InboxRow> =
        rows.into_iter().map(|row| ((row.handler, row.key.clone()), row)).collect();
    if planted::is(Fault::ConflictFromSnapshot) {
        mistakes::conclude_conflicts(lane, &mut batch, &rows);
    }
    let mut known = |delivery: &Delivery| {
        let row = delivery.key().filter(|_| delivery.claim.is_none()).and_then(|key| rows.remove(&key));
        row.filter(|row| delivery.equals(row, &lane.tenant.identify_limits()))
    };
    Some(batch.into_iter().map(|work| LookedUp { known: known(&work.delivery), work }).collect())
}

/// Settle: after the commit, and only then. A message of the same database whose last delivery was decided in this unit
/// is gone already, in the same transaction; every other one whose deliveries are all decided is settled now.
async fn settle(lane: &LaneContext, items: Vec<Item>, done: Done) {
    let tenant = &lane.tenant;
    tenant.metrics.unit(&tenant.name, &done);
    let claims = items.iter().any(|item| item.delivery.claim.is_some());
    let mut decided: HashMap<Receipt, (Arc<Origin>, usize)> = HashMap::new();
    let mut again = Vec::new();
    for (mut item, fate) in items.into_iter().zip(done.fates) {
        if let (Some(turn), Fate::Decided(_) | Fate::Lost) = (&mut item.delivery.turn, fate) {
            turn.decided();
        }
        match fate {
            Fate::Decided(verdict) => {
                tenant.metrics.decided(tenant, &item.delivery, verdict);
                item.delivery.note_end(verdict);
                if let Some(settle) = &item.delivery.origin.settle {
                    decided.entry(settle.receipt).or_insert_with(|| (item.delivery.origin.clone(), 0)).1 += 1;
                }
            }
            Fate::Again => again.push(Work::from(item.delivery)),
            Fate::Waited => {
                item.delivery.waited(tenant.settings.defer_after);
                again.push(Work::from(item.delivery));
            }
            Fate::Lost => tracing::info!(tenant = %tenant.name, "a delivery is no longer ours"),
        }
    }
    lane.queue.put_back(again);
    tenant.calls.after(done.has_parked, done.has_due, claims);
    let mut left: HashMap<Arc<str>, Vec<Receipt>> = HashMap::new();
    let mut late = Vec::new();
    for (receipt, (origin, n)) in decided {
        let in_unit = receipt.local().is_some_and(|(id, _)| done.settled.contains(&id));
        if !origin.settle.as_ref().is_some_and(|settle| settle.decided(n)) {
            continue;
        }
        if !in_unit {
            left.entry(origin.source.clone()).or_default().push(receipt);
        }
        if origin.is_begun && !done.ended.contains(&receipt) {
            late.push(origin);
        }
    }
    end_late(tenant, &late).await;
    for (name, receipts) in left {
        if let Some(source) = tenant.sources.get(&name) {
            source.settle(&receipts).await;
            reach(Place::AfterAck);
        }
    }
}
