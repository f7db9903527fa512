//! All that a unit of work writes beside the staged writes: marks of events that are not applied, held rows, attempts,
//! outgoing events and the books.

use std::collections::BTreeMap;

use oncebox_core::{
    blame::{Kept, Open, Start, Suspicion},
    config,
    failure::{Class, Failure},
    identify::{held_identity_of_key, held_identity_of_message},
    ids::BootId,
    life::{HeldChange, HeldState, InboxState, Step, Verdict},
    message::{Header, Message},
    retry::{Counted, Decision},
};

use super::{
    delivery::{Claim, Delivery, Target},
    handler::BoundDestination,
    lane::LaneContext,
    order::{OrderMarks, OrderRows},
    round::End,
    run::{Attempted, traceparent},
};
use crate::{
    failpoint::{Place, reach},
    plugin::{Outcome, StagedEvent},
    store::{
        DeploymentId, HandlerId, HeldMark, InboxMark, InboxRow, NewAttempt, NewHeld, NewLocal, OutboxRow, OutboxState,
        StoreError, UnitOfWork,
    },
};

/// Longest sentence kept of a failure, in bytes.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// What is to be written, in arrival order.
pub(super) struct Marks {
    /// The database's clock at the unit's begin.
    pub(super) now_us: i64,
    inbox: Vec<InboxMark>,
    held: Vec<(NewHeld, Vec<Run>)>,
    claims: Vec<(HeldMark, Vec<Run>)>,
    outbox: Vec<OutboxRow>,
    local: Vec<NewLocal>,
    tally: BTreeMap<(HandlerId, Verdict), u64>,
    order: OrderMarks,
}

/// A run that did not apply, before it is known to which row it belongs.
struct Run {
    generation: u32,
    /// The life that it was in; `None`: this one.
    boot: Option<BootId>,
    deployment: Option<DeploymentId>,
    started_us: i64,
    ended_us: i64,
    failure: Failure,
}

impl Marks {
    pub(super) fn new(now_us: i64, order: &OrderRows) -> Self {
        Self {
            now_us,
            inbox: Vec::new(),
            held: Vec::new(),
            claims: Vec::new(),
            outbox: Vec::new(),
            local: Vec::new(),
            tally: BTreeMap::new(),
            order: OrderMarks::of(order),
        }
    }

    /// One more of a verdict.
    pub(super) fn count(&mut self, handler: HandlerId, verdict: Verdict) {
        *self.tally.entry((handler, verdict)).or_default() += 1;
    }

    /// The counts of the unit.
    pub(super) fn tally(&self) -> Vec<(HandlerId, Verdict, u64)> {
        self.tally.iter().map(|((handler, verdict), n)| (*handler, *verdict, *n)).collect()
    }

    /// A message that has no key, for this handler or at all: a poison letter, unless the source ignores what no route
    /// takes.
    pub(super) fn keyless(&mut self, delivery: &Delivery, failure: &Failure) -> Verdict {
        let handler = delivery.handler_id();
        if failure.code == Failure::IGNORED {
            self.count(handler, Verdict::Skipped);
            return Verdict::Skipped;
        }
        let name = match &delivery.target {
            Target::Handler(handler, _) => Some(&*handler.name),
            Target::Nobody => None,
        };
        let identity = held_identity_of_message(&delivery.origin.source, name, &delivery.origin.hash);
        let held = NewHeld {
            identity,
            handler,
            state: HeldState::Poison,
            key: None,
            due_us: None,
            attempts: 0,
            attempts_short: 0,
            fingerprint: None,
            rule: None,
            deployment: None,
            ..held_base(delivery, failure)
        };
        self.held.push((held, Vec::new()));
        self.count(handler, Verdict::Dead);
        Verdict::Dead
    }

    /// A delivery whose key is there with another fingerprint.
    pub(super) fn conflict(&mut self, delivery: &Delivery, row: &InboxRow) {
        let Ok(identity) = &delivery.identity else { return };
        let message = format!(
            "key {} is {} with fingerprint {}, this event has {}",
            identity.key,
            row.state.name(),
            row.fingerprint,
            identity.fingerprint
        );
        let why = Failure::new(Class::Conflict, "conflict", message);
        let held = held(delivery, HeldState::Conflict, None, Counted::default(), &why);
        self.held.push((held, Vec::new()));
    }

