//! What happens when: a pure function of the seed.

use std::{fmt, time::Duration};

use oncebox_tests::{
    feed::Chance,
    proxy::{Message, Plan, Then, Way},
};

/// Hosts, by number.
pub(crate) const HOSTS: [&str; 2] = ["a", "b"];

/// The end of a unit of work.
const COMMIT: Message = Message::Statement("SAVEPOINT ob_marks; COMMIT");
/// The last of an event's staged writes.
const WRITE: Message = Message::Statement("UPDATE counter");

/// Which of a host's ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Database,
    Broker,
}

/// Something that goes wrong, or is done by a person. A host is meant by its number, a tenant too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`, and started again.
    Kill(usize),
    /// The same for all hosts at once.
    KillAll,
    /// Ended in good order, and started again.
    Stop(usize),
    /// Hangs until it is mended.
    Freeze(usize),
    /// `kill -9` of the database server, and started again.
    KillDatabase,
    /// `kill -9` of the broker, and started again.
    KillBroker,
    /// The broker ended in good order, and started again.
    RestartBroker,
    /// The database server hangs for so long.
    FreezeDatabase(Duration),
    /// To connections.
    Disturb(Disturbance),
    /// At the next message of a kind.
    At(usize, Plan),
    /// Another version of a tenant's handler.
    Deploy(usize),
    /// Nothing is slow, closed, frozen or planned for a host any more.
    Mend(usize),
}

/// Something that happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// All connections of a host that go one way are cut.
    Cut(usize, To),
    /// They are half-open.
    HalfOpen(usize, To),
    /// They lose all that goes in one direction.
    Deaf(usize, To, Way),
    /// None can be made until it is mended.
    Close(usize, To),
    /// All is slow until it is mended.
    Slow(usize, Duration),
    /// All comes one byte at a time until it is mended.
    Slices(usize),
    /// The server ends all sessions of a tenant's user.
    KillSessions(usize),
    /// The broker closes a tenant's connections.
    CloseConnections(usize),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = |to: &To| match to {
            To::Database => "the database",
            To::Broker => "the broker",
        };
        match self {
            Self::Cut(host, way) => write!(f, "cut host {} from {}", HOSTS[*host], to(way)),
            Self::HalfOpen(host, way) => write!(f, "half-open connections of host {} to {}", HOSTS[*host], to(way)),
            Self::Deaf(host, way, lost) => write!(f, "lost between host {} and {}: {lost:?}", HOSTS[*host], to(way)),
            Self::Close(host, way) => write!(f, "host {} cannot reach {}", HOSTS[*host], to(way)),
            Self::Slow(host, time) => write!(f, "host {} is {time:?} away", HOSTS[*host]),
            Self::Slices(host) => write!(f, "single bytes for host {}", HOSTS[*host]),
            Self::KillSessions(tenant) => write!(f, "kill the sessions of tenant {tenant}"),
            Self::CloseConnections(tenant) => write!(f, "close the connections of tenant {tenant}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(host) => write!(f, "kill -9 host {}", HOSTS[*host]),
            Self::KillAll => write!(f, "kill -9 all hosts"),
            Self::Stop(host) => write!(f, "stop host {}", HOSTS[*host]),
            Self::Freeze(host) => write!(f, "freeze host {}", HOSTS[*host]),
            Self::KillDatabase => write!(f, "kill -9 MySQL"),
            Self::KillBroker => write!(f, "kill -9 RabbitMQ"),
            Self::RestartBroker => write!(f, "restart RabbitMQ"),
            Self::FreezeDatabase(time) => write!(f, "freeze MySQL for {time:?}"),
            Self::Disturb(disturbance) => disturbance.fmt(f),
            Self::At(host, Plan { at, then }) => write!(f, "host {}, at {at:?}: {then:?}", HOSTS[*host]),
            Self::Deploy(tenant) => write!(f, "deploy another version for tenant {tenant}"),
            Self::Mend(host) => write!(f, "mend host {}", HOSTS[*host]),
        }
    }
}

/// The next one comes after one to seven seconds.
const GAP_MS: (u64, u64) = (1_000, 6_000);
/// What lasts is mended by then.
const LASTS_MS: (u64, u64) = (2_000, 8_000);

/// What happens in so long a time, each with the time since the begin. Every kind comes once before one comes again.
pub(crate) fn schedule(seed: u64, time: Duration, tenants: usize) -> Vec<(Duration, Fault)> {
    let mut chance = Chance::new(seed);
    let mut steps: Vec<(Duration, Fault)> = Vec::new();
    let mut deck = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += between(&mut chance, GAP_MS);
        if at >= time {
            // What is mended comes in its place among the others.
            steps.sort_by_key(|(at, _)| *at);
            return steps;
        }
        if deck.is_empty() {
            deck = full_deck(&mut chance, tenants);
        }
        let drawn = deck.swap_remove(index(&mut chance, deck.len()));
        steps.push((at, drawn));
        if let Some(host) = lasting(drawn) {
            steps.push((at + between(&mut chance, LASTS_MS), Fault::Mend(host)));
        }
    }
}

fn between(chance: &mut Chance, (least, more): (u64, u64)) -> Duration {
    Duration::from_millis(least + chance.below(more))
}

fn index(chance: &mut Chance, below: usize) -> usize {
    usize::try_from(chance.below(below as u64)).unwrap_or(0)
}

