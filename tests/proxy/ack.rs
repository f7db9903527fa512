//! The connection to the broker fails between a delivery and its ack.

use oncebox_tests::{
    fleet::{QUEUE, TENANT},
    patience::{PATIENCE, eventually},
    proxy::{Message, Plan, Then},
    services::Counts,
};

use crate::stage::{ALERT, Stage};

#[test]
fn an_ack_that_is_lost_makes_a_duplicate_of_the_next_delivery() {
    // Heartbeats are lost with it: it is to be seen before the broker misses them.
    let stage = Stage::new(&[TENANT]);
    let host = stage.start();
    stage.broker.plan(Plan { at: Message::Ack, then: Then::Lose });
    stage.publish("k", 1);
    eventually("it is applied", PATIENCE, || (stage.applied() == 1).then_some(()));
    eventually("the ack is lost", PATIENCE, || stage.broker.is_done().then_some(()));
    stage.tenant().vhost.wait_for(QUEUE, Counts { ready: 0, unacked: 1 });
    stage.broker.cut();
    stage.all_applied(1);
    assert_eq!(stage.duplicates(), 1);
    // The tags of the lost channel are not used on the next one.
    stage.publish("next", 20);
    stage.all_applied(21);
    assert_eq!(stage.duplicates(), 1);
    host.stop();
}

#[test]
fn a_connection_that_is_cut_behind_the_ack_makes_none() {
    let stage = Stage::new(&[ALERT]);
    let host = stage.start();
    stage.broker.plan(Plan { at: Message::Ack, then: Then::CutAfter });
    stage.publish("k", 1);
    stage.all_applied(1);
    assert!(stage.broker.is_done());
    assert_eq!(stage.duplicates(), 0);
    host.stop();
}

#[test]
fn a_connection_that_is_cut_between_delivery_and_ack_delivers_again_and_applies_once() {
    let stage = Stage::new(&[ALERT]);
    let host = stage.start();
    // Fewer than would have a message put aside for being delivered often.
    for round in 0..3 {
        stage.broker.plan(Plan { at: Message::Delivery, then: Then::CutAfter });
        stage.publish(&format!("round-{round}"), 10);
        eventually("the connection is cut", PATIENCE, || stage.broker.is_done().then_some(()));
    }
    stage.all_applied(30);
    assert!(host.logged("consumes").len() > 1, "it did not subscribe again");
    assert!(stage.duplicates() > 0, "nothing was delivered again after its verdict");
    host.stop();
}
