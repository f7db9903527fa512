//! A host that dies, or hangs past every lease, at each place of a delivery's way, while another one goes on.
//!
//! With `ONCEBOX_CRASH_ALL=1` in the environment: on a classic queue too, with several lanes, and hanging at every place.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod choice;
mod claims;
mod deployments;
mod kills;
mod migration;
mod stage;
mod stops;

use oncebox::failpoint::Place;

/// What a host is doing at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// A batch is on its way, and no transaction is open for it.
    Running,
    /// Its unit of work is open.
    Writing,
    /// What it holds is put aside, in its unit of work.
    Parking,
    /// It is committed.
    Settling,
    /// Parked events are on their way.
    Claiming,
    /// A module is being deployed.
    Deploying,
    /// Tables are being made.
    Migrating,
}

/// Every place has its test: a new one is told here to which it belongs.
fn doing(place: Place) -> Doing {
    match place {
        Place::AfterTake | Place::AfterIdentify | Place::AfterLookUp | Place::AfterRun => Doing::Running,
        Place::AfterInboxInsert
        | Place::AfterFirstWrite
        | Place::AfterMiddleWrite
        | Place::AfterLastWrite
        | Place::AfterMarks
        | Place::BeforeRelease
        | Place::BeforeCommit => Doing::Writing,
        Place::HeldWritten => Doing::Parking,
        Place::AfterCommit | Place::AfterAck => Doing::Settling,
        Place::ClaimTaken | Place::ClaimLocked | Place::ClaimMarked => Doing::Claiming,
        Place::OfferWritten | Place::ReadyWritten | Place::Activated => Doing::Deploying,
        Place::MigrationStatement => Doing::Migrating,
    }
}

/// All places where a host does that.
fn places(what: Doing) -> impl Iterator<Item = Place> {
    Place::ALL.iter().copied().filter(move |place| doing(*place) == what)
}
