//! `cargo chaos`: whether the promise holds while everything dies. The trial itself is `tests/src/bin/chaos`; this brings
//! up what it copies its servers from, and starts it.

use crate::{
    run::{Failed, Repo, Result, run},
    services::{self, Server},
    target,
};

const TRIAL: &str = "chaos";
/// What `cargo chaos --help` says.
pub(crate) const USAGE: &str = include_str!("../../tests/src/bin/chaos/usage.txt");

/// Brings the servers up, builds, and tries; servers that were not up before are ended again.
pub(crate) fn chaos(repo: &Repo, args: &[&str]) -> Result {
    let Options { release, trial } = Options::parse(args)?;
    target::ensure_wasm(repo)?;
    services::beside(repo, &[Server::Mysql, Server::Rabbitmq], || try_it(repo, release, &trial))
}

fn try_it(repo: &Repo, release: bool, args: &[&str]) -> Result {
    let target = repo.target_dir()?;
    println!("== building oncebox ({})", if release { "release" } else { "dev" });
    let oncebox = if release {
        run(&mut repo.cargo(["build", "--locked", "--release", "--workspace", "--bin", "oncebox"]))?;
        target.join("release/oncebox")
    } else {
        repo.build_oncebox()?
    };
    run(&mut repo.cargo(["build", "--locked", "--workspace", "--bin", TRIAL]))?;
    run(std::process::Command::new(target.join("debug").join(TRIAL)).args(args).env("ONCEBOX_BIN", oncebox))
}

#[derive(Debug)]
struct Options<'a> {
    release: bool,
    /// What the trial gets.
    trial: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// A word that the trial does not know is refused here, before anything is built.
    fn parse(args: &[&'a str]) -> Result<Self> {
        let mut options = Self { release: false, trial: Vec::new() };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let is_right: fn(&str) -> bool = match *arg {
                "--release" => {
                    options.release = true;
                    continue;
                }
                "--seed" => |value| value.parse::<u64>().is_ok(),
                "--minutes" | "--rate" => {
                    |value| value.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0)
                }
                "--failpoints" => |value| !value.is_empty(),
                unknown => return Err(Failed::Usage(format!("`cargo chaos` has no argument `{unknown}`"))),
            };
            let value = rest.next().filter(|value| is_right(value));
            let value = value.ok_or_else(|| Failed::Usage(format!("{arg} takes a value, see `cargo chaos --help`")))?;
            options.trial.extend([*arg, *value]);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_trial_goes_there_and_what_nobody_knows_is_refused() {
        let options =
            Options::parse(&["--seed", "42", "--release", "--minutes", "0.5", "--failpoints", "a=kill@3"]).unwrap();
        assert!(options.release);
        assert_eq!(options.trial, ["--seed", "42", "--minutes", "0.5", "--failpoints", "a=kill@3"]);
        for wrong in [&["--seed", "-1"][..], &["--seed"], &["--minutes", "0"], &["--rate", "NaN"], &["--minuets", "3"]]
        {
            assert!(matches!(Options::parse(wrong), Err(Failed::Usage(_))), "{wrong:?}");
        }
    }
}
