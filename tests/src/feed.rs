//! Events for the probe `ledger`, made from a seed.

use std::collections::BTreeMap;

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

/// Lines to send, and what must come of them.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    /// The messages, in their order.
    pub lines: Vec<String>,
    /// Each key with its end.
    pub keys: BTreeMap<String, Expected>,
    /// Messages without a key, or that cannot be read.
    pub poison: usize,
    /// Messages of a key that was there before.
    pub again: usize,
}

impl Feed {
    /// Of a hundred messages about 30 are duplicates, 4 conflicts, 4 poison; of the keys most are applied, some only at
    /// the second attempt, some skipped, some rejected, some trap.
    #[must_use]
    pub fn seeded(seed: u64, count: usize) -> Self {
        let mut chance = Chance::new(seed);
        let mut feed = Self::default();
        let mut before: Vec<(String, i64, &str)> = Vec::new();
        for n in 0..count {
            let roll = chance.below(100);
            let known = usize::try_from(chance.below(before.len().max(1) as u64)).ok().and_then(|at| before.get(at));
            let (key, amount, what) = match (roll, known) {
                (0..30, Some((key, amount, what))) => (key.clone(), *amount, *what),
                (30..34, Some((key, amount, what))) => (key.clone(), amount + 1_000, *what),
                (34..38, _) => {
                    feed.poison += 1;
                    // No two are alike, or the second would be counted on the letter of the first.
                    feed.lines.push(if roll == 34 {
                        format!("{{garbage {n}")
                    } else {
                        event(&format!("e-{n}"), &json!({ "amount": n }))
                    });
                    continue;
                }
                _ => {
                    let what = match chance.below(20) {
                        0 => "skip",
                        1 => "reject",
                        2 => "until",
                        3 => "trap",
                        _ => "apply",
                    };
                    (format!("k-{n}"), i64::try_from(chance.below(100)).unwrap_or(0) + 1, what)
                }
            };
            feed.lines.push(event(&format!("e-{n}"), &json!({ "key": key, "amount": amount, "do": what, "times": 2 })));
            let end = match what {
                "skip" => Expected::Skipped,
                "reject" | "trap" => Expected::Dead,
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
