//! A new version while the old one works.

use std::{thread, time::Duration};

use oncebox_tests::{
    checker::{check_feed, check_promise},
    database::Database,
    feed::{Expected, Feed, entry, event},
    host::Site,
    patience::{PATIENCE, eventually, pass},
    wat::{source, wat_component},
};
use serde_json::json;

use crate::support::{ONE, ledger_of_version, settled, with_change};

#[test]
fn a_new_version_under_load_loses_doubles_and_gives_back_nothing() {
    let site = ONE.site();
    let host = site.start().ready();
    let mut feed = Feed::seeded(11, 600);
    let (first, rest) = feed.lines.split_at(150);
    site.send("t/in", first);
    for (number, lines) in (2..).zip(rest.chunks(150)) {
        let database = site.database("t.db");
        let decided = || database.number("SELECT count(*) FROM ob_inbox");
        let before = decided();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut sender = site.sender("t/in");
                for ten in lines.chunks(10) {
                    sender.send(ten);
                    pass(Duration::from_millis(50));
                }
                sender.finish();
            });
            // Some of these on the version before; the rest while the new one is taken in, and after.
            eventually("some more are decided", PATIENCE, || (decided() > before).then_some(()));
            site.deploy(&ledger_of_version(number), "t/a");
        });
    }
    site.send("t/in", &[entry("e-last", "last", 1)]);
    feed.keys.insert("last".to_owned(), Expected::Applied);
    let database = site.database("t.db");
    // Each message is handed out once: the row's counter would say 2.
    eventually("all are decided", PATIENCE, || {
        assert!(database.number("SELECT coalesce(max(deliveries), 0) FROM ob_local") <= 1);
        (database.number("SELECT count(*) FROM ob_local") == 0).then_some(())
    });
    settled(&database, PATIENCE);
    check_promise(&database);
    check_feed(&database, "a", &feed);
    let used = database.lines(
        "SELECT m.version FROM ob_inbox JOIN ob_deployment AS d USING (deployment_id) JOIN ob_module AS m USING (digest)
         GROUP BY m.version ORDER BY m.version",
    );
    assert_eq!(used, ["1.0.0", "2.0.0", "3.0.0", "4.0.0"]);
    // Each row names the deployment that has written.
    let misnamed = database.lines(
        "SELECT l.entry || ' by version ' || l.version || ', the row says ' || m.version FROM ledger AS l
         JOIN ob_inbox AS i ON i.business_key = CAST(l.entry AS BLOB)
         JOIN ob_deployment AS d USING (deployment_id) JOIN ob_module AS m USING (digest)
         WHERE m.version <> l.version || '.0.0'",
    );
    assert!(misnamed.is_empty(), "{misnamed:?}");
    assert_eq!(database.number("SELECT count(*) FROM ob_inbox WHERE deployment_id IS NULL"), 0);
    host.stop();
}

/// What serves is still version 1, and works.
fn version_1_goes_on(site: &Site, database: &Database) {
    site.send("t/in", &[entry("e-1", "after", 1)]);
    settled(database, PATIENCE);
    assert_eq!(
        database.lines("SELECT version FROM ob_module JOIN ob_deployment USING (digest) WHERE state = 1"),
        ["1.0.0"]
    );
    assert_eq!(database.number("SELECT count(*) FROM ledger WHERE entry = 'after'"), 1);
    check_promise(database);
}

#[test]
fn a_version_whose_start_fails_never_serves() {
    let site = ONE.site();
    let host = site.start().ready();
    let manifest = oncebox::module::manifest_section(&ledger_of_version(2)).unwrap().unwrap();
    for attack in ["hostile/import_in_start", "hostile/start_loop"] {
        site.write("bad.wasm", wat_component(&source(attack), &manifest));
        let refused = site.run(&["deploy", "bad.wasm", "t/a"]);
        assert_eq!(refused.code, Some(4), "{attack}: {}", refused.err);
        assert!(refused.err.contains("dry run"), "{attack}: {}", refused.err);
    }
    version_1_goes_on(&site, &site.database("t.db"));
    assert_eq!(host.get("/readyz").0, 200);
    host.stop();
}

#[test]
fn a_version_that_the_gate_refuses_never_serves() {
    let site = ONE.site();
    let host = site.start().ready();
    let changes = [
        (
            "UPDATE counter SET n = n + 1, total = total + ? WHERE handler = ?",
            "UPDATE ob_inbox SET state = ? WHERE code = ?",
        ),
        (
            "UPDATE counter SET n = n + 1, total = total + ? WHERE handler = ?",
            "UPDATE counter SET m = ? WHERE handler = ?",
        ),
        ("SET n = n + 1, total = total + ? WHERE handler = ?", "SET total = ? || ?"),
    ];
    for (from, to) in changes {
        site.write("bad.wasm", with_change(&ledger_of_version(2), from, to));
        let refused = site.run(&["deploy", "bad.wasm", "t/a"]);
        assert_eq!(refused.code, Some(4), "{to}: {}", refused.err);
        assert!(refused.err.contains("statements.count"), "{to}: {}", refused.err);
    }
    version_1_goes_on(&site, &site.database("t.db"));
    host.stop();
}

#[test]
fn what_the_running_host_itself_refuses_does_not_replace_what_serves() {
    let site = ONE.site();
    let host = site.start().ready();
    // The command reads the file as it is now, the host as it was when it started.
    let config = ONE.config();
    site.write("oncebox.toml", config.replace("out = \"kept\"", "out = \"kept\", more = \"kept\""));
    let two = with_change(
        &ledger_of_version(2),
        "[destinations.out]",
        "[destinations.more]\nevent_types = []\n\n[destinations.out]",
    );
    site.write("two.wasm", two);
    let refused = site.run(&["deploy", "two.wasm", "t/a"]);
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(refused.err.contains("destinations.more"), "{}", refused.err);
    version_1_goes_on(&site, &site.database("t.db"));
    assert_eq!(host.get("/readyz").0, 200);
    host.stop();
}

#[test]
fn a_changed_rule_needs_the_word_and_old_rows_are_compared_by_their_own() {
    let site = ONE.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    let noted = |id: &str, key: &str, note: &str| event(id, &json!({ "key": key, "amount": 5, "note": note }));
    site.send("t/in", &[noted("e-1", "old", "x")]);
    settled(&database, PATIENCE);

    site.write(
        "two.wasm",
        with_change(&ledger_of_version(2), "fingerprint = [\"/amount\"]", "fingerprint = [\"/amount\", \"/note\"]"),
    );
    let refused = site.run(&["deploy", "two.wasm", "t/a"]);
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(refused.err.contains("--new-rule"), "{}", refused.err);
    site.ok(&["deploy", "two.wasm", "t/a", "--new-rule"]);

    // Under the old rule the note did not count, and it does not for what was applied under it.
    site.send("t/in", &[noted("e-2", "old", "y"), noted("e-3", "new", "x"), noted("e-4", "new", "y")]);
    settled(&database, PATIENCE);
    check_promise(&database);
    let rows = database.lines("SELECT CAST(business_key AS TEXT) || ' ' || duplicates FROM ob_inbox ORDER BY 1");
    assert_eq!(rows, ["new 1", "old 1"]);
    let conflicts = database.lines("SELECT CAST(business_key AS TEXT) FROM ob_held WHERE state = 2");
    assert_eq!(conflicts, ["new"]);
    host.stop();
}
