//! The road under fire: real processes of `oncebox run` on MySQL and RabbitMQ, killed, frozen and cut off at moments that
//! the promise has to hold through.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod all_at_once;
mod at_risk;
mod frozen;
mod kills;
mod neighbours;
mod order;
