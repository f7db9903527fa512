//! Stands in for `oncebox __compile` in tests of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    oncebox::plugin::compile_child_main()
}
