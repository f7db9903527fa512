//! The checkout, running commands in it, and saying how long things took.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// What a command of this crate comes to.
pub(crate) type Result<T = ()> = std::result::Result<T, Failed>;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It was called in a way that it does not know.
    Usage(String),
    /// What it was doing failed.
    Step(String),
}

impl Failed {
    /// A failed step, for `map_err`: what was tried, and why it failed.
    pub(crate) fn to<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |why| Self::Step(format!("failed to {what}: {why}"))
    }

    /// The same, with a line more.
    pub(crate) fn with(self, more: &str) -> Self {
        match self {
            Self::Usage(why) => Self::Usage(format!("{why}\n{more}")),
            Self::Step(why) => Self::Step(format!("{why}\n{more}")),
        }
    }
}

/// The checkout that this command was called in.
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// The checkout whose alias was called.
    pub(crate) fn find() -> Result<Self> {
        // What cargo says now, before what it said when this was compiled: checkouts may share a target folder.
        let own =
            std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = own.parent().ok_or_else(|| Failed::Step(format!("{} has no folder above it", own.display())))?;
        Ok(Self { root: root.to_owned() })
    }

    /// A path in the checkout.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Cargo, in the checkout's root.
    pub(crate) fn cargo<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).args(args);
        // What cargo tells this program about its own package is no reason to build others anew: the build script of
        // `ring` takes it for one, and all that uses TLS would be built twice, here and when somebody calls cargo himself.
        let own =
            |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"].iter().any(|start| name.starts_with(start));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
            command.env_remove(name);
        }
        command
    }

    /// What cargo knows of the workspace; with `--no-deps` in `more`, of its members alone.
    pub(crate) fn metadata(&self, more: &[&str]) -> Result<Value> {
        let mut command = self.cargo(["metadata", "--format-version", "1", "--locked"]);
        let text = output(command.args(more))?;
        serde_json::from_str(&text).map_err(Failed::to("read the answer of `cargo metadata`"))
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target_dir(&self) -> Result<PathBuf> {
        let metadata = self.metadata(&["--no-deps"])?;
        let dir = metadata["target_directory"].as_str();
        Ok(dir.ok_or_else(|| Failed::Step("`cargo metadata` names no target_directory".to_owned()))?.into())
    }

    /// The folders under `plugins/` that hold a manifest, by name.
    pub(crate) fn plugins(&self) -> Result<Vec<String>> {
        let dir = self.path("plugins");
        let reading = || Failed::to(format!("list {}", dir.display()));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(reading())? {
            let entry = entry.map_err(reading())?;
            if entry.path().join("handler.toml").is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Builds `oncebox` with the development profile, and returns where it is. The features of its dependencies are those
    /// of the whole workspace, so that the demo, the tests and the checks share every one of them.
    pub(crate) fn build_oncebox(&self) -> Result<PathBuf> {
        run(&mut self.cargo(["build", "--locked", "--workspace", "--bin", "oncebox"]))?;
        Ok(self.target_dir()?.join("debug").join(format!("oncebox{}", std::env::consts::EXE_SUFFIX)))
    }
}

/// Runs a command to its end, its output being ours.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(Failed::to(format!("start `{}`", shown(command))))?;
    if status.success() { Ok(()) } else { Err(Failed::Step(format!("`{}` ended with {status}", shown(command)))) }
}

/// Runs a command to its end and returns its standard output; standard error is ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(Failed::to(format!("start `{}`", shown(command))))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Failed::Step(format!("`{}` ended with {}", shown(command), output.status)))
    }
}

/// A command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let words = command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.is_empty() || arg.contains([' ', '*', '{', '"']) { format!("'{arg}'") } else { arg.into_owned() }
    });
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// A clock for people: how long something took.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_methods, reason = "the one clock of this tool, which decides nothing")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = self.elapsed();
        if elapsed.as_secs() < 100 {
            write!(f, "{:.1} s", elapsed.as_secs_f64())
        } else {
            write!(f, "{} min {} s", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/opt/toolchain/bin/cargo");
        command.args(["test", "-p", "two words", ""]);
        assert_eq!(shown(&command), "cargo test -p 'two words' ''");
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_status() {
        let Err(Failed::Step(message)) = run(Command::new("sh").args(["-c", "exit 3"])) else {
            panic!("a failure was taken for success")
        };
        assert_eq!(message, "`sh -c 'exit 3'` ended with exit status: 3");
    }
}
