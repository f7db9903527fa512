//! Error codes: the name, the exit code, the meaning and the mending of every error that a command can end with, stated
//! once, beside the error itself.

use std::process::ExitCode;

/// How a command ends; the numbers never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did its work.
    Done,
    /// Oncebox broke a promise of its own.
    Bug,
    /// The arguments are wrong.
    Usage,
    /// The configuration is wrong.
    Config,
    /// A module, a statement or a manifest is refused.
    Refused,
    /// What the arguments name is not there.
    NotFound,
    /// A database, an address or a program cannot be had now.
    Away,
    /// Somebody else was faster.
    Changed,
    /// A check found something that would not stop a host from starting.
    Findings,
    /// Settings or tables with which no promise holds.
    Unsafe,
    /// Ended at once by a second signal.
    SecondSignal,
}

impl Exit {
    /// All of them, by number.
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Bug,
        Self::Usage,
        Self::Config,
        Self::Refused,
        Self::NotFound,
        Self::Away,
        Self::Changed,
        Self::Findings,
        Self::Unsafe,
        Self::SecondSignal,
    ];

    /// The process's exit code.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Bug => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Refused => 4,
            Self::NotFound => 5,
            Self::Away => 6,
            Self::Changed => 7,
            Self::Findings => 8,
            Self::Unsafe => 9,
            Self::SecondSignal => 130,
        }
    }

    /// What it says, in a few words.
    #[must_use]
    pub fn means(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Bug => "a bug of oncebox",
            Self::Usage => "the arguments are wrong",
            Self::Config => "the configuration is wrong",
            Self::Refused => "a module, a statement or a manifest is refused",
            Self::NotFound => "what the arguments name is not there",
            Self::Away => "a database, an address or a program cannot be had, or is taken by another host",
            Self::Changed => "something was changed meanwhile by somebody else",
            Self::Findings => "a check has findings; a host would start",
            Self::Unsafe => "the settings are unsafe, or a migration is due",
            Self::SecondSignal => "ended at once by a second signal",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// One error code, as the page of the docs shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Its name, kebab-case; never changes.
    pub name: &'static str,
    /// How a command that fails with it ends.
    pub exit: Exit,
    /// What has happened.
    pub means: &'static str,
    /// What to do about it.
    pub mend: &'static str,
}

/// Gives an error enum its codes: one line a variant, so that neither a variant without a code nor a code without a
/// variant can be written.
macro_rules! codes {
    ($error:ident { $($variant:ident $name:literal $exit:ident $means:literal $mend:literal)* }) => {
        impl $error {
            /// Every code, in the order of the documentation.
            pub const CODES: &'static [$crate::code::Code] = &[$($crate::code::Code {
                name: $name,
                exit: $crate::code::Exit::$exit,
                means: $means,
                mend: $mend,
            }),*];

            /// The error's code, with a line in `docs/reference/errors.md`.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $name,)* }
            }

            /// How a command that fails with it ends.
            #[must_use]
            pub fn exit(&self) -> $crate::code::Exit {
                match self { $(Self::$variant { .. } => $crate::code::Exit::$exit,)* }
            }
        }
    };
}
pub(crate) use codes;

#[cfg(test)]
mod tests {
    use super::*;

    /// DESIGN chapter 11, written out once more by hand.
    #[test]
    fn exit_codes_are_the_released_ones() {
        assert_eq!(Exit::ALL.map(Exit::number), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130]);
    }
}
