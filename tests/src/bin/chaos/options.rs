//! What is asked for on the command line.

use std::time::Duration;

/// Shown by `cargo chaos --help` too.
pub(crate) const USAGE: &str = include_str!("usage.txt");

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Help,
    Run(Options),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) minutes: f64,
    pub(crate) rate: f64,
    pub(crate) failpoints: Option<String>,
}

impl Options {
    /// `now_us`: where the seed comes from, when none is given.
    pub(crate) fn parse(args: &[String], now_us: i64) -> Result<Asked, String> {
        // As many digits as a person types gladly.
        let seed = now_us.unsigned_abs() % 1_000_000;
        let mut options = Self { seed, minutes: 10.0, rate: 20.0, failpoints: None };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if matches!(arg.as_str(), "--help" | "-h") {
                return Ok(Asked::Help);
            }
            let mut value = || rest.next().ok_or_else(|| format!("{arg} takes a value"));
            match arg.as_str() {
                "--seed" => options.seed = value()?.parse().map_err(|_| "--seed takes a whole number".to_owned())?,
                "--minutes" => options.minutes = above_zero(arg, value()?)?,
                "--rate" => options.rate = above_zero(arg, value()?)?,
                "--failpoints" => options.failpoints = Some(value()?.clone()),
                _ => return Err(format!("there is no argument `{arg}`")),
            }
        }
        Ok(Asked::Run(options))
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0)
    }

    /// Of each tenant.
    pub(crate) fn messages(&self) -> usize {
        let messages = Duration::from_secs_f64(self.minutes * 60.0 * self.rate).as_secs();
        usize::try_from(messages).unwrap_or(usize::MAX).max(1)
    }

    /// What plays the same again.
    pub(crate) fn command(&self) -> String {
        let Self { seed, minutes, rate, failpoints } = self;
        let failpoints = failpoints.as_ref().map(|spec| format!(" --failpoints '{spec}'")).unwrap_or_default();
        format!("cargo chaos --seed {seed} --minutes {minutes} --rate {rate}{failpoints}")
    }
}

fn above_zero(arg: &str, value: &str) -> Result<f64, String> {
    let number = value.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{arg} takes a number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Asked, String> {
        Options::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), 1_234_567_890)
    }

    #[test]
    fn the_command_that_is_printed_asks_for_the_same_again() {
        let Ok(Asked::Run(drawn)) = parse(&["--minutes", "0.5", "--failpoints", "a=kill@3"]) else { panic!() };
        assert_eq!((drawn.seed, drawn.messages(), drawn.time()), (567_890, 600, Duration::from_secs(30)));
        let command = drawn.command();
        assert_eq!(command, "cargo chaos --seed 567890 --minutes 0.5 --rate 20 --failpoints 'a=kill@3'");
        let words: Vec<&str> = command.split(' ').skip(2).map(|word| word.trim_matches('\'')).collect();
        assert_eq!(parse(&words), Ok(Asked::Run(drawn)));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_help_is_given() {
        for wrong in [&["--seed", "x"][..], &["--seed"], &["--minutes", "0"], &["--rate", "inf"], &["--sed", "1"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(parse(&["--seed", "1", "--help"]), Ok(Asked::Help));
    }
}
