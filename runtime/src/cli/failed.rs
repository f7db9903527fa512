//! Why a command did not do its work: what it prints, and the exit code that says so.

use std::process::ExitCode;

use oncebox_core::text::TextErrors;
use serde_json::{Value as Json, json};

use crate::{
    code::{Exit, codes},
    host::{
        HostError,
        admission::{Reason, Refused},
    },
    module::ModuleError,
    plugin::PluginError,
    store::StoreError,
};

/// What the command line itself finds wrong.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
    /// Arguments.
    Usage,
    /// A file of the configuration, or one that it names, cannot be read.
    ConfigFile,
    /// The configuration's content.
    Config,
    /// `host.data_dir`.
    DataDir,
    /// A name that the configuration does not have.
    Tenant,
    /// A name that neither the configuration nor the database has.
    Handler,
    /// A name that the configuration does not have.
    Source,
    /// A store that nobody has made yet.
    StoreMissing,
    /// The module's file.
    ModuleFile,
    /// The lines to send.
    InputFile,
    /// A business key.
    Key,
    /// A held row.
    HeldRow,
    /// Reasons against a module.
    Module,
    /// Another rule than before.
    Rule,
    /// The running host's word.
    RefusedByHost,
    /// The word of some live hosts, while others are ready.
    RefusedBySome,
    /// Live hosts without an answer.
    HostsAwaited,
    /// A newer deployment.
    Overtaken,
    /// `host.listen`.
    Listen,
    /// What a correct oncebox never meets.
    Bug,
}

codes! { Wrong {
    Usage "usage" Usage
        "the arguments are not understood"
        "run the command with `--help`"
    ConfigFile "config-file" Config
        "a file of the configuration, or one that it names, cannot be read"
        "name it with `--config`, or mend the setting that names it"
    Config "config" Config
        "the configuration is wrong; every error is listed with its file and line"
        "mend what is listed, and run `oncebox check config`"
    DataDir "data-dir" Config
        "host.data_dir cannot be made or written"
        "name another folder, or let the user of the host write there"
    Tenant "tenant" NotFound
        "the configuration has no such tenant"
        "use one of those that the message lists"
    Handler "handler" NotFound
        "the tenant has no such handler"
        "use one of those that the message lists"
    Source "source" NotFound
        "the tenant has no such source"
        "use one of those that the message lists"
    StoreMissing "store-missing" NotFound
        "the embedded store of a tenant is not made yet"
        "see that host.data_dir and store.path are right; `oncebox migrate` makes it"
    ModuleFile "module-file" NotFound
        "the module cannot be read"
        "name the file that `oncebox build` wrote"
    InputFile "input-file" NotFound
        "the lines to send cannot be read; what was read before is sent"
        "name a file that can be read, or `-`"
    Key "key" NotFound
        "no delivery with this business key was ever decided or held for this handler"
        "see that the key is written as `dead list` and the logs show it"
    HeldRow "held-row" NotFound
        "the tenant has no held row of this number"
        "see `oncebox dead list`"
    Module "module-refused" Refused
        "the module may not serve this handler; every reason is listed with its own code"
        "mend what is listed; nothing was stored"
    Rule "rule-changed" Refused
        "the module makes another key, fingerprint or ordering than the handler is bound to; nothing was stored"
        "keep the rule, or say `--new-rule`, whose help tells what that does to dedup"
    RefusedByHost "refused-by-host" Refused
        "every live host refuses the deployment; the old one serves on"
        "mend the reason that the message gives, and deploy again"
    RefusedBySome "refused-by-some" Refused
        "some live hosts refuse the deployment, others are ready; it stays offered and the old one serves on"
        "mend the reason on the hosts that the message names, or deploy with `--force`"
    HostsAwaited "hosts-awaited" Away
        "a live host has not answered the offered deployment in time; it stays offered and the old one serves on"
        "see the log of the hosts that the message names; it becomes active by itself when all are ready"
    Overtaken "overtaken" Changed
        "a newer deployment of the same handler came first"
        "see whose it was, and deploy again if yours is meant"
    Listen "listen" Away
        "host.listen cannot be had"
        "end the other process, or name another address"
    Bug "bug" Bug
        "oncebox met what it never should"
        "report it with the message and the log"
} }

/// A command that did not do its work.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) exit: Exit,
    /// Has a line in `docs/reference/errors.md`.
    pub(super) code: &'static str,
    /// What, where, how to mend.
    pub(super) message: String,
    /// The database is away, and may come back by itself.
    pub(super) is_away: bool,
    details: Details,
    /// The database is there, and empty.
    has_no_tables: bool,
}

