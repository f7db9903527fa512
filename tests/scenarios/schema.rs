//! Somebody changes a table under a running handler.

use std::time::Duration;

use oncebox_tests::{
    checker::check_promise,
    feed::entry,
    patience::{PATIENCE, eventually},
};

use crate::support::{ONE, settled};

#[test]
fn events_wait_uncounted_while_a_table_is_not_what_it_was_and_are_applied_when_it_is_back() {
    let site = ONE.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    database.execute("ALTER TABLE counter RENAME COLUMN total TO sum");
    site.send("t/in", &[entry("e-1", "k", 5), entry("e-2", "l", 6)]);
    eventually("parked", PATIENCE, || {
        (database.number("SELECT count(*) FROM ob_held WHERE state = 0 AND attempts = 0") == 2).then_some(())
    });
    let why = eventually("not ready", PATIENCE, || Some(host.get("/readyz")).filter(|(status, _)| *status == 503)).1;
    assert!(why.contains("tenant t: handler a") && why.contains("total"), "{why}");
    let parked = site.json(&["dead", "list", "t", "--state", "parked"]);
    assert!(parked.as_array().unwrap().iter().all(|row| row["class"] == "blocked"), "{parked:#}");
    // What has begun meanwhile is in no half.
    assert_eq!(database.number("SELECT count(*) FROM ledger"), 0);

    database.execute("ALTER TABLE counter RENAME COLUMN sum TO total");
    eventually("ready again", PATIENCE, || (host.get("/readyz").0 == 200).then_some(()));
    settled(&database, Duration::from_secs(8));
    check_promise(&database);
    assert_eq!(database.number("SELECT total FROM counter"), 11);
    host.stop();
}

#[test]
fn a_host_that_starts_while_a_table_is_gone_takes_nothing_until_it_is_back() {
    let site = ONE.site();
    site.start().ready().stop();
    let database = site.database("t.db");
    database.execute("ALTER TABLE counter RENAME TO counter_away");
    site.send("t/in", &[entry("e-1", "k", 5)]);
    let host = site.start();
    let why = eventually("says why", PATIENCE, || Some(host.get("/readyz").1).filter(|why| why.contains("counter")));
    assert!(why.contains("tenant t: handler a"), "{why}");
    assert_eq!(database.number("SELECT sum(deliveries) FROM ob_local"), 0);
    database.execute("ALTER TABLE counter_away RENAME TO counter");
    let host = host.ready();
    settled(&database, PATIENCE);
    check_promise(&database);
    assert_eq!(database.number("SELECT total FROM counter"), 5);
    host.stop();
}

#[test]
fn what_was_never_served_is_refused_when_its_table_is_gone_and_says_so() {
    let site = ONE.site();
    site.database("t.db").execute("DROP TABLE counter");
    let host = site.start();
    let why = eventually("says why", PATIENCE, || Some(host.get("/readyz").1).filter(|why| why.contains("counter")));
    assert!(why.contains("tenant t: handler a"), "{why}");
    host.stop();
}
