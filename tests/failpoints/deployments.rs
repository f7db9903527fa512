//! A deployment whose participants die.

use oncebox::failpoint::Place;
use oncebox_tests::{
    database::Tables as _,
    feed::{entry, event},
    fleet::{Fleet, Plan, Route, TENANT, Tenant, TenantPlan},
    host::Host,
    patience::{PATIENCE, eventually},
    probe::{ledger_of_version, with_change},
};
use serde_json::json;

use crate::{
    Doing, places,
    stage::{DYING, LONG},
};

/// A version of the probe, for the fleet's handler.
fn version(number: u32) -> Vec<u8> {
    with_change(&ledger_of_version(number), "event_types = [\"entry\", \"entered\"]", "event_types = [\"entry\"]")
}

/// Publishes an event, and tells which version has applied it.
#[track_caller]
fn served_by(tenant: &Tenant, key: &str) -> i64 {
    tenant.publisher().publish(&[entry(&format!("e-{key}"), key, 1)]);
    let (session, of) = (tenant.session(), format!("FROM ledger WHERE entry = '{key}'"));
    eventually(&format!("{key} is applied"), LONG, || {
        (session.number(&format!("SELECT count(*) {of}")) == 1).then_some(())
    });
    session.number(&format!("SELECT version {of}"))
}

#[track_caller]
fn eventually_active(tenant: &Tenant, deployment: i64) {
    let session = tenant.session();
    let active = format!("SELECT count(*) FROM ob_deployment WHERE deployment_id = {deployment} AND state = 1");
    eventually(&format!("deployment {deployment} is active"), LONG, || (session.number(&active) == 1).then_some(()));
}

#[track_caller]
fn eventually_serves(host: &Host, deployment: i64) {
    let id = deployment.to_string();
    let serves = || host.logged("serves from now on").iter().any(|line| line["deployment"] == id);
    eventually(&format!("deployment {id} serves"), PATIENCE, || serves().then_some(()));
}

/// Whatever is parked waits for an hour, or almost.
const LATER: Plan = Plan {
    host: "",
    tenants: &[TenantPlan {
        handlers: &[("a", "entry", "retry = { first_ms = 3_600_000, delay_ms_max = 3_600_000 }")],
        ..TENANT
    }],
};

#[test]
fn an_event_that_was_parked_under_one_version_runs_on_the_next() {
    let fleet = Fleet::shared(LATER);
    let (tenant, session) = (&fleet.tenants[0], fleet.tenants[0].session());
    let a = fleet.start("a").ready();
    tenant.publisher().publish(&[event("e-1", &json!({ "key": "k", "amount": 1, "do": "until", "times": 2 }))]);
    let parked = "SELECT count(*) FROM ob_held WHERE state = 0 AND deployment_id = 1";
    eventually("it is parked", PATIENCE, || (session.number(parked) == 1).then_some(()));
    fleet.site.deploy(&version(2), &format!("{}/a", TENANT.name));
    eventually_serves(&a, 2);
    session.execute("UPDATE ob_held SET due_at = UTC_TIMESTAMP(6) WHERE state = 0");
    tenant.drained(LONG);
    let ran = [("version", "ledger"), ("deployment_id", "ob_inbox"), ("deployment_id", "ob_attempt")]
        .map(|(column, table)| session.number(&format!("SELECT CAST({column} AS SIGNED) FROM {table}")));
    assert_eq!(ran, [2, 2, 1], "the version that applied it, the inbox row's, that of the first attempt");
    tenant.check();
    a.stop();
}

#[test]
fn whoever_dies_at_a_deployment_it_becomes_active_and_every_event_is_applied_once() {
    let fleet = Fleet::shared(DYING);
    let (tenant, place) = (&fleet.tenants[0], format!("{}/a", TENANT.name));
    let mut applied = 0;
    for (number, at) in (2..).zip(places(Doing::Deploying)) {
        let die = [("ONCEBOX_FAILPOINTS", format!("{}=kill", at.name()))];
        let die: Vec<(&str, &str)> = die.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let slowly = [("ONCEBOX_FAILPOINTS", "ready-written=sleep:20000")];
        let (of_deploy, of_a): (&[_], &[_]) = if at == Place::OfferWritten { (&die, &[]) } else { (&[], &die) };
        // Whoever sees first that all are ready makes it active: that shall be `a`, not `b` nor the command.
        let (of_b, waits): (&[_], &[_]) = if at == Place::Activated { (&slowly, &["--no-wait"]) } else { (&[], &[]) };
        let mut a = fleet.start_with("a", Route::default(), of_a).ready();
        let b = fleet.start_with("b", Route::default(), of_b).ready();
        assert_eq!(served_by(tenant, &format!("before-{number}")), i64::from(number) - 1);
        fleet.site.write("next.wasm", version(number));
        let deploy: Vec<&str> = ["deploy", "next.wasm", &place].into_iter().chain(waits.iter().copied()).collect();
        let deployed = fleet.site.run_armed(&deploy, of_deploy);
        if at == Place::OfferWritten {
            assert_eq!(deployed.code, None, "{}{}", deployed.out, deployed.err);
        } else {
            assert_eq!(deployed.code, Some(0), "{}{}", deployed.out, deployed.err);
            eventually("a has died", PATIENCE, || a.has_died().then_some(()));
        }
        let deployment = i64::from(number);
        eventually_active(tenant, deployment);
        eventually_serves(&b, deployment);
        assert_eq!(served_by(tenant, &format!("after-{number}")), deployment, "{at:?}");
        applied += 2;
        if at == Place::OfferWritten {
            eventually_serves(&a, deployment);
            a.stop();
        }
        // One that comes anew serves what is active.
        let a = fleet.start("a").ready();
        eventually_serves(&a, deployment);
        a.stop();
        b.stop();
        let active = "SELECT count(*) FROM ob_deployment WHERE state = 1";
        let session = tenant.session();
        assert_eq!((session.number(active), session.number("SELECT count(*) FROM ledger")), (1, applied), "{at:?}");
        tenant.check();
    }
}
