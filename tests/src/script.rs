//! A page of the docs as a script: its blocks are run in order, so that the page cannot say what does not work.
//!
//! ` ```sh ` runs in one bash, where variables and background commands live on. ` ```sql ` is for an administrator of the
//! database. A language with a name behind it (` ```toml oncebox.toml `) is a file of the shell's folder. A block without
//! a language is what the block before it shows: that one is a look, repeated until it shows this.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use crate::host::binary;

/// A block may build a plugin, on a busy machine.
const BLOCK_TIME: Duration = Duration::from_mins(10);

/// What a look shows until it shows what it should, at most so long.
pub const LOOK_TIME: Duration = Duration::from_secs(60);

/// Lines that a block has printed and nobody has read yet.
const LINES_MAX: usize = 1_024;

const END: &str = "== end of the block, with";

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// `sh`, `sql`, `toml`, …; empty: what the block before shows.
    pub language: String,
    /// The file that it is, if it is one.
    pub file: Option<String>,
    /// The text.
    pub text: String,
    /// The line of its fence in the page, from 1.
    pub line: usize,
}

/// The text of a file of the checkout.
///
/// # Panics
/// There is none.
#[must_use]
pub fn page(path: &str) -> String {
    let path = checkout().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder of the checkout.
///
/// # Panics
/// This crate has none above it.
#[must_use]
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The blocks of a page, in order.
#[must_use]
pub fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let language = words.next().unwrap_or_default();
                open = Some(Block { language, file: words.next(), text: String::new(), line: number + 1 });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

/// Whether an output is what the page shows: words alike, whatever their distance; times, digests and ids may differ,
/// and `…` stands for the rest of a line.
#[must_use]
pub fn shows(shown: &str, expected: &str) -> bool {
    let lines = |text: &str| -> Vec<Vec<String>> {
        let lines = text.lines().map(|line| line.split_whitespace().map(kind_of_word).collect());
        lines.filter(|words: &Vec<String>| !words.is_empty()).collect()
    };
    let (shown, expected) = (lines(shown), lines(expected));
    shown.len() == expected.len()
        && shown.iter().zip(&expected).all(|(shown, expected)| match expected.split_last() {
            Some((last, begin)) if last == "…" => shown.starts_with(begin),
            Some(_) | None => shown == expected,
        })
}

/// The word, or what it is where it differs from run to run.
fn kind_of_word(word: &str) -> String {
    let bare = word.trim_end_matches([':', ',']);
    let end = &word[bare.len()..];
    let digits = |byte: u8| byte.is_ascii_digit();
    let made_of = |more: &str| bare.bytes().all(|byte| digits(byte) || more.as_bytes().contains(&byte));
    let kind = if bare.len() == 10 && bare.matches('-').count() == 2 && made_of("-") {
        "DATE"
    } else if bare.len() >= 8 && bare.matches(':').count() == 2 && made_of(":.Z") {
        "TIME"
    } else if bare.len() >= 12 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) && bare.bytes().any(digits) {
        "DIGEST"
    } else {
        bare
    };
    format!("{kind}{end}")
}

/// A bash in a folder of its own; all that it has started ends with it.
#[derive(Debug)]
pub struct Shell {
    dir: tempfile::TempDir,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: PathBuf,
}

impl Shell {
    /// Starts it; `oncebox` is the one of this build, `oncebox/` the checkout, and `prelude` is run first.
    ///
    /// # Panics
    /// There is no bash.
    #[must_use]
    pub fn start(prelude: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(binary(), bin.join("oncebox")).unwrap();
        std::os::unix::fs::symlink(checkout(), dir.path().join("oncebox")).unwrap();
        let errors = dir.path().join("errors.log");
        let log = File::create(&errors).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).current_dir(dir.path()).process_group(0);
        command.env("PATH", path).env_remove("RUST_LOG").env_remove("CARGO_MANIFEST_DIR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(LINES_MAX);
        // Ends with the pipe, and nobody waits for it.
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut shell = Self { dir, input: child.stdin.take(), child, lines, errors };
        shell.run(&format!("set -eu\n{prelude}\n"));
        shell
    }

