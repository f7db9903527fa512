//! Oncebox: a host runtime for event handlers. A handler is a sandboxed plugin that only *stages* writes and events;
//! the host owns the source, the transaction, the inbox row of the business key, retry, and when a message is settled.
//!
//! `host/road.rs` shows a batch's way from the source to the settlement, `host/unit_of_work.rs` its transaction.

pub mod access;
#[cfg(feature = "count-allocations")]
pub mod allocations;
pub mod cli;
pub mod clock;
pub mod code;
pub mod failpoint;
pub mod host;
pub mod metrics;
pub mod module;
pub mod planted;
pub mod plugin;
pub mod reference;
pub mod source;
pub mod store;
