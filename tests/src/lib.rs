//! What the tests of Oncebox have in common.

pub mod command;
pub mod wat;
