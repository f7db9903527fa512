//! Where the demo plays: a folder with the examples' configuration, the modules and the command that works on them.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    books::Books,
    keeper::{Keeper, Kept},
};
use crate::run::{Failed, Repo, Result, Stopwatch, output, run, shown};

/// Which plugin serves a handler of which tenant; both have the same name.
pub(super) const HANDLERS: [(&str, &str); 5] = [
    ("points-award", "shop"),
    ("points-level", "shop"),
    ("coupon-grant", "campaign"),
    ("coupon-notice", "campaign"),
    ("campaign-open", "campaign"),
];
/// The folders of `examples/` that are copied: a configuration, and those of the schemas that it names.
const EXAMPLES: [&str; 3] = ["demo", "points-award", "coupon-grant"];
/// The configuration, in the demo's folder.
const CONFIG: &str = "demo/oncebox.toml";
/// Between two looks at the books or at the host.
const LOOK: Duration = Duration::from_millis(200);
/// For the host to be ready, and for a wave to be settled.
const PATIENCE: Duration = Duration::from_mins(2);

/// The folder and the host go when this is dropped; the folder stays if it is to be kept.
pub(super) struct Stage {
    oncebox: PathBuf,
    dir: PathBuf,
    address: String,
    keep: bool,
    keeper: Keeper,
}

impl Stage {
    /// Copies the examples, and gives the host a port that is free.
    pub(super) fn set(repo: &Repo, oncebox: PathBuf, keep: bool) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("oncebox-demo-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(Failed::to(format!("make {}", dir.display())))?;
        let keeper = Keeper::new(Kept {
            oncebox: &oncebox,
            config: &dir.join(CONFIG),
            log: dir.join("host.log"),
            remove: (!keep).then_some(&*dir),
        })?;
        let stage = Self { oncebox, dir, address: free_address()?, keep, keeper };
        for example in EXAMPLES {
            copy_files(&repo.path("examples").join(example), &stage.dir.join(example))?;
        }
        stage.set_address()?;
        Ok(stage)
    }

    /// Another host, or another demo, may have the address that the configuration names.
    fn set_address(&self) -> Result {
        let text = std::fs::read_to_string(self.config()).map_err(Failed::to("read the demo's configuration"))?;
        let text = text.lines().fold(String::new(), |mut text, line| {
            // Writing into memory does not fail.
            let _ = if line.starts_with("listen = ") {
                writeln!(text, "listen = \"{}\"", self.address)
            } else {
                writeln!(text, "{line}")
            };
            text
        });
        std::fs::write(self.config(), text).map_err(Failed::to("write the demo's configuration"))
    }

    fn config(&self) -> PathBuf {
        self.dir.join(CONFIG)
    }

    fn module(&self, plugin: &str) -> PathBuf {
        self.dir.join(format!("{plugin}.wasm"))
    }

    /// The command, with the demo's configuration.
    pub(super) fn oncebox(&self) -> Command {
        let mut command = Command::new(&self.oncebox);
        command.arg("--config").arg(self.config());
        command
    }

    /// Compiles and packs every plugin.
    pub(super) fn build_plugins(&self, repo: &Repo) -> Result {
        for (plugin, _) in HANDLERS {
            let mut build = self.oncebox();
            build.arg("build").arg(repo.path("plugins").join(plugin)).arg("--out").arg(self.module(plugin));
            println!("$ oncebox build plugins/{plugin}");
            run(&mut build)?;
        }
        Ok(())
    }

    /// Lets each module serve its handler.
    pub(super) fn deploy(&self) -> Result {
        for (plugin, tenant) in HANDLERS {
            println!("$ oncebox deploy {plugin}.wasm {tenant}/{plugin}");
            run(self.oncebox().arg("deploy").arg(self.module(plugin)).arg(format!("{tenant}/{plugin}")))?;
        }
        Ok(())
    }

    /// Starts the host, and waits until it says that it is ready.
    pub(super) fn open(&mut self) -> Result {
        println!("$ oncebox run");
        self.keeper.run()?;
        let mut reasons = String::new();
        let ready = self.wait("the host is ready", || {
            reasons = self.reasons();
            Ok(reasons.is_empty())
        });
        ready.map_err(|failed| failed.with(&format!("/readyz says: {reasons}")))?;
        println!("ready: http://{}/readyz (its numbers: /metrics)", self.address);
        Ok(())
    }

