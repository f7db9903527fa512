//! The road over bad connections: a real host whose ways to MySQL and RabbitMQ go through proxies that cut, lose, keep
//! and delay what is said, at chosen messages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod ack;
mod commit;
mod half_open;
mod stage;
mod weather;
