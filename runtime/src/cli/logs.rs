//! Logs go to standard error: for people on a terminal, as JSON otherwise.

use std::io::IsTerminal as _;

use oncebox_core::config::LogFormat;
use tracing_subscriber::EnvFilter;

/// What the lines look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// What is logged unless `RUST_LOG` says otherwise. Lapin names every fault of a connection by itself; a source says it
/// once, with what is to be done.
const DEFAULT: &str = "info,lapin=off";

/// Begins to log; `RUST_LOG` chooses what, and `json` (of `--json`) overrules the configuration.
pub(super) fn begin(format: LogFormat, json: bool) -> Form {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal();
    let form = match format {
        LogFormat::Human if !json => Form::Human,
        LogFormat::Auto if is_terminal && !json => Form::Human,
        LogFormat::Auto | LogFormat::Human | LogFormat::Json => Form::Json,
    };
    // Begun twice in one process (tests): the first one stays.
    let _ = match form {
        Form::Human => builder.with_ansi(is_terminal).with_target(false).try_init(),
        Form::Json => builder.json().flatten_event(true).try_init(),
    };
    form
}
