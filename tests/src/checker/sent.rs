//! Holds a tenant's tables against what was published to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value as Json;

use super::{Broken, Invariant};
use crate::{
    database::Tables,
    feed::{Expected, Feed},
};

/// The header that a [`crate::publisher::Publisher`] gives a message: made of its body, so that it can be told later
/// whether both were kept.
pub const ORIGIN: &str = "x-origin";

/// The value of that header (FNV-1a, 64 bits).
#[must_use]
pub fn origin(body: &[u8]) -> String {
    let hash = body
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// What was published for one handler, and what the broker said of it.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    handler: &'a str,
    feed: &'a Feed,
    /// Lines whose confirm never came, by their place in the feed: they may be there or not.
    unknown: BTreeSet<usize>,
    /// Messages have the header [`ORIGIN`].
    has_origins: bool,
    /// What a short class's events have counted when they are dead, where it is checked.
    short_attempts_max: Option<u32>,
}

impl<'a> Sent<'a> {
    /// All of a feed, every message confirmed.
    #[must_use]
    pub fn of(handler: &'a str, feed: &'a Feed) -> Self {
        Self { handler, feed, unknown: BTreeSet::new(), has_origins: false, short_attempts_max: None }
    }

    /// These lines were not confirmed.
    #[must_use]
    pub fn unknown(self, lines: impl IntoIterator<Item = usize>) -> Self {
        Self { unknown: lines.into_iter().collect(), ..self }
    }

    /// A [`crate::publisher::Publisher`] has sent them.
    #[must_use]
    pub fn with_origins(self) -> Self {
        Self { has_origins: true, ..self }
    }

    /// Attempts are counted by this setting of the handler.
    #[must_use]
    pub fn counted(self, short_attempts_max: u32) -> Self {
        Self { short_attempts_max: Some(short_attempts_max), ..self }
    }

