//! The store on MySQL and MariaDB.
//!
//! Every statement runs on a session (`session.rs`): one connection with the host's own settings, whose calls are never
//! cancelled.

#[macro_use]
mod args;
mod admin;
mod catalogue;
mod checks;
mod columns;
mod errors;
mod fleet;
mod migrate;
mod modules;
mod queues;
mod server;
mod session;
mod stories;
mod supervisor;
