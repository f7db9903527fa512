//! Blame: which event has ended its host's process, and which was only beside it.
//!
//! A start is written down before anything is done with a message that was delivered before, and with each claim; its
//! end comes in the unit of work that decides it. A start without an end, of a life that is over without having said
//! so, makes a suspect. Suspects run alone, which is written down as well: such a start without an end is a death.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    failure::{Class, Failure},
    ids::BootId,
};

/// Bytes of one start in a column.
pub const START_BYTES: usize = 24;
/// Starts that a column keeps, the newest ones.
pub const STARTS_MAX: usize = 16;
/// Most deaths that a configuration may ask for: well below what a column keeps.
pub const DEATHS_MAX: u32 = 10;

/// One beginning: in which life of a host, and when by that host's clock (microseconds since 1970).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// The life.
    pub boot: BootId,
    /// When.
    pub at_us: i64,
}

impl Start {
    /// As a column keeps it: the boot, then the time, big-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; START_BYTES] {
        let mut bytes = [0; START_BYTES];
        let (boot, at) = bytes.split_at_mut(16);
        boot.copy_from_slice(self.boot.as_bytes());
        at.copy_from_slice(&self.at_us.to_be_bytes());
        bytes
    }
}

/// Starts without an end, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts(pub Vec<Start>);

impl Starts {
    /// Reads a column; `None`: it holds no whole number of starts.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let starts = bytes.chunks(START_BYTES).map(|chunk| {
            let (boot, at) = chunk.split_at_checked(16)?;
            Some(Start { boot: BootId::from_slice(boot)?, at_us: i64::from_be_bytes(at.try_into().ok()?) })
        });
        starts.collect::<Option<_>>().map(Self)
    }

    /// As a column keeps them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kept = self.0.len().saturating_sub(STARTS_MAX);
        self.0.iter().skip(kept).flat_map(|start| start.to_bytes()).collect()
    }

    /// Those whose lives have crashed, one a life: its first.
    #[must_use]
    pub fn crashed(&self, own: BootId, lives: &BTreeMap<BootId, Life>, boot_timeout: Duration) -> Self {
        let mut crashed: Vec<Start> = Vec::new();
        for start in &self.0 {
            let is_known = crashed.iter().any(|known| known.boot == start.boot);
            if start.boot != own && !is_known && end(lives.get(&start.boot), boot_timeout) == End::Crashed {
                crashed.push(*start);
            }
        }
        Self(crashed)
    }
}

/// What the tables say of a host's life, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// It has ended in good order and said so.
    pub has_ended: bool,
    /// A host of the same name has begun a newer one.
    pub has_successor: bool,
    /// Time since its last heartbeat.
    pub unseen: Duration,
}

/// How a life has ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It has not.
    None,
    /// In good order: whatever was left undecided did no harm.
    InOrder,
    /// Without a word.
    Crashed,
}

/// Decides whether a life is over. `None`: the tables do not know it any more; only what is long over is forgotten.
#[must_use]
pub fn end(life: Option<&Life>, boot_timeout: Duration) -> End {
    match life {
        None => End::Crashed,
        Some(Life { has_ended: true, .. }) => End::InOrder,
        Some(Life { has_successor: true, .. }) => End::Crashed,
        Some(Life { unseen, .. }) if *unseen >= boot_timeout => End::Crashed,
        Some(_) => End::None,
    }
}

/// Starts of an event that have no end: what the tables keep of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Open {
    /// Beside others.
    pub beside: Starts,
    /// Alone.
    pub alone: Starts,
}

impl Open {
    /// What speaks against the event, as far as lives are known to have crashed; `own` is this process's life.
    #[must_use]
    pub fn suspicion(&self, own: BootId, lives: &BTreeMap<BootId, Life>, boot_timeout: Duration) -> Suspicion {
        let others = |starts: &Starts| Starts(starts.0.iter().copied().filter(|start| start.boot != own).collect());
        Suspicion {
            starts: self.beside.crashed(own, lives, boot_timeout),
            deaths: self.alone.crashed(own, lives, boot_timeout),
            open: Self { beside: others(&self.beside), alone: others(&self.alone) },
        }
    }
}

/// What speaks against an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspicion {
    /// Starts beside others, of lives that have crashed.
    pub starts: Starts,
    /// The same alone: each of them is a death.
    pub deaths: Starts,
    /// All that has no end, but for this life's own: of a host that has only just died nobody knows yet.
    pub open: Open,
}

/// What is done with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It runs as any other.
    Free,
    /// It runs alone.
    Suspect,
    /// It is given up.
    Dead,
}

