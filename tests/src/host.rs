//! The real `oncebox`: a folder with its configuration, its commands, and hosts that are started, ended and killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::{
    database::Database,
    patience::{PATIENCE, eventually},
};

/// The number of the signal that asks a process to end.
const SIGTERM: u32 = 15;

/// The binary: `ONCEBOX_BIN`, or the one of this build, built once if it is not up to date.
///
/// # Panics
/// It cannot be built.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("ONCEBOX_BIN") {
            return given.into();
        }
        // target/PROFILE/deps/this-test
        let this = std::env::current_exe().unwrap();
        let profile = this.ancestors().nth(2).unwrap();
        let name = match profile.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        // The features of the whole workspace: what `cargo test --workspace` has built is not built again.
        build.args(["build", "-q", "--workspace", "--bin", "oncebox", "--profile", name, "--target-dir"]);
        build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        if cfg!(feature = "proof") {
            build.args(["--features", "oncebox-tests/proof"]);
        }
        // What cargo tells this test about its own package is no reason to build others anew: the build script of `ring`
        // takes it for one, and all that uses TLS would be built twice, now and at the next `cargo test`.
        let own =
            |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"].iter().any(|start| name.starts_with(start));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
            build.env_remove(name);
        }
        assert!(build.status().unwrap().success(), "oncebox cannot be built");
        profile.join("oncebox")
    })
}

/// Native code of the modules, shared by all hosts of this test program.
fn module_cache() -> &'static Path {
    static CACHE: OnceLock<TempDir> = OnceLock::new();
    CACHE.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

