//! One host for one file, and commands beside it.

use oncebox_tests::{
    checker::check_promise,
    feed::entry,
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::support::{ONE, settled};

#[test]
fn a_second_host_on_one_file_is_refused_and_the_first_goes_on() {
    let site = ONE.site();
    let host = site.start().ready();
    let second = site.run(&["run"]);
    assert_eq!(second.code, Some(6), "{}", second.err);
    assert!(second.err.contains("t.db") && second.err.contains("host"), "{}", second.err);
    site.send("t/in", &[entry("e-1", "k", 5)]);
    settled(&site.database("t.db"), PATIENCE);
    assert_eq!(host.get("/readyz"), (200, "ready\n".to_owned()));
    host.stop();
    // Its right to the file ends with it.
    site.start().ready().stop();
}

#[test]
fn a_host_that_was_killed_leaves_no_lock_behind() {
    let site = ONE.site();
    site.start().ready().kill();
    site.start().ready().stop();
}

#[test]
fn every_command_works_beside_a_running_host() {
    let site = ONE.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    site.send("t/in", &[entry("e-1", "k", 5), entry("e-2", "k", 5), entry("e-3", "k", 6), "garbage".to_owned()]);
    settled(&database, PATIENCE);
    site.ok(&["check", "config"]);
    site.ok(&["migrate"]);
    site.ok(&["check", "module", "module.wasm", "t/a"]);
    let trace = site.json(&["trace", "t/a", "k"]);
    assert_eq!(
        (&trace["inbox"]["state"], &trace["inbox"]["duplicates"], &trace["held"][0]["state"]),
        (&json!("applied"), &json!(1), &json!("conflict")),
        "{trace:#}"
    );
    assert_eq!(site.run(&["trace", "t/a", "other"]).code, Some(5));
    let dead = site.json(&["dead", "list", "t"]);
    let rows = dead.as_array().unwrap();
    assert_eq!(rows.len(), 2, "{dead:#}");
    assert!(rows.iter().any(|row| row["state"] == "conflict"), "{dead:#}");
    let poison = rows.iter().find(|row| row["state"] == "poison").unwrap();
    let letter = site.json(&["dead", "show", "t", &poison["id"].to_string()]);
    assert_eq!(letter["body"], "garbage");
    let books = site.json(&["tally", "t"]);
    assert_eq!(books["tenants"]["t"]["verdicts"]["a"], json!({ "applied": 1, "duplicate": 1, "conflict": 1 }));
    assert_eq!(books["tenants"]["t"]["waiting"], json!({ "in": 0 }));
    site.deploy(crate::support::ledger(), "t/a");
    site.send("t/in", &[entry("e-4", "l", 7)]);
    eventually("the next event is applied", PATIENCE, || {
        (database.number("SELECT count(*) FROM ledger") == 2).then_some(())
    });
    check_promise(&database);
    host.stop();
}
