//! Random histories against a model: whatever comes in whatever batches, rows and books are those of the life table.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use oncebox::{
    host::{Delivery, Fate, Item},
    plugin::Outcome,
};
use oncebox_core::{failure::Class, life::Verdict, value::Value};
use proptest::prelude::*;

use crate::bench::{ATTEMPTS_MAX, Bench, SHORT_ATTEMPTS_MAX, applied, deliver, failed, over, text, write};

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Applies,
    Skips,
    /// Its second write is refused for its data: dead at once.
    Breaks,
    /// Its second write hits a unique key: parked, dead at the second time.
    Collides,
    /// Its row is not there: obsolete.
    Obsolete,
    Parks,
    Dies,
    /// No instance: undecided.
    Faults,
}

#[derive(Debug, Clone)]
enum Step {
    /// Deliveries of (key, value) in one batch, with the ends of their runs.
    Deliver(Vec<(u8, i64, Run)>),
    /// Everything parked is claimed and run in one batch, with these ends in turn.
    Claim(Vec<Run>),
}

fn run() -> impl Strategy<Value = Run> {
    prop::sample::select(vec![
        Run::Applies,
        Run::Applies,
        Run::Skips,
        Run::Breaks,
        Run::Collides,
        Run::Obsolete,
        Run::Parks,
        Run::Parks,
        Run::Dies,
        Run::Faults,
    ])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let deliver = prop::collection::vec((0u8..6, 0i64..2, run()), 1..6).prop_map(Step::Deliver);
    let claim = prop::collection::vec(run(), 6).prop_map(Step::Claim);
    prop::collection::vec(prop_oneof![3 => deliver, 2 => claim], 1..10)
}

/// What the tables must say of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    value: i64,
    state: i64,
    attempts: u32,
    short: u32,
    duplicates: i64,
    effects: i64,
    /// Of the held row: parked, dead, resolved.
    held: Option<i64>,
    conflicts: i64,
}

#[derive(Debug, Default)]
struct Model {
    keys: BTreeMap<u8, Key>,
    tally: BTreeMap<Verdict, u64>,
}

impl Model {
    /// What a delivery becomes.
    fn deliver(&mut self, key: u8, value: i64, run: Run) -> Fate {
        if let Some(known) = self.keys.get_mut(&key) {
            known.duplicates += 1;
            let verdict = if known.value == value { Verdict::Duplicate } else { Verdict::Conflict };
            known.conflicts += i64::from(verdict == Verdict::Conflict);
            return self.count(verdict);
        }
        if run == Run::Faults {
            return Fate::Again;
        }
        let new = Key { value, state: 0, attempts: 0, short: 0, duplicates: 0, effects: 0, held: None, conflicts: 0 };
        self.keys.insert(key, new);
        self.end(key, run)
    }

    /// What an attempt that owns its key becomes.
    fn end(&mut self, key: u8, run: Run) -> Fate {
        if run == Run::Faults {
            return Fate::Again;
        }
        let own = self.keys.get_mut(&key).unwrap();
        own.attempts += 1;
        let resolved = own.held.map(|_| 5);
        let verdict = match run {
            Run::Applies => {
                (own.state, own.held, own.effects) = (0, resolved, 1);
                Verdict::Applied
            }
            Run::Skips | Run::Obsolete => {
                (own.state, own.held) = (1, resolved);
                Verdict::Skipped
            }
            Run::Breaks | Run::Dies => {
                (own.state, own.held) = (3, Some(1));
                Verdict::Dead
            }
            Run::Collides | Run::Parks => {
                own.short += u32::from(run == Run::Collides);
                let last = own.attempts >= ATTEMPTS_MAX || (run == Run::Collides && own.short >= SHORT_ATTEMPTS_MAX);
                (own.state, own.held) = if last { (3, Some(1)) } else { (2, Some(0)) };
                if last { Verdict::Dead } else { Verdict::Parked }
            }
            Run::Faults => unreachable!("it returned above"),
        };
        self.count(verdict)
    }

    fn count(&mut self, verdict: Verdict) -> Fate {
        *self.tally.entry(verdict).or_default() += 1;
        Fate::Decided(verdict)
    }
}

