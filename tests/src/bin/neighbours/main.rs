//! What `cargo neighbours` runs: how a good handler fares beside a slow and an always failing one, on one queue of
//! RabbitMQ, one MySQL and one host; and how it fares alone.

mod feed;
mod measure;
mod modules;
mod stage;

use std::{process::ExitCode, time::Duration};

use feed::Kind;
use measure::Measured;
use stage::Stage;

/// A ratio above this is a failure.
const RATIO_MAX: f64 = 2.0;

struct Options {
    minutes: f64,
    rate: f64,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { minutes: 3.0, rate: 200.0 };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let value = rest.next().and_then(|value| value.parse::<f64>().ok()).filter(|value| *value > 0.0);
            let value = value.ok_or_else(|| format!("{arg} takes a number above 0"))?;
            match arg.as_str() {
                "--minutes" => options.minutes = value,
                "--rate" => options.rate = value,
                _ => return Err(format!("there is no argument `{arg}`; there are --minutes and --rate")),
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

fn compare(Options { minutes, rate }: &Options) -> ExitCode {
    let time = Duration::from_secs_f64(minutes * 60.0);
    println!("== the modules: a good one, one that takes about 50 ms, one that always fails");
    let modules = modules::Modules::build();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let asked = rate / 3.0 * modules::SLOW_MS / 1_000.0;
    println!(
        "== all three: {rate} events/s, a third each, for {minutes} min; the slow ones ask for {asked:.1} of {cores} cores"
    );
    let beside = Stage::set(&modules).play(&[Kind::Good, Kind::Slow, Kind::Failing], *rate, time);
    let own_rate = rate / 3.0;
    println!("== the good one alone: {own_rate:.1} events/s for {minutes} min");
    let alone = Stage::set(&modules).play(&[Kind::Good], own_rate, time);
    report(&alone, &beside)
}

fn report(alone: &Measured, beside: &Measured) -> ExitCode {
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
