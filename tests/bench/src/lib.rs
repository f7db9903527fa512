//! What the measuring programs have in common: a place for a drain with the example `points-award`, what a drain has cost,
//! and what many drains say together. The programs are in `src/bin`.

pub mod cost;
pub mod processes;
pub mod stage;
pub mod statistics;
