//! How far the demo is: one line that moves on a terminal, one line a second elsewhere.

use std::{
    io::{IsTerminal as _, Write as _, stdout},
    time::Duration,
};

use super::books::{Books, thousands};
use crate::run::Stopwatch;

/// Between two lines where the output is no terminal.
const PACE: Duration = Duration::from_secs(1);

/// What was sent and what the books said last.
pub(super) struct Progress {
    watch: Stopwatch,
    total: u64,
    sent: u64,
    terminal: bool,
    next: Duration,
}

impl Progress {
    /// `total`: messages that will be sent.
    pub(super) fn new(watch: Stopwatch, total: u64) -> Self {
        Self { watch, total, sent: 0, terminal: stdout().is_terminal(), next: Duration::ZERO }
    }

    /// Notes that so many more were sent.
    pub(super) fn sent(&mut self, lines: usize) {
        self.sent += lines as u64;
    }

    /// A line that stays.
    pub(super) fn line(&mut self, text: &str) {
        self.end();
        println!("\n== {text}");
    }

    /// Shows the books.
    pub(super) fn show(&mut self, books: &Books) {
        if !self.terminal && self.watch.elapsed() < self.next {
            return;
        }
        self.next = self.watch.elapsed() + PACE;
        let counts: Vec<String> = ["applied", "duplicate", "conflict", "skipped", "dead"]
            .into_iter()
            .map(|verdict| format!("{verdict} {}", thousands(books.sum(verdict))))
            .chain([format!("parked now {}", books.parked), format!("waiting {}", thousands(books.waiting))])
            .collect();
        let (sent, total) = (thousands(self.sent), thousands(self.total));
        let text = format!("{:>8}  sent {sent} of {total}: {}", self.watch.to_string(), counts.join(", "));
        if self.terminal {
            print!("\r\x1b[2K{text}");
            // A terminal that is gone is noticed by the next line that matters.
            let _ = stdout().flush();
        } else {
            println!("{text}");
        }
    }

    /// Leaves the moving line.
    pub(super) fn end(&mut self) {
        self.next = Duration::ZERO;
        if self.terminal && self.sent > 0 {
            println!();
        }
    }
}
