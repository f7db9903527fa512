//! What the tests of Oncebox have in common.

pub mod checker;
pub mod page;
pub mod wat;
