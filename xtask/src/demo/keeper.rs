//! The demo's folder and its host, which end with this process however it ends.
//!
//! A shell stands between: it starts the host and reads a pipe that only this process holds. When the pipe closes,
//! because the demo is over, failed, was interrupted or was killed, the shell stops the host and removes the folder.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::run::{Failed, Result};

/// `$1` oncebox, `$2` its configuration, `$3` the log, `$4` the folder to remove, or nothing.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
"$1" --config "$2" run </dev/null >"$3" 2>&1 &
host=$!
echo "$host"
cat >/dev/null
kill -TERM "$host" 2>/dev/null
wait "$host"
status=$?
[ -z "$4" ] || rm -rf "$4"
exit "$status"
"#;

/// A running host and the folder that it works in.
pub(super) struct Keeper {
    shell: Child,
    host: String,
    log: PathBuf,
}

impl Keeper {
    /// Starts the host. `remove`: what goes when this process does.
    pub(super) fn start(oncebox: &Path, config: &Path, log: &Path, remove: Option<&Path>) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).args([oncebox, config, log]).arg(remove.unwrap_or_else(|| Path::new("")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().map_err(Failed::to("start a shell"))?;
        let mut host = String::new();
        if let Some(stdout) = shell.stdout.take() {
            BufReader::new(stdout).read_line(&mut host).map_err(Failed::to("start the host"))?;
        }
        Ok(Self { shell, host: host.trim().to_owned(), log: log.to_owned() })
    }

    /// Whether the host is still there.
    pub(super) fn lives(&self) -> bool {
        let asked = Command::new("kill").args(["-0", &self.host]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// The last lines of the host's log.
    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(15)..).unwrap_or_default();
        tail.join("\n")
    }

    /// Stops the host as an operator would, and removes the folder if that was asked for.
    pub(super) fn stop(mut self) -> Result {
        drop(self.shell.stdin.take());
        let status = self.shell.wait().map_err(Failed::to("wait for the host"))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failed::Step(format!("the host ended with {status}\n{}", self.log_tail())))
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Nothing is left to do about a shell that cannot be waited for.
        let _ = self.shell.wait();
    }
}
