//! What may happen next.

use crate::{
    claims,
    database::{Due, Orphan, Undone, small},
    fault::Fault,
    lane, person, road,
    state::{At, Host, Place},
    unit_of_work,
    world::World,
};

/// One thing that may happen; what the world decides in it is asked of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// The next step of a lane.
    Step(usize),
    /// A lane's wait for a lock is over its time.
    LockWait(usize),
    /// A lane takes a batch.
    Take(usize),
    /// A host claims parked rows.
    Claim(usize),
    /// A host becomes the active consumer.
    Consume(usize),
    /// What is decided behind an old gap is acked singly.
    AckGap(usize),
    /// A lease is over.
    LeaseEnds(u8),
    /// A session without a host is ended by the server.
    OrphanEnds(usize),
    /// A COMMIT that was on its way arrives.
    LateCommit(usize),
    /// kill -9.
    Crash(usize),
    /// The connection to the database is lost.
    SessionLost(usize),
    /// The connection to the broker is lost.
    ChannelLost(usize),
    /// A person decides a held row.
    Person(u8),
    /// The purge mark is moved.
    PurgeMark,
    /// The purge selects a key.
    PurgeSelect,
    /// The purge deletes a key.
    PurgeDelete,
}

impl Action {
    /// Whether it happens by itself, sooner or later. The rest may never happen.
    pub(crate) fn is_progress(self) -> bool {
        match self {
            Self::Step(_)
            | Self::LockWait(_)
            | Self::Take(_)
            | Self::Claim(_)
            | Self::Consume(_)
            | Self::AckGap(_)
            | Self::LeaseEnds(_)
            | Self::OrphanEnds(_)
            | Self::LateCommit(_) => true,
            Self::Crash(_)
            | Self::SessionLost(_)
            | Self::ChannelLost(_)
            | Self::Person(_)
            | Self::PurgeMark
            | Self::PurgeSelect
            | Self::PurgeDelete => false,
        }
    }

    /// Which kind it is, whoever does it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Step(_) => "step",
            Self::LockWait(_) => "lock wait",
            Self::Take(_) => "take",
            Self::Claim(_) => "claim",
            Self::Consume(_) => "consume",
            Self::AckGap(_) => "ack behind a gap",
            Self::LeaseEnds(_) => "lease ends",
            Self::OrphanEnds(_) => "orphan ends",
            Self::LateCommit(_) => "late commit",
            Self::Crash(_) => "crash",
            Self::SessionLost(_) => "session lost",
            Self::ChannelLost(_) => "channel lost",
            Self::Person(_) => "person",
            Self::PurgeMark => "purge mark",
            Self::PurgeSelect => "purge select",
            Self::PurgeDelete => "purge delete",
        }
    }
}

/// All that may happen now.
pub(crate) fn possible(world: &World<'_>) -> Vec<Action> {
    let mut all = Vec::new();
    let state = &world.state;
    let due = claims::due(world);
    for host in 0..world.scenario.hosts {
        let own = &state.hosts[host];
        let waits = own.session.and_then(|session| session.waits_for);
        let is_blocked = waits.is_some_and(|row| world.is_locked(row, Some(host)));
        if own.at == At::Idle {
            if !road::batches(world, host).is_empty() {
                all.push(Action::Take(host));
            }
            if claims::has_room(own) && !due.is_empty() {
                all.push(Action::Claim(host));
            }
        } else {
            all.push(if is_blocked { Action::LockWait(host) } else { Action::Step(host) });
        }
        if world.scenario.is_ordered && state.queue.consumer.is_none() {
            all.push(Action::Consume(host));
        }
        if world.has_gap(host) {
            all.push(Action::AckGap(host));
        }
        possible_faults(world, host, own, &mut all);
    }
    let leased = state.tables.held.iter().enumerate().filter(|(_, row)| row.is_some_and(|row| row.due == Due::Leased));
    let is_free = |at: &u8| !world.is_locked(crate::database::Row::Held(*at), None);
    all.extend(leased.map(|(at, _)| small(at)).filter(is_free).map(Action::LeaseEnds));
    for (at, orphan) in state.orphans.iter().enumerate().filter_map(|(at, orphan)| Some((at, (*orphan)?))) {
        if orphan.commits {
            all.push(Action::LateCommit(at));
        }
        if !world.scenario.has(Fault::OrphanNeverEnds) {
            all.push(Action::OrphanEnds(at));
        }
    }
    if state.budget.person > 0 {
        let identities = (0..world.scenario.identities().len()).map(small);
        all.extend(identities.filter(|at| !person::acts(world, *at).is_empty()).map(Action::Person));
    }
    if state.budget.purge > 0 {
        all.push(Action::PurgeMark);
    }
    if !person::purge_keys(world, false).is_empty() {
        all.push(Action::PurgeSelect);
    }
    if !person::purge_keys(world, true).is_empty() {
        all.push(Action::PurgeDelete);
    }
    all
}

