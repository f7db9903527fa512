//! Connections that are dead and look alive: nothing comes, no end either. The broker is missed after two heartbeats, the
//! database when a call has waited for its answer for 30 s; then the work goes on over new connections.

use oncebox_tests::{
    database::Tables as _,
    host::Host,
    patience::{PATIENCE, eventually},
    proxy::{Proxy, Treatment, Way},
};

use crate::stage::{ALERT, LONG, Stage};

/// A host whose connections were all used a moment ago.
fn warm() -> (Stage, Host) {
    let stage = Stage::new(&[ALERT]);
    let host = stage.start();
    stage.publish("before", 20);
    stage.all_applied(20);
    (stage, host)
}

/// What is published behind a lost connection is applied once.
fn goes_on(stage: &Stage, host: Host) {
    stage.publish("behind", 20);
    let session = stage.tenant().session();
    let applied = || session.number("SELECT count(*) FROM ob_inbox WHERE state = 0");
    eventually("the host has found out and goes on", LONG, || (applied() == 40).then_some(()));
    stage.all_applied(40);
    host.stop();
}

fn without(lost: impl Fn(&Stage)) {
    let (stage, host) = warm();
    lost(&stage);
    goes_on(&stage, host);
}

fn consumes_again(of: impl Fn(&Stage) -> &Proxy, lost: impl Fn(&Proxy)) {
    let (stage, host) = warm();
    let before = host.logged("consumes").len();
    lost(of(&stage));
    eventually("it consumes again", PATIENCE, || (host.logged("consumes").len() > before).then_some(()));
    goes_on(&stage, host);
}

#[test]
fn a_half_open_connection_to_the_broker_is_missed_after_two_heartbeats() {
    consumes_again(|stage| &stage.broker, Proxy::lose_all);
}

#[test]
fn a_broker_that_is_not_heard_any_more_is_missed() {
    consumes_again(|stage| &stage.broker, |broker| broker.lose(Way::ToClient));
}

#[test]
fn a_broker_that_hears_nothing_any_more_ends_the_connection_itself() {
    consumes_again(|stage| &stage.broker, |broker| broker.lose(Way::ToServer));
}

#[test]
fn half_open_connections_to_the_database_are_given_up_after_their_time() {
    without(|stage| stage.database.lose_all());
}

#[test]
fn a_database_that_is_not_heard_any_more_has_its_sessions_killed() {
    without(|stage| stage.database.lose(Way::ToClient));
}

#[test]
fn a_database_that_hears_nothing_any_more_is_asked_again() {
    without(|stage| stage.database.lose(Way::ToServer));
}

#[test]
fn with_both_half_open_the_host_goes_on() {
    without(|stage| {
        stage.database.lose_all();
        stage.broker.lose_all();
    });
}

#[test]
fn a_database_behind_a_silent_network_is_waited_for_and_nothing_is_counted() {
    let (stage, host) = warm();
    stage.database.treat_all(Treatment::Drop);
    stage.publish("behind", 20);
    let says = || Some(host.get("/readyz")).filter(|(status, text)| *status == 503 && text.contains("tenant t"));
    let (_, why) = eventually("it says so", LONG, says);
    assert!(why.contains("database") || why.contains("heartbeat"), "{why}");
    stage.database.heal();
    stage.all_applied(40);
    eventually("ready again", LONG, || (host.get("/readyz").0 == 200).then_some(()));
    host.stop();
}
