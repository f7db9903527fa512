//! A connection that is cut while events run: they come again, and nobody is suspected.

use oncebox_tests::{
    database::Tables as _,
    feed::entry,
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
};

#[test]
fn a_connection_that_is_cut_makes_no_suspect() {
    const PATIENT: TenantPlan = TenantPlan { store: "lock_wait_s = 60\nidle_timeout_s = 60", ..TENANT };
    const COUNT: i64 = 40;
    let fleet = Fleet::shared(Plan { host: "heartbeat_ms = 200\nboot_timeout_ms = 1_000", tenants: &[PATIENT] });
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let (other, look) = (tenant.session(), tenant.session());
    other.execute("BEGIN");
    assert_eq!(other.lines("SELECT handler FROM counter WHERE handler = 'a' FOR UPDATE"), ["a"]);
    let events: Vec<String> = (0..COUNT).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect();
    tenant.publisher().publish(&events);
    let unacked = || i64::try_from(tenant.vhost.counts(QUEUE).unacked).unwrap();
    eventually("it holds them all", PATIENCE, || (unacked() == COUNT).then_some(()));
    assert_eq!(look.number("SELECT count(*) FROM ob_start"), 0, "first deliveries cost nothing");
    // Twice, so that a start is there when they come once more.
    for _ in 0..2 {
        let times = "SELECT CAST(coalesce(sum(times), 0) AS SIGNED) FROM ob_start";
        let before = look.number(times);
        tenant.vhost.close_connections();
        eventually("they came again and are counted", PATIENCE, || {
            (look.number(times) >= before + COUNT).then_some(())
        });
    }
    other.execute("ROLLBACK");
    tenant.drained(PATIENCE);
    assert_eq!(look.number("SELECT count(*) FROM ob_inbox WHERE state = 0"), COUNT);
    assert_eq!(look.number("SELECT count(*) FROM ob_start"), 0, "each has its end");
    let metrics = host.get("/metrics").1;
    assert!(
        !metrics.contains("oncebox_suspects_alone_total{") && metrics.contains("oncebox_verdicts_total{"),
        "{metrics}"
    );
    tenant.check();
    host.stop();
}