    /// An event that owns its key: first delivered now, or claimed.
    pub(super) fn own(
        &mut self,
        delivery: &Delivery,
        end: &End,
        attempted: Option<&Attempted>,
        decision: Option<Decision>,
        step: Step,
    ) {
        let (Ok(identity), Target::Handler(handler, deployed)) = (&delivery.identity, &delivery.target) else { return };
        let ran = attempted.map(|_| deployed.id);
        let (counted, due_us) = match end {
            End::Behind(_) => (delivery.counted, None),
            End::Applied | End::Skipped { .. } | End::Failed(_) => self.counted(delivery, decision),
        };
        let (code, result) = match (end, attempted) {
            (End::Applied, Some(Attempted { outcome: Outcome::Applied { result, events, .. }, .. })) => {
                for event in events {
                    self.outgoing(delivery, event);
                }
                (None, result.clone())
            }
            (End::Applied, _) => (None, None),
            (End::Skipped { code }, _) => (Some(code.clone()), None),
            (End::Failed(failure) | End::Behind(failure), _) => (Some(failure.code.clone()), None),
        };
        // The row was inserted as applied at the first attempt: only that needs no mark.
        if delivery.claim.is_some() || step.inbox != InboxState::Applied || result.is_some() {
            self.inbox.push(InboxMark {
                handler: handler.id,
                key: identity.key.clone(),
                state: step.inbox,
                deployment: ran,
                attempts: counted.attempts,
                code,
                result,
            });
        }
        let failed = match end {
            End::Failed(failure) | End::Behind(failure) => Some(failure),
            End::Applied | End::Skipped { .. } => None,
        };
        let runs = runs(delivery, failed, attempted, ran);
        let open = delivery.suspicion.kept(match (failed, attempted) {
            (Some(Failure { class: Class::DeathAlone, .. }), _) => Kept::Dead,
            (_, None) => Kept::Unrun,
            (_, Some(_)) => Kept::Ran,
        });
        match (step.held, delivery.claim, failed) {
            // Nothing is held; or nothing was, and nothing has failed.
            (HeldChange::None, _, _) | (HeldChange::Resolve, None, _) | (HeldChange::Hold(_), None, None) => {}
            (HeldChange::Resolve, Some(claim), _) => {
                let mark = HeldMark { open, ..held_mark(claim, HeldState::Resolved, None, counted, ran) };
                self.order.resolve(delivery);
                self.claims.push((mark, runs));
            }
            (HeldChange::Hold(state), Some(claim), failed) => {
                let why = failed.map(cut).map(|failure| (failure.class, failure.code, failure.message));
                let mark = HeldMark { why, open, ..held_mark(claim, state, due_us, counted, ran) };
                self.claims.push((mark, runs));
            }
            (HeldChange::Hold(state), None, Some(failure)) => {
                let place = self.order.hold(delivery);
                let base = held(delivery, state, due_us, counted, failure);
                self.held.push((NewHeld { deployment: ran, place, open, ..base }, runs));
            }
        }
    }

    /// The counters after this attempt, and when the next one is due.
    fn counted(&self, delivery: &Delivery, decision: Option<Decision>) -> (Counted, Option<i64>) {
        match decision {
            Some(Decision::Park { delay, counted }) => {
                let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
                (counted, Some(self.now_us.saturating_add(delay)))
            }
            Some(Decision::Die { counted }) => (counted, None),
            Some(Decision::Again) | None => {
                (Counted { attempts: delivery.counted.attempts.saturating_add(1), ..delivery.counted }, None)
            }
        }
    }

