//! A host that is told to stop.

use std::time::Duration;

use oncebox_tests::{
    checker::{check_feed, check_promise},
    database::Database,
    feed::{Feed, event},
    host::Host,
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::support::{ONE, Plan, settled};

/// Waits until the host is in the midst of it.
fn some_are_decided(database: &Database) {
    eventually("some are decided", PATIENCE, || (database.number("SELECT count(*) FROM ob_inbox") > 0).then_some(()));
}

fn undecided(host: &Host) -> u64 {
    let lines = host.logged("stopped; what is undecided is kept and taken again");
    lines[0]["undecided"].as_u64().unwrap()
}

#[test]
fn a_host_that_is_told_to_stop_under_load_ends_in_time_and_the_next_one_finishes_the_rest() {
    let site = Plan { tenant: "batch_max = 16\n", ..ONE }.site();
    let feed = Feed::seeded(7, 2_000);
    let mut host = site.start().ready();
    site.send("t/in", &feed.lines);
    let database = site.database("t.db");
    some_are_decided(&database);
    host.terminate();
    assert_eq!(host.ended(), 0);
    check_promise(&database);
    let left = database.number("SELECT count(*) FROM ob_local");
    assert!(left > 0, "the load was too small");
    assert!(i64::try_from(undecided(&host)).unwrap() <= left);
    assert_eq!(database.number("SELECT count(*) FROM ob_boot WHERE ended_at IS NULL"), 0);
    let host = site.start().ready();
    settled(&database, PATIENCE);
    check_promise(&database);
    check_feed(&database, "a", &feed);
    host.stop();
}

/// Runs for about as many tenths of a second as it says.
fn slow(key: &str, tenths: u64) -> String {
    event(&format!("e-{key}"), &json!({ "key": key, "amount": 1, "do": "spin", "times": tenths * 100_000_000 }))
}

const SLOW: &[(&str, &str)] = &[("a", "destinations = { out = \"kept\" }\nlimits = { run_time_ms_max = 20_000 }\n")];

#[test]
fn a_second_signal_ends_the_host_at_once_and_loses_nothing() {
    let site = Plan { handlers: SLOW, ..ONE }.site();
    let mut host = site.start().ready();
    site.send("t/in", &[slow("k", 30), slow("l", 1)]);
    let database = site.database("t.db");
    eventually("the run has begun", PATIENCE, || {
        (database.number("SELECT sum(deliveries) FROM ob_local") == 2).then_some(())
    });
    host.terminate();
    eventually("it drains", PATIENCE, || host.logged("stopping: takes nothing new, finishes what runs").pop());
    host.terminate();
    assert_eq!(host.ended_within(Duration::from_secs(1)), 130);
    check_promise(&database);
    let host = site.start().ready();
    settled(&database, PATIENCE);
    check_promise(&database);
    assert_eq!(database.number("SELECT count(*) FROM ledger"), 2);
    host.stop();
}

#[test]
fn when_the_drain_time_is_over_the_host_says_how_many_it_leaves_undecided() {
    let site = Plan { host: "drain_time_ms = 200\n", handlers: SLOW, ..ONE }.site();
    let mut host = site.start().ready();
    site.send("t/in", &[slow("k", 30), slow("l", 30)]);
    let database = site.database("t.db");
    eventually("the run has begun", PATIENCE, || {
        (database.number("SELECT sum(deliveries) FROM ob_local") == 2).then_some(())
    });
    host.terminate();
    assert_eq!(host.ended_within(Duration::from_secs(2)), 0);
    let lines = host.logged("stopped; what is undecided is kept and taken again");
    assert_eq!((&lines[0]["undecided"], &lines[0]["out_of_time"]), (&json!(2), &json!(true)), "{lines:?}");
    assert_eq!(database.number("SELECT count(*) FROM ob_local"), 2);
    assert_eq!(database.number("SELECT count(*) FROM ledger"), 0);
    let host = site.start().ready();
    eventually("applied", Duration::from_secs(60), || {
        (database.number("SELECT count(*) FROM ledger") == 2).then_some(())
    });
    check_promise(&database);
    host.stop();
}
