//! A tenant on MySQL with the tables of the probe `ledger`, whose deliveries go straight into the unit of work: what
//! stands there afterwards is held against the promise.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oncebox::{
    host::{Delivery, Item, Ran, ReadyStatement, Target},
    planted::{Fault, scope},
    plugin::Outcome,
    store::{Lane, Store, UnitOfWork},
};
use oncebox_core::{
    fold,
    manifest::{Reaction, RowExpectation},
    sql::Mark,
    value::Value,
};
use oncebox_tests::{
    checker::{broken, imbalances},
    fleet::SCHEMA,
    services::{Kind, MysqlDatabase},
};

use crate::bench::{Bench, applied, deliver, on, outgoing, over, text, write};

pub(crate) const LEASE: Duration = Duration::from_secs(60);

const ENTER: &str = "INSERT INTO ledger (handler, entry, amount, event_id, version) VALUES (?, ?, ?, '', 1)";
const COUNT: &str = "UPDATE counter SET n = n + 1, total = total + ? WHERE handler = ?";

/// Handlers `plain` and `other`, each with its row of the counter.
pub(crate) struct Stage {
    pub(crate) bench: Bench,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let mut bench = Bench::new().await;
        let database = &bench.tenant().database;
        SCHEMA.iter().for_each(|sql| database.execute(sql));
        database.execute("INSERT INTO counter VALUES ('plain', 0, 0), ('other', 0, 0)");
        // An outgoing event has the same id each time, and is there once: this wall must not hide a hole in the other.
        database.execute("ALTER TABLE ob_outbox DROP KEY event");
        for table in ["ledger", "counter"] {
            database.grant(&format!("SELECT, INSERT, UPDATE ON {}.{table}", database.name));
        }
        for target in [&mut bench.plain, &mut bench.other] {
            let Target::Handler(_, deployed) = target else { panic!("nobody") };
            let statements = &mut Arc::get_mut(deployed).unwrap().statements;
            statements.insert("enter".into(), statement(ENTER, "ledger"));
            statements.insert("count".into(), statement(COUNT, "counter"));
        }
        Self { bench }
    }

    pub(crate) fn database(&self) -> &MysqlDatabase {
        &self.bench.tenant().database
    }

    /// Everything that is wrong with the tables.
    async fn found(&self) -> Vec<String> {
        let mut found: Vec<String> = broken(self.database()).iter().map(ToString::to_string).collect();
        // What runs here is made by hand, and all of it at one time.
        found.retain(|broken| !broken.contains("an attempt begins when the one before it has ended"));
        found.extend(imbalances(self.bench.store.as_ref(), None).await.unwrap());
        found
    }

    /// An event that has run, enters its key and an amount, and tells of it.
    pub(crate) fn entry(target: &Target, key: &str, amount: i64) -> Item {
        let Item { delivery, ran } = Self::entered(deliver(target, key, 1), key, amount);
        let (Target::Handler(handler, _), Ran::Over(mut attempted)) = (&delivery.target, ran) else { panic!("it ran") };
        if let Outcome::Applied { events, .. } = &mut attempted.outcome {
            events.push(outgoing(&handler.name, key, "cdc", 0));
        }
        Item { delivery, ran: Ran::Over(attempted) }
    }

    /// The same of a delivery, under another name of its key; it tells nobody.
    pub(crate) fn entered(delivery: Delivery, key: &str, amount: i64) -> Item {
        let Target::Handler(handler, _) = &delivery.target else { panic!("nobody") };
        let (name, amount) = (text(&handler.name), Value::Signed(amount));
        let enter = write("enter", &[name.clone(), text(key), amount.clone()]);
        let outcome = applied(&[enter, write("count", &[amount, name])]);
        over(delivery, outcome)
    }
}

fn statement(sql: &str, table: &str) -> ReadyStatement {
    ReadyStatement {
        marks: marks(sql),
        last_insert_id: false,
        sql: sql.into(),
        rows: RowExpectation::Between { min: 1, max: 1 },
        mismatch: Reaction::Retry,
        errors: BTreeMap::new(),
        fold: fold::Facts { touches: Some([table.to_owned()].into()), form: None, rows: fold::RowsOfAll::OneEach },
    }
}

/// Whoever holds a handler's row of the counter, until it is let go.
pub(crate) struct Stranger(pub(crate) Box<dyn UnitOfWork + 'static>);

impl Stranger {
    pub(crate) async fn with(store: &Arc<dyn Store>, handler: &str) -> Self {
        let lane: &'static mut Box<dyn Lane> = Box::leak(Box::new(store.lane().await.unwrap()));
        let mut unit = lane.begin().await.unwrap();
        let params = [Value::Signed(0), text(handler)];
        let hold = "UPDATE counter SET total = total + ? WHERE handler = ?";
        assert_eq!(unit.staged_write(&hold.into(), &params).await, Ok(1));
        Self(unit)
    }
}

/// Plays a story without a fault, after which nothing may be wrong, and with it, after which what is wrong must be said
/// with these words. `story` answers what it has itself seen to be wrong.
pub(crate) fn caught(fault: Fault, story: impl AsyncFn(&Stage) -> Vec<String>, words: &[&str]) {
    let played = async |fault| {
        let stage = Stage::new().await;
        let mut found = scope(fault, story(&stage)).await;
        found.extend(stage.found().await);
        found
    };
    let (without, with) = on(Some(Kind::Mysql), async || (played(None).await, played(Some(fault)).await));
    assert_eq!(without, Vec::<String>::new(), "without the fault");
    for word in words {
        assert!(with.iter().any(|line| line.contains(word)), "{} is not found by `{word}`: {with:#?}", fault.name());
    }
}

/// Each `?` of a text in which all of them stand by themselves.
fn marks(sql: &str) -> Vec<Mark> {
    sql.match_indices('?').map(|(at, _)| Mark { at, is_alone: true }).collect()
}
