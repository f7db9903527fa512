//! `host/road.rs`: take, look up, settle. The run has no step of its own: how it ends is asked in the unit of work.

use crate::{
    database::small,
    fault::Fault,
    state::{At, BATCH, Delivery, Fate, Host, Item, Place, Ran, Stage, Token},
    world::World,
};

/// What may be taken: what is in memory, then what the broker would send, in this order.
fn at_hand(world: &World<'_>, host: usize) -> Vec<Delivery> {
    let state = &world.state;
    let mut pool: Vec<Delivery> = state.hosts[host].memory.into_iter().flatten().collect();
    let consumes = !world.scenario.is_ordered
        || world.scenario.has(Fault::TwoConsumers)
        || state.queue.consumer == Some(small(host));
    if consumes {
        let room = BATCH - pool.len();
        let ready = (0..world.scenario.messages.len()).filter(|at| state.queue.messages[*at] == Place::Ready);
        // The broker sends in the order of the queue; hosts that share one get any part of it.
        let ready = ready.take(if world.scenario.is_ordered || room == 0 { room } else { usize::MAX });
        let new = |at| Delivery { message: small(at), is_ours: true, at_risk: false, claim: None };
        pool.extend(ready.map(new));
    }
    pool
}

fn state_memory(world: &World<'_>, host: usize) -> usize {
    world.state.hosts[host].memory.iter().flatten().count()
}

fn key(world: &World<'_>, delivery: &Delivery) -> u8 {
    world.scenario.messages[usize::from(delivery.message)].key
}

/// Batches that `queue.rs::take` may give out: of one kind, no key twice, with an ordering key only from the front of its
/// line.
pub(crate) fn batches(world: &World<'_>, host: usize) -> Vec<Vec<Delivery>> {
    let pool = at_hand(world, host);
    let ordered = world.scenario.is_ordered;
    let mut all = Vec::new();
    for (at, first) in pool.iter().enumerate() {
        // A claim stands in no line.
        let is_front = !pool[..at].iter().any(|ahead| ahead.claim.is_none());
        let stands_behind = ordered && first.claim.is_none() && !is_front;
        let may_pass = world.scenario.has(Fault::AtRiskPassesItsPredecessor);
        if world.scenario.at_risk && is_new(world, first) && (!stands_behind || may_pass) {
            all.push(vec![Delivery { at_risk: true, ..*first }]);
        }
        if stands_behind {
            continue;
        }
        all.push(vec![*first]);
        if world.scenario.batch < 2 {
            continue;
        }
        for (later, second) in pool.iter().enumerate().skip(at + 1) {
            let is_next = !pool[at + 1..later].iter().any(|ahead| ahead.claim.is_none());
            // What is in memory stays there until it is decided: there is no room for two more beside it.
            let new = usize::from(is_new(world, first)) + usize::from(is_new(world, second));
            let fits = first.claim.is_some() == second.claim.is_some()
                && key(world, first) != key(world, second)
                && new + state_memory(world, host) <= BATCH;
            if fits && (is_next || !ordered || second.claim.is_some()) {
                all.push(vec![*first, *second]);
            }
        }
    }
    all
}

/// Whether the broker has still to send it.
fn is_new(world: &World<'_>, delivery: &Delivery) -> bool {
    delivery.is_ours
        && delivery.claim.is_none()
        && world.state.queue.messages[usize::from(delivery.message)] == Place::Ready
}

/// Takes one of these batches.
pub(crate) fn take(world: &mut World<'_>, host: usize, batches: &[Vec<Delivery>]) {
    let batch = batches[world.oracle.pick(batches.len())].clone();
    world.say(|| {
        let name = |delivery: &Delivery| match delivery.claim {
            Some(_) => format!("its claim of message {}", delivery.message + 1),
            None if delivery.at_risk => format!("message {}, at risk", delivery.message + 1),
            None => format!("message {}", delivery.message + 1),
        };
        let names: Vec<String> = batch.iter().map(name).collect();
        format!("host {} takes {}", host + 1, names.join(" and "))
    });
    // One that was taken before, on a channel that is gone, is another delivery than the one that comes again.
    let new: Vec<u8> = batch.iter().filter(|one| is_new(world, one)).map(|one| one.message).collect();
    for message in new {
        world.deliver(host, message);
    }
    let own = &mut world.state.hosts[host];
    let taken = |one: &Delivery| batch.iter().any(|taken| Delivery { at_risk: one.at_risk, ..*taken } == *one);
    let mut left = own.memory.into_iter().flatten().filter(|one| !taken(one));
    own.memory = std::array::from_fn(|_| left.next());
    let mut items = batch.into_iter().map(Item::new);
    own.batch = std::array::from_fn(|_| items.next());
    own.at = if own.has_claims() { At::Inbox } else { At::LookUp };
}

/// Look up: one query for the batch, a snapshot. An equal row is good enough for a duplicate, nothing else is concluded.
pub(crate) fn look_up(world: &mut World<'_>, host: usize) {
    world.say(|| format!("host {}: inbox_look_up", host + 1));
    let (scenario, tables) = (world.scenario, world.state.tables);
    let own = &mut world.state.hosts[host];
    for item in own.batch.iter_mut().flatten() {
        let message = scenario.messages[usize::from(item.delivery.message)];
        item.ran = match tables.inbox[usize::from(message.key)] {
            None => Ran::Runs,
            Some(row) if row.equals(message.fingerprint) || scenario.has(Fault::FingerprintNotCompared) => Ran::Known,
            Some(_) if scenario.has(Fault::ConflictFromSnapshot) => Ran::SawConflict,
            Some(_) => Ran::Runs,
        };
    }
    own.at = At::Inbox;
    if scenario.has(Fault::AckBeforeCommit) {
        let messages = decided(own, |_| true);
        world.settle(host, &messages);
    }
}

/// Messages of the host's channel whose item is so.
fn decided(host: &Host, is_so: impl Fn(&Item) -> bool) -> Vec<u8> {
    let ours = host.batch.iter().flatten().filter(|item| item.delivery.is_ours && item.delivery.claim.is_none());
    ours.filter(|item| is_so(item)).map(|item| item.delivery.message).collect()
}

/// Settle: after the commit, and only then. What is undecided goes back to the front of the lane's queue; a claim that was
/// left for later comes again by itself when its lease is over.
pub(crate) fn settle(world: &mut World<'_>, host: usize) {
    world.say(|| format!("host {}: settle", host + 1));
    let own = &mut world.state.hosts[host];
    let is_decided = |item: &Item| item.stage == Stage::Done && matches!(item.fate, Some(Fate::Decided(_)));
    let messages = decided(own, is_decided);
    let is_back = |item: &&Item| match item.stage {
        Stage::Later => item.delivery.claim.is_none(),
        Stage::Done | Stage::Unit | Stage::Todo => item.fate == Some(Fate::Again),
    };
    let batch = own.batch;
    let back = batch.iter().flatten().filter(is_back).map(|item| item.delivery);
    let mut memory = back.chain(own.memory.into_iter().flatten());
    own.memory = std::array::from_fn(|_| memory.next());
    own.batch = [None; BATCH];
    own.at = At::Idle;
    let has_claims = own.memory.iter().flatten().any(|delivery| delivery.claim.is_some());
    for tables in world.state.views() {
        tables.forget_unit(Token::of(host));
        if !has_claims {
            tables.forget_lease(Token::of(host));
        }
    }
    world.settle(host, &messages);
}
