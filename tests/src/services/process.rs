//! Commands of servers and of their processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Runs a command to its end and returns what it says.
#[track_caller]
pub(super) fn output(words: &[String], more: &[&str]) -> String {
    let output = Command::new(&words[0]).args(&words[1..]).args(more).current_dir("/").stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {more:?} ended with {}\n{said}{wrong}", words.join(" "), output.status);
    said.into_owned()
}

/// Sends a signal: `TERM`, `STOP`, `CONT`.
pub(super) fn signal(pid: u32, signal: &str) {
    let mut command = Command::new("sh");
    // The shell's own `kill`: the program of that name is not everywhere.
    command.args(["-c", "kill -s \"$1\" \"$2\"", "sh", signal, &pid.to_string()]);
    assert!(command.status().unwrap().success(), "signal {signal} to {pid}");
}

/// When a process began, in ticks since the machine did: field 22 of proc(5)'s `stat`, past a name that may hold
/// anything.
pub(super) fn started(pid: u32) -> u64 {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    text.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}
