//! `cargo verify`: everything CI checks, cheap to dear, in one order for CI and people.

use crate::{
    licences,
    run::{Failed, Repo, Result, Stopwatch, run},
    services::{self, Server},
    sum::Sum,
    target,
};

/// The crates whose tests need no sandbox, no database and no guest.
const LIGHT: [&str; 5] = ["oncebox-core", "oncebox-model", "oncebox-sdk", "oncebox-sdk-macros", "xtask"];

struct Step {
    name: &'static str,
    about: &'static str,
    fast: bool,
    run: fn(&Repo, &mut Shared) -> Result,
}

/// What the steps of one run leave for each other and for its end.
#[derive(Default)]
struct Shared {
    sum: Sum,
    /// The servers that were not up before.
    started: Vec<Server>,
}

/// Builds the host with failpoints and planted faults, of which a release has none.
const PROOF: [&str; 2] = ["--features", "oncebox-tests/proof"];

/// What chooses failpoints and planted faults, and what is said when one is reached.
const OF_PROOF: [&str; 3] = ["ONCEBOX_FAILPOINTS", "ONCEBOX_PLANTED_FAULT", "a failpoint is reached"];

const STEPS: [Step; 10] = [
    Step { name: "fmt", about: "every file is formatted", fast: true, run: fmt },
    Step {
        name: "licences",
        about: "licences and duplicates of crates, by deny.toml",
        fast: true,
        run: |repo, _| licences::check(repo),
    },
    Step { name: "clippy", about: "no warning in any crate, tests included", fast: true, run: clippy },
    Step { name: "clippy-guests", about: "the same of guests, as they are compiled", fast: true, run: clippy_guests },
    Step { name: "docs", about: "the documentation builds, and its links lead somewhere", fast: true, run: docs },
    Step {
        name: "unit",
        about: "unit and property tests of the decisions, the SDK and this tool; the model of the protocol, whole",
        fast: false,
        run: unit,
    },
    Step {
        name: "plain",
        about: "a build as it is released has no failpoint and no planted fault",
        fast: false,
        run: plain,
    },
    Step { name: "guests", about: "every plugin builds, is packed and can be inspected", fast: false, run: guests },
    Step { name: "services", about: "the servers of the tests are up", fast: false, run: servers },
    Step { name: "tests", about: "all other tests", fast: false, run: all_tests },
];

/// Runs the steps that are asked for, up to the first that fails.
pub(crate) fn verify(repo: &Repo, args: &[&str]) -> Result {
    if args == ["--list"] {
        for step in &STEPS {
            println!("{:<14} {}{}", step.name, step.about, if step.fast { " (fast)" } else { "" });
        }
        return Ok(());
    }
    let steps = chosen(args)?;
    let watch = Stopwatch::start();
    let mut shared = Shared::default();
    let mut outcome = Ok(());
    for (number, step) in steps.iter().enumerate() {
        println!("\n== {}/{} {}: {}", number + 1, steps.len(), step.name, step.about);
        let own = Stopwatch::start();
        outcome = (step.run)(repo, &mut shared).map_err(|failed| named(step, own, failed));
        if outcome.is_err() {
            break;
        }
        println!("== {} done in {own}", step.name);
    }
    report(&shared.sum);
    // Nothing is left behind; what was up before stays.
    if !shared.started.is_empty() {
        outcome = outcome.and(services::down(repo, &shared.started));
    }
    if outcome.is_ok() {
        println!("{} steps in {watch}", steps.len());
    }
    outcome
}

fn chosen(args: &[&str]) -> Result<Vec<&'static Step>> {
    if args.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    if args == ["--fast"] {
        return Ok(STEPS.iter().filter(|step| step.fast).collect());
    }
    if let Some(unknown) = args.iter().find(|arg| STEPS.iter().all(|step| step.name != **arg)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Failed::Usage(format!("there is no step `{unknown}`; the steps are {}", names.join(", "))));
    }
    Ok(STEPS.iter().filter(|step| args.contains(&step.name)).collect())
}

fn named(step: &Step, watch: Stopwatch, failed: Failed) -> Failed {
    let (Failed::Step(why) | Failed::Usage(why)) = failed;
    let name = step.name;
    Failed::Step(format!("step `{name}` failed after {watch}: {why}\nrepeat it with: cargo verify {name}"))
}

/// The sum, alone on its line, for whoever reads the log of a run.
fn report(sum: &Sum) {
    println!();
    for name in &sum.names {
        println!("failed: {name}");
    }
    if sum.ignored > 0 {
        println!("{} tests were not run (ignored)", sum.ignored);
    }
    if sum.passed + sum.failed > 0 {
        println!("{} passed, {} failed", sum.passed, sum.failed);
    }
}

fn fmt(repo: &Repo, _: &mut Shared) -> Result {
    target::ensure_component(repo, "fmt", "rustfmt")?;
    run(&mut repo.cargo(["fmt", "--all", "--check"]))
}

