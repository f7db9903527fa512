//! The `oncebox` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    oncebox::cli::main()
}
