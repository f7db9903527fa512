//! The protocol of a batch's way through the host (DESIGN, chapter 4) as an explicit-state model.
//!
//! Hosts, their sessions, the database with its row locks, the broker's queue, a person and the purge take turns in every
//! order; hosts die, connections and answers are lost. [`explore()`] goes through all of it and holds each state against
//! the invariants ([`Broken`]). A [`Fault`] planted in the protocol must be found. `docs/model.md` is its manual.
//!
//! The files are named after those of the host that they stand for, the verbs after the traits of `runtime/src/store`:
//! lay them side by side. Verdicts are drawn by the host's own functions in `oncebox-core`.

mod action;
mod broker;
mod claims;
mod database;
mod explore;
mod fault;
mod invariants;
mod lane;
mod marks;
mod oracle;
mod person;
mod road;
mod scenario;
mod state;
mod unit_of_work;
mod words;
mod world;

pub use explore::{Ending, Explored, Progress, explore};
pub use fault::Fault;
pub use invariants::Broken;
pub use scenario::{Message, Outcome, Scenario};
pub use state::Budget;
