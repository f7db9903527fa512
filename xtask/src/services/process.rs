//! Processes that outlive this command, and are found again for certain: by pid and start time.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use super::steps;
use crate::run::{Failed, Result, Stopwatch, shown};

/// How long a server may take to stop by itself.
const STOP_TIME: Duration = Duration::from_secs(30);

/// Between two looks at something that is awaited.
pub(super) const PACE: Duration = Duration::from_millis(100);

/// A process that we started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pid: u32,
    /// Ticks from the machine's start to the process's: a pid is used again, the two together are not.
    started: u64,
}

impl Process {
    /// Starts a command that is no part of this session, its output in a log.
    pub(super) fn start(words: &[String], folder: &Path, log: &Path) -> Result<(Self, Child)> {
        let (out, err) = steps::open_log(log)?;
        let mut command = Command::new("setsid");
        command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().map_err(Failed::to(format!("start `{}`", shown(&command))))?;
        // `setsid` becomes the command itself, as a new process is never the leader of a group.
        let pid = child.id();
        let started = stat(pid).map(|stat| stat.1);
        let started =
            started.ok_or_else(|| Failed::Step(format!("failed to read the start time in /proc/{pid}/stat")))?;
        Ok((Self { pid, started }, child))
    }

    /// Whether it is still there.
    pub(super) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| state != 'Z' && started == self.started)
    }

    /// Ends it: asks, waits, then kills. A process of the same pid that is not ours is left alone.
    pub(super) fn end(self) -> Result {
        self.gone_after("TERM")?;
        self.kill()
    }

    /// Kills it, unless it is gone.
    pub(super) fn kill(self) -> Result {
        self.gone_after("KILL")?;
        let pid = self.pid;
        if self.alive() {
            Err(Failed::Step(format!("process {pid} does not end, not even by SIGKILL")))
        } else {
            Ok(())
        }
    }

    fn gone_after(self, signal: &str) -> Result {
        if self.alive() {
            self.signal(signal)?;
            let watch = Stopwatch::start();
            while self.alive() && watch.elapsed() < STOP_TIME {
                sleep(PACE);
            }
        }
        Ok(())
    }

    fn signal(self, signal: &str) -> Result {
        // The shell's own `kill`: the program of that name is not everywhere.
        let mut command = Command::new("sh");
        command.args(["-c", "kill -s \"$1\" \"$2\"", "sh", signal, &self.pid.to_string()]);
        command.stderr(Stdio::null()).status().map_err(Failed::to(format!("signal process {}", self.pid)))?;
        Ok(())
    }

    /// As it stands in `servers.json`.
    pub(super) fn value(self) -> Value {
        json!({ "pid": self.pid, "started": self.started })
    }

    /// Reads it from there.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let pid = u32::try_from(value["pid"].as_u64()?).ok()?;
        Some(Self { pid, started: value["started"].as_u64()? })
    }
}

fn stat(pid: u32) -> Option<(char, u64)> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State and start time, fields 3 and 22 of proc(5)'s `stat`. The name, field 2, may hold anything, parentheses too.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let rest = text.get(text.rfind(')')? + 1..)?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_start_time_are_read_past_any_name() {
        let text = "17 (a ) Z 1) S 1 17 17 0 -1 4194560 2 0 0 0 5 6 0 0 20 0 1 0 987654 100 200 1844";
        assert_eq!(parse_stat(text), Some(('S', 987_654)));
        assert_eq!(parse_stat("17 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_alive_and_its_pid_with_another_start_is_not() {
        let pid = std::process::id();
        let started = stat(pid).unwrap().1;
        assert!(Process { pid, started }.alive());
        assert!(!Process { pid, started: started + 1 }.alive());
    }

    #[test]
    fn a_process_is_ended_and_another_of_its_pid_is_left_alone() {
        let words: Vec<String> = ["sleep", "600"].map(str::to_owned).into();
        let log = std::env::temp_dir().join(format!("oncebox-process-test-{}.log", std::process::id()));
        let (process, mut child) = Process::start(&words, Path::new("/"), &log).unwrap();
        Process { started: process.started + 1, ..process }.end().unwrap();
        assert!(process.alive());
        process.end().unwrap();
        assert!(!child.wait().unwrap().success());
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn what_is_recorded_is_read_back() {
        let process = Process { pid: 7, started: 99 };
        assert_eq!(Process::read(&process.value()), Some(process));
        assert_eq!(Process::read(&json!({ "pid": 7 })), None);
    }
}
