//! What is asked for.

use std::path::PathBuf;

use crate::axes::Axis;

pub(crate) const USAGE: &str = "\
bench-curves: how the cost of one event grows along each axis, in relation to a base that is measured in turns with it.

    --only AXIS[,AXIS]   these alone: payload, modules, tenants, duplicates, hot, batch, lanes, inbox, failures
    --quick              a few points of each, shorter
    --out DIR            where curves.csv and AXIS.svg go (default: `curves` in cargo's target folder)

Exit codes: 0 all was measured, 1 a point could not be measured or its tables were wrong, 2 usage. A figure above its budget
is said, and no failure: times on a shared machine are none.";

/// What `bench-curves` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// In the order of [`Axis::ALL`].
    pub(crate) axes: Vec<Axis>,
    pub(crate) quick: bool,
    /// `None`: beside the binaries.
    pub(crate) out: Option<PathBuf>,
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Help,
    Measure(Options),
}

impl Options {
    /// How long a drain should take, in seconds.
    pub(crate) const fn seconds(&self) -> f64 {
        if self.quick { 1.5 } else { 2.5 }
    }
}

impl Asked {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Options { axes: Axis::ALL.to_vec(), quick: false, out: None };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().cloned().ok_or_else(|| format!("{arg} takes a value"));
            match arg.as_str() {
                "--help" | "-h" => return Ok(Self::Help),
                "--quick" => options.quick = true,
                "--out" => options.out = Some(value()?.into()),
                "--only" => options.axes = named(&value()?)?,
                _ => return Err(format!("there is no argument `{arg}`; there are --only, --quick, --out and --help")),
            }
        }
        Ok(Self::Measure(options))
    }
}

fn named(names: &str) -> Result<Vec<Axis>, String> {
    let names: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = names.iter().find(|name| Axis::ALL.iter().all(|axis| axis.name() != **name)) {
        let known: Vec<&str> = Axis::ALL.iter().map(|axis| axis.name()).collect();
        return Err(format!("there is no axis `{unknown}`; there are {}", known.join(",")));
    }
    Ok(Axis::ALL.into_iter().filter(|axis| names.contains(&axis.name())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Asked, String> {
        Asked::parse(&args.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_for_is_read_or_refused() {
        let asked = parse("--only lanes,payload --quick --out here").unwrap();
        let options = Options { axes: vec![Axis::Payload, Axis::Lanes], quick: true, out: Some("here".into()) };
        assert_eq!(asked, Asked::Measure(options));
        assert_eq!(parse("--quick --help"), Ok(Asked::Help));
        for (args, why) in [("--only size", "no axis `size`"), ("--out", "takes a value"), ("--fast", "no argument")] {
            assert!(parse(args).unwrap_err().contains(why), "{args}");
        }
    }
}
