//! The run: one attempt of each event of a batch, in a fresh instance, before the unit of work is opened.

use std::{collections::HashSet, sync::Arc, time::Duration};

use oncebox_core::failure::{Class, Failure};

use super::{
    alone::{self, Turn},
    delivery::{Delivery, Target},
    gate::Alone,
    handler::{Deployed, Handler},
    lane::LaneContext,
    link::Link,
    queue::{LaneQueue, Waiting},
    running::Running,
};
use crate::{
    clock,
    plugin::{Attempt, Context, Event, Outcome, QueryPort},
    store::InboxRow,
};

/// What waits for a lane: a delivery, and in a slow lane perhaps the run that has left its batch.
pub struct Work {
    /// The delivery.
    pub delivery: Delivery,
    /// Its run, if it has begun.
    pub running: Option<Running>,
}

impl Waiting for Work {
    fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    fn has_begun(&self) -> bool {
        self.running.is_some()
    }
}

impl From<Delivery> for Work {
    fn from(delivery: Delivery) -> Self {
        Self { delivery, running: None }
    }
}

/// So many times `slow_run_ms` a batch waits for a run by the clock, whoever else is running.
const WAIT_FACTOR: u32 = 10;

/// What the unit of work has to do with a delivery.
pub enum Ran {
    /// It was not understood or has no route: nothing runs.
    Refused(Failure),
    /// It is put aside without a run.
    Unrun(Failure),
    /// The look-up found its key, with an equal fingerprint: nothing runs.
    Known(InboxRow),
    /// It runs inside the unit of work.
    Inside,
    /// It has run.
    Over(Attempted),
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempted {
    /// How it ended.
    pub outcome: Outcome,
    /// When it began, microseconds since 1970.
    pub started_us: i64,
    /// When it ended.
    pub ended_us: i64,
}

/// A delivery on its way into the unit of work.
pub struct Item {
    /// The delivery.
    pub delivery: Delivery,
    /// What is to be done with it.
    pub ran: Ran,
}

/// A batch after the look-up: what is known already, and what is to be run.
pub(super) struct LookedUp {
    /// The work.
    pub work: Work,
    /// Its key's row, with an equal fingerprint.
    pub known: Option<InboxRow>,
}

/// Runs a batch, event by event. In a normal lane a run that is not over in time goes on in a slow lane. A suspect is
/// alone in its batch; its pass is to be kept until it is decided.
pub(super) async fn run(lane: &LaneContext, link: &mut Link, batch: Vec<LookedUp>) -> (Vec<Item>, Option<Alone>) {
    let began = clock::monotonic();
    let mut items = Vec::with_capacity(batch.len());
    // Lines of which one has left the batch: those behind it wait for it.
    let (mut left, mut behind, mut pass) = (HashSet::new(), Vec::new(), None);
    let mut rest = batch.into_iter();
    while let Some(LookedUp { work, known }) = rest.next() {
        if work.delivery.line().is_some_and(|line| left.contains(&line)) {
            behind.push(work);
            continue;
        }
        let Work { delivery, running } = work;
        let ran = match (&delivery.identity, known, &delivery.unrun, &delivery.target) {
            (Err(failure), ..) => Ran::Refused(failure.clone()),
            (Ok(_), Some(row), ..) => Ran::Known(row),
            (Ok(_), None, Some(failure), _) => Ran::Unrun(failure.clone()),
            (Ok(_), None, None, Target::Handler(handler, _)) if running.is_none() && handler.blocked().is_some() => {
                Ran::Unrun(blocked(handler))
            }
            (Ok(_), None, None, Target::Handler(handler, deployed)) if delivery.is_suspect() => {
                match alone::run(lane, link, &delivery, handler, deployed).await {
                    Turn::Taken(alone, ran) => {
                        pass = Some(alone);
                        ran
                    }
                    Turn::Later => {
                        lane.try_later(vec![Work::from(delivery)]);
                        continue;
                    }
                    Turn::Lost => continue,
                }
            }
            (Ok(_), None, None, Target::Handler(_, deployed)) if deployed.has_queries() => Ran::Inside,
            // It has become slow meanwhile: the others of this batch shall not wait for it once more.
            (Ok(_), None, None, Target::Handler(handler, _)) if !lane.is_slow() && handler.is_slow() => {
                left.extend(delivery.line());
                lane.tenant.spread(delivery);
                continue;
            }
            (Ok(_), None, None, Target::Handler(handler, deployed)) => {
                let handler = handler.clone();
                let running = match running {
                    Some(running) => running,
                    None => {
                        let pass = lane.tenant.gate.beside().await;
                        let running = Running::start(lane, &handler, deployed, &delivery, Some(pass));
                        if lane.is_slow() { running.go_on() } else { running }
                    }
                };
                match finish(lane, &handler, running).await {
                    Finished::Over(attempted) => Ran::Over(attempted),
                    Finished::Left(running) => {
                        left.extend(delivery.line());
                        lane.slow_queue().push(Work { delivery, running: Some(running) });
                        continue;
                    }
                }
            }
            (Ok(_), None, None, Target::Nobody) => {
                Ran::Refused(Failure::new(Class::NoRoute, "no-route", "no route takes it"))
            }
        };
        items.push(Item { delivery, ran });
        if lane.is_slow() && began.elapsed() > lane.tenant.settings.unit_time_max {
            behind.extend(rest.map(|looked_up| looked_up.work));
            break;
        }
    }
    lane.queue.put_back(behind);
    (items, pass)
}

/// Runs an event to its end, however long it takes: its caller has seen to it that nothing else runs.
pub(super) async fn whole(
    lane: &LaneContext,
    handler: &Arc<Handler>,
    deployed: &Deployed,
    delivery: &Delivery,
) -> Attempted {
    let mut running = Running::start(lane, handler, deployed, delivery, None);
    let outcome = running.over().await;
    Attempted { outcome, started_us: running.started_us(), ended_us: clock::now_us() }
}

fn blocked(handler: &Handler) -> Failure {
    let reason = handler.blocked().unwrap_or_default();
    Failure::new(Class::Blocked, "handler-blocked", format!("handler `{}` is blocked: {reason}", handler.name))
}

enum Finished {
    Over(Attempted),
    Left(Running),
}

async fn finish(lane: &LaneContext, handler: &Handler, mut running: Running) -> Finished {
    let slow_run = lane.tenant.settings.slow_run;
    let outcome = if lane.is_slow() {
        let outcome = running.over().await;
        if !running.is_slow(slow_run) {
            handler.was_quick();
        }
        outcome
    } else {
        // The run is only borrowed: when the time is over it goes on, and nothing of it is dropped.
        match tokio::time::timeout(slow_run * WAIT_FACTOR, running.unless_slow(slow_run)).await {
            Ok(Some(outcome)) => outcome,
            // Too long by the clock alone: it waits for a processor or an instance, and that may be the others' fault.
            Ok(None) | Err(_) => return Finished::Left(running.go_on()),
        }
    };
    Finished::Over(Attempted { outcome, started_us: running.started_us(), ended_us: clock::now_us() })
}

/// All that a run may see.
pub(super) fn attempt(
    lane: &LaneContext,
    handler: &Handler,
    deployed: &Deployed,
    delivery: &Delivery,
    queries: Option<QueryPort>,
) -> Attempt {
    let traceparent = traceparent(delivery);
    Attempt {
        event: Arc::new(event(delivery)),
        limits: deployed.limits.clone(),
        config: deployed.config.clone(),
        context: Context {
            now_us: u64::try_from(delivery.origin.received_us).unwrap_or(0),
            attempt: delivery.counted.attempts.saturating_add(1),
            generation: delivery.claim.map_or(0, |claim| claim.generation),
            tenant: lane.tenant.name.to_string(),
            handler: handler.name.to_string(),
            traceparent,
            random_key: lane.tenant.secret,
        },
        queries,
    }
}

/// The message's own trace context.
pub(super) fn traceparent(delivery: &Delivery) -> Option<String> {
    let value = delivery.origin.message.header("traceparent")?;
    std::str::from_utf8(value).ok().filter(|text| text.len() <= 64).map(str::to_owned)
}

fn event(delivery: &Delivery) -> Event {
    let (Some(envelope), Ok(identity)) = (&delivery.origin.envelope, &delivery.identity) else {
        return Event::default();
    };
    Event {
        id: envelope.id.clone(),
        event_type: envelope.event_type.clone(),
        ce_source: envelope.ce_source.clone(),
        subject: envelope.subject.clone(),
        time: envelope.time.clone(),
        business_key: identity.key.as_bytes().to_vec(),
        ordering_key: identity.ordering_key.clone(),
        content_type: envelope.content_type.clone(),
        schema: envelope.schema.clone(),
        attributes: envelope.attributes.clone(),
        headers: delivery.origin.message.headers.clone(),
        payload: envelope.payload(&delivery.origin.message).into(),
    }
}

/// The wait before a delivery that found no free instance is tried again.
pub(super) const NO_INSTANCE_WAIT: Duration = Duration::from_millis(20);

/// Takes out what ran into an infrastructure fault, and what stands behind it in its line: it stays undecided and waits
/// in its queue for another try.
pub(super) async fn put_back_undecided(queue: &LaneQueue<Work>, items: Vec<Item>) -> Vec<Item> {
    let mut lines = HashSet::new();
    let (again, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| {
        let line = item.delivery.line();
        let is_again = line.is_some_and(|line| lines.contains(&line))
            || match &item.ran {
                Ran::Over(Attempted { outcome: Outcome::Failed(failure), .. }) => {
                    failure.class == Class::Infrastructure
                }
                Ran::Over(_) | Ran::Refused(_) | Ran::Unrun(_) | Ran::Known(_) | Ran::Inside => false,
            };
        if is_again {
            lines.extend(line);
        }
        is_again
    });
    if !again.is_empty() {
        if rest.is_empty() {
            tokio::time::sleep(NO_INSTANCE_WAIT).await;
        }
        queue.put_back(again.into_iter().map(|item| Work::from(item.delivery)).collect());
    }
    rest
}
