//! The sandbox: takes modules in, and runs one attempt of one event in a fresh instance.
//!
//! A plugin sees the event, its declared queries, its configuration and facts of the attempt; it has no network, no
//! files and no clock of its own, and nothing of it outlives the attempt. What it asks for is handed back as an
//! [`Outcome`] and never done here: writes and events are the unit of work's business.
//!
//! Taking in: `inspect` (static) → `cache` → `compile` (child process) → [`Engine::load`] (fits, links) →
//! [`Module::dry_run`]. Running: [`Module::run`] → `host` (the imports) → `fault` (what an error means).

mod attempt;
mod cache;
mod compile;
mod contract;
mod engine;
mod error;
mod fault;
mod host;
mod inspect;
mod limiter;
mod lines;
mod manifest;
mod module;
mod random;
mod text;
mod ticker;

pub use attempt::{
    Attempt, Context, Event, Outcome, QueryFault, QueryPort, QueryRequest, Rows, RunLimits, StagedEvent, StagedWrite,
};
pub use compile::{Compiler, compile_child_main};
pub use engine::{Engine, EngineLimits};
pub use error::PluginError;
pub use inspect::sniff;
pub use module::Module;
