//! The connection to the database fails around COMMIT, and in the midst of the staged writes.

use oncebox_tests::{
    fleet::{TENANT, TenantPlan},
    patience::{PATIENCE, eventually},
    proxy::{Message, Plan, Then},
};

use crate::stage::Stage;

/// The end of a unit of work, and of nothing else.
const COMMIT: Message = Message::Statement("SAVEPOINT ob_marks; COMMIT");
const EVENTS: usize = 50;

fn through(at: Message, then: Then) -> Stage {
    let stage = Stage::new(&[TENANT]);
    let host = stage.start();
    stage.database.plan(Plan { at, then });
    stage.publish("k", EVENTS);
    stage.all_applied(i64::try_from(EVENTS).unwrap());
    assert!(stage.database.is_done());
    host.stop();
    stage
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_to_be_there_and_its_batch_is_duplicates() {
    let stage = through(COMMIT, Then::CutAfter);
    assert!(stage.duplicates() > 0, "the batch was not done again");
}

#[test]
fn a_commit_that_never_arrives_is_done_again() {
    let stage = through(COMMIT, Then::CutBefore);
    assert_eq!(stage.duplicates(), 0, "something was there already");
}

#[test]
fn a_connection_that_is_cut_within_the_staged_writes_leaves_none_of_them() {
    for then in [Then::CutBefore, Then::CutAfter] {
        let stage = through(Message::Statement("UPDATE counter"), then);
        assert_eq!(stage.duplicates(), 0, "{then:?}: something was committed");
    }
}

#[test]
fn a_commit_that_arrives_while_its_batch_is_done_again_is_the_one_that_counts() {
    let stage = Stage::new(&[TENANT]);
    let host = stage.start();
    stage.database.plan(Plan { at: COMMIT, then: Then::Keep });
    stage.publish("k", 1);
    eventually("the host's COMMIT is on its way", PATIENCE, || stage.database.is_done().then_some(()));
    // Done again, the key waits for the transaction whose COMMIT has not come yet.
    stage.tenant().database.waiting(1);
    assert_eq!(stage.applied(), 0);
    stage.database.let_go();
    stage.all_applied(1);
    assert_eq!(stage.duplicates(), 1);
    host.stop();
}

#[test]
fn a_commit_that_arrives_after_its_session_was_ended_changes_nothing() {
    // The server ends a session that says nothing for so long.
    const SHORT: TenantPlan = TenantPlan { store: "idle_timeout_s = 5", ..TENANT };
    let stage = Stage::new(&[SHORT]);
    let host = stage.start();
    stage.database.plan(Plan { at: COMMIT, then: Then::Keep });
    stage.publish("k", 1);
    eventually("the batch is done again", PATIENCE, || (stage.applied() == 1).then_some(()));
    assert!(stage.database.is_done());
    stage.database.let_go();
    stage.publish("next", 1);
    stage.all_applied(2);
    assert_eq!(stage.duplicates(), 0);
    host.stop();
}
