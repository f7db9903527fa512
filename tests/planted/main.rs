//! The checkers are proven: each mistake that the host does not make is planted, and found. The same story without it
//! shows that nothing else was found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

#[path = "../scenarios/unit_of_work/bench.rs"]
#[expect(dead_code, reason = "what the stories of planted faults do not need of it")]
mod bench;
mod claims;
mod hosts;
mod purge;
mod stage;
mod units;

use oncebox::planted::Fault;

/// Every fault has its test: a new one is told here which it is.
fn test_of(fault: Fault) -> &'static str {
    match fault {
        Fault::AckBeforeCommit => "an_ack_before_the_commit_loses_what_a_crash_takes",
        Fault::NoRollbackOn1205 => "half_of_an_event_that_waited_too_long_is_found_without_its_inbox_row",
        Fault::SelectThenInsert => "a_key_that_the_look_up_has_not_seen_is_found_applied_twice",
        Fault::TokenReusedAfterLostCommit => "a_batch_that_is_done_again_under_its_old_token_is_found_applied_twice",
        Fault::MarksLostBySecondFailure => "marks_that_a_second_failure_has_undone_are_found_missing",
        Fault::AckMultipleOvershoot => "an_ack_over_a_gap_loses_what_is_in_the_gap",
        Fault::ConflictFromSnapshot => "a_conflict_that_only_the_look_up_has_seen_is_found_not_applied",
        Fault::UnfencedClaim => "a_claim_that_is_decided_under_an_old_token_is_found_by_its_attempts",
        Fault::InsertIgnore => "two_keys_that_insert_ignore_has_cut_to_one_are_found",
        Fault::HostClockLease => "a_lease_that_is_over_by_a_wrong_clock_is_found_taken_by_two",
    }
}

#[test]
fn every_fault_has_its_test() {
    let sources = [include_str!("claims.rs"), include_str!("hosts.rs"), include_str!("units.rs")].concat();
    for fault in Fault::ALL {
        let (name, test) = (fault.name(), test_of(*fault));
        assert!(sources.contains(&format!("fn {test}(")), "{name}: there is no test {test}");
        assert!(sources.contains(&format!("Fault::{fault:?}")), "{name} is planted nowhere");
    }
}
