//! More than ten thousand deliveries while everything dies once or more.

use std::{thread, time::Duration};

use oncebox::clock;
use oncebox_tests::{
    checker::{expect_none, live, sent::Sent},
    database::Tables as _,
    feed::{Chance, Expected, Feed, Mix},
    fleet::{Fleet, Plan, TENANT, Tenant, TenantPlan},
    patience::pass,
    services::PrivateServer,
};

/// Of each tenant.
const MESSAGES: usize = 7_500;
const CHUNK: usize = 10;
const PUBLISHED_IN: Duration = Duration::from_secs(90);
const MIX: Mix = Mix { duplicates: 30, conflicts: 2, poison: 5 };
const DRAINED_IN: Duration = Duration::from_secs(180);
/// Of two hosts: lanes, slow lanes, and the store's own; and as many that a server has not missed yet.
const SESSIONS_MAX: usize = 40;

const PLAN: Plan = Plan {
    host: "heartbeat_ms = 1_000\nboot_timeout_ms = 5_000\nlease_time_ms = 5_000",
    tenants: &[
        TenantPlan { name: "t", connection: "heartbeat_s = 2", ..TENANT },
        TenantPlan { name: "u", queue: "classic", connection: "heartbeat_s = 2", ..TENANT },
    ],
};

/// What happens while messages come, in this order; host `b` is killed once more each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Broker,
    Database,
}

const FAULTS: [Fault; 7] =
    [Fault::Kill, Fault::Kill, Fault::Broker, Fault::Kill, Fault::Database, Fault::Kill, Fault::Kill];

#[test]
fn ten_thousand_deliveries_through_kills_and_restarts_each_have_one_end_and_one_effect() {
    let seed = u64::try_from(clock::now_us()).unwrap();
    println!("seed {seed}");
    let (mut mysql, mut rabbitmq) = (PrivateServer::mysql(), PrivateServer::rabbitmq());
    let fleet = Fleet::on(PLAN, &mysql.server, &rabbitmq.server);
    let feeds: Vec<Feed> = (0..2).map(|tenant| Feed::mixed(seed + tenant, MESSAGES, MIX)).collect();
    let a = fleet.start("a").ready();
    let at_first = a.footprint();
    let mut b = Some(fleet.start("b").ready());
    let began = clock::monotonic();
    let again: usize = thread::scope(|scope| {
        let publishing: Vec<_> =
            fleet.tenants.iter().zip(&feeds).map(|(tenant, feed)| scope.spawn(|| publish(tenant, feed))).collect();
        let mut chance = Chance::new(seed);
        let pace = PUBLISHED_IN / u32::try_from(FAULTS.len() + 1).unwrap();
        for (number, fault) in (1..).zip(FAULTS) {
            let at = pace * number + Duration::from_millis(chance.below(4_000));
            pass(at.saturating_sub(began.elapsed()));
            match fault {
                Fault::Kill => {
                    b.take().unwrap().kill();
                    b = Some(fleet.start("b"));
                }
                // In good order: then a classic queue keeps what it has confirmed, and so it does after kill -9.
                Fault::Broker => {
                    rabbitmq.stop();
                    rabbitmq.start_again();
                }
                Fault::Database => {
                    mysql.kill9();
                    mysql.start_again();
                }
            }
        }
        publishing.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let published_in = began.elapsed();
    for tenant in &fleet.tenants {
        tenant.drained(DRAINED_IN);
    }
    let drained_in = began.elapsed() - published_in;
    let (a, b) = (a.ready(), b.unwrap().ready());
    let at_last = a.footprint();
    let counts: Vec<String> = fleet.tenants.iter().zip(&feeds).map(|(tenant, feed)| check(tenant, feed)).collect();
    println!(
        "seed {seed}: {} messages in {published_in:.0?}, drained {drained_in:.0?} later; {again} published again; \
         5 kills, broker and database restarted; {}; host a: {} MB and {} files at first, {} MB and {} files at last; \
         host b: {:?}",
        2 * MESSAGES,
        counts.join("; "),
        at_first.resident_mb,
        at_first.open_files,
        at_last.resident_mb,
        at_last.open_files,
        b.footprint(),
    );
    // A connection that is made anew after each fault and never closed would be seen.
    assert!(at_last.open_files < at_first.open_files + 40, "{at_first:?}, {at_last:?}");
    assert!(at_last.resident_mb < at_first.resident_mb + 400, "{at_first:?}, {at_last:?}");
    a.stop();
    b.stop();
}

/// Publishes a feed evenly; how many messages had to be published again.
fn publish(tenant: &Tenant, feed: &Feed) -> usize {
    let mut publisher = tenant.publisher();
    let began = clock::monotonic();
    let chunks = u32::try_from(feed.lines.len().div_ceil(CHUNK)).unwrap();
    for (number, chunk) in (0..).zip(feed.lines.chunks(CHUNK)) {
        pass((PUBLISHED_IN * number / chunks).saturating_sub(began.elapsed()));
        publisher.publish(chunk);
    }
    publisher.again
}

/// Every key has its one end and effect, every conflict and every letter is kept; the counts for a person.
fn check(tenant: &Tenant, feed: &Feed) -> String {
    tenant.check();
    let session = tenant.session();
    expect_none(&Sent::of("a", feed).with_origins().broken(&session));
    expect_none(&live::liveness(tenant, SESSIONS_MAX, 2));
    let number = |sql: &str| usize::try_from(session.number(sql)).unwrap();
    let letters = number("SELECT count(*) FROM ob_held WHERE state = 4");
    assert_eq!(letters, feed.poison, "{}: distinct poison letters", tenant.name);
    // Whatever was redelivered, or published again, counts too.
    let again = number("SELECT CAST(sum(duplicates) AS SIGNED) FROM ob_inbox");
    assert!(again >= feed.again, "{}: {again} of {} duplicates and conflicts", tenant.name, feed.again);
    let ends = |end: Expected| feed.keys.values().filter(|other| **other == end).count();
    let (applied, skipped, dead) = (ends(Expected::Applied), ends(Expected::Skipped), ends(Expected::Dead));
    let (published, conflicts) = (feed.again, feed.conflicts.len());
    format!(
        "{}: {applied} applied, {skipped} skipped, {dead} dead, {conflicts} conflicts, {letters} letters, {again} seen \
         again ({published} published)",
        tenant.name
    )
}
