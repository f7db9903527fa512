//! Names of a manifest as names of Rust.

use std::collections::BTreeMap;

use proc_macro2::{Ident, Span};

/// Words that are no names in edition 2024.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Words that cannot be raw identifiers either.
const RESERVED: &[&str] = &["self", "Self", "super", "crate", "_"];

/// The name of a function or parameter: `-` becomes `_`, a keyword becomes a raw identifier.
pub(crate) fn ident(name: &str) -> Result<Ident, String> {
    let rust = name.replace('-', "_");
    let mut chars = rust.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !begins || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') || RESERVED.contains(&rust.as_str()) {
        return Err(format!("the manifest's name `{name}` cannot be a name in Rust: rename it"));
    }
    Ok(if KEYWORDS.contains(&rust.as_str()) {
        Ident::new_raw(&rust, Span::call_site())
    } else {
        Ident::new(&rust, Span::call_site())
    })
}

/// Refuses two names of one module that are the same in Rust.
#[derive(Default)]
pub(crate) struct Taken(BTreeMap<String, String>);

impl Taken {
    pub(crate) fn take(&mut self, what: &str, name: &str) -> Result<Ident, String> {
        let ident = ident(name)?;
        let described = format!("{what} `{name}`");
        match self.0.insert(ident.to_string(), described.clone()) {
            Some(first) => Err(format!("{first} and {described} are both `{ident}` in Rust: rename one of them")),
            None => Ok(ident),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_becomes_an_underscore_and_a_keyword_a_raw_name() {
        assert_eq!(ident("points-awarded").unwrap().to_string(), "points_awarded");
        assert_eq!(ident("type").unwrap().to_string(), "r#type");
    }

    #[test]
    fn a_name_that_rust_cannot_have_is_refused() {
        for name in ["self", "1st", "", "a.b"] {
            assert!(ident(name).is_err(), "{name}");
        }
    }

    #[test]
    fn two_names_that_are_one_in_rust_are_refused() {
        let mut taken = Taken::default();
        assert!(taken.take("destination", "a-b").is_ok());
        assert_eq!(
            taken.take("destination", "a_b").unwrap_err(),
            "destination `a-b` and destination `a_b` are both `a_b` in Rust: rename one of them"
        );
    }
}
