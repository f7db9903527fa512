//! The checker is itself checked: whatever breaks an invariant is reported under its name, on tables that a real host has
//! written. On the embedded store the same is in `scenarios/checker.rs`.

mod faults;

use std::{collections::BTreeSet, time::Duration};

use faults::{each_is_found, feed};
use oncebox_tests::{
    checker::{Broken, Invariant, expect_none, live, sent::Sent},
    feed::entry,
    fleet::{Fleet, Plan, QUEUE, TENANT},
    host::Footprint,
    patience::{PATIENCE, eventually},
    services::Counts,
};

const PLAN: Plan = Plan { host: "", tenants: &[TENANT] };

#[track_caller]
fn is_found(invariant: Invariant, found: impl IntoIterator<Item = Broken>) {
    let found: Vec<Broken> = found.into_iter().collect();
    assert!(found.iter().any(|broken| broken.invariant == invariant), "{}: {found:#?}", invariant.name());
}

#[test]
fn whatever_breaks_the_tables_of_a_server_is_reported_by_name() {
    let fleet = Fleet::shared(PLAN);
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let feed = feed();
    tenant.publisher().publish(&feed.lines);
    tenant.drained(PATIENCE);
    let metrics = host.get("/metrics").1;
    host.stop();
    let session = tenant.session();
    let sent = Sent::of("a", &feed).with_origins();
    let headers = (Invariant::Kept, "UPDATE ob_body SET headers = '{}' WHERE revision = 0");
    each_is_found(&session, |sql| session.execute(sql), &sent, &[headers]);

    assert_eq!(live::metered(&session, "t", std::slice::from_ref(&metrics)), None);
    is_found(Invariant::Books, live::metered(&session, "t", &[metrics.clone(), metrics]));
}

#[test]
fn a_message_whose_confirm_never_came_may_be_there_or_not() {
    let fleet = Fleet::shared(PLAN);
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let feed = feed();
    // All but the second, which is the only one of its key, and the last, which is poison.
    let unknown = [1, feed.lines.len() - 1];
    let come: Vec<&String> =
        feed.lines.iter().enumerate().filter(|(n, _)| !unknown.contains(n)).map(|(_, l)| l).collect();
    tenant.publisher().publish(&come);
    tenant.drained(PATIENCE);
    let session = tenant.session();
    expect_none(&Sent::of("a", &feed).unknown(unknown).broken(&session));
    let lost = Sent::of("a", &feed).broken(&session);
    let lost: BTreeSet<&str> = lost.iter().flat_map(|broken| broken.rows.iter().map(String::as_str)).collect();
    let poison = feed.lines.last().unwrap().as_str();
    assert_eq!(lost, BTreeSet::from(["twice: Applied, but not there", poison]));
    tenant.publisher().publish(&[&feed.lines[1], &feed.lines[unknown[1]]]);
    tenant.drained(PATIENCE);
    expect_none(&Sent::of("a", &feed).unknown(unknown).broken(&session));
    host.stop();
}

#[test]
fn what_is_left_to_do_and_who_holds_on_is_reported() {
    let fleet = Fleet::shared(PLAN);
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    tenant.publisher().publish(&[entry("e-1", "k", 1)]);
    tenant.drained(PATIENCE);
    eventually("the API knows its connection", PATIENCE, || (tenant.vhost.connections() == 1).then_some(()));
    expect_none(&live::liveness(tenant, 20, 1));
    is_found(Invariant::Liveness, live::liveness(tenant, 0, 1));
    is_found(Invariant::Liveness, live::liveness(tenant, 20, 0));
    host.stop();
    let own = &tenant.database.database;
    let open = own.session_of(&own.runtime);
    open.execute("BEGIN; SELECT count(*) FROM ob_inbox FOR UPDATE");
    eventually("it is open for long", PATIENCE, || {
        live::liveness(tenant, 20, 1).iter().any(|broken| broken.rule.contains("no transaction")).then_some(())
    });
    open.execute("ROLLBACK");
    tenant.publisher().publish(&[entry("e-2", "k-2", 1)]);
    tenant.vhost.wait_for(QUEUE, Counts { ready: 1, unacked: 0 });
    let left = live::liveness(tenant, 20, 1);
    assert_eq!(left.iter().map(|broken| &broken.rows[..]).collect::<Vec<_>>(), [["queue in: 1 ready, 0 unacked"]]);
}

#[test]
fn messages_that_are_neither_at_the_broker_nor_in_the_tables_are_reported() {
    let fleet = Fleet::shared(PLAN);
    let tenant = &fleet.tenants[0];
    let feed = feed();
    let (session, sent) = (tenant.session(), Sent::of("a", &feed));
    fleet.start("a").ready().stop();
    tenant.publisher().publish(&feed.lines[..4]);
    let keys = || feed.lines_keys[..4].iter().flatten().map(String::as_str);
    tenant.vhost.wait_for(QUEUE, Counts { ready: 4, unacked: 0 });
    assert_eq!(sent.undecided(&session, keys()), 4);
    assert_eq!(live::ack_after_commit(sent.undecided(&session, keys()), tenant.vhost.held(QUEUE)), None);
    // Gone without a verdict, as if acked before the COMMIT.
    tenant.vhost.purge_queue(QUEUE);
    tenant.vhost.wait_for(QUEUE, Counts::EMPTY);
    is_found(
        Invariant::AckAfterCommit,
        live::ack_after_commit(sent.undecided(&session, keys()), tenant.vhost.held(QUEUE)),
    );
    tenant.publisher().publish(&feed.lines[..4]);
    let host = fleet.start("a").ready();
    tenant.drained(Duration::from_secs(60));
    assert_eq!(sent.undecided(&session, keys()), 0);
    host.stop();
}

#[test]
fn a_host_that_takes_more_than_it_may_is_reported() {
    let fleet = Fleet::shared(PLAN);
    let host = fleet.start("a").ready();
    let now = host.footprint();
    assert!(now.resident_mb > 0 && now.open_files > 0, "{now:?}");
    assert_eq!(live::bounds("a", &[now], now), None);
    for most in
        [Footprint { resident_mb: now.resident_mb - 1, ..now }, Footprint { open_files: now.open_files - 1, ..now }]
    {
        is_found(Invariant::Bounds, live::bounds("a", &[now, now], most));
    }
    host.stop();
}
