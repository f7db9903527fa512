//! Events for the probe `ledger`, made from a seed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

/// Numbers that look random and are the same for the same seed (splitmix64, Steele et al. 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `below - 1`.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// One event in CloudEvents' structured mode, as a line.
#[must_use]
pub fn event(id: &str, data: &serde_json::Value) -> String {
    json!({ "specversion": "1.0", "id": id, "source": "/tests", "type": "entry", "data": data }).to_string()
}

/// An event that is to be applied.
#[must_use]
pub fn entry(id: &str, key: &str, amount: i64) -> String {
    event(id, &json!({ "key": key, "amount": amount }))
}

/// An amount that the counter of the scenarios' schema refuses, after the ledger has taken it.
pub const TOO_MUCH: i64 = 2_000_000_000;

/// What must have become of a key when all is over. An event says it by its `do`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Applied once.
    Applied,
    /// Skipped.
    Skipped,
    /// A dead letter.
    Dead,
}

impl Expected {
    /// The number of the state in `ob_inbox`.
    #[must_use]
    pub fn state(self) -> u8 {
        match self {
            Self::Applied => 0,
            Self::Skipped => 1,
            Self::Dead => 3,
        }
    }
}

/// Of a hundred messages, how many are what.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// A message that was there before, or its like.
    pub duplicates: u64,
    /// A key that was there before, with another amount.
    pub conflicts: u64,
    /// Without a key, or not to be read.
    pub poison: u64,
}

/// Lines to send, and what must come of them.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    /// The messages, in their order.
    pub lines: Vec<String>,
    /// Of each line, the key; `None`: poison.
    pub lines_keys: Vec<Option<String>>,
    /// Of each key, what its run is told to do.
    pub runs: BTreeMap<String, &'static str>,
    /// Each key with its end.
    pub keys: BTreeMap<String, Expected>,
    /// Messages without a key, or that cannot be read.
    pub poison: usize,
    /// Messages of a key that was there before.
    pub again: usize,
    /// Keys that came with two amounts: whichever is first, the other one is a conflict.
    pub conflicts: BTreeSet<String>,
}

impl Feed {
    /// Of a hundred messages about 30 are duplicates, 4 conflicts, 4 poison.
    #[must_use]
    pub fn seeded(seed: u64, count: usize) -> Self {
        Self::mixed(seed, count, Mix { duplicates: 30, conflicts: 4, poison: 4 })
    }

    /// As in the mix; of the keys most are applied, some only at the second attempt, some skipped, some rejected, some
    /// trap, some are more than the counter takes.
    #[must_use]
    pub fn mixed(seed: u64, count: usize, mix: Mix) -> Self {
        Self::mixed_for("k", seed, count, mix)
    }

    /// The same with keys that begin with `name`.
    #[must_use]
    pub fn mixed_for(name: &str, seed: u64, count: usize, mix: Mix) -> Self {
        let to_conflicts = mix.duplicates + mix.conflicts;
        let to_poison = to_conflicts + mix.poison;
        let mut chance = Chance::new(seed);
        let mut feed = Self::default();
        let mut before: Vec<(String, i64, &'static str)> = Vec::new();
        for n in 0..count {
            let roll = chance.below(100);
            let known = usize::try_from(chance.below(before.len().max(1) as u64)).ok().and_then(|at| before.get(at));
            let (key, amount, what) = match (roll, known) {
                (roll, Some((key, amount, what))) if roll < mix.duplicates => (key.clone(), *amount, *what),
                (roll, Some((key, amount, what))) if roll < to_conflicts => {
                    feed.conflicts.insert(key.clone());
                    (key.clone(), amount + 1_000, *what)
                }
                (roll, _) if (to_conflicts..to_poison).contains(&roll) => {
                    feed.poison += 1;
                    // No two are alike, or the second would be counted on the letter of the first.
                    feed.lines.push(if roll == to_conflicts {
                        format!("{{garbage {n}")
                    } else {
                        event(&format!("e-{n}"), &json!({ "amount": n }))
                    });
                    feed.lines_keys.push(None);
                    continue;
                }
                _ => {
                    let what = match chance.below(20) {
                        0 => "skip",
                        1 => "reject",
                        2 => "until",
                        3 => "trap",
                        4 => "refused",
                        _ => "apply",
                    };
                    let amount = i64::try_from(chance.below(100)).unwrap_or(0) + 1;
                    let amount = if what == "refused" { TOO_MUCH } else { amount };
                    (format!("{name}-{n}"), amount, what)
                }
            };
            let told = if what == "refused" { "apply" } else { what };
            let data = json!({ "key": key, "amount": amount, "do": told, "times": 2 });
            feed.lines.push(event(&format!("e-{n}"), &data));
            feed.lines_keys.push(Some(key.clone()));
            feed.runs.insert(key.clone(), what);
            let end = match what {
                "skip" => Expected::Skipped,
                "reject" | "trap" | "refused" => Expected::Dead,
                _ => Expected::Applied,
            };
            if feed.keys.insert(key.clone(), end).is_some() {
                feed.again += 1;
            } else {
                before.push((key, amount, what));
            }
        }
        feed
    }
}
