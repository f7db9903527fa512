//! Handlers that feed one another over `local`.

use oncebox_tests::{
    checker::check_promise,
    feed::{entry, event},
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::support::{Plan, ledger, settled};

#[test]
fn what_one_handler_emits_another_applies_and_both_or_neither_are_in_the_books() {
    let site = Plan {
        host: "",
        tenant: "sources.passed = { kind = \"local\" }
destinations.passed = { kind = \"local\", source = \"passed\" }
handlers.b = { destinations = { out = \"kept\" } }
",
        handlers: &[("a", "destinations = { out = \"passed\" }\n")],
    };
    let config = format!("{}[[tenants.t.routes]]\nsource = \"passed\"\nhandlers = [\"b\"]\n", site.config());
    let site = site.bare_site();
    site.write("oncebox.toml", config);
    for place in ["t/a", "t/b"] {
        site.deploy(ledger(), place);
    }
    let database = site.database("t.db");
    database.execute("INSERT INTO counter VALUES ('b', 0, 0)");
    let host = site.start().ready();
    let lines: Vec<String> = (0..50).map(|n| entry(&format!("e-{n}"), &format!("k-{}", n % 40), 1)).collect();
    site.send("t/in", &lines);
    settled(&database, PATIENCE);
    check_promise(&database);
    let sums = database.lines("SELECT handler || ' ' || n FROM counter ORDER BY 1");
    assert_eq!(sums, ["a 40", "b 40"]);
    host.stop();
}

#[test]
fn an_event_that_goes_in_circles_is_a_dead_letter_at_the_hop_limit() {
    let plan = Plan {
        host: "limits = { hops_max = 5 }\n",
        tenant: "destinations.again = { kind = \"local\", source = \"in\" }\n",
        handlers: &[("a", "destinations = { out = \"again\" }\n")],
    };
    // The probe emits another type than it is sent.
    let config = plan.config().replace("event_types = [\"entry\"]\n", "");
    let site = plan.bare_site();
    site.write("oncebox.toml", config);
    site.deploy(ledger(), "t/a");
    let host = site.start().ready();
    site.send("t/in", &[event("e-1", &json!({ "key": "k", "amount": 1, "do": "forward" }))]);
    let database = site.database("t.db");
    eventually("stopped", PATIENCE, || (database.number("SELECT count(*) FROM ob_held") == 1).then_some(()));
    settled(&database, PATIENCE);
    check_promise(&database);
    // Sent by hand: hop 0. Five hops are let through, the sixth is not.
    let rows =
        database.lines("SELECT CAST(business_key AS TEXT) || ' ' || state FROM ob_inbox ORDER BY length(business_key)");
    assert_eq!(rows, ["k 0", "k' 0", "k'' 0", "k''' 0", "k'''' 0", "k''''' 3"]);
    let dead = site.json(&["dead", "list", "t/a"]);
    assert_eq!((&dead[0]["class"], &dead[0]["code"]), (&json!("quota"), &json!("hop-limit")), "{dead:#}");
    host.stop();
}