fn possible_faults(world: &World<'_>, host: usize, own: &Host, all: &mut Vec<Action>) {
    let budget = world.state.budget;
    let has_channel = world.state.queue.messages.contains(&Place::Unacked { host: small(host) });
    let has_memory = own.at != At::Idle || own.memory.iter().any(Option::is_some);
    if budget.crashes > 0 && (has_memory || has_channel) {
        all.push(Action::Crash(host));
    }
    if budget.lost > 0 && own.session.is_some() {
        all.push(Action::SessionLost(host));
    }
    if budget.broker > 0 && has_channel {
        all.push(Action::ChannelLost(host));
    }
}

/// Does it.
pub(crate) fn act(world: &mut World<'_>, action: Action) {
    match action {
        Action::Step(host) => lane::step(world, host),
        Action::LockWait(host) => lane::lock_wait(world, host),
        Action::Take(host) => road::take(world, host, &road::batches(world, host)),
        Action::Claim(host) => {
            let sets = claims::sets(&claims::due(world), world.scenario);
            claims::claim(world, host, &sets);
        }
        Action::Consume(host) => {
            world.say(|| format!("host {} becomes the active consumer", host + 1));
            world.state.queue.consumer = Some(small(host));
        }
        Action::AckGap(host) => {
            world.say(|| format!("host {}: a gap is old", host + 1));
            world.gap_is_old(host);
        }
        Action::LeaseEnds(at) => {
            world.say(|| format!("the lease of held row {} is over", at + 1));
            claims::lease_ends(&mut world.state, at);
        }
        Action::OrphanEnds(at) => orphan_ends(world, at),
        Action::LateCommit(at) => {
            if let Some(Orphan { session, .. }) = world.state.orphans[at].take() {
                world.say(|| "a COMMIT that was on its way is done".to_owned());
                unit_of_work::commit_session(world, &session);
            }
        }
        Action::Crash(host) => crash(world, host),
        Action::SessionLost(host) => session_lost(world, host),
        Action::ChannelLost(host) => {
            world.say(|| format!("host {} loses its connection to the broker", host + 1));
            world.state.budget.broker -= 1;
            let own = &mut world.state.hosts[host];
            own.batch.iter_mut().flatten().for_each(|item| item.delivery.is_ours = false);
            own.memory.iter_mut().flatten().for_each(|delivery| delivery.is_ours = false);
            world.channel_ends(host);
        }
        Action::Person(at) => {
            world.state.budget.person -= 1;
            let acts = person::acts(world, at);
            let act = world.oracle.one_of(&acts);
            person::decide(world, at, act);
        }
        Action::PurgeMark => {
            world.state.budget.purge -= 1;
            person::purge_mark(world);
        }
        Action::PurgeSelect => {
            let keys = person::purge_keys(world, false);
            let key = world.oracle.one_of(&keys);
            person::purge_select(world, key);
        }
        Action::PurgeDelete => {
            let keys = person::purge_keys(world, true);
            let key = world.oracle.one_of(&keys);
            person::purge_delete(world, key);
        }
    }
}

fn orphan_ends(world: &mut World<'_>, at: usize) {
    if let Some(Orphan { session, .. }) = world.state.orphans[at].take() {
        world.say(|| "the server ends a session without a host: ROLLBACK".to_owned());
        world.undo(&session, Undone::ByForce);
    }
}

/// All that the host had in memory is gone; its session stays on the server until that notices.
fn crash(world: &mut World<'_>, host: usize) {
    world.state.budget.crashes -= 1;
    let commits = world.state.hosts[host].at == At::Commit && world.oracle.pick(2) == 1;
    world.say(|| format!("host {} is killed{}", host + 1, if commits { ", its COMMIT on the way" } else { "" }));
    lane::orphan(world, host, commits);
    world.channel_ends(host);
    world.state.hosts[host] = Host::IDLE;
    let token = crate::state::Token::of(host);
    for tables in world.state.views() {
        tables.forget_unit(token);
        tables.forget_lease(token);
    }
}

/// At COMMIT its answer is lost: done, not done, or still on its way.
fn session_lost(world: &mut World<'_>, host: usize) {
    world.state.budget.lost -= 1;
    let at_commit = world.state.hosts[host].at == At::Commit;
    match if at_commit { world.oracle.pick(3) } else { 0 } {
        1 => {
            world.say(|| format!("host {}: COMMIT is done, its answer is lost", host + 1));
            if let Some(session) = world.state.hosts[host].session.take() {
                unit_of_work::commit_session(world, &session);
            }
            lane::away(world, host, false);
        }
        2 => {
            world.say(|| format!("host {}: its COMMIT is on the way, the connection is lost", host + 1));
            lane::away(world, host, true);
        }
        _ => {
            world.say(|| format!("host {} loses its connection to the database", host + 1));
            lane::away(world, host, false);
        }
    }
}
