//! What a source of a broker hands over now, of the deliveries that it has in memory.
//!
//! A quorum queue drops a message that was delivered too often (20 times unless set), and being prefetched by a host
//! that dies counts as well as being run by it. So what was delivered often is put aside without a run, through the same
//! unit of work, before anything else may run and perhaps end the host once more.

/// Earlier deliveries (`x-delivery-count`) from which on a message is put aside without a run.
pub const AT_RISK_FROM: u64 = 5;

/// As long nothing must come before all messages at risk are taken for gathered.
pub const QUIET_MS: u64 = 100;

/// The longest that the others are held back: one that nobody can decide must not stop its source for good.
pub const HOLD_MS_MAX: u64 = 60_000;

/// Whether the messages of a source may pass each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// A handler asks for order: they are handed over as they came.
    Kept,
    /// No handler does.
    Free,
}

/// What is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InMemory {
    /// Whether they may pass each other.
    pub sequence: Sequence,
    /// Deliveries not handed over yet.
    pub waiting: usize,
    /// Of these: at risk.
    pub at_risk: usize,
    /// Deliveries that the broker may still send before the prefetch is full.
    pub room: usize,
    /// Milliseconds since the last one came.
    pub quiet_ms: u64,
    /// Milliseconds since some at risk were handed over, as long as one of them is not decided.
    pub undecided_at_risk_ms: Option<u64>,
}

/// What is handed over now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOver {
    /// Nothing, until another delivery comes or one is decided.
    Nothing,
    /// Nothing; asked again after so many milliseconds, or before, when another one comes or one is decided.
    Later {
        /// Milliseconds from now.
        ms: u64,
    },
    /// All that waits, in the order it came.
    All,
    /// What is at risk, all of it at once.
    AtRisk,
}

/// Decides what is handed over now.
#[must_use]
pub fn hand_over(memory: &InMemory) -> HandOver {
    let InMemory { sequence, waiting, at_risk, room, quiet_ms, undecided_at_risk_ms } = *memory;
    if waiting == 0 {
        return HandOver::Nothing;
    }
    match (sequence, at_risk, undecided_at_risk_ms) {
        (Sequence::Kept, _, _) => HandOver::All,
        (Sequence::Free, 1.., _) if room == 0 || quiet_ms >= QUIET_MS => HandOver::AtRisk,
        (Sequence::Free, 1.., _) => HandOver::Later { ms: QUIET_MS - quiet_ms },
        (Sequence::Free, 0, Some(ms)) if ms < HOLD_MS_MAX => HandOver::Later { ms: HOLD_MS_MAX - ms },
        (Sequence::Free, 0, _) => HandOver::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: InMemory = InMemory {
        sequence: Sequence::Free,
        waiting: 3,
        at_risk: 0,
        room: 10,
        quiet_ms: 0,
        undecided_at_risk_ms: None,
    };

    #[test]
    fn what_is_at_risk_is_gathered_and_goes_first_and_alone() {
        let rows = [
            ("nothing there", InMemory { waiting: 0, ..QUIET }, HandOver::Nothing),
            ("nothing at risk", QUIET, HandOver::All),
            ("one just came", InMemory { at_risk: 1, quiet_ms: 30, ..QUIET }, HandOver::Later { ms: 70 }),
            ("no other came", InMemory { at_risk: 1, quiet_ms: 100, ..QUIET }, HandOver::AtRisk),
            ("no other can come", InMemory { at_risk: 3, room: 0, ..QUIET }, HandOver::AtRisk),
            (
                "nothing left beside them",
                InMemory { waiting: 0, undecided_at_risk_ms: Some(1), ..QUIET },
                HandOver::Nothing,
            ),
            ("they are undecided", InMemory { undecided_at_risk_ms: Some(1), ..QUIET }, HandOver::Later { ms: 59_999 }),
            ("for too long", InMemory { undecided_at_risk_ms: Some(60_000), ..QUIET }, HandOver::All),
            (
                "more of them came meanwhile",
                InMemory { at_risk: 1, quiet_ms: 100, undecided_at_risk_ms: Some(1), ..QUIET },
                HandOver::AtRisk,
            ),
        ];
        for (name, memory, expected) in rows {
            assert_eq!(hand_over(&memory), expected, "{name}");
        }
    }

    #[test]
    fn where_order_is_kept_everything_goes_as_it_came() {
        for (at_risk, undecided_at_risk_ms) in [(0, None), (3, None), (1, Some(0)), (0, Some(0))] {
            let memory = InMemory { sequence: Sequence::Kept, at_risk, undecided_at_risk_ms, ..QUIET };
            assert_eq!(hand_over(&memory), HandOver::All);
        }
        assert_eq!(hand_over(&InMemory { sequence: Sequence::Kept, waiting: 0, ..QUIET }), HandOver::Nothing);
    }
}
