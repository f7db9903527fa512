//! The life of a delivery, whole: one `match` over what the inbox row says and what happened.
//!
//! Nothing else in Oncebox decides a verdict. The page `docs/reference/lifecycle.md` is written from
//! [`table`], so that it shows what runs.

use serde::Serialize;

/// What the inbox row of a (handler, business key) says. `None` in the functions here: there is no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InboxState {
    /// Its writes and outgoing events are committed.
    Applied,
    /// Decided without effect.
    Skipped,
    /// Waiting in our table for its next attempt.
    Parked,
    /// Given up on, kept whole until a person decides.
    Dead,
    /// A person threw it away, with a reason.
    Discarded,
}

impl InboxState {
    /// All states, in the order of their numbers in `ob_inbox.state`.
    pub const ALL: [Self; 5] = [Self::Applied, Self::Skipped, Self::Parked, Self::Dead, Self::Discarded];

    /// The number kept in `ob_inbox.state`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Applied => 0,
            Self::Skipped => 1,
            Self::Parked => 2,
            Self::Dead => 3,
            Self::Discarded => 4,
        }
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in output and docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Skipped => "skipped",
            Self::Parked => "parked",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
        }
    }
}

/// The state of a held row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldState {
    /// Waiting for its next attempt.
    Parked,
    /// Waiting for a person.
    Dead,
    /// Same key, other fingerprint: kept for a person.
    Conflict,
    /// Older than the horizon: kept for a person.
    Late,
    /// Undecodable, keyless or without a route: kept with its raw bytes.
    Poison,
    /// Over; kept as evidence.
    Resolved,
}

impl HeldState {
    /// All states, in the order of their numbers in `ob_held.state`.
    pub const ALL: [Self; 6] = [Self::Parked, Self::Dead, Self::Conflict, Self::Late, Self::Poison, Self::Resolved];

    /// The number kept in `ob_held.state`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Parked => 0,
            Self::Dead => 1,
            Self::Conflict => 2,
            Self::Late => 3,
            Self::Poison => 4,
            Self::Resolved => 5,
        }
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in output and docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Dead => "dead",
            Self::Conflict => "conflict",
            Self::Late => "late",
            Self::Poison => "poison",
            Self::Resolved => "resolved",
        }
    }
}

/// What the host decided of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Its writes and outgoing events are committed.
    Applied,
    /// The key was there, with the same fingerprint.
    Duplicate,
    /// The key was there, with another fingerprint.
    Conflict,
    /// Decided without effect.
    Skipped,
    /// Waiting in our table.
    Parked,
    /// Given up on.
    Dead,
    /// Older than the horizon.
    Late,
}

impl Verdict {
    /// All verdicts, in the order of their numbers in `ob_tally.verdict`.
    pub const ALL: [Self; 7] =
        [Self::Applied, Self::Duplicate, Self::Conflict, Self::Skipped, Self::Parked, Self::Dead, Self::Late];

    /// The number kept in `ob_tally.verdict`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Applied => 0,
            Self::Duplicate => 1,
            Self::Conflict => 2,
            Self::Skipped => 3,
            Self::Parked => 4,
            Self::Dead => 5,
            Self::Late => 6,
        }
    }

    /// Reads a table's number back.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in metrics, output and docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Skipped => "skipped",
            Self::Parked => "parked",
            Self::Dead => "dead",
            Self::Late => "late",
        }
    }
}

/// What happened to a key inside a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A delivery found the key's row there, with an equal (or authorised) fingerprint under the same rule.
    DeliveredEqual,
    /// A delivery found the key's row there, with another fingerprint.
    DeliveredOther,
    /// The one attempt that owns the key ran and may be committed.
    RanApplied,
    /// It ran, and the guest skipped it or the state was newer than the event.
    RanSkipped,
    /// It failed in a way that another attempt may mend, or was put aside unrun.
    RanToPark,
    /// It failed for good.
    RanToDeath,
}

impl Happening {
    /// All happenings.
    pub const ALL: [Self; 6] = [
        Self::DeliveredEqual,
        Self::DeliveredOther,
        Self::RanApplied,
        Self::RanSkipped,
        Self::RanToPark,
        Self::RanToDeath,
    ];

    /// The words for it in the docs.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::DeliveredEqual => "delivered again, equal fingerprint",
            Self::DeliveredOther => "delivered again, other fingerprint",
            Self::RanApplied => "ran, applied",
            Self::RanSkipped => "ran, skipped or obsolete",
            Self::RanToPark => "failed, may be tried again",
            Self::RanToDeath => "failed for good",
        }
    }
}

/// What becomes of the held row of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldChange {
    /// Nothing is held, nothing is touched.
    None,
    /// A row in this state is written: a new one, or the event's own brought up to date.
    Hold(HeldState),
    /// The event's own row is over.
    Resolve,
}

/// One step of a delivery's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// What is counted and shown.
    pub verdict: Verdict,
    /// The inbox row afterwards.
    pub inbox: InboxState,
    /// The held row afterwards.
    pub held: HeldChange,
}

/// A step that the table does not have: the host's own bookkeeping is wrong, and nothing may be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("illegal transition: {happening:?} on inbox state {state:?}")]
pub struct IllegalTransition {
    /// What the inbox row said.
    pub state: Option<InboxState>,
    /// What happened.
    pub happening: Happening,
}

