//! A host that dies again and again, each time with every message of the queue in its hands.

use std::{collections::BTreeSet, time::Duration};

use oncebox::clock;
use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, Plan, QUEUE, TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
    services::Counts,
};
use serde_json::json;

const MESSAGES: usize = 2_000;
const KILLS: usize = 25;
/// A life that has decided nothing for so long may have nothing left to decide.
const IDLE: Duration = Duration::from_secs(5);

/// All of them are in the host's hands at once, and a life decides only a few.
const GREEDY: TenantPlan = TenantPlan { tenant: "batch_max = 16", source: "prefetch = 2_000", ..TENANT };

#[test]
fn twenty_five_kills_with_all_messages_prefetched_drop_none() {
    // The queue as RabbitMQ makes it: without a policy, and what was delivered 20 times is dropped to nowhere.
    let fleet = Fleet::shared(Plan { host: "", tenants: &[GREEDY] });
    let tenant = &fleet.tenants[0];
    fleet.start("a").ready().stop();
    let body = |n: usize| {
        let data = json!({ "key": format!("k-{n:04}"), "amount": 1, "note": "x".repeat(80) });
        event(&format!("e-{n}"), &data)
    };
    let bodies: Vec<String> = (0..MESSAGES).map(body).collect();
    tenant.publisher().publish(&bodies);

    let session = tenant.session();
    let decided = || session.number("SELECT CAST(coalesce(sum(n), 0) AS SIGNED) FROM ob_tally");
    let parked = || session.number("SELECT count(*) FROM ob_held WHERE state = 0");
    let is_over = || parked() == 0 && tenant.vhost.counts(QUEUE) == Counts::EMPTY;
    let (mut kills, mut most_put_aside) = (0, 0);
    loop {
        let before = decided();
        let host = fleet.start("a");
        let began = clock::monotonic();
        let goes_on = eventually("its first unit of work is committed", PATIENCE, || {
            let idle = || began.elapsed() > IDLE && is_over();
            if decided() > before { Some(true) } else { idle().then_some(false) }
        });
        host.kill();
        kills += 1;
        let put_aside = "SELECT count(*) FROM ob_held WHERE state = 0 AND code = 'redelivered'";
        most_put_aside = most_put_aside.max(session.number(put_aside));
        if !goes_on || kills == KILLS {
            break;
        }
    }

    let host = fleet.start("a").ready();
    tenant.drained(Duration::from_secs(120));
    host.stop();
    let found: BTreeSet<String> =
        session.lines("SELECT CAST(business_key AS CHAR) FROM ob_inbox WHERE state = 0").into_iter().collect();
    let lost: Vec<String> = (0..MESSAGES).map(|n| format!("k-{n:04}")).filter(|key| !found.contains(key)).collect();
    println!("{kills} kills, {most_put_aside} put aside at once, {} of {MESSAGES} lost", lost.len());
    assert!(lost.is_empty(), "the queue dropped {} of {MESSAGES} messages, the first: {:?}", lost.len(), lost.first());
    assert!(most_put_aside > 0, "nothing was put aside for having been delivered often, in {kills} lives");
    tenant.check();
}
