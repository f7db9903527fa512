//! The log lines of one run: bounded in number and length, and handed to tracing with target `plugin`.

use oncebox_core::ids::shown;
use tracing::{debug, enabled, error, info, trace, warn};

use super::{contract::log::Level, text::tamed};

/// Bytes of one line, fields included.
const LINE_BYTES_MAX: usize = 1024;

/// Whose lines they are; every line says so.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) tenant: &'a str,
    pub(super) handler: &'a str,
    pub(super) key: &'a [u8],
    pub(super) attempt: u32,
}

/// Counts the lines of a run and remembers what the plugin said last before it broke.
pub(super) struct Lines {
    lines_max: u32,
    written: u32,
    dropped: u64,
    last_error: Option<String>,
}

impl Lines {
    pub(super) fn new(lines_max: u32) -> Self {
        Self { lines_max, written: 0, dropped: 0, last_error: None }
    }

    /// Writes one line, or counts it as dropped.
    pub(super) fn write(&mut self, whose: Whose<'_>, level: Level, message: &str, fields: &[(String, String)]) {
        let kept = self.written < self.lines_max;
        let is_error = matches!(level, Level::Error);
        if !kept {
            self.dropped += 1;
            if !is_error {
                return;
            }
        }
        self.written += u32::from(kept);
        // What nobody reads is not written down.
        if !is_error && !is_spoken(level) {
            return;
        }
        let line = rendered(message, fields);
        if kept {
            speak(whose, level, &line);
        }
        // Also of a dropped line: a panic hook speaks last, after any flood.
        if is_error {
            self.last_error = Some(line);
        }
    }

    /// The last line at level error.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Says, once, how many lines were dropped.
    pub(super) fn close(&self, whose: Whose<'_>) {
        if self.dropped > 0 {
            let Whose { tenant, handler, key, attempt } = whose;
            let (key, dropped, lines_max) = (shown(key), self.dropped, self.lines_max);
            warn!(target: "plugin", %tenant, %handler, %key, attempt, dropped, "log lines dropped, log_lines_max is {lines_max}");
        }
    }
}

fn rendered(message: &str, fields: &[(String, String)]) -> String {
    let mut line = tamed(message, LINE_BYTES_MAX);
    for (name, value) in fields {
        if line.len() >= LINE_BYTES_MAX {
            break;
        }
        line.push(' ');
        line.push_str(&tamed(name, LINE_BYTES_MAX));
        line.push('=');
        line.push_str(&tamed(value, LINE_BYTES_MAX));
    }
    super::text::cut(line, LINE_BYTES_MAX)
}

fn is_spoken(level: Level) -> bool {
    match level {
        Level::Trace => enabled!(target: "plugin", tracing::Level::TRACE),
        Level::Debug => enabled!(target: "plugin", tracing::Level::DEBUG),
        Level::Info => enabled!(target: "plugin", tracing::Level::INFO),
        Level::Warn => enabled!(target: "plugin", tracing::Level::WARN),
        Level::Error => enabled!(target: "plugin", tracing::Level::ERROR),
    }
}

fn speak(whose: Whose<'_>, level: Level, line: &str) {
    let Whose { tenant, handler, key, attempt } = whose;
    let key = shown(key);
    match level {
        Level::Trace => trace!(target: "plugin", %tenant, %handler, %key, attempt, "{line}"),
        Level::Debug => debug!(target: "plugin", %tenant, %handler, %key, attempt, "{line}"),
        Level::Info => info!(target: "plugin", %tenant, %handler, %key, attempt, "{line}"),
        Level::Warn => warn!(target: "plugin", %tenant, %handler, %key, attempt, "{line}"),
        Level::Error => error!(target: "plugin", %tenant, %handler, %key, attempt, "{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOSE: Whose<'_> = Whose { tenant: "t", handler: "h", key: b"k", attempt: 1 };

    #[test]
    fn lines_over_the_limit_are_dropped_but_the_last_error_is_kept() {
        let mut lines = Lines::new(2);
        for number in 0..5 {
            lines.write(WHOSE, Level::Info, &format!("line {number}"), &[]);
        }
        lines.write(WHOSE, Level::Error, "panicked at src/lib.rs:1", &[("code".into(), "7".into())]);
        assert_eq!((lines.written, lines.dropped), (2, 4));
        assert_eq!(lines.last_error(), Some("panicked at src/lib.rs:1 code=7"));
    }

    #[test]
    fn a_line_never_has_more_than_1024_bytes() {
        let field = ("k".repeat(2_000), "v".repeat(2_000));
        assert_eq!(rendered(&"\0".repeat(5_000), &[]).len(), 1024);
        assert_eq!(rendered("short", &[field.clone(), field]).len(), 1024);
    }
}
