//! A document's text with its secrets covered: what errors may show of it.

use std::ops::Range;

use crate::text::TextError;

/// What stands in place of a secret, however long it is.
const COVER: &str = "***";

/// The text with covers in place of secrets.
#[derive(Debug)]
pub(super) struct Masked {
    text: String,
    /// Places of the original text, in order and apart.
    secrets: Vec<Range<usize>>,
}

impl Masked {
    /// Covers these places of the text; they are in order and apart.
    pub(super) fn new(original: &str, secrets: Vec<Range<usize>>) -> Self {
        let (mut text, mut from) = (String::with_capacity(original.len()), 0);
        for secret in &secrets {
            text.push_str(original.get(from..secret.start).unwrap_or_default());
            text.push_str(COVER);
            from = secret.end;
        }
        text.push_str(original.get(from..).unwrap_or_default());
        Self { text, secrets }
    }

    /// An error at a byte span of the original text: line and column are the original's, the line shown is covered.
    pub(super) fn error(&self, file: &str, original: &str, span: Range<usize>, message: String) -> TextError {
        if self.secrets.is_empty() {
            return TextError::at(file, original, span, message);
        }
        let TextError { line, column, .. } = TextError::at(file, original, span.clone(), "");
        let covered = self.place(span.start, |cover| cover.start)..self.place(span.end, |cover| cover.end);
        TextError { line, column, ..TextError::at(file, &self.text, covered, message) }
    }

    /// Where a place of the original is in the covered text; of one within a secret, the end of the cover that is asked for.
    fn place(&self, index: usize, within: fn(Range<usize>) -> usize) -> usize {
        let (mut original, mut covered) = (0, 0);
        for secret in self.secrets.iter().take_while(|secret| secret.start < index) {
            let start = covered + (secret.start - original);
            if index < secret.end {
                return within(start..start + COVER.len());
            }
            (original, covered) = (secret.end, start + COVER.len());
        }
        covered + (index - original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = \"one\", b = \"twotwo\", c = 3\n";

    #[test]
    fn an_error_shows_the_line_with_covers_and_counts_columns_as_the_person_sees_them() {
        let masked = Masked::new(TEXT, vec![5..8, 16..22]);
        for (part, shown) in [
            ("a", "1 | a = \"***\", b = \"***\", c = 3\n  | ^"),
            ("one", "1 | a = \"***\", b = \"***\", c = 3\n  |      ^^^"),
            ("\"twotwo\"", "1 | a = \"***\", b = \"***\", c = 3\n  |                ^^^^^"),
            ("wot", "1 | a = \"***\", b = \"***\", c = 3\n  |                 ^^^"),
            ("3", "1 | a = \"***\", b = \"***\", c = 3\n  |                           ^"),
        ] {
            let start = TEXT.find(part).unwrap();
            let error = masked.error("f", TEXT, start..start + part.len(), "wrong".into());
            assert_eq!(error.to_string(), format!("error: wrong\n --> f:1:{}\n  |\n{shown}", start + 1));
        }
    }

    #[test]
    fn a_secret_over_several_lines_does_not_move_the_lines_after_it() {
        let text = "a = '''x\ny\nz'''\nb = 1\n";
        let masked = Masked::new(text, vec![Range { start: 7, end: 12 }]);
        let error = masked.error("f", text, 16..17, "wrong".into());
        assert_eq!((error.line, error.column, error.excerpt.as_str()), (4, 1, "b = 1"));
        let error = masked.error("f", text, 9..10, "wrong".into());
        assert_eq!((error.line, error.column, error.excerpt.as_str()), (2, 1, "a = '''***'''"));
    }
}