    fn outgoing(&mut self, delivery: &Delivery, event: &StagedEvent) {
        let (Ok(identity), Target::Handler(handler, deployed)) = (&delivery.identity, &delivery.target) else { return };
        let Some(BoundDestination { name, kind, source_uri }) = deployed.destinations.get(&event.destination) else {
            return;
        };
        let due_us = self.now_us.saturating_add_unsigned(event.delay_ms.unwrap_or(0).saturating_mul(1_000));
        let traceparent = traceparent(delivery);
        let state = match kind {
            config::Destination::Local { source } => {
                self.local.push(NewLocal {
                    source: source.clone(),
                    message: local_message(source_uri, event, traceparent.as_deref(), self.now_us),
                    hops: delivery.origin.hops.saturating_add(1),
                    due_us,
                });
                OutboxState::Confirmed
            }
            config::Destination::Table => OutboxState::Kept,
        };
        self.outbox.push(OutboxRow {
            event_id: event.event_id.clone(),
            destination: name.clone(),
            state,
            handler: handler.id,
            key: identity.key.clone(),
            generation: delivery.claim.map_or(0, |claim| claim.generation),
            position: event.position,
            ordering_key: event.ordering_key.clone(),
            event_type: event.event_type.clone(),
            subject: event.subject.clone(),
            content_type: event.content_type.clone(),
            schema: event.schema.clone(),
            attributes: event.attributes.clone(),
            headers: event.headers.clone(),
            payload: event.payload.clone(),
            traceparent,
            due_us,
        });
    }

    /// Whether something is parked.
    pub(super) fn has_parked(&self) -> bool {
        let parked = |state: HeldState| state == HeldState::Parked;
        self.held.iter().any(|(row, _)| parked(row.state)) || self.claims.iter().any(|(mark, _)| parked(mark.state))
    }

    /// Whether something that was parked was made due.
    pub(super) fn has_due(&self) -> bool {
        self.order.has_due()
    }

    /// Writes it all: outgoing events, marks, held rows, attempts, the books.
    pub(super) async fn write(&self, unit: &mut dyn UnitOfWork, lane: &LaneContext) -> Result<(), StoreError> {
        unit.outbox_insert(&self.outbox).await?;
        unit.local_insert(&self.local).await?;
        unit.inbox_mark(&self.inbox).await?;
        let rows: Vec<NewHeld> = self.held.iter().map(|(row, _)| row.clone()).collect();
        let ids = unit.held_insert(&rows).await?;
        if !rows.is_empty() {
            reach(Place::HeldWritten);
        }
        let marks: Vec<HeldMark> = self.claims.iter().map(|(mark, _)| mark.clone()).collect();
        unit.held_mark(&marks).await?;
        if !marks.is_empty() {
            reach(Place::ClaimMarked);
        }
        let new = self.held.iter().zip(ids).map(|((_, runs), held)| (held, runs));
        let claimed = self.claims.iter().map(|(mark, runs)| (mark.held, runs));
        let attempts: Vec<NewAttempt> = new
            .chain(claimed)
            .flat_map(|(held, runs)| runs.iter().map(move |run| (held, run)))
            .map(|(held, run)| NewAttempt {
                held,
                generation: run.generation,
                boot: run.boot.unwrap_or(lane.tenant.boot),
                deployment: run.deployment,
                started_us: run.started_us,
                ended_us: run.ended_us,
                class: run.failure.class,
                code: run.failure.code.clone(),
                message: run.failure.message.clone(),
                backtrace: run.failure.backtrace.clone(),
            })
            .collect();
        unit.attempt_insert(&attempts).await?;
        self.order.write(unit).await?;
        unit.tally_add(lane.tenant.boot, lane.number, &self.tally()).await
    }
}

/// A row for an event that is held for the first time.
fn held(delivery: &Delivery, state: HeldState, due_us: Option<i64>, counted: Counted, why: &Failure) -> NewHeld {
    let base = held_base(delivery, why);
    let (Ok(identity), Target::Handler(handler, deployed)) = (&delivery.identity, &delivery.target) else {
        return base;
    };
    NewHeld {
        identity: held_identity_of_key(&handler.name, &identity.key, &identity.fingerprint),
        handler: handler.id,
        state,
        key: Some(identity.key.clone()),
        due_us,
        attempts: counted.attempts,
        attempts_short: counted.attempts_short,
        fingerprint: Some(identity.fingerprint),
        rule: Some(deployed.rule_id),
        ..base
    }
}

fn held_mark(
    claim: Claim,
    state: HeldState,
    due_us: Option<i64>,
    counted: Counted,
    deployment: Option<DeploymentId>,
) -> HeldMark {
    HeldMark {
        held: claim.held,
        token: claim.token,
        state,
        due_us,
        attempts: counted.attempts,
        attempts_short: counted.attempts_short,
        why: None,
        deployment,
        open: Open::default(),
    }
}