/// Every kind of fault, the common ones more than once, for hosts and tenants that are drawn.
fn full_deck(chance: &mut Chance, tenants: usize) -> Vec<Fault> {
    let mut host = || index(chance, HOSTS.len());
    let hosts: [usize; 24] = std::array::from_fn(|_| host());
    let tenant: [usize; 4] = std::array::from_fn(|_| index(chance, tenants));
    let at = |host: usize, at: Message, then: Then| Fault::At(hosts[host], Plan { at, then });
    let disturb = Fault::Disturb;
    vec![
        Fault::Kill(0),
        Fault::Kill(1),
        Fault::Kill(hosts[0]),
        Fault::KillAll,
        Fault::Stop(hosts[1]),
        Fault::Freeze(hosts[2]),
        Fault::KillDatabase,
        Fault::KillBroker,
        Fault::RestartBroker,
        Fault::FreezeDatabase(between(chance, LASTS_MS)),
        disturb(Disturbance::Cut(hosts[3], To::Database)),
        disturb(Disturbance::Cut(hosts[4], To::Broker)),
        disturb(Disturbance::HalfOpen(hosts[5], To::Database)),
        disturb(Disturbance::HalfOpen(hosts[6], To::Broker)),
        disturb(Disturbance::Deaf(hosts[7], To::Database, Way::ToClient)),
        disturb(Disturbance::Deaf(hosts[8], To::Database, Way::ToServer)),
        disturb(Disturbance::Deaf(hosts[9], To::Broker, Way::ToClient)),
        disturb(Disturbance::Deaf(hosts[10], To::Broker, Way::ToServer)),
        disturb(Disturbance::Close(hosts[11], To::Database)),
        disturb(Disturbance::Close(hosts[12], To::Broker)),
        disturb(Disturbance::Slow(hosts[13], Duration::from_millis(10 + chance.below(90)))),
        disturb(Disturbance::Slices(hosts[14])),
        at(15, COMMIT, Then::CutBefore),
        at(16, COMMIT, Then::CutAfter),
        at(17, COMMIT, Then::Keep),
        at(18, WRITE, Then::CutAfter),
        at(19, Message::Ack, Then::Lose),
        at(20, Message::Ack, Then::CutAfter),
        at(21, Message::Delivery, Then::CutAfter),
        disturb(Disturbance::KillSessions(tenant[0])),
        disturb(Disturbance::CloseConnections(tenant[1])),
        Fault::Deploy(tenant[2]),
        Fault::Deploy(tenant[3]),
    ]
}

/// Whose it is, of what lasts until it is mended.
fn lasting(fault: Fault) -> Option<usize> {
    match fault {
        Fault::Freeze(host)
        | Fault::At(host, _)
        | Fault::Disturb(Disturbance::Close(host, _) | Disturbance::Slow(host, _) | Disturbance::Slices(host)) => {
            Some(host)
        }
        Fault::Kill(_)
        | Fault::KillAll
        | Fault::Stop(_)
        | Fault::KillDatabase
        | Fault::KillBroker
        | Fault::RestartBroker
        | Fault::FreezeDatabase(_)
        | Fault::Disturb(
            Disturbance::Cut(..)
            | Disturbance::HalfOpen(..)
            | Disturbance::Deaf(..)
            | Disturbance::KillSessions(_)
            | Disturbance::CloseConnections(_),
        )
        | Fault::Deploy(_)
        | Fault::Mend(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::discriminant;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_schedule_is_the_same_for_the_same_seed_and_another_for_another() {
        assert_eq!(schedule(7, HOUR, 3), schedule(7, HOUR, 3));
        assert_ne!(schedule(7, HOUR, 3), schedule(8, HOUR, 3));
        // A shorter one is its begin, but for what is mended after its end.
        let short = schedule(7, Duration::from_secs(60), 3);
        let is_own =
            |(at, fault): &&(Duration, Fault)| *at < Duration::from_secs(60) && !matches!(fault, Fault::Mend(_));
        let long = schedule(7, HOUR, 3);
        assert!(long.iter().filter(is_own).eq(short.iter().filter(is_own)));
    }

    #[test]
    fn each_deck_holds_every_kind_and_whatever_lasts_is_mended() {
        for seed in 0..20 {
            let steps = schedule(seed, HOUR, 3);
            assert!(steps.is_sorted_by_key(|(at, _)| *at));
            let own: Vec<Fault> =
                steps.iter().map(|(_, fault)| *fault).filter(|f| !matches!(f, Fault::Mend(_))).collect();
            let deck = full_deck(&mut Chance::new(seed), 3);
            for fault in &deck {
                let kind = |other: &Fault| match (other, fault) {
                    (Fault::Disturb(other), Fault::Disturb(one)) => discriminant(other) == discriminant(one),
                    (other, one) => discriminant(other) == discriminant(one),
                };
                assert!(own[..deck.len()].iter().any(kind), "seed {seed}: no {fault}");
            }
            for (at, fault) in &steps {
                let Some(host) = lasting(*fault) else { continue };
                let until = *at + Duration::from_secs(10);
                let is_mended =
                    |(then, other): &(Duration, Fault)| then > at && *then <= until && *other == Fault::Mend(host);
                assert!(steps.iter().any(is_mended), "seed {seed}: {fault} at {at:?}");
            }
        }
    }
}
