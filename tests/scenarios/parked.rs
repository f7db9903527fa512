//! An event that has to wait.

use std::fs;

use oncebox_tests::{
    host::Site,
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::support::{built, root};

/// The coupon story's folder, with both of its modules, trying again every 100 ms at most.
fn story() -> Site {
    let folder = root().join("examples/coupon-grant");
    let config = fs::read_to_string(folder.join("oncebox.toml")).unwrap();
    let config = config.replace("listen = \"127.0.0.1:8421\"", "listen = \"127.0.0.1:0\"\nlog = \"json\"").replace(
        "destinations = { coupon-granted = \"notify\" }",
        "destinations = { coupon-granted = \"notify\" }\nretry = { first_ms = 100, delay_ms_max = 100, attempts_max = 1000 }",
    );
    let site = Site::new(&config);
    site.write("schema.sql", fs::read(folder.join("schema.sql")).unwrap());
    site.write("events.jsonl", fs::read(folder.join("events.jsonl")).unwrap());
    for name in ["coupon-grant", "coupon-notice"] {
        site.deploy(&built(name), &format!("campaign/{name}"));
    }
    site
}

#[test]
fn an_event_that_is_ahead_of_its_campaign_survives_a_restart_and_is_applied_when_the_campaign_comes() {
    let site = story();
    let host = site.start().ready();
    site.ok(&["send", "campaign/paid", "events.jsonl"]);
    let database = site.database("campaign.db");
    let place = ["trace", "campaign/coupon-grant", "O-1002/C-10/gift"];
    eventually("some attempts are over", PATIENCE, || {
        (database.number("SELECT coalesce(max(attempts), 0) FROM ob_held WHERE state = 0") >= 2).then_some(())
    });
    let trace = site.json(&place);
    assert_eq!(
        (&trace["inbox"]["state"], &trace["held"][0]["state"]),
        (&json!("parked"), &json!("parked")),
        "{trace:#}"
    );
    host.stop();
    let before = database.number("SELECT attempts FROM ob_held WHERE state = 0");

    let host = site.start().ready();
    eventually("tried again after the restart", PATIENCE, || {
        (database.number("SELECT attempts FROM ob_held WHERE state = 0") > before).then_some(())
    });
    database.execute("INSERT INTO campaign VALUES ('C-10', 'Cake for one', 800)");
    let applied = "SELECT count(*) FROM grant_record WHERE order_id = 'O-1002'";
    eventually("applied", PATIENCE, || (database.number(applied) == 1).then_some(()));
    eventually("the notices are there", PATIENCE, || {
        (database.number("SELECT count(*) FROM notice") == 3).then_some(())
    });
    host.stop();

    let trace = site.json(&place);
    let attempts = usize::try_from(trace["inbox"]["attempts"].as_u64().unwrap()).unwrap();
    let runs = trace["held"][0]["runs"].as_array().unwrap();
    assert_eq!(
        (&trace["inbox"]["state"], &trace["held"][0]["state"]),
        (&json!("applied"), &json!("resolved")),
        "{trace:#}"
    );
    // Every run that failed is told, the one that applied is the last.
    assert_eq!(runs.len(), attempts - 1, "{trace:#}");
    assert!(runs.iter().all(|run| run["class"] == "guest-retry"), "{trace:#}");
    let coupon = database.lines("SELECT coupon_id FROM grant_record WHERE order_id = 'O-1002'");
    assert_eq!(trace["inbox"]["result"], json!(coupon[0]));
    assert_eq!(trace["outgoing"][0]["event_type"], "coupon.granted");
    assert_eq!(database.number("SELECT count(*) FROM coupon"), 3);
    assert_eq!(database.number("SELECT count(*) FROM ob_local"), 0);
}
