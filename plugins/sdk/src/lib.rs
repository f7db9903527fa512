//! Write Oncebox event handlers in Rust.
//!
//! A handler is one function from an event to what should be written. It asks; the host does: staged writes, emitted
//! events and the record that the event was handled commit together, once, after the function has returned.
//!
//! ```no_run
//! # mod handler {
//! use oncebox_sdk::prelude::*;
//!
//! struct Welcome;
//!
//! impl Handler for Welcome {
//!     fn handle(event: &Event) -> Result<Done, Failure> {
//!         let id: u64 = event.json()?;
//!         log::info!(member = id; "welcomed");
//!         Ok(Done::applied())
//!     }
//! }
//!
//! oncebox_sdk::export!(Welcome);
//! # }
//! ```
//!
//! [`manifest!`] turns the `handler.toml` beside the crate's Cargo.toml into typed functions; [`export!`] makes the
//! crate a component; [`testing`] runs a handler natively, without a host.

pub mod bindings;
pub mod context;
mod emit;
mod event;
mod export;
mod host;
pub mod log;
mod outcome;
pub mod prelude;
mod rows;
pub mod testing;
mod value;

pub use emit::Outgoing;
pub use export::Handler;
pub use oncebox_sdk_macros::manifest;
pub use outcome::{Done, Failure};
pub use rows::{ColumnError, FromValue, Row, Rows};
pub use value::{Arg, Date, Datetime, Decimal, Json, Null, ParseDecimalError, Time, Value};

pub use bindings::oncebox::handler::types::{Event, Header};

/// An instance lives for one attempt, and growing its memory is two system calls of the host: its heap begins in memory that
/// is there from the start, where the linker has set some aside, as `oncebox build` tells it to.
#[cfg(all(target_family = "wasm", feature = "allocator"))]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// What the functions of [`manifest!`] call; not for plugins, and free to change.
#[doc(hidden)]
pub mod generated {
    pub use crate::export::run;
    pub use crate::host::{config, query, stage};

    /// The value of a configuration entry that the operator must give, or that has a default.
    #[must_use]
    pub fn config_required(name: &str) -> String {
        config(name).unwrap_or_else(|| panic!("the host has no value for the required configuration entry `{name}`"))
    }

    /// An empty event for a destination.
    pub fn outgoing(destination: &'static str, ordering_key: Option<&[u8]>) -> crate::Outgoing {
        crate::Outgoing::new(destination, ordering_key)
    }

    /// Rows of a query.
    #[must_use]
    pub fn rows(query_name: &'static str, params: &[crate::Value]) -> crate::Rows {
        crate::Rows::new(query_name, query(query_name, params))
    }
}
