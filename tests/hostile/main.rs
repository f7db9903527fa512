//! Plugins that attack, and what becomes of them: each ends with its class, and the engine runs a good one afterwards.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod abi;
mod intake;
mod memory;
mod promises;
mod queries;
mod quotas;
mod sandbox;
mod time;
