//! The store on MySQL and MariaDB.
//!
//! Every statement runs on a session (`session.rs`): one connection with the host's own settings, whose calls are never
//! cancelled.

#[macro_use]
mod args;
mod columns;
mod errors;
mod server;
mod session;
mod supervisor;
