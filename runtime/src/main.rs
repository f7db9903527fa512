//! The `oncebox` command.

use std::process::ExitCode;

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: oncebox::allocations::Counting = oncebox::allocations::Counting;

fn main() -> ExitCode {
    oncebox::cli::main()
}