impl Suspicion {
    /// Decides what is done with the event; `deaths_max` is from its handler's configuration.
    #[must_use]
    pub fn judgement(&self, deaths_max: u32) -> Judgement {
        let deaths = u32::try_from(self.deaths.0.len()).unwrap_or(u32::MAX);
        match (self.starts.0.len(), deaths) {
            (0, 0) => Judgement::Free,
            (_, 1..) if deaths >= deaths_max => Judgement::Dead,
            (_, _) => Judgement::Suspect,
        }
    }

    /// Whether nothing speaks against the event.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.starts.0.is_empty() && self.deaths.0.is_empty()
    }

    /// What is kept of it with an event that is put aside. One that has run has shown that it ends; its deaths stay with
    /// it. One that is given up begins anew when a person replays it, as a suspect.
    #[must_use]
    pub fn kept(&self, what: Kept) -> Open {
        match what {
            Kept::Unrun => self.open.clone(),
            Kept::Ran => Open { beside: Starts::default(), alone: self.open.alone.clone() },
            Kept::Dead => Open { beside: self.deaths.clone(), alone: Starts::default() },
        }
    }

    /// Why an event is given up, after as many deaths as its handler's `deaths_max` says.
    #[must_use]
    pub fn failure(&self, deaths_max: u32) -> Failure {
        let message = format!(
            "the host's process has ended {} times while nothing but this event ran (deaths_max is {deaths_max})",
            self.deaths.0.len()
        );
        Failure::new(Class::DeathAlone, "death-alone", message)
    }

    /// What is told of one death.
    #[must_use]
    pub fn death(start: &Start) -> Failure {
        let message = format!("the host's process ended while nothing but this event ran (boot {})", start.boot);
        Failure::new(Class::DeathAlone, "death-alone", message)
    }
}

