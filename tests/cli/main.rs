//! The command line with the real binary: what each command says and leaves behind, when it works and when it does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod arguments;
mod config;
mod deploy;
mod gate;
mod held;
mod module;
mod run;
mod secrets;
mod send;
mod stage;
mod store;