/// A folder with a configuration, and all that is run there.
pub struct Site {
    dir: TempDir,
    hosts: AtomicU32,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None`: killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Site {
    /// Makes the folder. The configuration must say `data_dir = "data"`.
    ///
    /// # Panics
    /// It cannot be made.
    #[must_use]
    pub fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        std::os::unix::fs::symlink(module_cache(), dir.path().join("data/modules")).unwrap();
        let site = Self { dir, hosts: AtomicU32::new(1) };
        site.write("oncebox.toml", config);
        site
    }

    /// A file of the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file of the folder.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn oncebox(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.dir.path()).env_remove("RUST_LOG");
        command
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> Ended {
        self.run_armed(args, &[])
    }

    /// The same with more in its environment.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn run_armed(&self, args: &[&str], environment: &[(&str, &str)]) -> Ended {
        let mut command = self.oncebox(args);
        command.envs(environment.iter().copied()).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs a command that must work; the answer is what it prints.
    ///
    /// # Panics
    /// It fails.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, Some(0), "oncebox {args:?}\n{}{}", ended.out, ended.err);
        ended.out
    }

    /// The same with `--json`.
    ///
    /// # Panics
    /// It fails, or prints no JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self, args: &[&str]) -> Json {
        let args: Vec<&str> = ["--json"].iter().chain(args).copied().collect();
        let out = self.ok(&args);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Deploys a packed module.
    ///
    /// # Panics
    /// It is refused.
    #[track_caller]
    pub fn deploy(&self, module: &[u8], place: &str) {
        self.write("module.wasm", module);
        self.ok(&["deploy", "module.wasm", place]);
    }

    /// Sends messages, all in one transaction if they are not many.
    ///
    /// # Panics
    /// They are not taken.
    #[track_caller]
    pub fn send<L: AsRef<[u8]>>(&self, source: &str, lines: &[L]) {
        let mut sender = self.sender(source);
        sender.send(lines);
        sender.finish();
    }

    /// Begins to send: one process for many messages over time.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn sender(&self, source: &str) -> Sender {
        let mut child = self.oncebox(&["send", source]);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Sender { input: child.stdin.take(), child }
    }

    /// Starts a host. It may not be ready yet.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(&self) -> Host {
        self.start_with("oncebox.toml")
    }

    /// The same with another configuration of the folder.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_with(&self, config: &str) -> Host {
        self.start_with_variables(config, &[])
    }

    /// The same with variables in its environment, as a build for tests knows them.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start_with_variables(&self, config: &str, variables: &[(&str, &str)]) -> Host {
        let number = self.hosts.fetch_add(1, Ordering::Relaxed);
        let log = self.path(&format!("host-{number}.log"));
        let run = ["--config", config, "run"];
        let mut command = self.oncebox(&run);
        command.envs(variables.iter().copied()).stdin(Stdio::null()).stderr(File::create(&log).unwrap());
        Host { child: command.spawn().unwrap(), log }
    }

    /// A tenant's database, by the name of its file.
    #[must_use]
    pub fn database(&self, file: &str) -> Database {
        Database::open(&self.path("data").join(file))
    }
}

/// `oncebox send`, reading from this test.
pub struct Sender {
    child: Child,
    input: Option<ChildStdin>,
}

impl Sender {
    /// Gives it more messages.
    ///
    /// # Panics
    /// It has ended.
    pub fn send<L: AsRef<[u8]>>(&mut self, lines: &[L]) {
        let input = self.input.as_mut().unwrap();
        let all: Vec<u8> = lines.iter().flat_map(|line| [line.as_ref(), b"\n"].concat()).collect();
        input.write_all(&all).unwrap();
    }

    /// Waits until all of them are committed.
    ///
    /// # Panics
    /// They are not.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.input.take());
        let ended = Ended::from(self.child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    }
}

/// A process of `oncebox run`; killed when dropped.
pub struct Host {
    child: Child,
    log: PathBuf,
}

impl Host {
    /// The log's lines so far, each a JSON object; one that is being written is left out.
    ///
    /// # Panics
    /// A line is no JSON.
    #[must_use]
    pub fn log(&self) -> Vec<Json> {
        let text = String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }

    /// Lines with this message.
    #[must_use]
    pub fn logged(&self, message: &str) -> Vec<Json> {
        self.log().into_iter().filter(|line| line["message"] == message).collect()
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// It ends, or is not ready in time.
    #[track_caller]
    pub fn ready(mut self) -> Self {
        eventually("ready", PATIENCE, || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the host has ended with {status}:\n{}", fs::read_to_string(&self.log).unwrap());
            }
            (!self.logged("ready").is_empty()).then_some(())
        });
        self
    }

    /// Waits until it has begun to work, ready or not, and tells where it listens.
    ///
    /// # Panics
    /// It does not begin.
    #[track_caller]
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let started = eventually("started", PATIENCE, || self.logged("started").pop());
        started["listening"].as_str().unwrap().parse().unwrap()
    }

    /// Asks for `/livez`, `/readyz` or `/metrics`.
    ///
    /// # Panics
    /// There is no answer.
    #[track_caller]
    #[must_use]
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    /// Ends it as a crash does.
    ///
    /// # Panics
    /// It has ended before.
    pub fn kill(mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the host has ended with {status}:\n{}", fs::read_to_string(&self.log).unwrap());
        }
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }

    /// Whether it has ended by now, in whatever way.
    ///
    /// # Panics
    /// That cannot be seen.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Whether it listens for SIGTERM yet: one that has only just been started is ended by it, as any program.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn heeds_terminate(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (SIGTERM - 1)) != 0
    }

    /// Sends SIGTERM.
    ///
    /// # Panics
    /// It cannot be sent.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Lets it hang: it does nothing any more, and its connections stay open.
    ///
    /// # Panics
    /// It cannot be told.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; the answer is the exit code.
    ///
    /// # Panics
    /// It does not end, or was killed.
    #[track_caller]
    #[must_use]
    pub fn ended(&mut self) -> i32 {
        self.ended_within(PATIENCE)
    }

    /// The same, by a deadline.
    ///
    /// # Panics
    /// It does not end by then, or was killed.
    #[track_caller]
    #[must_use]
    pub fn ended_within(&mut self, deadline: Duration) -> i32 {
        let status = eventually("ended", deadline, || self.child.try_wait().unwrap());
        status.code().unwrap()
    }

    /// Ends it in good order.
    ///
    /// # Panics
    /// It does not end with 0.
    #[track_caller]
    pub fn stop(mut self) -> Vec<Json> {
        self.terminate();
        assert_eq!(self.ended(), 0);
        self.log()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Host {
    /// The signal that has ended it, if one has.
    ///
    /// # Panics
    /// It has ended by itself.
    #[track_caller]
    #[must_use]
    pub fn killed_by(&mut self) -> Option<i32> {
        let status = self.child.try_wait().unwrap()?;
        let by_itself = || panic!("the host has ended with {status}:\n{}", fs::read_to_string(&self.log).unwrap());
        Some(status.signal().unwrap_or_else(by_itself))
    }

    /// Whether it has died as `kill -9` kills.
    ///
    /// # Panics
    /// It has ended in another way.
    #[track_caller]
    #[must_use]
    pub fn has_died(&mut self) -> bool {
        let signal = self.killed_by();
        assert!(matches!(signal, None | Some(9)), "the host was ended by signal {signal:?}");
        signal.is_some()
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it hangs, as after SIGSTOP.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn hangs(&self) -> bool {
        let status = PathBuf::from("/proc").join(self.child.id().to_string()).join("status");
        let status = fs::read_to_string(status).unwrap();
        status.lines().any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('T')))
    }

    /// Lets it go on after [`Host::freeze`].
    ///
    /// # Panics
    /// It cannot be told.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// What it holds of the machine now.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let process = PathBuf::from("/proc").join(self.child.id().to_string());
        let status = fs::read_to_string(process.join("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: u64 = resident.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
        Footprint { resident_mb: kilobytes / 1024, open_files: fs::read_dir(process.join("fd")).unwrap().count() }
    }
}

/// What a process holds of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Megabytes of memory that it has pages of.
    pub resident_mb: u64,
    /// Files, sockets and the like that it has open.
    pub open_files: usize,
}
