//! The unit of work on real tables: batches go in by hand, and after each unit the books must balance. Beside it the
//! queue that batches are taken from.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod bench;
mod books;
mod claims;
mod commit;
mod deliveries;
mod failures;
mod faulty;
mod fold;
mod inside;
mod life;
mod links;
mod order;
mod outgoing;
mod queue;
mod settlement;

/// A fate in few letters, for lists.
macro_rules! fates {
    ($($fate:ident)*) => { [$(fates!(@ $fate)),*] };
    (@ Again) => { oncebox::host::Fate::Again };
    (@ Waited) => { oncebox::host::Fate::Waited };
    (@ Lost) => { oncebox::host::Fate::Lost };
    (@ $verdict:ident) => { oncebox::host::Fate::Decided(oncebox_core::life::Verdict::$verdict) };
}
pub(crate) use fates;
