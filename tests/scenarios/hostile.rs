//! Modules that mean no good, each beside a good one on the same source.

use std::time::Duration;

use oncebox_tests::{
    checker::check_promise,
    database::Database,
    feed::entry,
    patience::{PATIENCE, eventually},
    wat::{source, wat_component},
};

use crate::support::{ONE, Plan, SOON, ledger, settled};

/// What the hostile modules may use.
const MANIFEST: &str = r#"
name = "hostile"
version = "1.0.0"
contract = "1.0"
description = "Awards points, or tries worse"
event_types = []
key = "{/key}"
fingerprint = "payload"

[tables]
points = "write"

[statements.award]
sql = "UPDATE points SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1
mismatch = "retry"

[statements.note]
sql = "INSERT INTO points (points, note) VALUES (0, ?)"
params = [{ name = "note", type = "bytes" }]
rows = 1
mismatch = "retry"

[destinations.out]
event_types = ["points.*"]
"#;

const HOSTILE: Plan = Plan {
    handlers: &[
        (
            "bad",
            "destinations = { out = \"kept\" }
retry = { first_ms = 20, delay_ms_max = 50, short_attempts_max = 2 }
limits = { run_time_ms_max = 100, memory_bytes_max = 1_048_576 }
",
        ),
        ("good", SOON),
    ],
    ..ONE
};

fn applied_by_good(database: &Database) -> i64 {
    database.number("SELECT n FROM counter WHERE handler = 'good'")
}

/// Sends 20 events to both; every one of `bad` must end as `class` and `code` after as many attempts.
fn ends_as(attack: &str, class: &str, code: &str, attempts: i64) {
    let site = HOSTILE.bare_site();
    site.deploy(ledger(), "t/good");
    site.deploy(&wat_component(&source(attack), MANIFEST), "t/bad");
    let host = site.start().ready();
    let lines: Vec<String> = (0..20).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect();
    site.send("t/in", &lines);
    let database = site.database("t.db");
    eventually("the good one's are applied", PATIENCE, || (applied_by_good(&database) == 20).then_some(()));
    settled(&database, PATIENCE);
    assert_eq!(host.get("/livez"), (200, "ok\n".to_owned()));
    host.stop();
    let dead = site.json(&["dead", "list", "t/bad"]);
    let dead = dead.as_array().unwrap();
    assert_eq!(dead.len(), 20, "{attack}");
    for row in dead {
        let end = (row["class"].as_str().unwrap(), row["code"].as_str().unwrap(), row["attempts"].as_i64().unwrap());
        assert_eq!(end, (class, code, attempts), "{attack}: {row:#}");
    }
    assert_eq!(database.number("SELECT count(*) FROM points"), 0, "{attack}");
    assert_eq!(database.number("SELECT count(*) FROM ledger"), 20, "{attack}");
}

#[test]
fn a_module_that_loops_is_stopped_by_the_time_limit() {
    ends_as("hostile/loop", "time-limit", "run-time", 2);
}

#[test]
fn a_module_that_takes_memory_is_stopped_by_the_memory_limit() {
    ends_as("hostile/grow_bomb", "memory-limit", "memory", 2);
}

#[test]
fn a_module_that_traps_is_given_up_after_few_attempts() {
    ends_as("hostile/panic", "trap", "unreachable", 2);
}

#[test]
fn a_module_that_floods_is_stopped_by_its_quotas() {
    ends_as("hostile/stage_flood", "quota", "staged-rows", 1);
    ends_as("hostile/emit_flood", "quota", "events", 1);
}

#[test]
fn a_module_that_lies_breaks_the_contract_and_is_given_up_at_once() {
    ends_as("hostile/wrong_type", "abi", "param-type", 1);
    ends_as("hostile/bad_utf8", "abi", "malformed-value", 1);
}

/// A handler with a query runs inside the open unit of work, which is this store's only writer.
const QUERY: &str = "
[queries.level]
sql = \"SELECT points FROM points WHERE user_id = ?\"
params = [{ name = \"user_id\", type = \"unsigned\" }]
rows_max = 1
";

#[test]
fn the_good_neighbour_is_done_long_before_the_looping_one_is_decided() {
    overtakes(MANIFEST);
}

#[test]
fn a_module_that_loops_inside_the_unit_of_work_does_not_keep_its_neighbour_from_writing() {
    overtakes(&format!("{MANIFEST}{QUERY}"));
}

fn overtakes(manifest: &str) {
    let site = HOSTILE.bare_site();
    site.deploy(ledger(), "t/good");
    site.deploy(&wat_component(&source("hostile/loop"), manifest), "t/bad");
    let host = site.start().ready();
    // 200 loops of 100 ms: 20 s of looping, were they waited for.
    let lines: Vec<String> = (0..200).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect();
    site.send("t/in", &lines);
    let database = site.database("t.db");
    eventually("the good one's are applied", Duration::from_secs(8), || {
        (applied_by_good(&database) == 200).then_some(())
    });
    let dead = database.number("SELECT count(*) FROM ob_held WHERE state = 1");
    assert!(dead < 200, "all of the looping one's were decided before");
    // New events find their way too, with the backlog there.
    site.send("t/in", &[entry("e-new", "new", 1)]);
    eventually("a new one is applied", Duration::from_secs(2), || (applied_by_good(&database) == 201).then_some(()));
    assert_eq!(host.get("/livez").0, 200);
    host.kill();
    check_promise(&database);
}
