//! A host among others. The embedded store has only one host, so the others are rows written by hand here; two real
//! processes are in the target `fleet`.

use std::{thread, time::Duration};

use oncebox_tests::{
    checker::check_promise,
    database::Database,
    feed::entry,
    host::{Host, Site},
    patience::{PATIENCE, eventually},
};

use crate::support::{ONE, Plan, SOON, ledger, ledger_of_version, settled, with_change};

/// Host `a`, whose life is looked at often.
const FLEET: Plan = Plan { host: "name = \"a\"\nheartbeat_ms = 100\nboot_timeout_ms = 1000\n", ..ONE };
/// The id of the other host's boot.
const B: &str = "x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b'";
const NOW_US: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/// Host `b` lives, as far as the tables tell, and was seen last so many seconds from now.
fn other_lives(database: &Database, seen_s: i64) {
    database.execute(&format!(
        "INSERT INTO ob_boot (boot_id, host, version, started_at, seen_at)
         VALUES ({B}, 'b', '0.1.0', {NOW_US}, {NOW_US} + {seen_s} * 1000000)"
    ));
}

fn other_answers(database: &Database, deployment: i64, refuses: Option<&str>) {
    let (ready, message) = refuses.map_or((1, "NULL".to_owned()), |why| (0, format!("'{why}'")));
    database.execute(&format!(
        "INSERT INTO ob_ready (boot_id, deployment_id, ready, message, at)
         VALUES ({B}, {deployment}, {ready}, {message}, {NOW_US})"
    ));
}

/// Waits until host `a` has answered an offer after the given one; the answer is the offer.
#[track_caller]
fn answered(database: &Database, after: i64, ready: bool) -> i64 {
    let asked = format!(
        "SELECT coalesce(max(deployment_id), 0) FROM ob_deployment JOIN ob_ready USING (deployment_id)
         JOIN ob_boot USING (boot_id) WHERE host = 'a' AND deployment_id > {after} AND ready = {ready}"
    );
    eventually("a has answered", PATIENCE, || Some(database.number(&asked)).filter(|id| *id > 0))
}

fn state(database: &Database, deployment: i64) -> i64 {
    database.number(&format!("SELECT state FROM ob_deployment WHERE deployment_id = {deployment}"))
}

/// Sends one event and waits until it is applied; the answer is the version that has applied it.
#[track_caller]
fn served_by(site: &Site, database: &Database, key: &str) -> i64 {
    site.send("t/in", &[entry(&format!("e-{key}"), key, 1)]);
    settled(database, PATIENCE);
    check_promise(database);
    database.number(&format!("SELECT version FROM ledger WHERE entry = '{key}'"))
}

#[track_caller]
fn unready(host: &Host, why: &str) -> String {
    let says = |(status, text): (u16, String)| (status == 503 && text.contains(why)).then_some(text);
    eventually(why, PATIENCE, || says(host.get("/readyz")))
}

/// Lets some looks at the deployments pass.
fn some_looks(database: &Database) {
    let seen = || database.number("SELECT max(seen_at) FROM ob_boot WHERE host = 'a'");
    let until = seen() + 1_500_000;
    eventually("looked again", PATIENCE, || (seen() > until).then_some(()));
}

#[test]
fn an_offer_waits_for_every_live_host_and_the_old_version_serves_meanwhile() {
    let site = FLEET.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    other_lives(&database, 3600);
    site.write("two.wasm", ledger_of_version(2));
    thread::scope(|scope| {
        let deploy = scope.spawn(|| site.run(&["deploy", "two.wasm", "t/a"]));
        let offer = answered(&database, 1, true);
        assert_eq!(served_by(&site, &database, "meanwhile"), 1);
        some_looks(&database);
        assert_eq!(state(&database, offer), 0);
        assert_eq!(host.get("/readyz").0, 200, "what serves goes on serving");
        other_answers(&database, offer, None);
        let ended = deploy.join().unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.out.trim_end().ends_with(": active (ready: a, b)"), "{}", ended.out);
        assert!(ended.err.contains("deployment 2 is offered; ready: a; awaited: b"), "{}", ended.err);
    });
    eventually("version 2 serves", PATIENCE, || (host.logged("serves from now on").len() == 2).then_some(()));
    assert_eq!(served_by(&site, &database, "after"), 2);
    host.stop();
}

