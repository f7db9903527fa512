//! Which handlers get which events, and what becomes of those that nobody gets.

use oncebox_tests::{
    checker::check_promise,
    feed::{entry, event},
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::support::{ONE, Plan, SOON, settled};

#[test]
fn a_message_for_two_handlers_is_settled_when_both_have_decided() {
    let site = Plan {
        handlers: &[("a", SOON), ("b", "destinations = { out = \"kept\" }\nlimits = { run_time_ms_max = 20_000 }\n")],
        ..ONE
    }
    .site();
    // The same event: `b` runs it some tenths of a second, in a slow lane, when `a` has been stopped at once.
    let config = Plan {
        handlers: &[
            (
                "a",
                "destinations = { out = \"kept\" }\nlimits = { run_time_ms_max = 1 }\nretry = { short_attempts_max = 1 }\n",
            ),
            ("b", "destinations = { out = \"kept\" }\nlimits = { run_time_ms_max = 20_000 }\n"),
        ],
        ..ONE
    };
    site.write("oncebox.toml", config.config());
    let host = site.start().ready();
    let spin = json!({ "key": "k", "amount": 1, "do": "spin", "times": 1_000_000_000 });
    site.send("t/in", &[event("e-1", &spin)]);
    let database = site.database("t.db");
    eventually("one has decided", PATIENCE, || (database.number("SELECT count(*) FROM ob_inbox") == 1).then_some(()));
    assert_eq!(database.number("SELECT count(*) FROM ob_local"), 1, "the other has not");
    settled(&database, PATIENCE);
    check_promise(&database);
    let states = "SELECT name || ' ' || state FROM ob_inbox JOIN ob_handler USING (handler_id) ORDER BY name";
    assert_eq!(database.lines(states), ["a 3", "b 0"]);
    host.stop();
}

#[test]
fn an_event_without_a_route_is_a_dead_letter_unless_the_source_ignores_it() {
    let site = Plan { tenant: "sources.loose = { kind = \"local\", unrouted = \"ignore\" }\n", ..ONE };
    let config =
        site.config() + "[[tenants.t.routes]]\nsource = \"loose\"\nevent_types = [\"entry\"]\nhandlers = [\"a\"]\n";
    let site = site.site();
    site.write("oncebox.toml", config);
    let host = site.start().ready();
    let other = entry("e-1", "k", 1).replace("\"entry\"", "\"other\"");
    site.send("t/in", &[&other]);
    site.send("t/loose", &[&other]);
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    check_promise(&database);
    let dead = site.json(&["dead", "list", "t"]);
    assert_eq!(dead.as_array().unwrap().len(), 1, "{dead:#}");
    let letter = &dead[0];
    assert_eq!(
        (&letter["class"], &letter["source"], &letter["handler"]),
        (&json!("no-route"), &json!("in"), &json!("-"))
    );
    let books = site.json(&["tally", "t"]);
    assert_eq!(books["tenants"]["t"]["verdicts"], json!({ "-": { "dead": 1, "skipped": 1 } }));
    host.stop();
}

#[test]
fn garbage_is_one_letter_with_a_count_of_sightings() {
    let site = ONE.site();
    let host = site.start().ready();
    let keyless = event("e-1", &json!({ "amount": 1 }));
    let bytes: &[&[u8]] = &[b"\xff\xfe", b"", b"\xff\xfe", b"{}", keyless.as_bytes(), keyless.as_bytes(), b"\xff\xfe"];
    site.send("t/in", bytes);
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    check_promise(&database);
    let dead = site.json(&["dead", "list", "t", "--state", "poison"]);
    let mut letters: Vec<_> = dead
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["handler"].as_str().unwrap(), row["times"].as_u64().unwrap()))
        .collect();
    letters.sort_unstable();
    assert_eq!(letters, [("-", 1), ("-", 1), ("-", 3), ("a", 2)], "{dead:#}");
    let thrice = dead.as_array().unwrap().iter().find(|row| row["times"] == 3).unwrap();
    let shown = site.json(&["dead", "show", "t", &thrice["id"].to_string()]);
    assert_eq!(shown["body_hex"], "fffe");
    host.stop();
}

#[test]
fn what_is_not_understood_is_settled_with_one_letter_however_many_handlers_take_everything() {
    let plan = Plan { handlers: &[("a", SOON), ("b", SOON)], ..ONE };
    let site = plan.site();
    site.write("oncebox.toml", plan.config().replace("event_types = [\"entry\"]\n", ""));
    let host = site.start().ready();
    // CloudEvents forbids an empty id.
    site.send("t/in", &[r#"{"specversion":"1.0","id":"","source":"/s","type":"entry"}"#]);
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    check_promise(&database);
    assert_eq!(database.lines("SELECT handler_id || ' ' || state || ' ' || times FROM ob_held"), ["0 4 1"]);
    host.stop();
}

#[test]
fn six_keys_that_only_look_alike_are_six_facts() {
    let site = ONE.site();
    let host = site.start().ready();
    // Upper case, a trailing space, composed and decomposed, a zero byte.
    let keys = ["Caf\u{e9}", "caf\u{e9}", "caf\u{e9} ", "cafe\u{301}", "caf\u{e9}\0", "cafe"];
    for round in 0..2 {
        let lines: Vec<String> =
            keys.iter().enumerate().map(|(n, key)| entry(&format!("e-{round}-{n}"), key, 1)).collect();
        site.send("t/in", &lines);
    }
    let database = site.database("t.db");
    settled(&database, PATIENCE);
    let mut found = database.lines("SELECT hex(business_key) || ' ' || state || ' ' || duplicates FROM ob_inbox");
    found.sort();
    let hex = |key: &str| key.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    let mut expected: Vec<String> = keys.iter().map(|key| format!("{} 0 1", hex(key))).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(database.number("SELECT n FROM counter"), 6);
    for key in keys {
        let shown = key.replace('\0', "\\x00");
        assert_eq!(site.json(&["trace", "t/a", &shown])["inbox"]["duplicates"], 1, "{shown}");
    }
    host.stop();
}
