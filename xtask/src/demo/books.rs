//! What `oncebox tally` says, held against what was expected.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

/// How often a verdict must have been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// So often.
    Exactly(u64),
    /// So often, or more: the rest depends on the machine's speed.
    AtLeast(u64),
}

impl Expected {
    /// As many more.
    pub(super) fn plus(self, more: u64) -> Self {
        match self {
            Self::Exactly(n) => Self::Exactly(n + more),
            Self::AtLeast(n) => Self::AtLeast(n + more),
        }
    }

    /// No longer exact.
    pub(super) fn or_more(&mut self) {
        let (Self::Exactly(n) | Self::AtLeast(n)) = *self;
        *self = Self::AtLeast(n);
    }

    fn met_by(self, found: u64) -> bool {
        match self {
            Self::Exactly(n) => found == n,
            Self::AtLeast(n) => found >= n,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(n) => f.pad(&thousands(*n)),
            Self::AtLeast(n) => f.pad(&format!("{} or more", thousands(*n))),
        }
    }
}

/// The books at one moment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Books {
    /// By (tenant/handler, verdict).
    pub(super) verdicts: BTreeMap<(String, String), u64>,
    /// Parked events of all handlers.
    pub(super) parked: u64,
    /// Messages of all sources that are not settled.
    pub(super) waiting: u64,
}

impl Books {
    /// Reads the answer of `oncebox --json tally`; `None` if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let answer: Value = serde_json::from_str(text).ok()?;
        let mut books = Self::default();
        for (tenant, own) in answer.get("tenants")?.as_object()? {
            for (handler, counts) in own.get("verdicts")?.as_object()? {
                for (verdict, n) in counts.as_object()? {
                    books.verdicts.insert((format!("{tenant}/{handler}"), verdict.clone()), n.as_u64()?);
                }
            }
            for counts in own.get("held")?.as_object()?.values() {
                books.parked += counts.get("parked").and_then(Value::as_u64).unwrap_or(0);
            }
            for n in own.get("waiting")?.as_object()?.values() {
                books.waiting += n.as_u64()?;
            }
        }
        Some(books)
    }

    /// How often a verdict was given, by all handlers.
    pub(super) fn sum(&self, verdict: &str) -> u64 {
        self.verdicts.iter().filter(|((_, v), _)| v == verdict).map(|(_, n)| n).sum()
    }

    /// A table of expected and found; the number says how many lines differ.
    pub(super) fn compare(&self, expected: &BTreeMap<(String, &'static str), Expected>) -> (String, usize) {
        use fmt::Write as _;
        let keys: BTreeSet<(&str, &str)> = expected
            .keys()
            .map(|(handler, verdict)| (&**handler, *verdict))
            .chain(self.verdicts.keys().map(|(handler, verdict)| (&**handler, &**verdict)))
            .collect();
        let mut table = format!("{:<26}{:<12}{:>12}{:>10}\n", "handler", "verdict", "expected", "found");
        let mut differing = 0;
        for (handler, verdict) in keys {
            let wanted = expected.iter().find(|((h, v), _)| h == handler && *v == verdict);
            let wanted = wanted.map_or(Expected::Exactly(0), |(_, n)| *n);
            let found = self.verdicts.get(&(handler.to_owned(), verdict.to_owned())).copied().unwrap_or(0);
            let remark = if wanted.met_by(found) { "" } else { "   differs" };
            differing += usize::from(!remark.is_empty());
            let found = thousands(found);
            let _ = writeln!(table, "{handler:<26}{verdict:<12}{wanted:>12}{found:>10}{remark}");
        }
        (table, differing)
    }
}

/// A number as people read it.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"tenants":{
        "shop":{"verdicts":{"points-award":{"applied":1200,"dead":30},"-":{"dead":2}},"held":{"points-award":{"dead":30,"parked":1}},"waiting":{"orders":4}},
        "campaign":{"verdicts":{},"held":{},"waiting":{"paid":0,"notices":1}}}}"#;

    fn at(handler: &str, verdict: &'static str) -> (String, &'static str) {
        (handler.to_owned(), verdict)
    }

    #[test]
    fn the_books_of_all_tenants_are_read() {
        let books = Books::parse(ANSWER).unwrap();
        assert_eq!((books.parked, books.waiting, books.sum("dead")), (1, 5, 32));
        assert_eq!(Books::parse("{}"), None);
    }

    #[test]
    fn a_verdict_that_is_missing_one_too_many_and_one_nobody_expected_all_differ() {
        let books = Books::parse(ANSWER).unwrap();
        let mut expected = BTreeMap::from([
            (at("shop/points-award", "applied"), Expected::Exactly(1_200)),
            (at("shop/points-award", "dead"), Expected::AtLeast(29)),
            (at("shop/-", "dead"), Expected::Exactly(2)),
        ]);
        assert_eq!(books.compare(&expected).1, 0);
        expected.insert(at("shop/points-award", "applied"), Expected::Exactly(1_199));
        expected.insert(at("shop/points-level", "skipped"), Expected::Exactly(2));
        expected.remove(&at("shop/-", "dead"));
        let (table, differing) = books.compare(&expected);
        assert_eq!(differing, 3, "{table}");
    }

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
