//! Texts from a guest, made safe and short enough to keep.

use oncebox_core::ids::shown;

/// Bytes of a message that is kept of a guest or of an error.
pub(super) const MESSAGE_BYTES_MAX: usize = 4096;
/// Bytes of a guest's stack that are kept.
pub(super) const BACKTRACE_BYTES_MAX: usize = 16 * 1024;

const MARK: &str = " […]";

/// The text with control characters escaped, at most `bytes_max` bytes long; a cut is marked.
pub(super) fn tamed(text: &str, bytes_max: usize) -> String {
    // Cut before escaping too: a text of megabytes is never escaped as a whole.
    cut(shown(prefix(text, bytes_max.saturating_add(1)).as_bytes()), bytes_max)
}

/// The text at most `bytes_max` bytes long; a cut is marked.
pub(super) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let kept = prefix(&text, bytes_max.saturating_sub(MARK.len())).len();
        text.truncate(kept);
        text.push_str(MARK);
    }
    text
}

fn prefix(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_ends_at_a_character_and_says_so() {
        assert_eq!(tamed("abc\u{1b}", 64), "abc\\x1b");
        // The mark takes 6 bytes (the ellipsis three), so 4 of 10 are left, and ä takes two.
        assert_eq!(tamed("aaaäbcdefgh", 10), "aaa […]");
        assert_eq!(tamed("aaaäbcde", 10), "aaaäbcde");
    }

    #[test]
    fn escapes_never_push_a_text_over_its_limit() {
        assert_eq!(tamed(&"\0".repeat(100), 16), "\\x00\\x00\\x […]");
    }
}
