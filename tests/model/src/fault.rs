//! Faults of the protocol that can be planted: the model must find each.

use crate::invariants::Broken;

/// One wrong turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The message is settled before its unit of work.
    AckBeforeCommit,
    /// A multi-ack goes up to the last decided delivery, whatever stands before it.
    AckMultipleOvershoot,
    /// Of a handler with order, what is at risk is put aside before what stands ahead of it.
    AtRiskPassesItsPredecessor,
    /// A claim that is left undecided takes back its inbox row, as a delivery does.
    ClaimTakesItsRowBack,
    /// A conflict is concluded from the look-up.
    ConflictFromSnapshot,
    /// A duplicate with a later event time does not make the row younger.
    DuplicateKeepsTheAge,
    /// An equal key is enough for a duplicate.
    FingerprintNotCompared,
    /// A held row of an earlier life of its key stays resolved.
    HeldRowNotOpenedAgain,
    /// INSERT IGNORE: what the server refuses for any reason looks like a duplicate.
    InsertIgnore,
    /// INSERT IGNORE: those who wait for the key are deadlocked by a COMMIT too.
    InsertIgnoreDeadlocks,
    /// Keys are inserted in the order of the batch.
    KeysUnsorted,
    /// A mark is written when its event fails, and a second event's failure undoes it.
    MarksLostBySecondFailure,
    /// A statement that waited too long leaves the event's earlier writes in the unit.
    NoRollbackOn1205,
    /// Whoever decides the first of an ordering key does not make the next one due.
    NoWakeUp,
    /// The session of a host that is gone keeps its locks.
    OrphanNeverEnds,
    /// The order row is read without its lock: what is written of it later is stale.
    OrderReadWithoutLock,
    /// A person's act leaves the lease of a running claim as it is.
    PersonKeepsTheLease,
    /// The purge deletes by key alone what it selected before.
    PurgeDeletesUnselected,
    /// The purge mark is read at BEGIN, before the key is inserted.
    PurgeMarkReadEarly,
    /// A key that was purged since the look-up stands in nobody's way.
    RebornIsPassed,
    /// A unit that decides nothing is rolled back.
    RollbackInsteadOfTakingBack,
    /// Whether a key is first is concluded from the look-up.
    SelectThenInsert,
    /// An event whose predecessor fails in a later round keeps the verdict of an earlier one.
    SuccessorKeepsItsVerdict,
    /// An event is applied although the one before it stays undecided.
    SuccessorOfUndecidedPasses,
    /// The batch is done again with the token of the unit whose COMMIT had no answer.
    TokenReusedAfterLostCommit,
    /// The queue of an ordered handler is consumed by two hosts.
    TwoConsumers,
    /// Neither token nor state is looked at before a claimed row is written.
    UnfencedClaim,
    /// The lease's token is not looked at, the inbox row's state is.
    LeaseTokenNotCompared,
}

