//! `cargo neighbours`: how much a good handler suffers from a slow and a failing one beside it. The measuring itself is
//! `tests/src/bin/neighbours`; this brings up what it needs and starts it.

use crate::{
    run::{Failed, Repo, Result, run},
    services::{self, Server},
    target,
};

const MEASURER: &str = "neighbours";

/// Brings the servers up, builds, and measures; servers that were not up before are ended again.
pub(crate) fn neighbours(repo: &Repo, args: &[&str]) -> Result {
    let Options { release, measurer } = Options::parse(args)?;
    target::ensure_wasm(repo)?;
    services::beside(repo, &[Server::Mysql, Server::Rabbitmq], || measure(repo, release, &measurer))
}

/// A host as it is released, where one was built so before or it is asked for; else one of this checkout's tests.
fn measure(repo: &Repo, release: bool, args: &[&str]) -> Result {
    let target = repo.target_dir()?;
    let release = release || target.join("release/oncebox").is_file();
    println!(
        "== building oncebox ({})",
        if release { "release" } else { "dev: --release builds it as it is released" }
    );
    let oncebox = if release {
        run(&mut repo.cargo(["build", "--locked", "--release", "--workspace", "--bin", "oncebox"]))?;
        target.join("release/oncebox")
    } else {
        repo.build_oncebox()?
    };
    run(&mut repo.cargo(["build", "--locked", "--workspace", "--bin", MEASURER]))?;
    run(std::process::Command::new(target.join("debug").join(MEASURER)).args(args).env("ONCEBOX_BIN", oncebox))
}

#[derive(Debug)]
struct Options<'a> {
    release: bool,
    /// What the measurer gets.
    measurer: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(args: &[&'a str]) -> Result<Self> {
        let mut options = Self { release: false, measurer: Vec::new() };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match *arg {
                "--release" => options.release = true,
                "--minutes" | "--rate" | "--slow-ms" => {
                    let number = rest.next().filter(|number| number.parse::<f64>().is_ok_and(|number| number > 0.0));
                    let number = number.ok_or_else(|| Failed::Usage(format!("{arg} takes a number above 0")))?;
                    options.measurer.extend([*arg, *number]);
                }
                "--beside" => {
                    let kinds = rest.next().ok_or_else(|| Failed::Usage("--beside takes handlers".to_owned()))?;
                    options.measurer.extend([*arg, *kinds]);
                }
                unknown => return Err(Failed::Usage(format!("`cargo neighbours` has no argument `{unknown}`"))),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_measurer_and_what_is_none_is_refused() {
        let options = Options::parse(&["--minutes", "0.5", "--release", "--beside", "slow"]).unwrap();
        assert!(options.release);
        assert_eq!(options.measurer, ["--minutes", "0.5", "--beside", "slow"]);
        for wrong in [["--minutes", "0"].as_slice(), &["--rate"], &["--minuets", "3"]] {
            assert!(matches!(Options::parse(wrong), Err(Failed::Usage(_))), "{wrong:?}");
        }
    }
}