/// What has become of an event that is put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was not run.
    Unrun,
    /// It has run, and the process lives.
    Ran,
    /// It is given up for its deaths.
    Dead,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);
    const LIVES: Life = Life { has_ended: false, has_successor: false, unseen: Duration::from_secs(5) };
    const OWN: BootId = BootId([9; 16]);

    fn start(boot: u8) -> Start {
        Start { boot: BootId([boot; 16]), at_us: i64::from(boot) }
    }

    fn starts(boots: &[u8]) -> Starts {
        Starts(boots.iter().map(|boot| start(*boot)).collect())
    }

    #[test]
    fn a_life_is_over_by_its_own_word_its_successor_or_its_silence() {
        for (name, life, expected) in [
            ("it beats", Some(LIVES), End::None),
            ("it is late", Some(Life { unseen: Duration::from_millis(19_999), ..LIVES }), End::None),
            ("it is silent", Some(Life { unseen: TIMEOUT, ..LIVES }), End::Crashed),
            ("its name has a newer life", Some(Life { has_successor: true, ..LIVES }), End::Crashed),
            ("it said so", Some(Life { has_ended: true, ..LIVES }), End::InOrder),
            (
                "it said so, long ago, and has a successor",
                Some(Life { has_ended: true, has_successor: true, unseen: TIMEOUT * 9 }),
                End::InOrder,
            ),
            ("nobody knows it", None, End::Crashed),
        ] {
            assert_eq!(end(life.as_ref(), TIMEOUT), expected, "{name}");
        }
    }

    #[test]
    fn only_starts_of_lives_that_crashed_count_and_each_life_once() {
        let lives = BTreeMap::from([
            (BootId([1; 16]), Life { has_successor: true, ..LIVES }),
            (BootId([2; 16]), LIVES),
            (BootId([3; 16]), Life { has_ended: true, ..LIVES }),
            (OWN, Life { unseen: TIMEOUT, ..LIVES }),
        ]);
        let found = starts(&[1, 2, 1, 3, 9, 4, 1]).crashed(OWN, &lives, TIMEOUT);
        // 2 lives, 3 has ended in good order, 9 is this very process, however late its heartbeat; 4 is forgotten.
        assert_eq!(found, starts(&[1, 4]));
        assert_eq!(starts(&[2, 3, 9]).crashed(OWN, &lives, TIMEOUT), Starts::default());
    }

    /// All of these lives have crashed.
    fn against(beside: &[u8], alone: &[u8]) -> Suspicion {
        let open = Open { beside: starts(beside), alone: starts(alone) };
        open.suspicion(OWN, &BTreeMap::new(), TIMEOUT)
    }

    #[test]
    fn a_suspect_runs_alone_until_it_has_died_as_often_as_it_may() {
        for (beside, alone, deaths_max, expected) in [
            (&[][..], &[][..], 1, Judgement::Free),
            (&[9], &[9], 1, Judgement::Free),
            (&[1], &[], 1, Judgement::Suspect),
            (&[1, 2, 3], &[], 1, Judgement::Suspect),
            (&[1], &[2], 2, Judgement::Suspect),
            (&[], &[2], 2, Judgement::Suspect),
            // The same life twice is one death: its unit had to be done again.
            (&[], &[2, 9, 2], 2, Judgement::Suspect),
            (&[], &[2], 1, Judgement::Dead),
            (&[1], &[2, 3], 2, Judgement::Dead),
            (&[], &[2, 3, 4], 2, Judgement::Dead),
        ] {
            assert_eq!(against(beside, alone).judgement(deaths_max), expected, "{beside:?}, {alone:?}, {deaths_max}");
        }
    }

    #[test]
    fn a_neighbour_is_free_after_its_run_and_a_replay_runs_alone() {
        let judged = |open: Open, deaths_max| open.suspicion(OWN, &BTreeMap::new(), TIMEOUT).judgement(deaths_max);
        let neighbour = against(&[1, 9], &[9]);
        assert_eq!(judged(neighbour.kept(Kept::Unrun), 2), Judgement::Suspect);
        assert_eq!(neighbour.kept(Kept::Ran), Open::default());
        let killer = against(&[1], &[2, 3, 9]);
        assert_eq!(judged(killer.kept(Kept::Ran), 2), Judgement::Dead, "deaths are not forgotten");
        let dead = killer.kept(Kept::Dead);
        assert_eq!(dead, Open { beside: starts(&[2, 3]), alone: Starts::default() });
        assert_eq!((judged(dead.clone(), 1), judged(dead, 2)), (Judgement::Suspect, Judgement::Suspect));
    }

    /// Two hosts that a killer ends in turns: each of them is dead before its heartbeat is out.
    #[test]
    fn what_is_not_known_to_be_over_yet_is_kept_for_later() {
        let lives = BTreeMap::from([(BootId([1; 16]), LIVES), (BootId([2; 16]), LIVES)]);
        let open = Open { beside: starts(&[1, 9]), alone: starts(&[2]) };
        let found = open.suspicion(OWN, &lives, TIMEOUT);
        assert_eq!(found.judgement(1), Judgement::Free);
        assert_eq!(found.kept(Kept::Unrun), Open { beside: starts(&[1]), alone: starts(&[2]) });
        assert_eq!(found.kept(Kept::Ran), Open { beside: Starts::default(), alone: starts(&[2]) });
    }

    #[test]
    fn a_column_keeps_the_newest_starts_and_nothing_that_is_no_start() {
        let many = starts(&(1..=20).collect::<Vec<_>>());
        assert_eq!(Starts::from_bytes(&many.to_bytes()), Some(starts(&(5..=20).collect::<Vec<_>>())));
        assert_eq!(Starts::from_bytes(&[]), Some(Starts::default()));
        for bytes in [1, 16, 23, 25, 47] {
            assert_eq!(Starts::from_bytes(&vec![0; bytes]), None, "{bytes}");
        }
        let kept = Start { boot: BootId([7; 16]), at_us: 258 };
        assert_eq!(kept.to_bytes(), [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 1, 2]);
    }

    proptest! {
        #[test]
        fn starts_read_back_as_they_were_written(boots in proptest::collection::vec((any::<u8>(), any::<i64>()), 0..=STARTS_MAX)) {
            let starts = Starts(boots.iter().map(|(boot, at_us)| Start { boot: BootId([*boot; 16]), at_us: *at_us }).collect());
            prop_assert_eq!(Starts::from_bytes(&starts.to_bytes()), Some(starts));
        }

        /// Nobody dies for a life that goes on, for one that ended in good order, or for this one's own starts.
        #[test]
        fn without_a_crash_nobody_is_suspected(
            boots in proptest::collection::vec(0u8..8, 0..12), unseen_ms in 0u64..20_000, ended in any::<bool>(),
        ) {
            let life = Life { has_ended: ended, has_successor: ended, unseen: Duration::from_millis(unseen_ms) };
            let lives = (0..8).map(|boot| (BootId([boot; 16]), life)).collect();
            let open = Open { beside: starts(&boots), alone: starts(&boots) };
            prop_assert_eq!(open.suspicion(OWN, &lives, TIMEOUT).judgement(1), Judgement::Free);
        }

        /// More evidence never makes a judgement milder, and a higher limit never makes it harder.
        #[test]
        fn more_deaths_are_never_judged_milder(
            beside in 0u8..4, deaths in 0u8..6, deaths_max in 1u32..=DEATHS_MAX,
        ) {
            let rank = |judgement| match judgement { Judgement::Free => 0, Judgement::Suspect => 1, Judgement::Dead => 2 };
            let numbers = |n: u8| (10..10 + n).collect::<Vec<_>>();
            let of = |deaths: u8, max| rank(against(&numbers(beside), &numbers(deaths)).judgement(max));
            prop_assert!(of(deaths, deaths_max) <= of(deaths + 1, deaths_max));
            prop_assert!(of(deaths, deaths_max) >= of(deaths, deaths_max + 1));
            prop_assert_eq!(of(deaths, deaths_max) == 2, u32::from(deaths) >= deaths_max);
        }
    }
}