    /// What of it is not in the tables as it should be, when nothing is left to do.
    #[must_use]
    #[track_caller]
    pub fn broken(&self, tables: &impl Tables) -> Vec<Broken> {
        let found = self.found(tables);
        let held = held(tables);
        let letters: HashMap<&str, &Held> =
            held.iter().filter(|held| held.state == POISON).map(|held| (held.payload.as_str(), held)).collect();
        [
            Broken::by(Invariant::NoLoss, "a confirmed message's key has the end that it asks for", self.lost(&found)),
            Broken::by(Invariant::NoLoss, "confirmed poison is a letter", self.lost_letters(&letters)),
            Broken::by(
                Invariant::NoLoss,
                "a key that came with two amounts is a conflict, and no other",
                self.conflicts(tables),
            ),
            Broken::by(Invariant::NoPhantom, "every key was sent", self.phantoms(&found)),
            Broken::by(Invariant::Kept, "a held message is as it was sent", self.changed(&held)),
            Broken::by(
                Invariant::Retries,
                "an attempt is counted for each run that ended, and for nothing else",
                self.miscounted(&found, tables),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Keys of confirmed messages that are not in the tables yet, in whatever state: while hosts are at work.
    #[must_use]
    #[track_caller]
    pub fn undecided<'k>(&self, tables: &impl Tables, confirmed: impl IntoIterator<Item = &'k str>) -> usize {
        let found = self.found(tables);
        confirmed.into_iter().filter(|key| !found.contains_key(*key)).count()
    }

    /// Each key's state and attempts.
    #[track_caller]
    fn found(&self, tables: &impl Tables) -> BTreeMap<String, (u8, Option<u32>)> {
        let rows = tables.lines(&format!(
            "SELECT concat(i.state, ' ', coalesce(i.attempts, '-'), ' ', CAST(i.business_key AS CHAR)) FROM ob_inbox AS i
             WHERE i.handler_id IN (SELECT handler_id FROM ob_handler WHERE CAST(name AS CHAR) = '{}')",
            self.handler
        ));
        let row = |row: &String| {
            let mut words = row.splitn(3, ' ');
            let state = words.next()?.parse().ok()?;
            let attempts = words.next()?.parse().ok();
            Some((words.next()?.to_owned(), (state, attempts)))
        };
        rows.iter().filter_map(row).collect()
    }

    fn is_confirmed(&self, line: usize) -> bool {
        !self.unknown.contains(&line)
    }

    fn lost(&self, found: &BTreeMap<String, (u8, Option<u32>)>) -> Vec<String> {
        let mut confirmed: BTreeSet<&str> = BTreeSet::new();
        for (line, key) in self.feed.lines_keys.iter().enumerate() {
            confirmed.extend(key.as_deref().filter(|_| self.is_confirmed(line)));
        }
        let is_right = |key: &str, end: Expected| match found.get(key) {
            Some((state, _)) => *state == end.state(),
            None => !confirmed.contains(key),
        };
        let wrong = self.feed.keys.iter().filter(|(key, end)| !is_right(key, **end));
        wrong
            .map(|(key, end)| match found.get(key) {
                Some((state, _)) => format!("{key}: {end:?}, but state {state}"),
                None => format!("{key}: {end:?}, but not there"),
            })
            .collect()
    }

    fn lost_letters(&self, letters: &HashMap<&str, &Held>) -> Vec<String> {
        let lines = self.feed.lines.iter().zip(&self.feed.lines_keys).enumerate();
        let poison = lines.filter(|(line, (_, key))| key.is_none() && self.is_confirmed(*line));
        let lost = poison.filter(|(_, (text, _))| !letters.contains_key(hex(text.as_bytes()).as_str()));
        lost.map(|(_, (text, _))| text.clone()).collect()
    }

    #[track_caller]
    fn conflicts(&self, tables: &impl Tables) -> Vec<String> {
        let found: BTreeSet<String> = tables
            .lines(&format!(
                "SELECT CAST(business_key AS CHAR) FROM ob_held WHERE state = 2
                 AND handler_id IN (SELECT handler_id FROM ob_handler WHERE CAST(name AS CHAR) = '{}')",
                self.handler
            ))
            .into_iter()
            .collect();
        // A message that may not have come may not have made its conflict.
        let missing = self.feed.conflicts.difference(&found).filter(|_| self.unknown.is_empty());
        let missing = missing.map(|key| format!("{key}: no conflict"));
        missing.chain(found.difference(&self.feed.conflicts).map(|key| format!("{key}: a conflict"))).collect()
    }

    fn phantoms(&self, found: &BTreeMap<String, (u8, Option<u32>)>) -> Vec<String> {
        found.keys().filter(|key| !self.feed.keys.contains_key(*key)).cloned().collect()
    }

    fn changed(&self, held: &[Held]) -> Vec<String> {
        let lines: HashMap<String, &String> = self.feed.lines.iter().map(|line| (hex(line.as_bytes()), line)).collect();
        let is_right = |held: &&Held| match lines.get(&held.payload) {
            Some(line) => !self.has_origins || held.origin.as_deref() == Some(&*origin(line.as_bytes())),
            // Another handler's, if it has one.
            None => held.handler != self.handler && held.handler != NOBODY,
        };
        let wrong = held.iter().filter(|held| !is_right(held));
        wrong.map(|Held { row, origin, .. }| format!("held row {row}, {ORIGIN} {origin:?}")).collect()
    }

    #[track_caller]
    fn miscounted(&self, found: &BTreeMap<String, (u8, Option<u32>)>, tables: &impl Tables) -> Vec<String> {
        let Some(short_attempts_max) = self.short_attempts_max else { return Vec::new() };
        let wanted = |what: &str| match what {
            "until" => 2,
            "trap" => short_attempts_max,
            _ => 1,
        };
        let counted = self.feed.runs.iter().filter_map(|(key, what)| Some((key, what, found.get(key)?.1)));
        let wrong = counted.filter(|(_, what, attempts)| *attempts != Some(wanted(what)));
        wrong
            .map(|(key, what, attempts)| {
                let codes = tables.lines(&format!(
                    "SELECT concat(a.attempt, ' ', a.code) FROM ob_attempt AS a JOIN ob_held AS x ON x.held_id = a.held_id
                     WHERE CAST(x.business_key AS CHAR) = '{key}' ORDER BY a.attempt"
                ));
                format!("{key}: {what}, {attempts:?} counted, failed were {codes:?}")
            })
            .collect()
    }
}

const POISON: u8 = 4;
const NOBODY: &str = "-";

struct Held {
    row: String,
    state: u8,
    handler: String,
    /// In hexadecimal.
    payload: String,
    origin: Option<String>,
}

/// Held rows with their messages as they came.
#[track_caller]
fn held(tables: &impl Tables) -> Vec<Held> {
    let rows = tables.lines(
        "SELECT concat(x.held_id, ' ', x.state, ' ', coalesce(CAST(h.name AS CHAR), '-'), ' ', hex(b.payload), ' ',
           CAST(b.headers AS CHAR))
         FROM ob_held AS x JOIN ob_body AS b ON b.held_id = x.held_id AND b.revision = 0
         LEFT JOIN ob_handler AS h ON h.handler_id = x.handler_id",
    );
    let row = |row: &String| {
        let mut words = row.splitn(5, ' ');
        let (id, state) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let (handler, payload) = (words.next()?.to_owned(), words.next()?.to_ascii_lowercase());
        let kept: Json = serde_json::from_str(words.next()?).ok()?;
        let headers = kept["headers"].as_array().into_iter().flatten();
        let own = headers.filter(|header| header[0] == ORIGIN).find_map(|header| header[1].as_str());
        Some(Held { row: id, state, handler, payload, origin: own.map(str::to_owned) })
    };
    rows.iter().filter_map(row).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_hash_that_its_authors_give_for_these_bytes() {
        // Fowler, Noll and Vo's own test vectors.
        for (body, wanted) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            assert_eq!(origin(body.as_bytes()), wanted);
        }
    }
}
