//! Logs go to standard error: for people on a terminal, as JSON otherwise.

use std::io::IsTerminal as _;

use oncebox_core::config::LogFormat;
use tracing_subscriber::EnvFilter;

/// Begins to log; `RUST_LOG` chooses what, `info` by default.
pub(super) fn begin(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let human = match format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    // Begun twice in one process (tests): the first one stays.
    let _ = if human {
        builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
