//! From a failed attempt to what is done with it: class → verdict (DESIGN, chapter 7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why an attempt did not apply. One class, one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Database, disk, pool or loading: again, uncounted.
    Infrastructure,
    /// The table or statement changed under a deployed handler: parked uncounted until a good deployment.
    Blocked,
    /// Not run yet, and put aside uncounted (backlog of a slow handler).
    Unrun,
    /// The guest asked for another attempt.
    GuestRetry,
    /// A statement matched another number of rows and the manifest says `retry`.
    Mismatch,
    /// A unique key of a business table.
    DuplicateKey,
    /// A foreign key of a business table.
    ForeignKey,
    /// The guest trapped or panicked.
    Trap,
    /// The run was over its time.
    TimeLimit,
    /// The run was over its memory.
    MemoryLimit,
    /// The guest said no for good.
    GuestReject,
    /// A statement matched another number of rows and the manifest says `reject`.
    MismatchReject,
    /// The server refused the data itself: too long, out of range, NULL where none may be.
    Data,
    /// A quota of staged rows, bytes, events or host calls.
    Quota,
    /// The guest broke the contract: unknown name, wrong parameters, a lie in the ABI.
    Abi,
    /// The message cannot be understood or has no key.
    Poison,
    /// No handler takes it.
    NoRoute,
    /// The key is there with another fingerprint: nothing ran, kept for a person.
    Conflict,
    /// The host's process ended while nothing but this event ran (`blame`).
    DeathAlone,
}

/// Who has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The plugin's author.
    Plugin,
    /// The operator of the host, database or broker.
    Dependency,
    /// The producer of the message.
    Producer,
}

/// One attempt that did not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub class: Class,
    /// A short name for people and groups, `[a-z0-9-]{1,64}`.
    pub code: String,
    /// One sentence with the values that matter.
    pub message: String,
    /// The guest's stack, when it trapped.
    pub backtrace: Option<String>,
    /// The wait that the plugin asked for.
    pub after: Option<Duration>,
}

impl Failure {
    /// The code of a message that no route takes, at a source that ignores such.
    pub const IGNORED: &'static str = "ignored";
    /// The code of an event that is put aside without a run, for too many of its slow handler wait.
    pub const SLOW_BACKLOG: &'static str = "slow-backlog";

    /// A failure without backtrace or wish.
    pub fn new(class: Class, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { class, code: code.into(), message: message.into(), backtrace: None, after: None }
    }
}

/// How a class is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Tried again without a trace in the counters; never dead.
    AgainUncounted,
    /// Parked with its counter untouched.
    ParkUncounted,
    /// Parked and counted; dead at `attempts_max`.
    ParkCounted,
    /// Parked and counted; dead at `short_attempts_max`.
    ParkShort,
    /// Dead at once.
    Dead,
}

impl Class {
    /// All classes, in the order of their numbers in `ob_held.class`.
    pub const ALL: [Self; 19] = [
        Self::Infrastructure,
        Self::Blocked,
        Self::Unrun,
        Self::GuestRetry,
        Self::Mismatch,
        Self::DuplicateKey,
        Self::ForeignKey,
        Self::Trap,
        Self::TimeLimit,
        Self::MemoryLimit,
        Self::GuestReject,
        Self::MismatchReject,
        Self::Data,
        Self::Quota,
        Self::Abi,
        Self::Poison,
        Self::NoRoute,
        Self::Conflict,
        Self::DeathAlone,
    ];

    /// The number kept in tables; never changes for a released class.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::ALL.iter().position(|c| *c == self).map_or(u8::MAX, |n| u8::try_from(n).unwrap_or(u8::MAX))
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in logs, metrics, `--json` and docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::Blocked => "blocked",
            Self::Unrun => "unrun",
            Self::GuestRetry => "guest-retry",
            Self::Mismatch => "mismatch",
            Self::DuplicateKey => "duplicate-key",
            Self::ForeignKey => "foreign-key",
            Self::Trap => "trap",
            Self::TimeLimit => "time-limit",
            Self::MemoryLimit => "memory-limit",
            Self::GuestReject => "guest-reject",
            Self::MismatchReject => "mismatch-reject",
            Self::Data => "data",
            Self::Quota => "quota",
            Self::Abi => "abi",
            Self::Poison => "poison",
            Self::NoRoute => "no-route",
            Self::Conflict => "conflict",
            Self::DeathAlone => "death-alone",
        }
    }

    /// How the class is answered (DESIGN, chapter 7).
    #[must_use]
    pub fn answer(self) -> Answer {
        match self {
            Self::Infrastructure => Answer::AgainUncounted,
            Self::Blocked | Self::Unrun => Answer::ParkUncounted,
            Self::GuestRetry | Self::Mismatch | Self::ForeignKey => Answer::ParkCounted,
            Self::DuplicateKey | Self::Trap | Self::TimeLimit | Self::MemoryLimit => Answer::ParkShort,
            Self::GuestReject
            | Self::MismatchReject
            | Self::Data
            | Self::Quota
            | Self::Abi
            | Self::Poison
            | Self::NoRoute
            | Self::Conflict
            | Self::DeathAlone => Answer::Dead,
        }
    }

    /// Who has to act.
    #[must_use]
    pub fn blame(self) -> Blame {
        match self {
            Self::Infrastructure | Self::Blocked | Self::Unrun | Self::NoRoute => Blame::Dependency,
            Self::GuestRetry
            | Self::Mismatch
            | Self::DuplicateKey
            | Self::ForeignKey
            | Self::Trap
            | Self::TimeLimit
            | Self::MemoryLimit
            | Self::GuestReject
            | Self::MismatchReject
            | Self::Data
            | Self::Quota
            | Self::Abi
            | Self::DeathAlone => Blame::Plugin,
            Self::Poison | Self::Conflict => Blame::Producer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DESIGN chapter 7, written out once more by hand.
    #[test]
    fn each_class_is_answered_as_the_design_says() {
        let again = [Class::Infrastructure];
        let uncounted = [Class::Blocked, Class::Unrun];
        let counted = [Class::GuestRetry, Class::Mismatch, Class::ForeignKey];
        let short = [Class::DuplicateKey, Class::Trap, Class::TimeLimit, Class::MemoryLimit];
        for class in Class::ALL {
            let expected = if again.contains(&class) {
                Answer::AgainUncounted
            } else if uncounted.contains(&class) {
                Answer::ParkUncounted
            } else if counted.contains(&class) {
                Answer::ParkCounted
            } else if short.contains(&class) {
                Answer::ParkShort
            } else {
                Answer::Dead
            };
            assert_eq!(class.answer(), expected, "{}", class.name());
        }
    }

    #[test]
    fn a_class_reads_back_from_its_number_in_the_table() {
        for class in Class::ALL {
            assert_eq!(Class::from_number(class.number()), Some(class));
        }
        assert_eq!(Class::from_number(19), None);
    }
}