impl Fault {
    /// All of them, by name.
    pub const ALL: [Self; 28] = [
        Self::AckBeforeCommit,
        Self::AckMultipleOvershoot,
        Self::AtRiskPassesItsPredecessor,
        Self::ClaimTakesItsRowBack,
        Self::ConflictFromSnapshot,
        Self::DuplicateKeepsTheAge,
        Self::FingerprintNotCompared,
        Self::HeldRowNotOpenedAgain,
        Self::InsertIgnore,
        Self::InsertIgnoreDeadlocks,
        Self::KeysUnsorted,
        Self::LeaseTokenNotCompared,
        Self::MarksLostBySecondFailure,
        Self::NoRollbackOn1205,
        Self::NoWakeUp,
        Self::OrphanNeverEnds,
        Self::OrderReadWithoutLock,
        Self::PersonKeepsTheLease,
        Self::PurgeDeletesUnselected,
        Self::PurgeMarkReadEarly,
        Self::RebornIsPassed,
        Self::RollbackInsteadOfTakingBack,
        Self::SelectThenInsert,
        Self::SuccessorKeepsItsVerdict,
        Self::SuccessorOfUndecidedPasses,
        Self::TokenReusedAfterLostCommit,
        Self::TwoConsumers,
        Self::UnfencedClaim,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AckBeforeCommit => "ack_before_commit",
            Self::AckMultipleOvershoot => "ack_multiple_overshoot",
            Self::AtRiskPassesItsPredecessor => "at_risk_passes_its_predecessor",
            Self::ClaimTakesItsRowBack => "claim_takes_its_row_back",
            Self::ConflictFromSnapshot => "conflict_from_snapshot",
            Self::DuplicateKeepsTheAge => "duplicate_keeps_the_age",
            Self::FingerprintNotCompared => "fingerprint_not_compared",
            Self::HeldRowNotOpenedAgain => "held_row_not_opened_again",
            Self::InsertIgnore => "insert_ignore",
            Self::InsertIgnoreDeadlocks => "insert_ignore_deadlocks",
            Self::KeysUnsorted => "keys_unsorted",
            Self::LeaseTokenNotCompared => "lease_token_not_compared",
            Self::MarksLostBySecondFailure => "marks_lost_by_second_failure",
            Self::NoRollbackOn1205 => "no_rollback_on_1205",
            Self::NoWakeUp => "no_wake_up",
            Self::OrphanNeverEnds => "orphan_never_ends",
            Self::OrderReadWithoutLock => "order_read_without_lock",
            Self::PersonKeepsTheLease => "person_keeps_the_lease",
            Self::PurgeDeletesUnselected => "purge_deletes_unselected",
            Self::PurgeMarkReadEarly => "purge_mark_read_early",
            Self::RebornIsPassed => "reborn_is_passed",
            Self::RollbackInsteadOfTakingBack => "rollback_instead_of_taking_back",
            Self::SelectThenInsert => "select_then_insert",
            Self::SuccessorKeepsItsVerdict => "successor_keeps_its_verdict",
            Self::SuccessorOfUndecidedPasses => "successor_of_undecided_passes",
            Self::TokenReusedAfterLostCommit => "token_reused_after_lost_commit",
            Self::TwoConsumers => "two_consumers",
            Self::UnfencedClaim => "unfenced_claim",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// The scenario in which it shows, and what it breaks there first.
    #[must_use]
    pub fn shows(self) -> (&'static str, Broken) {
        match self {
            Self::AckBeforeCommit => ("duplicates", Broken::AckAfterCommit),
            Self::AckMultipleOvershoot => ("batch", Broken::AckAfterCommit),
            Self::AtRiskPassesItsPredecessor => ("order-consumers", Broken::Order),
            Self::ClaimTakesItsRowBack => ("duplicates", Broken::RowsAgree),
            Self::ConflictFromSnapshot => ("person", Broken::Conflict),
            Self::DuplicateKeepsTheAge => ("purge", Broken::Once),
            Self::FingerprintNotCompared => ("conflict", Broken::Conflict),
            Self::HeldRowNotOpenedAgain => ("purge", Broken::RowsAgree),
            Self::InsertIgnore => ("duplicates", Broken::AckAfterCommit),
            Self::InsertIgnoreDeadlocks => ("waiters", Broken::Deadlock),
            Self::KeysUnsorted => ("mixed", Broken::Deadlock),
            Self::LeaseTokenNotCompared => ("duplicates", Broken::Fencing),
            Self::MarksLostBySecondFailure => ("batch", Broken::Atomic),
            Self::NoRollbackOn1205 => ("duplicates", Broken::Atomic),
            Self::NoWakeUp => ("order", Broken::Quiescence),
            Self::OrphanNeverEnds => ("duplicates", Broken::Quiescence),
            Self::OrderReadWithoutLock => ("order-consumers", Broken::RowsAgree),
            Self::PersonKeepsTheLease => ("person", Broken::Revision),
            Self::PurgeDeletesUnselected => ("purge", Broken::RowsAgree),
            Self::PurgeMarkReadEarly => ("purge", Broken::Once),
            Self::RebornIsPassed => ("purge-order", Broken::Order),
            Self::RollbackInsteadOfTakingBack => ("waiters", Broken::Deadlock),
            Self::SelectThenInsert => ("duplicates", Broken::Once),
            Self::SuccessorKeepsItsVerdict => ("order", Broken::Order),
            Self::SuccessorOfUndecidedPasses => ("order", Broken::Order),
            Self::TokenReusedAfterLostCommit => ("duplicates", Broken::Once),
            Self::TwoConsumers => ("order", Broken::Order),
            Self::UnfencedClaim => ("duplicates", Broken::Fencing),
        }
    }
}
