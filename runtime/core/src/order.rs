//! Order inside one ordering key: who has to wait for whom, decided under the lock of the key's order row.
//!
//! An event is held behind its predecessors as long as one of them is parked or (policy `hold`) dead; it stays
//! undecided behind one that stays undecided. Conflicts and late events hold nobody.

/// How an event that owns its key ended in this unit of work, as far as its successors are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passed {
    /// Applied or skipped: it holds nobody.
    Over,
    /// Parked or dead.
    Held,
    /// This unit leaves it undecided.
    Undecided,
}

/// Where an event stands before its unit of work decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Delivered, its key being new: behind all that are held.
    New,
    /// A claimed row, at this place; `None`: it was parked when its handler did not ask for order.
    Claimed(Option<u64>),
}

/// What an event has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing.
    Nobody,
    /// One that is held: it is held behind it, uncounted, until that one is decided.
    Held,
    /// One that stays undecided: it stays undecided too.
    Undecided,
}

/// Decides whether an event may be decided now. `head` is the lowest place of a held row of its ordering key before this
/// unit; `earlier` is the worst of what became of earlier events of the key in this unit.
#[must_use]
pub fn ahead(arrival: Arrival, head: Option<u64>, earlier: Option<Passed>) -> Ahead {
    let is_behind = match (arrival, head) {
        (_, None) | (Arrival::Claimed(None), Some(_)) => false,
        (Arrival::New, Some(_)) => true,
        (Arrival::Claimed(Some(place)), Some(head)) => head < place,
    };
    match earlier {
        Some(Passed::Undecided) => Ahead::Undecided,
        Some(Passed::Held) => Ahead::Held,
        Some(Passed::Over) | None if is_behind => Ahead::Held,
        Some(Passed::Over) | None => Ahead::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_waits_for_what_is_held_or_undecided_before_it() {
        use Arrival::{Claimed, New};
        for (arrival, head, earlier, expected) in [
            (New, None, None, Ahead::Nobody),
            (New, None, Some(Passed::Over), Ahead::Nobody),
            (New, None, Some(Passed::Held), Ahead::Held),
            (New, None, Some(Passed::Undecided), Ahead::Undecided),
            (New, Some(0), None, Ahead::Held),
            (New, Some(0), Some(Passed::Over), Ahead::Held),
            (New, Some(0), Some(Passed::Undecided), Ahead::Undecided),
            // The head itself, one behind it that somebody made due too early, and one from before the order was asked for.
            (Claimed(Some(3)), Some(3), None, Ahead::Nobody),
            (Claimed(Some(4)), Some(3), None, Ahead::Held),
            (Claimed(Some(3)), Some(4), None, Ahead::Nobody),
            (Claimed(None), Some(3), None, Ahead::Nobody),
            (Claimed(Some(4)), Some(4), Some(Passed::Held), Ahead::Held),
            (Claimed(Some(4)), None, Some(Passed::Undecided), Ahead::Undecided),
        ] {
            assert_eq!(ahead(arrival, head, earlier), expected, "{arrival:?}, head {head:?}, earlier {earlier:?}");
        }
    }

    #[test]
    fn the_worst_of_two_ends_counts() {
        assert!(Passed::Over < Passed::Held && Passed::Held < Passed::Undecided);
    }
}
