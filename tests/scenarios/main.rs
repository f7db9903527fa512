//! Stories from end to end, with the real `oncebox` process and a database of its own for each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod crash;
mod support;
