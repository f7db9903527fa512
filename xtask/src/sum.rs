//! Runs `cargo test` and adds up what its binaries report.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use crate::run::{Failed, Result, shown};

/// What was counted over all test binaries.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests that were not run.
    pub(crate) ignored: u64,
    /// The names of those that failed.
    pub(crate) names: Vec<String>,
}

impl Sum {
    /// Runs the tests, shows their output as it comes, and adds them up.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result {
        let starting = || Failed::to(format!("start `{}`", shown(command)));
        let starting = starting();
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(starting)?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.map_err(Failed::to("read what the tests say"))?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                self.read(&line);
            }
        }
        let status = child.wait().map_err(Failed::to("wait for the tests"))?;
        if status.success() { Ok(()) } else { Err(Failed::Step(format!("`{}` ended with {status}", shown(command)))) }
    }

    /// Takes in one line of a test binary's report.
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            for part in counts.split([';', '.']) {
                let Some((number, word)) = part.trim().split_once(' ') else { continue };
                let Ok(number) = number.parse::<u64>() else { continue };
                match word {
                    "passed" => self.passed += number,
                    "failed" => self.failed += number,
                    "ignored" => self.ignored += number,
                    _ => {}
                }
            }
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.names.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_several_binaries_are_added_up() {
        let mut sum = Sum::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.25s",
            "test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            sum.read(line);
        }
        assert_eq!(sum, Sum { passed: 41, failed: 1, ignored: 1, names: vec!["a::c".to_owned()] });
    }
}
