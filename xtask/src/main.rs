//! The project's own commands, one file or folder each: `cargo demo`, `cargo verify`, `cargo services`,
//! `cargo neighbours`, `cargo bench-compare`, `cargo bench-curves`, `cargo chaos`, `cargo bless`.

mod bench;
mod bless;
mod chaos;
mod demo;
mod licences;
mod neighbours;
mod run;
mod services;
mod sum;
mod target;
mod verify;

use std::process::ExitCode;

use run::{Failed, Repo, Result};

const USAGE: &str = "\
The project's own commands.

cargo demo [--keep] [--seed N]     both examples on the embedded store: a stream with duplicates, conflicts,
                                   failures, garbage and a crash, and what became of each event
    --keep                         leaves the demo's folder where it is, and says where
    --seed N                       another order of the same events (default 42)
cargo verify [--fast] [STEP]...    everything CI checks, cheap to dear; STEP: these alone
    --fast                         the steps that need no build of guests and no test
    --list                         names the steps
cargo services up [NAME]...        brings up the servers of the tests: mysql, rabbitmq, mariadb (all, or those named)
cargo services status [NAME]...    says which are up, and where; exit code 1 when one is not
cargo services down [NAME]...      ends those that `up` started; what was downloaded stays
    --purge                        removes that too, and their data
cargo neighbours                   how a good handler fares beside a slow and a failing one, on MySQL and RabbitMQ;
                                   exit code 1 when throughput or latency is more than twice as bad as alone
    --minutes N                    each of the two measurements (default 3)
    --rate N                       events a second, a third for each handler (default 200)
    --slow-ms N                    how long a run of the slow one takes on an idle machine (default 50)
    --beside NAME[,NAME]           whom the good one has beside it: slow, failing (default both)
    --release                      builds the host as it is released
cargo bench-compare                Oncebox beside consumers that were written by hand, each of which drains the same queue:
                                   events a second, ratios, and what each event costs; exit code 1 when one of them did
                                   not apply every event once
    --quick                        one block, and of the others the hand-written ones in Rust and Go
    --blocks N                     how often each of them drains (default 5)
    --only NAME[,NAME]             these alone: ours, naive_best, hand_batched, spring_single, spring_batch, go_single,
                                   floor_database, floor_broker
    --json FILE                    the figures, for programs
cargo bench-curves                 how the cost of one event grows with the size of messages, modules, tenants, duplicates,
                                   failures and more, beside a base that is measured in turns with it; exit code 1 when a
                                   point could not be measured or its tables were wrong
    --quick                        a few points of each, shorter
    --only AXIS[,AXIS]             these alone: payload, modules, tenants, duplicates, hot, batch, lanes, inbox, failures
    --out DIR                      where curves.csv and AXIS.svg go (default: `curves` in cargo's target folder)
cargo bench-micro                  what identifying, planning and the sandbox cost an event, each by itself (criterion);
                                   `-- --quick` for a glance, `-- NAME` for one of them
cargo model [SCENARIO]...          explores the protocol's model (docs/model.md); `cargo model --help` says more
cargo chaos                        two hosts on servers of their own while everything dies, in an order drawn from a seed;
                                   exit code 1 when anything was lost or doubled. `cargo chaos --help` has the rest
    --seed N                       the same order again (default: another one, printed)
    --minutes M                    how long (default 10)
cargo bless                        rewrites the generated pages under docs/reference
cargo xtask --help                 this text

Exit codes: 0 done, 1 a step failed, 2 usage.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::Usage(message)) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Failed::Step(message)) => {
            eprintln!("\nerror: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result {
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h")) {
        let usage = if args.first() == Some(&"chaos") { chaos::USAGE } else { USAGE };
        println!("{}", usage.trim_end());
        return Ok(());
    }
    let repo = Repo::find()?;
    match args.split_first() {
        Some((&"demo", rest)) => demo::demo(&repo, rest),
        Some((&"verify", rest)) => verify::verify(&repo, rest),
        Some((&"services", rest)) => services::services(&repo, rest),
        Some((&"bench-compare", rest)) => bench::compare(&repo, rest),
        Some((&"bench-curves", rest)) => bench::curves(&repo, rest),
        Some((&"neighbours", rest)) => neighbours::neighbours(&repo, rest),
        Some((&"chaos", rest)) => chaos::chaos(&repo, rest),
        Some((&"bless", rest)) => bless::bless(&repo, rest),
        Some((verb, _)) => Err(Failed::Usage(format!("there is no command `{verb}`"))),
        None => Err(Failed::Usage("which command?".to_owned())),
    }
}