    /// A file of the shell's present folder.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&mut self, name: &str, text: &str) {
        let dir = self.run("pwd\n");
        let path = self.dir.path().join(dir.trim()).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a block, and answers what it printed on standard output.
    ///
    /// # Panics
    /// A command of it fails, or it does not end.
    #[track_caller]
    pub fn run(&mut self, block: &str) -> String {
        let (shown, status) = self.ended(block);
        assert!(status == "0", "the block ends with {status}:\n{block}\n{shown}{}", self.errors());
        shown
    }

    /// The same in a shell below, whose end is no failure of this one: for what may not be so yet.
    ///
    /// # Panics
    /// It does not end.
    #[track_caller]
    pub fn look(&mut self, block: &str) -> String {
        self.ended(&format!("(set +e\n{block}\n) || true\n")).0
    }

    fn ended(&mut self, block: &str) -> (String, String) {
        let text = format!("{block}\nprintf '\\n%s %s\\n' '{END}' \"$?\"\n");
        let written = self.input.as_mut().unwrap().write_all(text.as_bytes());
        let mut shown = String::new();
        // A shell that has ended takes nothing more; what it showed is read all the same.
        while written.is_ok() {
            match self.lines.recv_timeout(BLOCK_TIME) {
                Ok(line) => match line.strip_prefix(END) {
                    Some(status) => return (shown, status.trim().to_owned()),
                    None => shown += &format!("{line}\n"),
                },
                Err(RecvTimeoutError::Timeout) => return (shown, "no end in ten minutes".to_owned()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        (shown, "the shell's own end".to_owned())
    }

    /// What was said on standard error so far, hosts in the background included.
    #[must_use]
    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.input.take());
        // The whole group: hosts in the background, too.
        let group = format!("-{}", self.child.id());
        let _ =
            Command::new("bash").args(["-c", "kill -KILL -- \"$1\"", "bash", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_a_language_a_file_and_a_place() {
        let page = "# A\n```sh\na\n\nb\n```\ntext\n```toml x/y.toml\nk = 1\n```\n```\nshown\n```\n";
        let block = |language: &str, file: Option<&str>, text: &str, line| Block {
            language: language.to_owned(),
            file: file.map(str::to_owned),
            text: text.to_owned(),
            line,
        };
        let expected = [
            block("sh", None, "a\n\nb\n", 2),
            block("toml", Some("x/y.toml"), "k = 1\n", 8),
            block("", None, "shown\n", 11),
        ];
        assert_eq!(blocks(page), expected);
    }

    #[test]
    fn what_differs_from_run_to_run_is_no_difference() {
        let page = "a:  applied\n  2026-11-29 20:46:05.622000Z  module d833b97cc306: x\nlast …\n";
        assert!(shows("a: applied\n2026-11-30 01:00:00.1Z module 0123456789ab: x\n\nlast one 17\n", page));
        for other in [
            "a: parked\n2026-11-30 01:00:00.1Z module 0123456789ab: x\nlast one\n",
            "a: applied\n2026-11-30 01:00:00.1Z module 0123456789ab: y\nlast one\n",
            "a: applied\n2026-11-30 01:00:00.1Z module 0123456789ab: x\n",
        ] {
            assert!(!shows(other, page), "{other}");
        }
    }

    #[test]
    fn a_shell_keeps_its_variables_and_tells_how_a_block_ended() {
        let mut shell = Shell::start("A=1");
        assert_eq!(shell.run("B=2\necho $A$B").trim(), "12");
        assert_eq!(shell.look("echo x\nfalse\nexit 3").trim(), "x");
        assert_eq!(shell.run("echo $A$B").trim(), "12");
        assert_eq!(shell.ended("false").1, "the shell's own end");
    }
}