fn clippy(repo: &Repo, _: &mut Shared) -> Result {
    target::ensure_component(repo, "clippy", "clippy")?;
    // As it is released, and then with all that is only there for tests.
    run(&mut repo.cargo(["clippy", "--locked", "--workspace", "--", "-D", "warnings"]))?;
    let mut command = repo.cargo(["clippy", "--locked", "--workspace", "--all-targets"]);
    run(command.args(PROOF).args(["--", "-D", "warnings"]))
}

fn clippy_guests(repo: &Repo, _: &mut Shared) -> Result {
    target::ensure_component(repo, "clippy", "clippy")?;
    target::ensure_wasm(repo)?;
    let mut command = repo.cargo(["clippy", "--locked", "--target", target::WASM]);
    for plugin in rust_plugins(repo)? {
        command.args(["-p", &plugin]);
    }
    run(command.args(["--", "-D", "warnings"]))
}

fn docs(repo: &Repo, _: &mut Shared) -> Result {
    let mut command = repo.cargo(["doc", "--locked", "--workspace", "--no-deps"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn unit(repo: &Repo, shared: &mut Shared) -> Result {
    let mut command = repo.cargo(["test", "--locked", "--no-fail-fast"]);
    command.args(LIGHT.iter().flat_map(|name| ["-p", *name]));
    shared.sum.run(&mut command)
}

fn plain(repo: &Repo, _: &mut Shared) -> Result {
    let oncebox = repo.build_oncebox()?;
    let bytes = std::fs::read(&oncebox).map_err(Failed::to(format!("read {}", oncebox.display())))?;
    if let Some(word) = found_in(&bytes) {
        return Err(Failed::Step(format!("{} has failpoints or planted faults: `{word}` is in it", oncebox.display())));
    }
    // A choice that cannot be read ends a build that has any.
    let mut version = std::process::Command::new(&oncebox);
    run(version.arg("--version").env(OF_PROOF[0], "nowhere=kill").env(OF_PROOF[1], "nothing"))
}

/// Which of the words that only a build for tests has is in a binary.
fn found_in(bytes: &[u8]) -> Option<&'static str> {
    OF_PROOF.into_iter().find(|word| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
}

fn guests(repo: &Repo, _: &mut Shared) -> Result {
    target::ensure_wasm(repo)?;
    let oncebox = repo.build_oncebox()?;
    let out = repo.target_dir()?.join("modules");
    std::fs::create_dir_all(&out).map_err(Failed::to(format!("make {}", out.display())))?;
    for plugin in repo.plugins()? {
        let module = out.join(format!("{plugin}.wasm"));
        let mut build = std::process::Command::new(&oncebox);
        run(build.arg("build").arg(repo.path("plugins").join(&plugin)).arg("--out").arg(&module))?;
        run(std::process::Command::new(&oncebox).arg("inspect").arg(&module))?;
    }
    Ok(())
}

/// Brings up what is not up; nothing where all are.
fn servers(repo: &Repo, shared: &mut Shared) -> Result {
    services::up(repo, &Server::ALL, &mut shared.started)
}

fn all_tests(repo: &Repo, shared: &mut Shared) -> Result {
    // Again, for `cargo verify tests` alone.
    servers(repo, shared)?;
    target::ensure_wasm(repo)?;
    let mut command = repo.cargo(["test", "--locked", "--workspace", "--no-fail-fast"]);
    command.args(LIGHT.iter().flat_map(|name| ["--exclude", *name])).args(PROOF);
    shared.sum.run(&mut command)
}

/// The plugins that are crates of the workspace.
fn rust_plugins(repo: &Repo) -> Result<Vec<String>> {
    let names = repo.plugins()?;
    Ok(names.into_iter().filter(|name| repo.path("plugins").join(name).join("Cargo.toml").is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Vec<&'static str> {
        chosen(args).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn fast_leaves_out_what_runs_tests_or_builds_guests() {
        assert_eq!(names(&["--fast"]), ["fmt", "licences", "clippy", "clippy-guests", "docs"]);
    }

    #[test]
    fn a_word_of_a_build_for_tests_is_found_wherever_it_stands() {
        assert_eq!(found_in(b"ONCEBOX_FAILPOINT ONCEBOX_PLANTED_FAUL a failpoint"), None);
        assert_eq!(found_in(b"\0\xffONCEBOX_PLANTED_FAULT"), Some("ONCEBOX_PLANTED_FAULT"));
        assert_eq!(found_in(b"ONCEBOX_FAILPOINTS=after"), Some("ONCEBOX_FAILPOINTS"));
    }

    #[test]
    fn steps_that_are_named_run_alone_and_in_their_own_order() {
        assert_eq!(names(&["tests", "fmt"]), ["fmt", "tests"]);
        assert!(matches!(chosen(&["fmt", "tset"]), Err(Failed::Usage(message)) if message.contains("`tset`")));
    }
}
