//! What is being done, one line a step, with the seconds that it took.

use std::{
    fs::File,
    io::{Write as _, stdout},
    path::Path,
    process::{Command, Stdio},
};

use crate::run::{Failed, Result, Stopwatch, shown};

/// How much of a log is shown when a step fails.
const TAIL_LINES: usize = 15;

/// Does one step: its text, then the seconds or, where it failed, the end of the line.
pub(super) fn step<T>(server: &str, text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let watch = Stopwatch::start();
    print!("{server:<9} {text} ... ");
    // Seen before the wait; a terminal that is gone is noticed by the next line.
    let _ = stdout().flush();
    let outcome = work();
    match &outcome {
        Ok(_) => println!("{watch}"),
        Err(_) => println!("failed after {watch}"),
    }
    outcome
}

/// A line about a server.
pub(super) fn line(server: &str, text: &str) {
    println!("{server:<9} {text}");
}

/// Runs a command to its end with its output in a log; the end of the log is in the error.
pub(super) fn run_logged(command: &mut Command, log: &Path) -> Result {
    let (out, err) = open_log(log)?;
    let status = command.stdin(Stdio::null()).stdout(out).stderr(err).status();
    let status = status.map_err(Failed::to(format!("start `{}`", shown(command))))?;
    if status.success() {
        return Ok(());
    }
    Err(Failed::Step(format!("`{}` ended with {status}\n{}", shown(command), tail(log))))
}

/// The log, opened for what a command says and for its errors.
pub(super) fn open_log(log: &Path) -> Result<(File, File)> {
    let opening = || Failed::to(format!("open the log {}", log.display()));
    let out = File::options().create(true).append(true).open(log).map_err(opening())?;
    let err = out.try_clone().map_err(opening())?;
    Ok((out, err))
}

/// The last lines of a log, for an error.
pub(super) fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let end = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
    format!("the end of {}:\n  {end}", log.display())
}
