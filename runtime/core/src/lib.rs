//! The decisions of Oncebox, as pure functions over values.
//!
//! Nothing here reads a clock, a file, a socket or a database: `now`, jitter and policy are arguments.
//! The host (crate `oncebox`) asks, and does what is answered.

pub mod blame;
pub mod config;
pub mod decimal;
mod document;
pub mod envelope;
pub mod failure;
pub mod failure_code;
pub mod fingerprint;
#[cfg(feature = "sql")]
pub mod fold;
pub mod hand_over;
pub mod identify;
pub mod ids;
pub mod json;
pub mod life;
pub mod manifest;
pub mod message;
pub mod order;
pub mod prefix;
pub mod reconnect;
pub mod retry;
pub mod rollout;
pub mod rule;
#[cfg(feature = "sql")]
pub mod sql;
pub mod template;
pub mod text;
pub mod value;