#[test]
fn a_split_is_told_with_its_reasons_and_force_lets_it_serve() {
    let site = FLEET.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    other_lives(&database, 3600);
    site.write("two.wasm", ledger_of_version(2));
    let split = thread::scope(|scope| {
        let deploy = scope.spawn(|| site.run(&["deploy", "two.wasm", "t/a"]));
        other_answers(&database, answered(&database, 1, true), Some("no room for it"));
        deploy.join().unwrap()
    });
    assert_eq!(split.code, Some(4), "{}", split.err);
    for told in ["error[refused-by-some]", "ready on a and refused by b", "\nb: no room for it\n", "--force"] {
        assert!(split.err.contains(told), "{told}: {}", split.err);
    }
    let answers = || database.lines("SELECT CAST(at AS TEXT) FROM ob_ready WHERE deployment_id = 2 ORDER BY boot_id");
    let before = answers();
    some_looks(&database);
    assert_eq!((state(&database, 2), answers()), (0, before), "it stays offered, and nobody answers twice");
    assert_eq!(served_by(&site, &database, "before"), 1);

    let forced = thread::scope(|scope| {
        let deploy = scope.spawn(|| site.run(&["deploy", "two.wasm", "t/a", "--force"]));
        other_answers(&database, answered(&database, 2, true), Some("no room for it"));
        deploy.join().unwrap()
    });
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(forced.out.trim_end().ends_with(": active (ready: a; refused by: b)"), "{}", forced.out);
    assert_eq!(database.lines("SELECT action FROM ob_audit ORDER BY audit_id DESC LIMIT 1"), ["deploy --force"]);
    eventually("version 2 serves", PATIENCE, || (host.logged("serves from now on").len() == 2).then_some(()));
    assert_eq!(served_by(&site, &database, "after"), 2);
    host.stop();
}

/// A module for which the configuration of the running host has no destination; the one on disk has.
fn beyond_the_running_host(site: &Site) -> Vec<u8> {
    let config = FLEET.config();
    site.write("oncebox.toml", config.replace("out = \"kept\"", "out = \"kept\", more = \"kept\""));
    with_change(
        &ledger_of_version(2),
        "[destinations.out]",
        "[destinations.more]\nevent_types = []\n\n[destinations.out]",
    )
}

#[test]
fn what_every_host_refuses_is_refused_with_each_ones_reason() {
    let site = FLEET.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    other_lives(&database, 3600);
    site.write("two.wasm", beyond_the_running_host(&site));
    let refused = thread::scope(|scope| {
        let deploy = scope.spawn(|| site.run(&["deploy", "two.wasm", "t/a"]));
        other_answers(&database, answered(&database, 1, false), Some("no room for it"));
        deploy.join().unwrap()
    });
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    for told in ["error[refused-by-host]", "a: [destinations]", "destinations.more", "\nb: no room for it"] {
        assert!(refused.err.contains(told), "{told}: {}", refused.err);
    }
    assert_eq!(state(&database, 2), 5);
    assert_eq!(served_by(&site, &database, "after"), 1);
    assert_eq!(host.get("/readyz").0, 200);
    host.stop();
}

#[test]
fn a_host_that_cannot_serve_the_active_deployment_takes_nothing_and_says_so() {
    let site = FLEET.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    other_lives(&database, 3600);
    site.write("two.wasm", beyond_the_running_host(&site));
    let forced = thread::scope(|scope| {
        let deploy = scope.spawn(|| site.run(&["deploy", "two.wasm", "t/a", "--force"]));
        other_answers(&database, answered(&database, 1, false), None);
        deploy.join().unwrap()
    });
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    let why = unready(&host, "deployment 2 cannot be served");
    assert!(why.contains("tenant t: handler a") && why.contains("destinations.more"), "{why}");
    site.send("t/in", &[entry("e-1", "waits", 1)]);
    some_looks(&database);
    assert_eq!(database.number("SELECT sum(deliveries) FROM ob_local"), 0);

    // A version that it can serve: the other host is ready for it, too.
    site.write("oncebox.toml", FLEET.config());
    site.write("three.wasm", ledger_of_version(3));
    thread::scope(|scope| {
        let deploy = scope.spawn(|| site.ok(&["deploy", "three.wasm", "t/a"]));
        other_answers(&database, answered(&database, 2, true), None);
        deploy.join().unwrap();
    });
    settled(&database, PATIENCE);
    check_promise(&database);
    assert_eq!(database.number("SELECT version FROM ledger WHERE entry = 'waits'"), 3);
    eventually("ready again", PATIENCE, || (host.get("/readyz").0 == 200).then_some(()));
    host.stop();
}

