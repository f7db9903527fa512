//! `oncebox trace`, `oncebox dead` and `oncebox tally` over a small true story.

use oncebox_tests::command::Folder;

use super::stage::{MANIFEST, json, module, shop};

/// A handler that says no to everything has had three messages: one dead, the
/// first once more with another amount, and one, nobody's, that is no JSON and holds control characters.
fn story() -> Folder {
    let folder = shop();
    module(&folder, "probes/reject", MANIFEST);
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    let first = r#"{"type":"order.paid","id":"e1","orderId":1,"amount":5}"#;
    let other = r#"{"type":"order.paid","id":"e2","orderId":1,"amount":6}"#;
    let poison = "{\"type\":\"order.paid\",\"id\":\"e3\"}   \x1b[31m\x07";
    let host = folder.run([], "\"ready\"");
    for (line, held) in [(first, 1), (other, 2), (poison, 3)] {
        folder.oncebox_with(&["send", "shop/orders"], line.as_bytes()).done();
        wait_until_held(&folder, held);
    }
    let (code, log) = host.end();
    assert_eq!(code, 0, "{log}");
    folder
}

/// Asks the books until so many rows are held.
fn wait_until_held(folder: &Folder, held: u64) {
    let mut books = json("{}");
    for _ in 0..500 {
        books = json(&folder.oncebox(["--json", "tally"]).done());
        let handlers = books["tenants"]["shop"]["held"].as_object().unwrap();
        let counts = handlers.values().flat_map(|states| states.as_object().unwrap().values());
        if counts.map(|count| count.as_u64().unwrap()).sum::<u64>() == held {
            return;
        }
    }
    panic!("never held {held} rows: {books:#}");
}

#[test]
fn a_story_is_told_alike_by_trace_dead_and_tally() {
    let folder = story();
    books(&folder);
    lists(&folder);
    letters(&folder);
    traces(&folder);
}

fn books(folder: &Folder) {
    let books = json(&folder.oncebox(["--json", "tally", "shop"]).done());
    let expected = json(
        r#"{"tenants": {"shop": {
            "verdicts": {"award": {"dead": 1, "conflict": 1}, "-": {"dead": 1}},
            "held": {"award": {"dead": 1, "conflict": 1}, "-": {"poison": 1}},
            "waiting": {"orders": 0}
        }}}"#,
    );
    assert_eq!(books, expected);
    let table = folder.oncebox(["tally"]).done();
    assert!(table.starts_with("shop   applied  duplicate  conflict  skipped  parked  dead  held now\n"), "{table}");
    assert!(table.ends_with("waiting: orders 0\n"), "{table}");
}

fn lists(folder: &Folder) {
    let all = json(&folder.oncebox(["--json", "dead", "list"]).done());
    let states = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&all), ["dead", "conflict", "poison"]);
    assert_eq!((&all[0]["tenant"], &all[0]["handler"]), (&"shop".into(), &"award".into()));
    assert_eq!((&all[0]["owner"], &all[0]["code"]), (&"ann@example.com".into(), &"no-such-user".into()));
    let conflicts = json(&folder.oncebox(["--json", "dead", "list", "shop/award", "--state", "conflict"]).done());
    assert_eq!(states(&conflicts), ["conflict"]);
    let first = folder.oncebox(["dead", "list", "shop", "--limit", "1"]).done();
    assert!(first.ends_with("\nthere may be more of shop: --after 1\n"), "{first}");
    let rest = json(&folder.oncebox(["--json", "dead", "list", "shop", "--after", "1"]).done());
    assert_eq!(states(&rest), ["conflict", "poison"]);
    folder.oncebox(["dead", "list", "shop/awrd"]).fails(5, ["tenant `shop` has no handler `awrd`; it has: award"]);
    folder.oncebox(["dead", "list", "shp"]).fails(5, ["there is no tenant `shp`"]);
}

fn letters(folder: &Folder) {
    let poison = folder.oncebox(["dead", "show", "shop", "3"]).done();
    assert!(poison.ends_with("   \\x1b[31m\\x07\n"), "{poison}");
    assert!(
        poison.chars().all(|c| c == '\n' || !c.is_control()),
        "no control character reaches a terminal: {poison:?}"
    );
    let dead = json(&folder.oncebox(["--json", "dead", "show", "shop", "1"]).done());
    assert_eq!(dead["body"], r#"{"type":"order.paid","id":"e1","orderId":1,"amount":5}"#);
    assert_eq!((&dead["key"], &dead["runs"][0]["code"]), (&"order:1".into(), &"no-such-user".into()));
    let missing = folder.oncebox(["dead", "show", "shop", "9"]);
    missing.fails(5, ["error[held-row]: tenant `shop` has no held row 9; `oncebox dead list shop` shows them"]);
}

fn traces(folder: &Folder) {
    let told = folder.oncebox(["trace", "shop/award", "order:1"]).done();
    assert!(told.starts_with("shop/award  order:1: dead\n"), "{told}");
    for part in ["received    event e1 from source `orders`", "guest-reject [no-such-user]", "conflict    "] {
        assert!(told.contains(part), "`{part}` is missing in:\n{told}");
    }
    let story = json(&folder.oncebox(["--json", "trace", "shop/award", "order:1"]).done());
    assert_eq!((&story["inbox"]["state"], &story["inbox"]["event_id"]), (&"dead".into(), &"e1".into()));
    let unknown = folder.oncebox(["trace", "shop/award", "order:2"]);
    unknown.fails(5, ["error[key]: shop/award has decided or held nothing with key order:2"]);
    folder.oncebox(["trace", "shop/awrd", "order:1"]).fails(5, ["has no handler `awrd`; it has: award"]);
}

#[test]
fn a_handler_that_nobody_has_deployed_yet_holds_nothing() {
    let folder = shop();
    folder.oncebox(["migrate"]).done();
    assert_eq!(folder.oncebox(["dead", "list", "shop/award"]).done(), "nothing is held\n");
    assert_eq!(json(&folder.oncebox(["--json", "dead", "list"]).done()), json("[]"));
    folder.oncebox(["trace", "shop/award", "order:1"]).fails(5, ["error[key]"]);
}
