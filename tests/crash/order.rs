//! Order within an ordering key, while events fail and hosts die.

use std::{collections::BTreeMap, thread, time::Duration};

use oncebox_tests::{
    database::Tables as _,
    feed::{Chance, event},
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    patience::{PATIENCE, eventually, pass},
};
use serde_json::json;

const LINES: usize = 10;
const EVENTS: usize = 300;

const ORDERED: TenantPlan = TenantPlan {
    handlers: &[("a", "entry", "ordering = \"{/line}\"\nretry = { first_ms = 100, delay_ms_max = 300 }")],
    ..TENANT
};

#[test]
fn effects_of_each_ordering_key_come_in_the_published_order_through_failures_and_a_kill() {
    let fleet = Fleet::shared(Plan { host: "", tenants: &[ORDERED] });
    let tenant = &fleet.tenants[0];
    let a = fleet.start("a").ready();
    let b = fleet.start("b").ready();
    let queue = tenant.vhost.queue(QUEUE).unwrap();
    assert_eq!(queue["arguments"]["x-single-active-consumer"], true, "{queue:#}");

    let (mut chance, mut published) = (Chance::new(7), BTreeMap::<String, Vec<String>>::new());
    let mut failing = 0;
    let mut events = Vec::new();
    for n in 0..EVENTS {
        let line = format!("line-{}", chance.below(LINES as u64));
        let key = format!("{line}/{n}");
        let times = if chance.below(10) == 0 { 2 + chance.below(2) } else { 1 };
        failing += i64::from(times > 1);
        let data = json!({ "key": key, "amount": 1, "line": line, "do": "until", "times": times });
        events.push(event(&format!("e-{n}"), &data));
        published.entry(line).or_default().push(key);
    }
    let session = tenant.session();
    let applied = || session.number("SELECT count(*) FROM ledger");
    let a = thread::scope(|scope| {
        scope.spawn(|| {
            let mut publisher = tenant.publisher();
            for five in events.chunks(5) {
                publisher.publish(five);
                pass(Duration::from_millis(100));
            }
        });
        eventually("some are applied", PATIENCE, || (applied() >= 60).then_some(()));
        a.kill();
        fleet.start("a")
    });
    let all = i64::try_from(EVENTS).unwrap();
    eventually("all are applied", PATIENCE * 2, || (applied() == all).then_some(()));
    tenant.drained(PATIENCE);

    let mut found = BTreeMap::<String, Vec<String>>::new();
    for key in session.lines("SELECT entry FROM ledger ORDER BY id") {
        found.entry(key.split_once('/').unwrap().0.to_owned()).or_default().push(key);
    }
    assert_eq!(found, published);
    let parked = session.number("SELECT CAST(sum(n) AS SIGNED) FROM ob_tally WHERE verdict = 4");
    assert!(parked > failing, "{parked} were parked, {failing} fail: none had to wait for another");
    let worked = session
        .lines("SELECT DISTINCT host FROM ob_tally JOIN ob_boot USING (boot_id) WHERE verdict = 0 ORDER BY host");
    assert_eq!(worked, ["a", "b"], "hosts that have applied something");
    tenant.check();
    a.ready().stop();
    b.stop();
}