#[test]
fn a_host_that_was_killed_holds_an_offer_back_only_until_the_boot_timeout() {
    let site = Plan { host: "name = \"a\"\nheartbeat_ms = 500\nboot_timeout_ms = 3000\n", ..ONE }.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    other_lives(&database, 2);
    site.write("two.wasm", ledger_of_version(2));
    site.ok(&["deploy", "two.wasm", "t/a"]);
    let early = "SELECT active_from - seen_at FROM ob_deployment JOIN ob_boot WHERE deployment_id = 2 AND host = 'b'";
    assert!(database.number(early) >= 3_000_000, "{}", database.number(early));
    host.stop();
}

#[test]
fn a_host_that_does_not_answer_is_named() {
    let site = FLEET.bare_site();
    let host = site.start();
    let _ = unready(&host, "has no deployment");
    let database = site.database("t.db");
    site.write("module.wasm", ledger());
    other_lives(&database, 3600);
    let awaited = site.run(&["deploy", "module.wasm", "t/a"]);
    assert_eq!(awaited.code, Some(6), "{}", awaited.err);
    assert!(awaited.err.contains("error[hosts-awaited]"), "{}", awaited.err);
    assert!(awaited.err.contains("ready: a; awaited: b"), "{}", awaited.err);
    let _ = unready(&host, "is offered; awaited: b");
    // It is over, in good order: then the offer is active by itself.
    database.execute(&format!("UPDATE ob_boot SET ended_at = seen_at WHERE boot_id = {B}"));
    let host = host.ready();
    assert_eq!(served_by(&site, &database, "after"), 1);
    host.stop();
}

#[test]
fn a_host_whose_configuration_lacks_the_handler_refuses_it() {
    let site = FLEET.site();
    let host = site.start().ready();
    let more = Plan { handlers: &[("a", SOON), ("z", SOON)], ..FLEET };
    site.write("oncebox.toml", more.config());
    site.write("one.wasm", ledger());
    let refused = site.run(&["deploy", "one.wasm", "t/z"]);
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(refused.err.contains("does not have the handler"), "{}", refused.err);
    host.stop();
}

#[test]
fn an_earlier_life_of_a_killed_host_is_not_waited_for() {
    let site = ONE.site();
    site.start().ready().kill();
    let host = site.start().ready();
    site.write("two.wasm", ledger_of_version(2));
    let out = site.ok(&["deploy", "two.wasm", "t/a"]);
    assert!(out.ends_with(": active\n"), "{out}");
    assert_eq!(site.database("t.db").number("SELECT count(*) FROM ob_boot WHERE ended_at IS NULL"), 1);
    host.stop();
}

#[test]
fn a_host_writes_down_that_it_lives_drains_and_ends() {
    let slow: &[(&str, &str)] = &[("a", "destinations = { out = \"kept\" }\nlimits = { run_time_ms_max = 20_000 }\n")];
    let site = Plan { handlers: slow, ..FLEET }.site();
    let mut host = site.start().ready();
    let database = site.database("t.db");
    some_looks(&database);
    let draining = |yes: u8| database.number(&format!("SELECT count(*) FROM ob_boot WHERE draining = {yes}"));
    assert_eq!(draining(0), 1);
    let spin = serde_json::json!({ "key": "k", "amount": 1, "do": "spin", "times": 2_000_000_000 });
    site.send("t/in", &[oncebox_tests::feed::event("e-1", &spin)]);
    eventually("the run has begun", PATIENCE, || {
        (database.number("SELECT coalesce(sum(deliveries), 0) FROM ob_local") == 1).then_some(())
    });
    host.terminate();
    eventually("it drains", Duration::from_secs(2), || (draining(1) == 1).then_some(()));
    // It is not taken for over while its last run goes on.
    let seen = || database.number("SELECT seen_at FROM ob_boot");
    let before = seen();
    eventually("it still beats", Duration::from_secs(2), || (seen() > before).then_some(()));
    assert_eq!(database.number("SELECT count(*) FROM ob_boot WHERE ended_at IS NULL"), 1);
    assert_eq!(host.ended(), 0);
    assert_eq!(database.number("SELECT count(*) FROM ob_boot WHERE ended_at IS NULL"), 0);
}

#[test]
fn a_heartbeat_that_fails_for_long_is_told() {
    let site = FLEET.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    database.execute("ALTER TABLE ob_boot RENAME TO ob_boot_away");
    let why = unready(&host, "tenant t: heartbeat");
    assert!(why.contains("the others take it for over"), "{why}");
    database.execute("ALTER TABLE ob_boot_away RENAME TO ob_boot");
    eventually("ready again", PATIENCE, || (host.get("/readyz").0 == 200).then_some(()));
    host.stop();
}
