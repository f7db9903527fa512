//! `cargo bench-compare` and `cargo bench-curves`: Oncebox beside consumers that were written by hand, and as the load grows
//! along one axis. The measuring itself is `tests/bench`; this brings up what it needs, builds all of it as it is released,
//! and starts it.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    run::{Failed, Repo, Result, run},
    services::{self, Server},
    target,
};

/// What cargo builds for each.
const CURVES: [&str; 2] = ["oncebox", "bench-curves"];
const COMPARE: [&str; 6] =
    ["oncebox", "bench-compare", "bench-naive", "bench-batched", "bench-floor-database", "bench-floor-broker"];

/// Brings the servers up, builds, and measures; servers that were not up before are ended again.
pub(crate) fn compare(repo: &Repo, args: &[&str]) -> Result {
    target::ensure_wasm(repo)?;
    services::beside(repo, &[Server::Mysql, Server::Rabbitmq], || measure_beside(repo, args))
}

/// The same for the curves.
pub(crate) fn curves(repo: &Repo, args: &[&str]) -> Result {
    known_to_curves(args)?;
    target::ensure_wasm(repo)?;
    services::beside(repo, &[Server::Mysql, Server::Rabbitmq], || {
        build(repo, &CURVES)?;
        start(repo, "bench-curves", args)
    })
}

/// Refuses before minutes of building what `bench-curves` would refuse after them.
fn known_to_curves(args: &[&str]) -> Result {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match *arg {
            "--quick" => {}
            "--only" | "--out" => {
                rest.next().ok_or_else(|| Failed::Usage(format!("{arg} takes a value")))?;
            }
            unknown => return Err(Failed::Usage(format!("`cargo bench-curves` has no argument `{unknown}`"))),
        }
    }
    Ok(())
}

fn build(repo: &Repo, binaries: &[&str]) -> Result {
    println!("== building as it is released");
    let mut build = repo.cargo(["build", "--locked", "--release", "--workspace"]);
    for binary in binaries {
        build.args(["--bin", binary]);
    }
    run(&mut build)
}

fn start(repo: &Repo, measurer: &str, args: &[&str]) -> Result {
    let release = repo.target_dir()?.join("release");
    run(Command::new(release.join(measurer)).args(args).env("ONCEBOX_BIN", release.join("oncebox")))
}

fn measure_beside(repo: &Repo, args: &[&str]) -> Result {
    build(repo, &COMPARE)?;
    let peers = repo.path("tests/bench/peers");
    if is_here("go", "version") {
        run(Command::new("go").args(["build", "-o", "bench-go", "."]).current_dir(peers.join("go")))?;
    }
    // Spring takes long to build and to warm up, and is no part of a quick run.
    if !args.contains(&"--quick") && is_here("mvn", "--version") {
        run(Command::new("mvn").args(["-q", "-B", "package"]).current_dir(peers.join("spring")))?;
    }
    start(repo, "bench-compare", args)
}

/// Whether a toolchain can be run.
fn is_here(program: impl AsRef<Path>, asks: &str) -> bool {
    let mut command = Command::new(program.as_ref());
    command.arg(asks).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_curves_do_not_know_is_refused_before_anything_is_built() {
        assert!(known_to_curves(&["--quick", "--only", "payload,inbox", "--out", "here"]).is_ok());
        for wrong in [["--quik"].as_slice(), &["--only"], &["--out"], &["payload"]] {
            assert!(matches!(known_to_curves(wrong), Err(Failed::Usage(_))), "{wrong:?}");
        }
    }
}
