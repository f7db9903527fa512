//! What it costs when everything comes again at once.

use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
    services::Session,
};
use serde_json::json;

const COUNT: i64 = 10_000;
/// `batch_max` of a tenant without another word.
const BATCH_MAX: i64 = 256;

/// All of them are in a host's hands at once.
const GREEDY: TenantPlan =
    TenantPlan { store: "lock_wait_s = 60\nidle_timeout_s = 60", source: "prefetch = 10_000", ..TENANT };

/// How often the server has run what looks like that in a database, since the digests were truncated.
fn ran(session: &Session, schema: &str, like: &str) -> i64 {
    session.number(&format!(
        "SELECT CAST(coalesce(sum(count_star), 0) AS SIGNED) FROM performance_schema.events_statements_summary_by_digest
         WHERE schema_name = '{schema}' AND digest_text LIKE '{like}'"
    ))
}

#[test]
fn ten_thousand_that_come_again_at_once_cost_two_statements_and_one_commit_a_batch() {
    let fleet = Fleet::shared(Plan { host: "", tenants: &[GREEDY] });
    let tenant = &fleet.tenants[0];
    let database = &tenant.database.database;
    let a = fleet.start("a").ready();
    let (other, look) = (tenant.session(), tenant.session());
    // Nothing can be decided now.
    other.execute("LOCK TABLES ob_inbox READ");
    let skipped = |n| event(&format!("e-{n}"), &json!({ "key": format!("k-{n}"), "amount": 1, "do": "skip" }));
    let events: Vec<String> = (0..COUNT).map(skipped).collect();
    let mut publisher = tenant.publisher();
    events.chunks(500).for_each(|chunk| publisher.publish(chunk));
    let unacked = || i64::try_from(tenant.vhost.counts(QUEUE).unacked).unwrap();
    eventually("it has prefetched them all", PATIENCE * 4, || (unacked() == COUNT).then_some(()));
    a.kill();
    other.execute("UNLOCK TABLES");
    // Digests of databases that are gone may have filled the table.
    database.execute_on_server("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest");
    let b = fleet.start("b").ready();
    tenant.drained(PATIENCE * 10);
    assert_eq!(look.number("SELECT count(*) FROM ob_inbox WHERE state = 1"), COUNT);
    assert_eq!(look.number("SELECT count(*) FROM ob_start"), 0);

    let ran = |like: &str| ran(&look, &database.name, like);
    // Each unit says both in one trip.
    let units = ran("RELEASE SAVEPOINT%").min(ran("COMMIT"));
    let counted = ran("EXECUTE INSERT INTO `ob_start`%");
    let ended = ran("DELETE `s` FROM%");
    let looked_for = ran("EXECUTE SELECT `s` . `message_hash`%") + ran("EXECUTE SELECT `b` . `boot_id`%");
    let verdicts = ran("INSERT INTO `ob_inbox`%");
    println!(
        "{COUNT} events in {units} units of work: {counted} counts of starts, {ended} ends, {looked_for} looks for lives; \
         {verdicts} inserts of inbox rows"
    );
    assert!(units >= COUNT / BATCH_MAX && counted > 0 && ended > 0, "nothing was measured");
    // Each count is a statement and a commit of its own; nobody is suspected, so that nothing is looked for.
    assert!(counted <= units && ended <= units && looked_for == 0, "of {units} units {counted}, {ended}, {looked_for}");
    let metrics = b.get("/metrics").1;
    assert!(!metrics.contains("oncebox_suspects_alone_total{"), "{metrics}");
    tenant.check();
    b.stop();
}
