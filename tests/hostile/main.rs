//! Plugins that attack, and what becomes of them: each ends with its class, and the engine runs a good one afterwards.

mod abi;
mod intake;
mod memory;
mod promises;
mod queries;
mod quotas;
mod sandbox;
mod time;