/// Decides the next step of a key's life. `state` is what the inbox row said before this unit of work
/// (`None`: no row, so this delivery is the first).
///
/// # Errors
/// [`IllegalTransition`] where a run is reported for a key that this delivery does not own.
pub fn step(state: Option<InboxState>, happening: Happening) -> Result<Step, IllegalTransition> {
    use Happening as H;
    use InboxState as S;
    let to = |verdict, inbox, held| Ok(Step { verdict, inbox, held });
    match (state, happening) {
        (Some(known), H::DeliveredEqual) => to(Verdict::Duplicate, known, HeldChange::None),
        (Some(known), H::DeliveredOther) => to(Verdict::Conflict, known, HeldChange::Hold(HeldState::Conflict)),
        (None, H::RanApplied) => to(Verdict::Applied, S::Applied, HeldChange::None),
        (None, H::RanSkipped) => to(Verdict::Skipped, S::Skipped, HeldChange::None),
        (Some(S::Parked), H::RanApplied) => to(Verdict::Applied, S::Applied, HeldChange::Resolve),
        (Some(S::Parked), H::RanSkipped) => to(Verdict::Skipped, S::Skipped, HeldChange::Resolve),
        (None | Some(S::Parked), H::RanToPark) => to(Verdict::Parked, S::Parked, HeldChange::Hold(HeldState::Parked)),
        (None | Some(S::Parked), H::RanToDeath) => to(Verdict::Dead, S::Dead, HeldChange::Hold(HeldState::Dead)),
        (None, H::DeliveredEqual | H::DeliveredOther)
        | (
            Some(S::Applied | S::Skipped | S::Dead | S::Discarded),
            H::RanApplied | H::RanSkipped | H::RanToPark | H::RanToDeath,
        ) => Err(IllegalTransition { state, happening }),
    }
}

/// All pairs of state and happening with what the table says of them, in a fixed order.
#[must_use]
pub fn table() -> Vec<(Option<InboxState>, Happening, Result<Step, IllegalTransition>)> {
    let states = std::iter::once(None).chain(InboxState::ALL.into_iter().map(Some));
    states.flat_map(|state| Happening::ALL.into_iter().map(move |h| (state, h, step(state, h)))).collect()
}

/// The page `docs/reference/lifecycle.md`, written from [`table`].
#[must_use]
pub fn reference() -> String {
    use std::fmt::Write as _;
    let mut page = String::from(
        "# The life of a delivery\n\n\
         Written from the one `match` that decides (`oncebox_core::life::step`) by `cargo bless`; do not edit.\n\n\
         The inbox row of a (handler, business key) is what it was *before* the unit of work; \
         everything in a line commits together or not at all.\n\n\
         | inbox row | what happened | verdict | inbox row after | held row |\n| --- | --- | --- | --- | --- |\n",
    );
    for (state, happening, result) in table() {
        let before = state.map_or("none", InboxState::name);
        let _ = match result {
            Ok(Step { verdict, inbox, held }) => {
                let held = match held {
                    HeldChange::None => "untouched".to_owned(),
                    HeldChange::Hold(state) => state.name().to_owned(),
                    HeldChange::Resolve => "resolved".to_owned(),
                };
                writeln!(
                    page,
                    "| {before} | {} | **{}** | {} | {held} |",
                    happening.words(),
                    verdict.name(),
                    inbox.name()
                )
            }
            Err(_) => {
                writeln!(page, "| {before} | {} | impossible: refused, nothing is committed | | |", happening.words())
            }
        };
    }
    page.push_str(
        "\nA message that cannot be understood, has no key or no route never gets an inbox row: \
         its verdict is **dead**, its held row `poison`, unique per (source, handler or none, message hash).\n\
         An infrastructure fault is no happening: the event stays undecided and is tried again, uncounted.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::page;

    #[test]
    fn the_reference_page_of_a_deliverys_life_is_up_to_date() {
        page::assert_up_to_date("lifecycle.md", &reference());
    }

    #[test]
    fn a_key_that_has_a_row_never_runs_again_unless_it_is_parked() {
        for (state, happening, result) in table() {
            let runs = !matches!(happening, Happening::DeliveredEqual | Happening::DeliveredOther);
            let owned = matches!(state, None | Some(InboxState::Parked));
            assert_eq!(result.is_ok(), runs == owned || (!runs && state.is_some()), "{state:?} {happening:?}");
        }
    }

    #[test]
    fn a_second_delivery_never_changes_the_inbox_state() {
        for state in InboxState::ALL {
            let equal = step(Some(state), Happening::DeliveredEqual).unwrap();
            assert_eq!((equal.verdict, equal.inbox, equal.held), (Verdict::Duplicate, state, HeldChange::None));
            let other = step(Some(state), Happening::DeliveredOther).unwrap();
            assert_eq!(
                (other.verdict, other.inbox, other.held),
                (Verdict::Conflict, state, HeldChange::Hold(HeldState::Conflict))
            );
        }
    }

    #[test]
    fn numbers_in_tables_read_back_as_the_same_state() {
        for state in InboxState::ALL {
            assert_eq!(InboxState::from_number(state.number()), Some(state));
        }
        for state in HeldState::ALL {
            assert_eq!(HeldState::from_number(state.number()), Some(state));
        }
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::from_number(verdict.number()), Some(verdict));
        }
        assert_eq!(InboxState::from_number(5), None);
    }

    #[test]
    fn a_dead_or_parked_event_is_always_held() {
        for (_, _, result) in table() {
            let Ok(step) = result else { continue };
            match step.verdict {
                Verdict::Dead => assert_eq!(step.held, HeldChange::Hold(HeldState::Dead)),
                Verdict::Parked => assert_eq!(step.held, HeldChange::Hold(HeldState::Parked)),
                Verdict::Conflict => assert_eq!(step.held, HeldChange::Hold(HeldState::Conflict)),
                Verdict::Applied | Verdict::Duplicate | Verdict::Skipped => {
                    assert!(!matches!(step.held, HeldChange::Hold(_)));
                }
                Verdict::Late => unreachable!("no happening of this table makes a late event"),
            }
        }
    }
}
