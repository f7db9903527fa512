//! `cargo bench-compare`: Oncebox beside consumers that were written by hand. The measuring itself is `tests/bench`; this
//! brings up what it needs, builds all of them as they are released, and starts it.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    run::{Repo, Result, run},
    services::{self, Server},
    target,
};

/// What cargo builds.
const BINARIES: [&str; 6] =
    ["oncebox", "bench-compare", "bench-naive", "bench-batched", "bench-floor-database", "bench-floor-broker"];

/// Brings the servers up, builds, and measures; servers that were not up before are ended again.
pub(crate) fn compare(repo: &Repo, args: &[&str]) -> Result {
    target::ensure_wasm(repo)?;
    services::beside(repo, &[Server::Mysql, Server::Rabbitmq], || measure(repo, args))
}

fn measure(repo: &Repo, args: &[&str]) -> Result {
    println!("== building all of them, as they are released");
    let mut build = repo.cargo(["build", "--locked", "--release", "--workspace"]);
    for binary in BINARIES {
        build.args(["--bin", binary]);
    }
    run(&mut build)?;
    let peers = repo.path("tests/bench/peers");
    if is_here("go", "version") {
        run(Command::new("go").args(["build", "-o", "bench-go", "."]).current_dir(peers.join("go")))?;
    }
    // Spring takes long to build and to warm up, and is no part of a quick run.
    if !args.contains(&"--quick") && is_here("mvn", "--version") {
        run(Command::new("mvn").args(["-q", "-B", "package"]).current_dir(peers.join("spring")))?;
    }
    let release = repo.target_dir()?.join("release");
    run(Command::new(release.join("bench-compare")).args(args).env("ONCEBOX_BIN", release.join("oncebox")))
}

/// Whether a toolchain can be run.
fn is_here(program: impl AsRef<Path>, asks: &str) -> bool {
    let mut command = Command::new(program.as_ref());
    command.arg(asks).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
