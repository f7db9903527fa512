//! Plugins that end their host's process, on MySQL and RabbitMQ: the real host in a test build, in which a plugin's log
//! line makes a host function abort. What is to be seen: the killer is given up after few ends, and its neighbours are
//! applied.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod cost;
mod cut;
mod killer;
mod memory;
mod ordered;
mod stage;