fn item(delivery: Delivery, run: Run) -> Item {
    let name = delivery.key().unwrap().1.to_string();
    let effect = write("effect", &[text(&name)]);
    let outcome = match run {
        Run::Applies => applied(&[effect]),
        Run::Skips => Outcome::Skipped { reason: "no".into() },
        Run::Breaks => applied(&[effect, write("effect", &[Value::Null])]),
        Run::Collides => applied(&[effect, write("once", &[text("taken")])]),
        Run::Obsolete => applied(&[effect, write("award-or-obsolete", &[Value::Signed(99)])]),
        Run::Parks => failed(Class::GuestRetry, "later"),
        Run::Dies => failed(Class::GuestReject, "no"),
        Run::Faults => failed(Class::Infrastructure, "pool"),
    };
    over(delivery, outcome)
}

fn name(key: u8) -> String {
    format!("k{key}")
}

async fn act(bench: &Bench, model: &mut Model, step: &Step) {
    let (batch, expected) = match step {
        Step::Deliver(events) => {
            let mut keys = HashSet::new();
            // The lanes' queue sees to it: a key is in a batch at most once.
            let events: Vec<_> = events.iter().filter(|(key, _, _)| keys.insert(*key)).collect();
            let batch = events.iter().map(|(key, v, run)| item(deliver(&bench.plain, &name(*key), *v), *run));
            let batch: Vec<Item> = batch.collect();
            let expected: Vec<Fate> = events.iter().map(|(key, v, run)| model.deliver(*key, *v, *run)).collect();
            (batch, expected)
        }
        Step::Claim(runs) => {
            let claimed = bench.claim(&bench.plain, Duration::ZERO).await;
            let keys: Vec<u8> = claimed.iter().map(|claim| claim.key().unwrap().1.as_bytes()[1] - b'0').collect();
            let parked = model.keys.iter().filter(|(_, key)| key.state == 2).map(|(key, _)| *key);
            assert_eq!(keys.iter().copied().collect::<HashSet<_>>(), parked.collect::<HashSet<_>>());
            let batch = claimed.into_iter().zip(runs).map(|(claim, run)| item(claim, *run));
            let batch: Vec<Item> = batch.collect();
            let expected = keys.iter().zip(runs).map(|(key, run)| model.end(*key, *run)).collect();
            (batch, expected)
        }
    };
    assert_eq!(bench.verdicts(&batch).await, expected, "{step:?}");
}

async fn agrees(bench: &Bench, model: &Model) {
    let rows = bench
        .rows(
            "SELECT CAST(i.business_key AS CHAR), i.state, i.attempts, i.duplicates,
               (SELECT count(*) FROM effect AS e WHERE e.name = CAST(i.business_key AS CHAR)),
               (SELECT h.state FROM ob_held AS h WHERE h.business_key = i.business_key AND h.state <> 2),
               (SELECT coalesce(sum(h.times), 0) FROM ob_held AS h
                 WHERE h.business_key = i.business_key AND h.state = 2)
             FROM ob_inbox AS i ORDER BY i.business_key",
        )
        .await;
    let number = Value::Signed;
    let expected: Vec<Vec<Value>> = model
        .keys
        .iter()
        .map(|(key, own)| {
            vec![
                text(&name(*key)),
                number(own.state),
                number(own.attempts.into()),
                number(own.duplicates),
                number(own.effects),
                own.held.map_or(Value::Null, number),
                number(own.conflicts),
            ]
        })
        .collect();
    assert_eq!(rows, expected);
    let tallies: BTreeMap<_, _> =
        bench.store.tallies().await.unwrap().into_iter().map(|(_, verdict, n)| (verdict, n)).collect();
    assert_eq!(tallies, model.tally);
    let once = bench.texts("SELECT code FROM once").await;
    assert_eq!(once, ["taken"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_history_in_any_batches_ends_as_the_life_table_says(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new().await;
            bench.run("INSERT INTO once (code) VALUES ('taken')").await;
            let mut model = Model::default();
            for step in &steps {
                act(&bench, &mut model, step).await;
                agrees(&bench, &model).await;
            }
        });
    }
}
