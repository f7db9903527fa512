//! A killer in a line of events that are applied in order.

use oncebox_core::life::HeldState;
use oncebox_tests::{
    database::Tables as _,
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    services::Counts,
};
use serde_json::json;

use crate::stage::{SIGABRT, Watched, is_blamed, keys, typed};

const ORDERED: TenantPlan = TenantPlan {
    handlers: &[("a", "entry", "ordering = \"{/line}\"\nretry = { first_ms = 20, delay_ms_max = 50 }")],
    ..TENANT
};

#[test]
fn what_stands_behind_a_killer_waits_for_a_person_and_nothing_overtakes_it() {
    let fleet = Fleet::shared(Plan { host: "lease_time_ms = 1_000", tenants: &[ORDERED] });
    let tenant = &fleet.tenants[0];
    fleet.start("a").ready().stop();
    let (mut events, mut free) = (Vec::new(), Vec::new());
    for n in 0..20 {
        let line = if n % 2 == 0 { "killers" } else { "free" };
        let key = format!("{line}-{n:02}");
        let what = if n == 6 { json!({ "line": line, "do": "abort" }) } else { json!({ "line": line }) };
        events.push(typed("entry", &key, &what));
        if line == "free" || n < 6 {
            free.push(key);
        }
    }
    free.sort();
    tenant.publisher().publish(&events);
    let session = tenant.session();
    let behind = "SELECT CAST(business_key AS CHAR) FROM ob_held WHERE state = 0 AND due_at IS NULL AND code = 'behind'
                  ORDER BY place";
    let mut watched = Watched::start(&fleet, &["a"], SIGABRT);
    let deaths = watched.until("all are decided", || {
        tenant.vhost.counts(QUEUE) == Counts::EMPTY
            && session.number("SELECT count(*) FROM ob_held WHERE state = 1") == 1
            && session.lines(behind).len() == 6
    });
    assert!(deaths <= 4, "{deaths}");
    assert_eq!(session.lines(behind), [8, 10, 12, 14, 16, 18].map(|n| format!("killers-{n:02}")));
    assert_eq!(keys(tenant, 0), free);
    is_blamed(tenant, "killers-06", 2);
    let applied = session.lines("SELECT entry FROM ledger WHERE entry LIKE 'killers%' ORDER BY id");
    assert_eq!(applied, ["killers-00", "killers-02", "killers-04"]);

    // A person gives it up: the others go on, in their order, though they were beside it when it killed.
    let held = session.lines("SELECT CAST(held_id AS CHAR) FROM ob_held WHERE state = 1").remove(0);
    for sql in [
        "UPDATE ob_inbox SET state = 4 WHERE state = 3".to_owned(),
        "UPDATE ob_order SET held = held - 1 WHERE ordering_key = 'killers'".to_owned(),
        format!(
            "UPDATE ob_held SET state = {}, due_at = NULL, place = NULL WHERE held_id = {held}",
            HeldState::Resolved.number()
        ),
        "UPDATE ob_held SET due_at = UTC_TIMESTAMP(6) WHERE state = 0 ORDER BY place LIMIT 1".to_owned(),
    ] {
        session.execute(&sql);
    }
    assert_eq!(watched.until_drained(tenant, 20), deaths, "nobody dies any more");
    let applied = session.lines("SELECT entry FROM ledger WHERE entry LIKE 'killers%' ORDER BY id");
    let expected: Vec<String> = (0..20).filter(|n| n % 2 == 0 && *n != 6).map(|n| format!("killers-{n:02}")).collect();
    assert_eq!(applied, expected);
    assert_eq!(
        session.number("SELECT count(*) FROM ob_held WHERE starts <> '' OR starts_alone <> ''"),
        1,
        "the killer's"
    );
}
