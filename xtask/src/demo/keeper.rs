//! The demo's folder and its host, which end with this process however it ends.
//!
//! A shell stands between: it takes orders from a pipe that only this process holds. When the pipe closes, because the
//! demo is over, failed, was interrupted or was killed, the shell stops the host and removes the folder.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::run::{Failed, Result};

/// `$1` oncebox, `$2` its configuration, `$3` its log, `$4` the folder to remove, or nothing. Each order is answered by
/// one line.
const SCRIPT: &str = r#"
host=
status=0
while read -r order; do
  case "$order" in
  run)
    "$1" --config "$2" run </dev/null >>"$3" 2>&1 &
    host=$!
    echo "$host"
    ;;
  kill)
    kill -KILL "$host"
    wait "$host" 2>/dev/null
    host=
    echo killed
    ;;
  esac
done
if [ -n "$host" ]; then
  kill -TERM "$host" 2>/dev/null
  wait "$host" 2>/dev/null
  status=$?
fi
[ -z "$4" ] || rm -rf "$4"
exit "$status"
"#;

/// What the host is run with.
pub(super) struct Kept<'a> {
    /// The command.
    pub(super) oncebox: &'a Path,
    /// Its configuration.
    pub(super) config: &'a Path,
    /// Where its log goes.
    pub(super) log: PathBuf,
    /// What goes when this process does.
    pub(super) remove: Option<&'a Path>,
}

/// The shell, and the host that it runs.
pub(super) struct Keeper {
    shell: Child,
    orders: Option<ChildStdin>,
    answers: Option<BufReader<ChildStdout>>,
    log: PathBuf,
    host: String,
}

impl Keeper {
    /// Takes the folder over; no host runs yet.
    pub(super) fn new(kept: Kept<'_>) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).args([kept.oncebox, kept.config, &kept.log]);
        command.arg(kept.remove.unwrap_or_else(|| Path::new(""))).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Out of the terminal's way: Ctrl-C ends this process, and the closing pipe does the rest. (Ignoring the signal in
        // the shell instead would have the host begin with it ignored, and miss a SIGTERM that comes early.)
        let mut shell = command.process_group(0).spawn().map_err(Failed::to("start a shell"))?;
        let (orders, answers) = (shell.stdin.take(), shell.stdout.take().map(BufReader::new));
        Ok(Self { shell, orders, answers, log: kept.log, host: String::new() })
    }

    /// Starts the host.
    pub(super) fn run(&mut self) -> Result {
        self.host = self.order("run")?;
        Ok(())
    }

    /// Ends the host as a crash would: kill -9.
    pub(super) fn kill(&mut self) -> Result {
        self.order("kill").map(drop)
    }

    fn order(&mut self, order: &str) -> Result<String> {
        let Some((orders, answers)) = self.orders.as_mut().zip(self.answers.as_mut()) else {
            return Err(Failed::Step(format!("`{order}`: the demo's shell is closed")));
        };
        let mut answer = String::new();
        let spoken = writeln!(orders, "{order}").and_then(|()| answers.read_line(&mut answer));
        spoken.map_err(Failed::to(format!("order the demo's shell to {order} the host")))?;
        Ok(answer.trim().to_owned())
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

    /// Stops the host as an operator would, and lets the folder be removed.
    pub(super) fn stop(&mut self) -> Result {
        self.orders = None;
        let status = self.shell.wait().map_err(Failed::to("wait for the host"))?;
        if status.success() { Ok(()) } else { Err(Failed::Step(format!("the host ended with {status}"))) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // What went wrong was said already; nothing is left to do about a shell that cannot be waited for.
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that keeps a script in the place of oncebox.
    fn keeper(dir: &Path, script: &str) -> Keeper {
        std::fs::create_dir_all(dir).unwrap();
        let stand_in = dir.join("stand-in");
        // Written by another process: a descriptor of ours could be open in a child of another test, and the file be busy.
        let mut write = Command::new("sh");
        write.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1""#, "sh"]).arg(&stand_in).arg(script);
        assert!(write.status().unwrap().success());
        let kept = Kept { oncebox: &stand_in, config: Path::new("none"), log: dir.join("host.log"), remove: Some(dir) };
        Keeper::new(kept).unwrap()
    }

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("oncebox-keeper-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_dropped_keeper_ends_the_host_and_removes_the_folder() {
        let dir = folder("dropped");
        let mut keeper = keeper(&dir, "exec sleep 600");
        keeper.run().unwrap();
        assert!(keeper.lives());
        let host = keeper.host.clone();
        drop(keeper);
        let asked = Command::new("kill").args(["-0", &host]).stderr(Stdio::null()).status().unwrap();
        assert!(!asked.success(), "the host {host} is still there");
        assert!(!dir.exists());
    }

    #[test]
    fn a_host_that_was_killed_can_be_started_again() {
        let dir = folder("killed");
        let mut keeper = keeper(&dir, "exec sleep 600");
        keeper.run().unwrap();
        let first = keeper.host.clone();
        keeper.kill().unwrap();
        assert!(!keeper.lives());
        keeper.run().unwrap();
        assert!(keeper.lives() && keeper.host != first);
    }

    #[test]
    fn a_folder_goes_even_if_no_host_ever_ran() {
        let dir = folder("unused");
        drop(keeper(&dir, "exit 0"));
        assert!(!dir.exists());
    }
}
