//! Where secrets stand in the text of a configuration, so that no message shows them.
//!
//! Looks at the text and not at the values: what is shown of a file that is not even TOML, or of a key with a slip of
//! the pen, must not hold the password either. Too much is covered rather than too little.

use std::ops::Range;

/// Parts of the names of keys whose values are covered.
const WORDS: [&str; 5] = ["pass", "pwd", "secret", "token", "credential"];

/// The places of secrets, in order and apart.
pub(super) fn places(text: &str) -> Vec<Range<usize>> {
    let mut scan = Scan { text, ..Scan::default() };
    scan.run();
    scan.found
}

/// Reads keys and values as far as they can be told in a text that may be broken.
#[derive(Default)]
struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The last word or quoted text; before a `=` it is the key.
    word: Range<usize>,
    /// Whether a word before it in the same dotted key is a secret's.
    is_below_secret: bool,
    /// Whether the section's header names a secret.
    is_in_secret_section: bool,
    /// Of each brace that is open, whether its key is a secret's.
    braces: Vec<bool>,
    found: Vec<Range<usize>>,
}

impl Scan<'_> {
    fn run(&mut self) {
        self.header();
        while let Some(byte) = self.byte() {
            match byte {
                b'#' => self.comment(),
                b'"' | b'\'' => {
                    self.word = self.string();
                    self.cover_url(self.word.clone());
                }
                b'=' => self.value(),
                b'.' => {
                    self.is_below_secret |= is_secret(self.word_text());
                    self.at += 1;
                }
                b'}' => {
                    self.braces.pop();
                    self.key_ends();
                }
                b',' => self.key_ends(),
                b'\n' => {
                    self.key_ends();
                    self.header();
                }
                byte if is_word(byte) => {
                    let end = self.end_of(|byte| !is_word(byte));
                    self.word = self.at..end;
                    self.at = end;
                }
                _ => self.at += 1,
            }
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn word_text(&self) -> &str {
        self.text.get(self.word.clone()).unwrap_or_default()
    }

    /// The first place from here on where a byte ends something, or the end of the text.
    fn end_of(&self, ends: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().position(|byte| ends(*byte)).map_or(self.text.len(), |length| self.at + length)
    }

    fn key_ends(&mut self) {
        (self.word, self.is_below_secret) = (self.at..self.at, false);
        self.at += 1;
    }

    /// At the beginning of a line: a section's header names what its keys belong to.
    fn header(&mut self) {
        let line = &self.text[self.at..self.end_of(|byte| byte == b'\n')];
        if let Some(path) = line.trim_start().strip_prefix('[') {
            let path = path.split(']').next().unwrap_or_default();
            self.is_in_secret_section = path.rsplit('.').next().is_some_and(is_secret);
        }
    }

    /// A comment may hold a line that was meant, or still is.
    fn comment(&mut self) {
        let (start, end) = (self.at + 1, self.end_of(|byte| byte == b'\n'));
        let inner = places(&self.text[start..end]);
        self.found.extend(inner.into_iter().map(|place| place.start + start..place.end + start));
        self.at = end;
    }

    /// Goes past a string; its content. One that does not end is over at the line's end, or the text's.
    fn string(&mut self) -> Range<usize> {
        let rest = &self.text[self.at..];
        let (quote, is_basic) = if rest.starts_with('"') { ("\"", true) } else { ("'", false) };
        let long = quote.repeat(3);
        let (mark, is_long) = if rest.starts_with(&long) { (long.as_str(), true) } else { (quote, false) };
        let start = self.at + mark.len();
        self.at = start;
        while let Some(byte) = self.byte() {
            if self.text.as_bytes()[self.at..].starts_with(mark.as_bytes()) {
                let content = start..self.at;
                self.at += mark.len();
                return content;
            }
            match byte {
                b'\n' if !is_long => break,
                b'\\' if is_basic => self.at = (self.at + 2).min(self.text.len()),
                _ => self.at += 1,
            }
        }
        start..self.at
    }

    /// After a key: covers its value if the key is a secret's.
    fn value(&mut self) {
        let key = self.word_text();
        let is_below = self.is_below_secret || self.braces.last().copied().unwrap_or(self.is_in_secret_section);
        let is_secret = is_secret(key) || is_below && !["env", "file"].contains(&key);
        let is_url = key.ends_with("url");
        self.is_below_secret = false;
        self.at += 1;
        self.at = self.end_of(|byte| byte != b' ' && byte != b'\t');
        match self.byte() {
            Some(b'{') => {
                self.braces.push(is_secret);
                self.at += 1;
            }
            Some(b'"' | b'\'') => {
                let content = self.string();
                match is_secret {
                    true => self.cover(content),
                    false if is_url && !self.text[content.clone()].contains("://") => self.cover_access(content),
                    false => self.cover_url(content),
                }
            }
            Some(_) if is_secret => {
                let ends: &[u8] = if self.byte() == Some(b'[') { b"\n" } else { b",}#\n" };
                let end = self.end_of(|byte| ends.contains(&byte));
                self.cover(self.at..self.at + self.text[self.at..end].trim_end().len());
                self.at = end;
            }
            Some(_) | None => {}
        }
    }

    /// Covers the password of a url, whatever the key is called.
    fn cover_url(&mut self, content: Range<usize>) {
        if let Some(scheme) = self.text[content.clone()].find("://") {
            self.cover_access(content.start + scheme + 3..content.end);
        }
    }

    /// Covers the password of `USER:PASSWORD@HOST`, also of one that is badly written.
    fn cover_access(&mut self, content: Range<usize>) {
        let text = &self.text[content.clone()];
        let secret = match (text.find(':'), text.rfind('@')) {
            // An escape may stand for any character, also for those that are looked for.
            _ if text.contains('\\') => 0..text.len(),
            (Some(colon), Some(at)) if colon < at => colon + 1..at,
            // No user: what looks like a port may be the beginning of a password.
            (Some(colon), None) if !text.starts_with('[') => {
                let rest = &text[colon + 1..];
                let port = rest.split('/').next().unwrap_or_default();
                if port.bytes().all(|byte| byte.is_ascii_digit()) { 0..0 } else { colon + 1..text.len() }
            }
            (Some(_) | None, Some(_) | None) => 0..0,
        };
        self.cover(content.start + secret.start..content.start + secret.end);
    }

    fn cover(&mut self, place: Range<usize>) {
        if !place.is_empty() {
            self.found.push(place);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether a key's value is covered: by its name, or because the name is nearly `password`.
fn is_secret(key: &str) -> bool {
    let key = key.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'').to_ascii_lowercase();
    // The distance costs time and memory by the product of both lengths.
    WORDS.iter().any(|word| key.contains(word)) || key.len() <= 16 && strsim::damerau_levenshtein(&key, "password") <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(text: &str) -> String {
        let (mut out, mut from) = (String::new(), 0);
        for place in places(text) {
            out.push_str(&text[from..place.start]);
            out.push_str("***");
            from = place.end;
        }
        out + &text[from..]
    }

    #[test]
    fn passwords_are_covered_wherever_they_stand() {
        for (text, shown) in [
            ("password = \"s3\"", "password = \"***\""),
            ("password='s3' # why", "password='***' # why"),
            ("\"password\" = \"s3\"", "\"password\" = \"***\""),
            ("passwrod = \"s3\"", "passwrod = \"***\""),
            ("db_pwd = \"s3\"", "db_pwd = \"***\""),
            (
                "store = { kind = \"mysql\", password = \"s\\\"3\", tls = \"off\" }",
                "store = { kind = \"mysql\", password = \"***\", tls = \"off\" }",
            ),
            ("t.store.password = \"s3\"", "t.store.password = \"***\""),
            ("password = s3 , x = 1", "password = *** , x = 1"),
            ("password = 123 # four", "password = *** # four"),
            ("password = [\"s3\", \"s4\"]\nx = 1", "password = ***\nx = 1"),
            ("password = \"s3\nx = \"1\"", "password = \"***\nx = \"1\""),
            ("password = \"\"\"s3\ns4\"\"\"\nx = 1", "password = \"\"\"***\"\"\"\nx = 1"),
            ("password = '''s3\n", "password = '''***"),
            ("# password = \"s3\"\nx = 1 # pw: don't", "# password = \"***\"\nx = 1 # pw: don't"),
            ("password = { env = \"NAME\" }", "password = { env = \"NAME\" }"),
            ("password = { file = \"/run/x\", text = \"s3\" }", "password = { file = \"/run/x\", text = \"***\" }"),
            ("password.env = \"NAME\"\npassword.value = \"s3\"", "password.env = \"NAME\"\npassword.value = \"***\""),
            (
                "[t.password]\nfile = \"/run/x\"\ntext = \"s3\"\n[t.x]\ntext = \"y\"",
                "[t.password]\nfile = \"/run/x\"\ntext = \"***\"\n[t.x]\ntext = \"y\"",
            ),
            ("password", "password"),
            ("password =", "password ="),
        ] {
            assert_eq!(covered(text), shown, "{text}");
        }
    }

    #[test]
    fn the_password_of_a_url_is_covered_however_the_url_is_written() {
        for (text, shown) in [
            ("url = \"mysql://shop:s3@db/x\"", "url = \"mysql://shop:***@db/x\""),
            ("uri = 'amqp://shop:s:3@4@[::1]:5672'", "uri = 'amqp://shop:***@[::1]:5672'"),
            ("x = [\"amqp://shop:s3@mq\"]", "x = [\"amqp://shop:***@mq\"]"),
            ("migrate_url = \"mysql://root:s/3@db/x\"", "migrate_url = \"mysql://root:***@db/x\""),
            ("url = \"shop:s3@db/x\"", "url = \"shop:***@db/x\""),
            ("url = \"mysql://shop:s3\"", "url = \"mysql://shop:***\""),
            ("url = \"mysql://shop\\u003as3@db/x\"", "url = \"mysql://***\""),
            ("url = \"mysql://shop:s3@db/x", "url = \"mysql://shop:***@db/x"),
            ("url = \"mysql://shop@[::1]:3306/x\"", "url = \"mysql://shop@[::1]:3306/x\""),
            ("url = \"mysql://db:3306/x\"", "url = \"mysql://db:3306/x\""),
            ("url = \"mysql://[::1]:3306/x\"", "url = \"mysql://[::1]:3306/x\""),
            ("listen = \"127.0.0.1:8420\"", "listen = \"127.0.0.1:8420\""),
        ] {
            assert_eq!(covered(text), shown, "{text}");
        }
    }

    #[test]
    fn any_text_is_read_to_its_end_and_covered_in_order() {
        let parts =
            ["password", "=", "\"", "'", "\"\"\"", "{", "}", "[", "]", "\n", "#", "\\", "://", ":", "@", "é", ","];
        let mut state = 7_usize;
        for _ in 0..5_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(parts[(state >> 33) % parts.len()]);
            }
            let mut from = 0;
            for place in places(&text) {
                assert!(
                    place.start >= from && place.end > place.start && text.get(place.clone()).is_some(),
                    "{text:?}"
                );
                from = place.end;
            }
        }
    }
}