/// The runs that did not apply: this one, or those that ended their processes.
fn runs(
    delivery: &Delivery,
    failed: Option<&Failure>,
    attempted: Option<&Attempted>,
    deployment: Option<DeploymentId>,
) -> Vec<Run> {
    let generation = delivery.claim.map_or(0, |claim| claim.generation);
    let Some(failure) = failed else { return Vec::new() };
    if failure.class == Class::DeathAlone {
        let death = |start: &Start| Run {
            generation,
            boot: Some(start.boot),
            deployment: None,
            started_us: start.at_us,
            ended_us: start.at_us,
            failure: Suspicion::death(start),
        };
        return delivery.suspicion.deaths.0.iter().map(death).collect();
    }
    let run = attempted.map(|Attempted { started_us, ended_us, .. }| Run {
        generation,
        boot: None,
        deployment,
        started_us: *started_us,
        ended_us: *ended_us,
        failure: cut(failure),
    });
    run.into_iter().collect()
}

/// What every held row says of its message; identity, state and counters are the caller's.
fn held_base(delivery: &Delivery, why: &Failure) -> NewHeld {
    let envelope = delivery.origin.envelope.as_ref();
    let why = cut(why);
    NewHeld {
        identity: oncebox_core::ids::HeldIdentity([0; 32]),
        handler: HandlerId::NONE,
        state: HeldState::Poison,
        key: None,
        due_us: None,
        attempts: 0,
        attempts_short: 0,
        class: why.class,
        code: why.code,
        message: why.message,
        fingerprint: None,
        rule: None,
        deployment: None,
        source: delivery.origin.source.clone(),
        hops: delivery.origin.hops,
        event_id: envelope.map(|envelope| envelope.id.clone()),
        event_type: envelope.map(|envelope| envelope.event_type.clone()),
        event_time_us: envelope.and_then(|envelope| envelope.time_us),
        received_us: delivery.origin.received_us,
        body: delivery.origin.message.clone(),
        place: None,
        open: Open::default(),
    }
}

fn cut(failure: &Failure) -> Failure {
    let mut failure = failure.clone();
    let mut end = failure.message.len().min(MESSAGE_BYTES_MAX);
    while !failure.message.is_char_boundary(end) {
        end -= 1;
    }
    failure.message.truncate(end);
    failure
}

/// An outgoing event as a local source gets it: CloudEvents in binary mode.
fn local_message(source_uri: &str, event: &StagedEvent, traceparent: Option<&str>, now_us: i64) -> Message {
    let mut headers = vec![
        attribute("specversion", "1.0"),
        attribute("id", &event.event_id),
        attribute("source", source_uri),
        attribute("type", &event.event_type),
    ];
    let time = jiff::Timestamp::from_microsecond(now_us).map(|time| time.to_string());
    headers.extend(time.ok().map(|time| attribute("time", &time)));
    headers.extend(event.subject.as_deref().map(|subject| attribute("subject", subject)));
    headers.extend(event.schema.as_deref().map(|schema| attribute("dataschema", schema)));
    headers.extend(event.headers.iter().cloned());
    if let Some(traceparent) = traceparent
        && !headers.iter().any(|header| header.name.eq_ignore_ascii_case("traceparent"))
    {
        headers.push(Header::new("traceparent", traceparent));
    }
    Message {
        body: event.payload.clone(),
        headers,
        content_type: event.content_type.clone(),
        properties: Vec::new(),
        position: Vec::new(),
    }
}

/// Percent-encoded as the CloudEvents HTTP binding asks (section 3.1.3.2): space, quote, percent and all that is not
/// printable ASCII.
fn attribute(name: &str, value: &str) -> Header {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if (0x21..=0x7e).contains(&byte) && byte != b'"' && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    Header::new(format!("ce-{name}"), encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_local_event_are_percent_encoded_as_cloudevents_asks() {
        assert_eq!(attribute("subject", "a b\"%\u{e9}"), Header::new("ce-subject", "a%20b%22%25%C3%A9"));
    }
}
