//! The store on MySQL and MariaDB.
//!
//! Every statement runs on a session (`session.rs`): one connection with the host's own settings, whose calls are never
//! cancelled. The lanes' unit of work is in `unit.rs` and the files that it names.

#[macro_use]
mod args;
mod admin;
mod catalogue;
mod checks;
mod columns;
mod decode;
mod errors;
mod fleet;
mod held;
mod inbox;
mod many;
mod migrate;
mod modules;
mod order;
mod outgoing;
mod queues;
mod server;
mod session;
mod statements;
mod stories;
mod supervisor;
mod unit;