    /// Ends the host without a chance to finish anything.
    pub(super) fn crash(&mut self) -> Result {
        self.keeper.kill()
    }

    /// Stops the host, and removes the folder if it is not to be kept.
    pub(super) fn close(&mut self) -> Result {
        let tail = self.keeper.log_tail();
        self.keeper.stop().map_err(|failed| failed.with(&tail))
    }

    /// A failure, and the end of the host's log.
    pub(super) fn told(&self, failed: Failed) -> Failed {
        failed.with(&format!("the host's log ends:\n{}", self.keeper.log_tail()))
    }

    /// Why the host is not ready; empty: it is.
    fn reasons(&self) -> String {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            std::io::Result::Ok(answer)
        };
        match ask() {
            Ok(answer) if answer.split(' ').nth(1) == Some("200") => String::new(),
            Ok(answer) => answer.split_once("\r\n\r\n").map_or(answer.clone(), |(_, body)| body.to_owned()),
            Err(error) => format!("nothing: {error}"),
        }
    }

    /// Sends lines into a source.
    pub(super) fn send(&self, source: &str, lines: &[String]) -> Result {
        let mut command = self.oncebox();
        command.args(["send", source, "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(Failed::to(format!("start `{}`", shown(&command))))?;
        if let Some(mut stdin) = child.stdin.take() {
            let mut text = lines.join("\n");
            text.push('\n');
            stdin.write_all(text.as_bytes()).map_err(Failed::to(format!("send into {source}")))?;
        }
        let status = child.wait().map_err(Failed::to(format!("send into {source}")))?;
        if status.success() { Ok(()) } else { Err(Failed::Step(format!("`{}` ended with {status}", shown(&command)))) }
    }

    /// Reads the books.
    pub(super) fn tally(&self) -> Result<Books> {
        let text = output(self.oncebox().args(["--json", "tally"]))?;
        Books::parse(&text).ok_or_else(|| Failed::Step(format!("failed to read the answer of `oncebox tally`: {text}")))
    }

    /// Looks again and again until something is so, while the host lives.
    pub(super) fn wait(&self, what: &str, mut so: impl FnMut() -> Result<bool>) -> Result {
        let watch = Stopwatch::start();
        while !so()? {
            if !self.keeper.lives() {
                return Err(Failed::Step(format!("the host ended before {what}")));
            }
            if watch.elapsed() > PATIENCE {
                let address = &self.address;
                return Err(Failed::Step(format!("waited {watch} until {what}, in vain (host at {address})")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Where to go next.
    pub(super) fn farewell(&self) -> String {
        let folder = if self.keep {
            let config = self.config();
            let (oncebox, config) = (self.oncebox.display(), config.display());
            format!(
                "The demo's folder is {}; the host runs on it with\n  {oncebox} --config {config} run",
                self.dir.display()
            )
        } else {
            "The demo's folder was removed; `cargo demo --keep` leaves it, to look around in.".to_owned()
        };
        format!(
            "{folder}\n\
             Next:\n  \
             README.md                  what is promised, and what is not\n  \
             examples/points-award      the same by hand, command by command, in a few minutes\n  \
             plugins/README.md          a handler of your own\n  \
             docs/reference/            every key of the configuration and the manifest, every command"
        )
    }
}

/// A port that nobody listens on now.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Failed::to("find a free port"))?;
    let address = listener.local_addr().map_err(Failed::to("find a free port"))?;
    Ok(address.to_string())
}

/// Copies the files of a folder, and no folders in it: what an earlier run by hand left there stays there.
fn copy_files(from: &Path, to: &Path) -> Result {
    let copying = || Failed::to(format!("copy {} to {}", from.display(), to.display()));
    std::fs::create_dir_all(to).map_err(copying())?;
    for entry in std::fs::read_dir(from).map_err(copying())? {
        let path = entry.map_err(copying())?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            std::fs::copy(&path, to.join(name)).map_err(copying())?;
        }
    }
    Ok(())
}
