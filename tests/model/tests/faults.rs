//! The model is itself checked: each fault of the protocol that can be planted is found, and breaks what it should.

use oncebox_model::{Broken, Ending, Fault, Scenario, explore};

const STATES_MAX: usize = 5_000_000;

fn breaks(fault: Fault, expected: Broken) {
    let (scenario, shown) = fault.shows();
    let name = fault.name();
    assert_eq!(shown, expected, "{name}: what the command line says it breaks");
    let Some(place) = Scenario::named(scenario) else { panic!("{name}: there is no scenario {scenario}") };
    let explored = explore(&place.with(fault), STATES_MAX, |_| {});
    match explored.ending {
        Ending::Violated { broken, trace } => {
            assert_eq!(broken, expected, "{name}: {}", trace.join("\n"));
            assert!(!trace.is_empty(), "{name}: the way there is told");
        }
        ending @ (Ending::Holds | Ending::Unfinished) => {
            panic!("{name} was not found in {scenario}: {ending:?}, {} states", explored.states)
        }
    }
}

/// A test of its own for each fault, so that a failure says which one is not found any more.
macro_rules! each_fault_is_found {
    ($(fn $name:ident() { $fault:ident breaks $broken:ident })*) => {
        $(#[test]
        fn $name() {
            breaks(Fault::$fault, Broken::$broken);
        })*

        #[test]
        fn every_fault_has_a_test() {
            let tested = [$(Fault::$fault),*];
            assert_eq!(Fault::ALL.iter().find(|fault| !tested.contains(fault)), None);
        }
    };
}

each_fault_is_found! {
    fn ack_before_commit() { AckBeforeCommit breaks AckAfterCommit }
    fn ack_multiple_overshoot() { AckMultipleOvershoot breaks AckAfterCommit }
    fn at_risk_passes_its_predecessor() { AtRiskPassesItsPredecessor breaks Order }
    fn claim_takes_its_row_back() { ClaimTakesItsRowBack breaks RowsAgree }
    fn conflict_from_snapshot() { ConflictFromSnapshot breaks Conflict }
    fn duplicate_keeps_the_age() { DuplicateKeepsTheAge breaks Once }
    fn fingerprint_not_compared() { FingerprintNotCompared breaks Conflict }
    fn held_row_not_opened_again() { HeldRowNotOpenedAgain breaks RowsAgree }
    fn insert_ignore() { InsertIgnore breaks AckAfterCommit }
    fn insert_ignore_deadlocks() { InsertIgnoreDeadlocks breaks Deadlock }
    fn keys_unsorted() { KeysUnsorted breaks Deadlock }
    fn lease_token_not_compared() { LeaseTokenNotCompared breaks Fencing }
    fn marks_lost_by_second_failure() { MarksLostBySecondFailure breaks Atomic }
    fn no_rollback_on_1205() { NoRollbackOn1205 breaks Atomic }
    fn no_wake_up() { NoWakeUp breaks Quiescence }
    fn orphan_never_ends() { OrphanNeverEnds breaks Quiescence }
    fn order_read_without_lock() { OrderReadWithoutLock breaks RowsAgree }
    fn person_keeps_the_lease() { PersonKeepsTheLease breaks Revision }
    fn purge_deletes_unselected() { PurgeDeletesUnselected breaks RowsAgree }
    fn purge_mark_read_early() { PurgeMarkReadEarly breaks Once }
    fn reborn_is_passed() { RebornIsPassed breaks Order }
    fn rollback_instead_of_taking_back() { RollbackInsteadOfTakingBack breaks Deadlock }
    fn select_then_insert() { SelectThenInsert breaks Once }
    fn successor_keeps_its_verdict() { SuccessorKeepsItsVerdict breaks Order }
    fn successor_of_undecided_passes() { SuccessorOfUndecidedPasses breaks Order }
    fn token_reused_after_lost_commit() { TokenReusedAfterLostCommit breaks Once }
    fn two_consumers() { TwoConsumers breaks Order }
    fn unfenced_claim() { UnfencedClaim breaks Fencing }
}
