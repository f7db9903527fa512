//! Several processes of `oncebox run` on one database server, and a server that is away.

mod away;
mod connections;
mod deployments;
mod stage;
