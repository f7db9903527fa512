//! Errors in a text file: where, what, how to mend.
//!
//! An error carries all that is needed to show it, so that the text itself need not be kept.

use std::{fmt, ops::Range};

use serde::Serialize;

/// Characters of the offending line that are shown; of a longer one, the part around the error.
const EXCERPT_CHARS_MAX: usize = 120;

/// Characters of a value that a message repeats.
const QUOTED_CHARS_MAX: usize = 60;

/// One error in a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 when the file as a whole is meant.
    pub column: usize,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// The offending line, or the part of it around the error, without control characters.
    pub excerpt: String,
    /// Characters of the excerpt before the error.
    pub offset: usize,
    /// Characters of the excerpt that are in error; at least 1.
    pub width: usize,
}

impl TextError {
    /// An error at a byte span of `text`; of a span over several lines, the first is shown.
    #[must_use]
    pub fn at(file: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let start = floor_of(text, span.start);
        let end = floor_of(text, span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let before = text[line_start..start].chars().count();
        let marked = text[start..end.clamp(start, line_end)].chars().count().max(1);
        let (excerpt, offset) = excerpt_of(text[line_start..line_end].trim_end_matches('\r'), before);
        let width = marked.min(excerpt.chars().count().saturating_sub(offset)).max(1);
        Self {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            message: message.into(),
            help: None,
            excerpt,
            offset,
            width,
        }
    }

    /// An error of the file as a whole: it is too large, or its name is wrong.
    #[must_use]
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            message: message.into(),
            help: None,
            excerpt: String::new(),
            offset: 0,
            width: 1,
        }
    }

    /// Says how to mend it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Prints it the way compilers do, under the given label (`error`, `warning`).
    pub(crate) fn show(&self, label: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{label}: {}", self.message)?;
        let number = self.line.to_string();
        let gutter = if self.line == 0 { 1 } else { number.len() };
        if self.line == 0 {
            write!(f, "\n{:gutter$}--> {}", "", self.file)?;
        } else {
            write!(f, "\n{:gutter$}--> {}:{}:{}", "", self.file, self.line, self.column)?;
            write!(f, "\n{:gutter$} |\n{number} | {}", "", self.excerpt)?;
            write!(f, "\n{:gutter$} | {:offset$}{}", "", "", "^".repeat(self.width), offset = self.offset)?;
        }
        match &self.help {
            Some(help) => write!(f, "\n{:gutter$} = help: {help}", ""),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show("error", f)
    }
}

impl std::error::Error for TextError {}

/// One or more errors, in the order of the files and lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextErrors {
    errors: Vec<TextError>,
    /// Errors found beyond those that are kept.
    left_out: usize,
}

impl TextErrors {
    /// The errors collected, if there are any; `left_out` more were found and not kept.
    #[must_use]
    pub fn collected(errors: Vec<TextError>, left_out: usize) -> Option<Self> {
        if errors.is_empty() { None } else { Some(Self { errors, left_out }) }
    }

    /// The errors kept; at least one.
    #[must_use]
    pub fn errors(&self) -> &[TextError] {
        &self.errors
    }

    /// How many more were found and not kept.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl From<TextError> for TextErrors {
    fn from(error: TextError) -> Self {
        Self { errors: vec![error], left_out: 0 }
    }
}

impl fmt::Display for TextErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            error.fmt(f)?;
        }
        if self.left_out > 0 {
            write!(f, "\n\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for TextErrors {}

/// A text as messages repeat it: in quotes, escaped, cut when long.
#[must_use]
pub fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let rest = if cut.len() < text.len() { "…" } else { "" };
    format!("\"{}{rest}\"", cut.escape_debug())
}

/// The nearest character boundary at or below `index`.
fn floor_of(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|candidate| text.is_char_boundary(*candidate)).unwrap_or(0)
}

/// The part of a line that is shown, and how many of its characters stand before the error.
fn excerpt_of(line: &str, before: usize) -> (String, usize) {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    if line.chars().nth(EXCERPT_CHARS_MAX).is_none() {
        return (line.chars().map(shown).collect(), before);
    }
    let skipped = before.saturating_sub(EXCERPT_CHARS_MAX / 2);
    let part = line.chars().skip(skipped).take(EXCERPT_CHARS_MAX).map(shown);
    if skipped == 0 {
        (part.collect(), before)
    } else {
        (std::iter::once('…').chain(part).collect(), before - skipped + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_file_line_column_and_a_caret_under_the_offending_part() {
        let text = "name = \"a\"\nsqll = 1\n";
        let error =
            TextError::at("handler.toml", text, 11..15, "unknown key \"sqll\"").with_help("did you mean \"sql\"?");
        assert_eq!((error.line, error.column), (2, 1));
        assert_eq!(
            error.to_string(),
            "error: unknown key \"sqll\"\n --> handler.toml:2:1\n  |\n2 | sqll = 1\n  | ^^^^\n  = help: did you mean \"sql\"?"
        );
    }

    #[test]
    fn columns_count_characters_and_a_span_over_lines_marks_the_first() {
        let text = "a = \"日本\" x\r\nb = 1";
        let error = TextError::at("f", text, 13..19, "wrong");
        assert_eq!((error.line, error.column), (1, 10));
        assert_eq!((error.excerpt.as_str(), error.offset, error.width), ("a = \"日本\" x", 9, 1));
    }

    #[test]
    fn a_long_line_shows_only_the_part_around_the_error() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let error = TextError::at("f", &text, 500..501, "wrong");
        assert_eq!(error.column, 501);
        assert_eq!(error.excerpt, format!("…{}!{}", "a".repeat(60), "b".repeat(59)));
        assert_eq!((error.offset, error.width), (61, 1));
    }

    #[test]
    fn a_terminal_never_gets_a_control_character_of_the_text() {
        let error = TextError::at("f", "a = \u{1b}[31m", 4..5, "wrong");
        assert_eq!(error.excerpt, "a =  [31m");
        assert_eq!(quoted("\u{1b}[31m"), "\"\\u{1b}[31m\"");
    }

    #[test]
    fn any_span_of_any_text_gives_an_error_inside_the_text() {
        for text in ["", "\n", "é", "a\n\nb"] {
            for start in 0..6 {
                for end in 0..6 {
                    let error = TextError::at("f", text, start..end, "wrong");
                    assert!(error.line <= text.matches('\n').count() + 1, "{text:?} {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn errors_beyond_those_kept_are_counted() {
        let errors = TextErrors::collected(vec![TextError::of_file("f", "too long")], 3).unwrap();
        assert_eq!(errors.to_string(), "error: too long\n --> f\n\nand 3 more");
        assert_eq!(TextErrors::collected(Vec::new(), 0), None);
    }
}
