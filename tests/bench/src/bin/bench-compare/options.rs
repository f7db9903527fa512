//! What is asked for.

use std::path::PathBuf;

use crate::contestant::Role;

/// What `bench-compare` is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// How often each contestant drains.
    pub(crate) blocks: usize,
    /// How long a drain should take, in seconds.
    pub(crate) seconds: f64,
    /// Where the figures go.
    pub(crate) json: Option<PathBuf>,
    /// These alone; empty: all.
    pub(crate) only: Vec<Role>,
    /// One block of the four that matter most.
    pub(crate) quick: bool,
}

/// Events of one drain.
const EVENTS_MIN: u32 = 2_000;
const EVENTS_MAX: u32 = 200_000;

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { blocks: 5, seconds: 6.0, json: None, only: Vec::new(), quick: false };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().cloned().ok_or_else(|| format!("{arg} takes a value"));
            match arg.as_str() {
                "--quick" => {
                    options.quick = true;
                    options.blocks = 1;
                    options.only = vec![Role::Ours, Role::Naive, Role::HandBatched, Role::Go];
                }
                "--json" => options.json = Some(value()?.into()),
                "--blocks" => {
                    let number = value()?.parse().ok().filter(|number| (1..=100).contains(number));
                    options.blocks = number.ok_or("--blocks takes a number from 1 to 100")?;
                }
                "--only" => {
                    let value = value()?;
                    let named = |name: &str| Role::ALL.into_iter().find(|role| role.key() == name);
                    let roles: Option<Vec<Role>> = value.split(',').map(named).collect();
                    let names: Vec<&str> = Role::ALL.iter().map(|role| role.key()).collect();
                    options.only = roles.ok_or_else(|| format!("--only takes some of {}", names.join(",")))?;
                }
                _ => return Err(format!("there is no argument `{arg}`; there are --quick, --json, --blocks, --only")),
            }
        }
        Ok(options)
    }

    /// Whether a contestant takes part.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.only.is_empty() || self.only.contains(&role)
    }

    /// So many events take a drain's time at that rate.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two numbers that fit")]
    pub(crate) fn events(&self, per_second: f64) -> u32 {
        // A tenth is not counted.
        (per_second * self.seconds / 0.9).clamp(EVENTS_MIN.into(), EVENTS_MAX.into()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Options, String> {
        Options::parse(&args.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_for_is_read_or_refused() {
        let options = parse("--blocks 7 --json a.json --only ours,naive_best").unwrap();
        assert_eq!(
            (options.blocks, options.json, options.only),
            (7, Some("a.json".into()), vec![Role::Ours, Role::Naive])
        );
        let quick = parse("--quick").unwrap();
        assert!(quick.quick && quick.has(Role::Go) && !quick.has(Role::SpringBatch));
        for (args, why) in [
            ("--blocks 0", "from 1"),
            ("--blocks", "takes a value"),
            ("--only naive", "ours,"),
            ("--fast", "no argument"),
        ] {
            assert!(parse(args).unwrap_err().contains(why), "{args}");
        }
    }

    #[test]
    fn a_drain_is_as_long_as_it_should_be_within_bounds() {
        let options = parse("").unwrap();
        assert_eq!(options.events(9_000.0), 60_000);
        assert_eq!((options.events(1.0), options.events(1e9)), (EVENTS_MIN, EVENTS_MAX));
    }
}
