//! Several processes of `oncebox run` on one database server, and a server that is away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod away;
mod connections;
mod deployments;
mod stage;
