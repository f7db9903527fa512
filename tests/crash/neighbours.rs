//! Handlers of one queue: a slow one and one that always fails beside a good one.

use std::time::Duration;

use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
};
use serde_json::{Value, json};

const GOOD: i64 = 300;
const SLOW: i64 = 24;
const FAILING: i64 = 60;

const NEIGHBOURS: TenantPlan = TenantPlan {
    handlers: &[
        ("good", "good", ""),
        ("slow", "slow", "limits = { run_time_ms_max = 60_000 }"),
        ("failing", "failing", "retry = { first_ms = 50, delay_ms_max = 500, attempts_max = 1_000 }"),
    ],
    ..TENANT
};

fn typed(kind: &str, n: i64, data: &Value) -> String {
    let mut data = data.clone();
    (data["key"], data["amount"]) = (json!(format!("{kind}-{n}")), json!(1));
    let structured = event(&format!("{kind}-{n}"), &data);
    structured.replace("\"type\":\"entry\"", &format!("\"type\":\"{kind}\""))
}

#[test]
fn a_good_handler_is_done_while_a_slow_one_and_a_failing_one_on_its_queue_are_not() {
    let fleet = Fleet::shared(Plan { host: "", tenants: &[NEIGHBOURS] });
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let mut events = Vec::new();
    for n in 0..GOOD {
        if n < SLOW {
            // A good part of a second each.
            events.push(typed("slow", n, &json!({ "do": "spin", "times": 1_000_000_000_u64 })));
        }
        if n < FAILING {
            events.push(typed("failing", n, &json!({ "do": "until", "times": 1_000 })));
        }
        events.push(typed("good", n, &json!({})));
    }
    tenant.publisher().publish(&events);
    let session = tenant.session();
    let rows = |handler: &str, state: u8| {
        session.number(&format!(
            "SELECT count(*) FROM ob_inbox JOIN ob_handler USING (handler_id) WHERE name = '{handler}' AND state = {state}"
        ))
    };
    eventually("the good one's are all applied", Duration::from_secs(60), || (rows("good", 0) == GOOD).then_some(()));
    eventually("the failing one's wait in the table", PATIENCE, || (rows("failing", 2) == FAILING).then_some(()));
    let slow = rows("slow", 0);
    // What is still in the queue is the slow one's, and nothing of the others.
    eventually("all others are acked", PATIENCE, || {
        let undecided = SLOW - rows("slow", 0) - rows("slow", 2);
        let counts = tenant.vhost.counts(QUEUE);
        (i64::try_from(counts.ready + counts.unacked).unwrap() <= undecided).then_some(())
    });
    assert!(rows("slow", 0) < SLOW, "the slow one was done before: nothing is shown");
    assert_eq!(rows("failing", 2), FAILING);
    println!("good: {GOOD} applied while slow had {slow} of {SLOW}, failing {FAILING} parked");
    oncebox_tests::checker::check_promise(&session);
    drop(host);
}