/// What a message stands above.
#[derive(Debug)]
enum Details {
    None,
    /// Errors of text files, each with its place.
    Texts(TextErrors),
    /// Reasons against a module.
    Reasons(Vec<Reason>),
}

impl Failed {
    pub(super) fn new(wrong: Wrong, message: impl Into<String>) -> Self {
        Self {
            exit: wrong.exit(),
            code: wrong.code(),
            message: message.into(),
            is_away: false,
            details: Details::None,
            has_no_tables: false,
        }
    }

    /// The configuration is wrong.
    pub(super) fn config(errors: TextErrors) -> Self {
        let message = format!("the configuration has {}; a host would not start", counted(&errors));
        Self { details: Details::Texts(errors), ..Self::new(Wrong::Config, message) }
    }

    /// The module may not serve the place, or nobody.
    pub(super) fn module(Refused(reasons): Refused, place: Option<&dyn std::fmt::Display>) -> Self {
        let place = place.map_or_else(|| "serve".to_owned(), |place| format!("serve {place}"));
        let count = match reasons.len() {
            1 => "for one reason".to_owned(),
            n => format!("for {n} reasons"),
        };
        let message = format!("the module may not {place}, {count}; nothing was stored");
        Self { details: Details::Reasons(reasons), ..Self::new(Wrong::Module, message) }
    }

    fn manifest(exit: Exit, code: &'static str, errors: TextErrors) -> Self {
        let message = format!("the manifest has {}; mend handler.toml and run `oncebox build`", counted(&errors));
        Self { exit, code, message, is_away: false, details: Details::Texts(errors), has_no_tables: false }
    }

    /// Whether nobody has made the tenant's store or its tables yet.
    pub(super) fn is_store_missing(&self) -> bool {
        self.code == Wrong::StoreMissing.code() || self.has_no_tables
    }

    /// Says first what was done before.
    pub(super) fn after(self, done: &str) -> Self {
        Self { message: format!("{done}{}", self.message), ..self }
    }

    /// Prints it on standard error: for people, or as one JSON object.
    pub(super) fn report(&self, json: bool) -> ExitCode {
        if json {
            eprintln!("{}", self.json())
        } else {
            eprintln!("{}", self.human())
        }
        self.exit.into()
    }

    fn json(&self) -> Json {
        let mut error = json!({ "code": self.code, "exit": self.exit.number(), "message": self.message });
        match &self.details {
            Details::None => {}
            Details::Texts(errors) => {
                error["errors"] = json!(errors.errors());
                error["left_out"] = json!(errors.left_out());
            }
            Details::Reasons(reasons) => {
                let reason = |reason: &Reason| json!({ "code": reason.code, "message": reason.message });
                error["reasons"] = reasons.iter().map(reason).collect();
            }
        }
        json!({ "error": error })
    }

    pub(super) fn human(&self) -> String {
        let own = format!("error[{}]: {}", self.code, self.message);
        match &self.details {
            Details::None => own,
            // As compilers do: each error where it stands, and the sum at the end.
            Details::Texts(errors) => format!("{errors}\n\n{own}"),
            Details::Reasons(reasons) => {
                let line = |reason: &Reason| format!("\n  [{}] {}", reason.code, reason.message);
                own + &reasons.iter().map(line).collect::<String>()
            }
        }
    }
}

fn counted(errors: &TextErrors) -> String {
    match errors.errors().len() + errors.left_out() {
        1 => "one error".to_owned(),
        n => format!("{n} errors"),
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let has_no_tables = matches!(error, StoreError::Migration { found: 0, .. });
        let (exit, code, is_away, message) = (error.exit(), error.code(), error.is_away(), error.to_string());
        Self { exit, code, message, is_away, details: Details::None, has_no_tables }
    }
}

impl From<PluginError> for Failed {
    fn from(error: PluginError) -> Self {
        let (exit, code, message) = (error.exit(), error.code(), error.to_string());
        let PluginError::ManifestInvalid(errors) = error else {
            return Self { exit, code, message, is_away: false, details: Details::None, has_no_tables: false };
        };
        Self::manifest(exit, code, errors)
    }
}

impl From<ModuleError> for Failed {
    fn from(error: ModuleError) -> Self {
        let (exit, code, message) = (error.exit(), error.code(), error.to_string());
        let ModuleError::Manifest(errors) = error else {
            return Self { exit, code, message, is_away: false, details: Details::None, has_no_tables: false };
        };
        Self::manifest(exit, code, errors)
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        let message = error.to_string();
        match error {
            HostError::Plugin(error) => error.into(),
            HostError::Store { error, .. } => Self { message, ..error.into() },
            HostError::Listen { .. } => Self::new(Wrong::Listen, message),
            HostError::Metrics(_) => Self::new(Wrong::Bug, message),
        }
    }
}
