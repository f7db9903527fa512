//! What `cargo neighbours` runs: how a good handler fares beside a slow and an always failing one, on one queue of
//! RabbitMQ, one MySQL and one host; and how it fares alone.

mod kind;
mod modules;
mod stage;

use std::{process::ExitCode, time::Duration};

use kind::Kind;
use oncebox_tests::latency::Latency;
use stage::Stage;

/// A ratio above this is a failure.
const RATIO_MAX: f64 = 2.0;

struct Options {
    minutes: f64,
    rate: f64,
    /// Whom the good one has beside it.
    beside: Vec<Kind>,
    /// How long a run of the slow one takes on an idle machine.
    slow_ms: f64,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { minutes: 3.0, rate: 200.0, beside: vec![Kind::Slow, Kind::Failing], slow_ms: 50.0 };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let value = rest.next();
            let number = || {
                let number = value.and_then(|value| value.parse::<f64>().ok()).filter(|value| *value > 0.0);
                number.ok_or_else(|| format!("{arg} takes a number above 0"))
            };
            match arg.as_str() {
                "--minutes" => options.minutes = number()?,
                "--rate" => options.rate = number()?,
                "--slow-ms" => options.slow_ms = number()?,
                "--beside" => {
                    let kind = |name| [Kind::Slow, Kind::Failing].into_iter().find(|kind| kind.handler() == name);
                    let kinds = value.map_or("", String::as_str).split(',').map(kind).collect::<Option<_>>();
                    options.beside = kinds.ok_or("--beside takes `slow`, `failing` or both with a comma")?;
                }
                _ => {
                    return Err(format!(
                        "there is no argument `{arg}`; there are --minutes, --rate, --slow-ms and --beside"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["__compile"] {
        return oncebox::plugin::compile_child_main();
    }
    match Options::parse(&args) {
        Ok(options) => compare(&options),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn compare(Options { minutes, rate, beside, slow_ms }: &Options) -> ExitCode {
    let time = Duration::from_secs_f64(minutes * 60.0);
    println!("== the modules: a good one, one that takes about {slow_ms} ms, one that always fails");
    let modules = modules::Modules::build(*slow_ms);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    // Whoever is there, each has a third.
    let own_rate = rate / 3.0;
    let all: Vec<Kind> = [Kind::Good].into_iter().chain(beside.iter().copied()).collect();
    let names: Vec<&str> = all.iter().map(|kind| kind.handler()).collect();
    println!("== {}: {own_rate:.1} events/s of each for {minutes} min", names.join(", "));
    if beside.contains(&Kind::Slow) {
        let asked = own_rate * slow_ms / 1_000.0;
        println!("   the slow ones ask for {asked:.1} of {cores} cores");
    }
    let shares = f64::from(u32::try_from(all.len()).unwrap_or(u32::MAX));
    let beside = Stage::set(&modules).play(&all, own_rate * shares, time);
    println!("== the good one alone: {own_rate:.1} events/s for {minutes} min");
    let alone = Stage::set(&modules).play(&[Kind::Good], own_rate, time);
    report(&alone, &beside)
}

fn report(alone: &Latency, beside: &Latency) -> ExitCode {
    let rows = [
        ("events/s", alone.per_second, beside.per_second, alone.per_second / beside.per_second),
        ("p50, ms", alone.p50_ms, beside.p50_ms, beside.p50_ms / alone.p50_ms),
        ("p99, ms", alone.p99_ms, beside.p99_ms, beside.p99_ms / alone.p99_ms),
    ];
    println!("\nthe good handler, from before the publish to `decided_at` of the inbox row:\n");
    println!("{:<10} {:>10} {:>10} {:>10}", "", "alone", "beside", "ratio");
    for (name, alone, beside, ratio) in rows {
        println!("{name:<10} {alone:>10.1} {beside:>10.1} {ratio:>10.2}");
    }
    for (measured, name) in [(alone, "alone"), (beside, "beside")] {
        if measured.left > 0 {
            println!("{name}: {} events were still not applied at the end, and count as applied then", measured.left);
        }
    }
    let worst = rows.iter().map(|row| row.3).fold(0.0, f64::max);
    if worst <= RATIO_MAX {
        return ExitCode::SUCCESS;
    }
    println!("\nerror: a ratio is worse than {RATIO_MAX}");
    ExitCode::FAILURE
}
