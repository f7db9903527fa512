//! What the tests of Oncebox have in common.

pub mod page;
pub mod wat;
