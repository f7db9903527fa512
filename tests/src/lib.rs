//! What the tests of Oncebox have in common.

pub mod checker;
pub mod command;
pub mod counters;
pub mod database;
pub mod feed;
pub mod fleet;
pub mod host;
pub mod latency;
pub mod pace;
pub mod page;
pub mod patience;
pub mod points;
pub mod probe;
pub mod proxy;
pub mod publisher;
pub mod script;
pub mod services;
pub mod tenant_database;
pub mod wat;
