//! A host that gets no processor, or is taken for over by others: it hangs past every limit and comes back, or is killed
//! with claims in its hands.

use std::time::Duration;

use oncebox::clock;
use oncebox_tests::{
    database::Tables as _,
    feed::{entry, event},
    fleet::{Fleet, Plan, QUEUE, TENANT, Tenant, TenantPlan},
    patience::{PATIENCE, eventually, pass},
    services::Session,
};
use serde_json::json;

const LONG: Duration = Duration::from_secs(60);
/// How long a host runs that hardly gets to.
const SLICE: Duration = Duration::from_millis(10);
const LEASED: &str =
    "SELECT count(*) FROM ob_held WHERE state = 0 AND lease_token IS NOT NULL AND due_at > utc_timestamp(6)";
const PARKED: &str = "SELECT count(*) FROM ob_held WHERE state = 0";
const APPLIED: &str = "SELECT count(*) FROM ob_inbox WHERE state = 0";

/// Waits for locks as long as a test may, and tries a failed event again after some seconds.
const PATIENT: TenantPlan = TenantPlan {
    store: "lock_wait_s = 60\nidle_timeout_s = 5",
    connection: "heartbeat_s = 1",
    handlers: &[("a", "entry", "retry = { first_ms = 4_000, delay_ms_max = 4_000 }")],
    ..TENANT
};

/// Events that are applied at the second attempt.
fn tried_twice(count: usize) -> Vec<String> {
    let data = |n: usize| json!({ "key": format!("twice-{n}"), "amount": 1, "do": "until", "times": 2 });
    (0..count).map(|n| event(&format!("twice-{n}"), &data(n))).collect()
}

/// Lets events be parked; their second attempts will have to wait for a row that the session holds.
#[track_caller]
fn park(tenant: &Tenant, count: usize) -> Session {
    let session = tenant.session();
    session.execute("BEGIN");
    assert_eq!(session.lines("SELECT handler FROM counter WHERE handler = 'a' FOR UPDATE"), ["a"]);
    tenant.publisher().publish(&tried_twice(count));
    let (look, wanted) = (tenant.session(), i64::try_from(count).unwrap());
    eventually("all are parked", PATIENCE, || (look.number(PARKED) == wanted).then_some(()));
    session
}

#[test]
fn a_host_that_hangs_past_its_leases_and_comes_back_doubles_nothing() {
    const FLEET: Plan =
        Plan { host: "lease_time_ms = 1_000\nheartbeat_ms = 200\nboot_timeout_ms = 1_000", tenants: &[PATIENT] };
    let fleet = Fleet::shared(FLEET);
    let tenant = &fleet.tenants[0];
    let a = fleet.start("a").ready();
    let other = park(tenant, 40);
    let look = tenant.session();
    let events = |from: usize, to: usize| -> Vec<String> {
        (from..to).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect()
    };
    tenant.publisher().publish(&events(0, 100));
    eventually("it holds deliveries", PATIENCE, || (tenant.vhost.counts(QUEUE).unacked > 0).then_some(()));
    eventually("it holds claims", PATIENCE, || (look.number(LEASED) > 0).then_some(()));
    a.freeze();
    other.execute("ROLLBACK");
    let b = fleet.start("b").ready();
    tenant.drained(LONG);
    assert_eq!(look.number(APPLIED), 140);
    let over = "SELECT count(*) FROM ob_boot WHERE host = 'a' AND seen_at < utc_timestamp(6) - INTERVAL 1 SECOND";
    assert_eq!(look.number(over), 1, "the others take it for over");

    a.thaw();
    tenant.publisher().publish(&events(100, 200));
    eventually("it is ready again", LONG, || (a.get("/readyz").0 == 200).then_some(()));
    tenant.drained(LONG);
    assert_eq!(look.number(APPLIED), 240);
    tenant.check();
    a.stop();
    b.stop();
    tenant.check();
}

#[test]
fn claims_of_a_killed_host_are_another_ones_when_their_lease_is_over_and_not_before() {
    const FLEET: Plan = Plan { host: "lease_time_ms = 6_000", tenants: &[PATIENT] };
    let fleet = Fleet::shared(FLEET);
    let tenant = &fleet.tenants[0];
    let a = fleet.start("a").ready();
    let other = park(tenant, 20);
    let look = tenant.session();
    eventually("all are claimed", PATIENCE, || (look.number(LEASED) == 20).then_some(()));
    a.kill();
    let lease_end = look.lines("SELECT CAST(min(due_at) AS CHAR) FROM ob_held WHERE state = 0").remove(0);
    other.execute("ROLLBACK");
    let b = fleet.start("b").ready();
    tenant.drained(LONG);
    let early = format!("SELECT count(*) FROM ob_inbox WHERE decided_at < '{lease_end}'");
    assert_eq!((look.number(APPLIED), look.number(&early)), (20, 0), "the lease ended at {lease_end}");
    let by_b =
        "SELECT CAST(sum(n) AS SIGNED) FROM ob_tally JOIN ob_boot USING (boot_id) WHERE host = 'b' AND verdict = 0";
    assert_eq!(look.number(by_b), 20);
    tenant.check();
    b.stop();
}

#[test]
fn a_host_that_gets_a_tenth_of_a_processor_is_slow_and_counts_nothing_against_anybody() {
    const COUNT: i64 = 300;
    let fleet = Fleet::shared(Plan { host: "", tenants: &[TENANT] });
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let events: Vec<String> = (0..COUNT).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect();
    host.freeze();
    tenant.publisher().publish(&events);
    let look = tenant.session();
    let began = clock::monotonic();
    // A time slice in every tenth, as a busy machine gives them.
    while look.number(APPLIED) < COUNT {
        assert!(began.elapsed() < LONG, "{} of {COUNT} are applied", look.number(APPLIED));
        host.thaw();
        pass(SLICE);
        host.freeze();
        pass(SLICE * 9);
    }
    host.thaw();
    tenant.drained(PATIENCE);
    let counted = "SELECT CAST((SELECT count(*) FROM ob_attempt) + (SELECT count(*) FROM ob_held) AS SIGNED)";
    assert_eq!((look.number(APPLIED), look.number(counted)), (COUNT, 0));
    tenant.check();
    host.stop();
}
