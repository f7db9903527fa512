//! A killer among good events.

use oncebox_tests::{
    database::Tables as _,
    fleet::{Fleet, Plan, SOON, TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
};
use serde_json::json;

use crate::stage::{SIGABRT, Watched, is_blamed, keys, typed};

const GOOD: usize = 50;
/// Of a handler without another word.
const DEATHS_MAX: usize = 2;

const TWO_HANDLERS: TenantPlan =
    TenantPlan { handlers: &[("killer", "killer", SOON), ("good", "good", SOON)], ..TENANT };

/// The killer in the middle; every second good event is of its own handler, all of them as `data` says.
fn events(data: &serde_json::Value, killer: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let (mut events, mut good) = (Vec::new(), Vec::new());
    for n in 0..GOOD {
        if n == GOOD / 2 {
            events.push(typed("killer", "the-killer", killer));
        }
        let key = format!("k-{n:02}");
        events.push(typed(if n % 2 == 0 { "killer" } else { "good" }, &key, data));
        good.push(key);
    }
    (events, good)
}

/// Hosts in their plan, from the first delivery of these events to the last verdict; how often they died.
fn lived_through(fleet: &Fleet, hosts: &[&'static str], data: &serde_json::Value, killer: &serde_json::Value) -> usize {
    let tenant = &fleet.tenants[0];
    // The queue is made by the first host.
    fleet.start(hosts[0]).ready().stop();
    let (events, good) = events(data, killer);
    tenant.publisher().publish(&events);
    let mut watched = Watched::start(fleet, hosts, SIGABRT);
    let deaths = watched.until_drained(tenant, GOOD + 1);
    println!("{deaths} lives ended");
    assert_eq!((keys(tenant, 0), keys(tenant, 3)), (good, vec!["the-killer".to_owned()]));
    is_blamed(tenant, "the-killer", DEATHS_MAX);
    tenant.check();
    let trace = fleet.site.ok(&["trace", "t/killer", "the-killer"]);
    assert_eq!(
        trace.matches("module not known: death-alone [death-alone]: the host's process ended").count(),
        2,
        "{trace}"
    );
    let found = |name: &str, host: &str| watched.host(host).get("/metrics").1.contains(&format!("{name}{{"));
    eventually("it tells of the deaths", PATIENCE, || {
        hosts.iter().any(|host| found("oncebox_deaths_alone_total", host)).then_some(())
    });
    deaths
}

#[test]
fn a_killer_is_dead_after_two_deaths_alone_and_every_neighbour_is_applied() {
    let fleet = Fleet::shared(Plan { host: "", tenants: &[TWO_HANDLERS] });
    let deaths = lived_through(&fleet, &["a"], &json!({}), &json!({ "do": "abort" }));
    // The first delivery, which costs nothing; its start beside others; twice alone.
    assert!((1 + DEATHS_MAX..=2 + DEATHS_MAX).contains(&deaths), "{deaths}");
}

#[test]
fn a_killer_that_was_parked_first_is_dead_after_as_many_and_every_neighbour_is_applied() {
    let fleet = Fleet::shared(Plan { host: "lease_time_ms = 1_000", tenants: &[TWO_HANDLERS] });
    let twice = json!({ "do": "until", "times": 2 });
    let deaths = lived_through(&fleet, &["a"], &twice, &json!({ "do": "abort", "times": 2 }));
    // Each claim is a start, the first one too.
    assert_eq!(deaths, 1 + DEATHS_MAX);
}

#[test]
fn a_killer_in_a_fleet_is_dead_after_a_few_more() {
    const HOST: &str = "heartbeat_ms = 500\nboot_timeout_ms = 2_000\nlease_time_ms = 1_000";
    let fleet = Fleet::shared(Plan { host: HOST, tenants: &[TWO_HANDLERS] });
    let deaths = lived_through(&fleet, &["a", "b"], &json!({}), &json!({ "do": "abort" }));
    // A host gets it from one that has only just died, and of which nobody knows yet: twice, beside others and alone.
    assert!((1 + DEATHS_MAX..=2 + DEATHS_MAX + 2).contains(&deaths), "{deaths}");
}

#[test]
fn with_deaths_max_1_one_death_is_enough_and_another_handler_of_the_message_goes_free() {
    const BOTH: TenantPlan =
        TenantPlan { handlers: &[("killer", "both", "retry = { deaths_max = 1 }"), ("good", "both", "")], ..TENANT };
    let fleet = Fleet::shared(Plan { host: "", tenants: &[BOTH] });
    let tenant = &fleet.tenants[0];
    fleet.start("a").ready().stop();
    tenant.publisher().publish(&[typed("both", "k", &json!({ "do": "abort", "at": "killer" }))]);
    let deaths = Watched::start(&fleet, &["a"], SIGABRT).until_drained(tenant, 2);
    assert_eq!(deaths, 3, "its first delivery, its start beside others, and once alone");
    is_blamed(tenant, "k", 1);
    let ends =
        "SELECT concat(CAST(name AS CHAR), ' ', state) FROM ob_inbox JOIN ob_handler USING (handler_id) ORDER BY name";
    assert_eq!(tenant.session().lines(ends), ["good 0", "killer 3"]);
    tenant.check();
}
