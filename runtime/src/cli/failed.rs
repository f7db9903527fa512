//! Why a command did not do its work, and the exit code that says so.

use std::process::ExitCode;

use crate::{
    host::{
        HostError,
        admission::{AdmissionError, Refused},
    },
    module::ModuleError,
    plugin::PluginError,
    store::StoreError,
};

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    Bug,
    Usage,
    Config,
    Refused,
    NotFound,
    Away,
    Changed,
    Findings,
    Unsafe,
    SecondSignal,
}

/// Exit codes and their meaning, for the docs.
pub const EXIT_CODES: [(u8, &str); 11] = [
    (0, "done"),
    (1, "bug"),
    (2, "usage"),
    (3, "config"),
    (4, "refused: module, SQL or manifest"),
    (5, "not found"),
    (6, "a dependency is away, or taken by another host"),
    (7, "changed meanwhile"),
    (8, "findings"),
    (9, "unsafe settings, or a migration is due"),
    (130, "ended at once by a second signal"),
];

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Bug => 1,
            Exit::Usage => 2,
            Exit::Config => 3,
            Exit::Refused => 4,
            Exit::NotFound => 5,
            Exit::Away => 6,
            Exit::Changed => 7,
            Exit::Findings => 8,
            Exit::Unsafe => 9,
            Exit::SecondSignal => 130,
        })
    }
}

/// A command that did not do its work.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) exit: Exit,
    /// Has a page in the docs.
    pub(super) code: &'static str,
    /// What, where, how to mend.
    pub(super) message: String,
}

impl Failed {
    pub(super) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit, code, message: message.into() }
    }

    /// Prints it on standard error.
    pub(super) fn report(&self, json: bool) -> ExitCode {
        if json {
            let error = serde_json::json!({ "error": { "code": self.code, "message": self.message } });
            eprintln!("{error}");
        } else if self.message.starts_with("error") {
            // Errors of text files bring their own heading.
            eprintln!("{}", self.message);
        } else {
            eprintln!("error[{}]: {}", self.code, self.message);
        }
        self.exit.into()
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::Away { .. } | StoreError::Taken { .. } => Exit::Away,
            StoreError::Migration { .. } => Exit::Unsafe,
            StoreError::LeaseLost { .. } => Exit::Changed,
            StoreError::Schema { .. } => Exit::Config,
            StoreError::Corrupt { .. } | StoreError::Statement { .. } => Exit::Bug,
        };
        Self::new(exit, error.code(), error.to_string())
    }
}

impl From<PluginError> for Failed {
    fn from(error: PluginError) -> Self {
        Self::new(Exit::Refused, error.code(), error.to_string())
    }
}

impl From<ModuleError> for Failed {
    fn from(error: ModuleError) -> Self {
        Self::new(Exit::Refused, error.code(), error.to_string())
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        let code = refused.0.first().map_or("refused", |reason| reason.code);
        Self::new(Exit::Refused, code, format!("the module is refused:\n{refused}"))
    }
}

impl From<AdmissionError> for Failed {
    fn from(error: AdmissionError) -> Self {
        match error {
            AdmissionError::Refused(refused) => refused.into(),
            AdmissionError::Store(error) => error.into(),
        }
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        let message = error.to_string();
        match error {
            HostError::Plugin(error) => error.into(),
            HostError::Store { error, .. } => Self { message, ..error.into() },
            HostError::Listen { .. } => Self::new(Exit::Away, "listen", message),
            HostError::Metrics(_) => Self::new(Exit::Bug, "metrics", message),
        }
    }
}
