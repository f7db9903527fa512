//! Stories from end to end, with the real `oncebox` process and a database of its own for each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod alone;
mod chain;
mod checker;
mod crash;
mod deploy;
#[path = "../checker/faults.rs"]
mod faults;
mod fleet;
mod hostile;
mod latency;
mod parked;
mod rabbitmq;
mod routes;
mod schema;
mod stop;
mod support;
mod tenants;
