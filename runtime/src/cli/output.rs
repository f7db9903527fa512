//! What a command prints: a line for people, or one JSON value for programs.

use serde_json::Value as Json;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    /// Prints one answer.
    pub(super) fn answer(self, json: impl FnOnce() -> Json, human: impl FnOnce() -> String) {
        if self.json {
            println!("{:#}", json());
        } else {
            let human = human();
            println!("{}", human.trim_end());
        }
    }

    /// Tells people on standard error what is waited for; programs wait for the answer.
    pub(super) fn progress(self, human: impl FnOnce() -> String) {
        if !self.json {
            eprintln!("{}", human());
        }
    }
}

/// Bytes for people: as text where they are, without control characters.
pub(super) fn text(bytes: &[u8]) -> String {
    oncebox_core::ids::shown(bytes)
}

/// The table of some rows, columns aligned.
pub(super) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heading.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(&mut heading.iter().copied());
    for row in rows {
        out += &line(&mut row.iter().map(String::as_str));
    }
    out
}
