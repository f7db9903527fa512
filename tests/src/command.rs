//! The real `oncebox` as a newcomer calls it: one command, its answer, and what it leaves in its folder.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use crate::host::binary;

/// A folder with a configuration, in which commands run.
#[derive(Debug)]
pub struct Folder {
    dir: tempfile::TempDir,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A host that runs until it is told to end.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: BufReader<std::process::ChildStderr>,
    /// The lines read so far.
    pub lines: Vec<String>,
}

impl Folder {
    /// A new folder with this `oncebox.toml`.
    ///
    /// # Panics
    /// The system has no room for it.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test that cannot begin must say so")]
    pub fn new(config: &str) -> Self {
        let folder = Self { dir: tempfile::tempdir().expect("a folder can be made") };
        folder.write("oncebox.toml", config);
        folder
    }

    /// The folder, or a path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file; its folder is made.
    ///
    /// # Panics
    /// It cannot be written.
    #[expect(clippy::expect_used, reason = "a test that cannot begin must say so")]
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    /// The names of all files, folders left out, sorted.
    ///
    /// # Panics
    /// A folder cannot be read.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a folder of the test's own")]
    pub fn files(&self) -> Vec<String> {
        let (mut folders, mut files) = (vec![self.dir.path().to_path_buf()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be read") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path.strip_prefix(self.dir.path()).expect("it is inside").display().to_string());
                }
            }
        }
        files.sort();
        files
    }

    /// Runs a command with nothing on standard input.
    #[must_use]
    pub fn oncebox<const N: usize>(&self, args: [&str; N]) -> Answer {
        self.oncebox_with(&args, b"")
    }

    /// Runs a command with this on standard input.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test that cannot begin must say so")]
    pub fn oncebox_with(&self, args: &[&str], input: &[u8]) -> Answer {
        let mut child = command(self.dir.path()).args(args).spawn().expect("oncebox starts");
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read it may be gone already.
            let _ = stdin.write_all(input);
        }
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("oncebox prints UTF-8");
        Answer { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Starts `oncebox run` and waits until it says this in its log.
    ///
    /// # Panics
    /// It ends before.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test that cannot begin must say so")]
    pub fn run<const N: usize>(&self, args: [&str; N], until: &str) -> Running {
        let mut child = command(self.dir.path()).args(args).arg("run").spawn().expect("oncebox starts");
        let log = BufReader::new(child.stderr.take().expect("its standard error is ours"));
        let mut running = Running { child, log, lines: Vec::new() };
        running.wait_for(until);
        running
    }
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(dir).env_remove("RUST_LOG").env("USER", "ann").env("COLUMNS", "80");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// -1: ended by a signal.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

impl Answer {
    /// It did its work, and said so on standard output alone.
    ///
    /// # Panics
    /// It did not.
    pub fn done(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// It ended with this code, and said all of this on standard error alone.
    ///
    /// # Panics
    /// It did not.
    pub fn fails<const N: usize>(&self, code: i32, says: [&str; N]) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        for part in says {
            assert!(self.stderr.contains(part), "`{part}` is missing in:\n{}", self.stderr);
        }
    }
}

impl Running {
    /// Waits until the log says this; gives the line.
    ///
    /// # Panics
    /// The host ends before.
    #[expect(clippy::expect_used, reason = "a test that cannot go on must say so")]
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.log.read_line(&mut line).expect("the log is UTF-8");
            assert!(read > 0, "the host ended before it said `{text}`:\n{}", self.lines.concat());
            self.lines.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends SIGTERM; gives the exit code and the whole log.
    ///
    /// # Panics
    /// It does not end.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test that cannot go on must say so")]
    pub fn end(mut self) -> (i32, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().is_ok_and(|status| status.success()));
        let mut line = String::new();
        while self.log.read_line(&mut line).expect("the log is UTF-8") > 0 {
            self.lines.push(std::mem::take(&mut line));
        }
        let status = self.child.wait().expect("it ends");
        (code(status), self.lines.concat())
    }
}

impl Drop for Running {
    /// A test that failed leaves no host behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
