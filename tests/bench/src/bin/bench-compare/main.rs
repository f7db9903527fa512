//! What `cargo bench-compare` runs: Oncebox and consumers that were written by hand, each of which drains a queue of the
//! same events into the same tables under the same guarantee, in turns. How it is done fairly: `docs/performance.md`.

mod contestant;
mod drain;
mod latency;
mod options;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use oncebox_bench::stage::Kit;
use oncebox_tests::latency::Latency;

use crate::{
    contestant::{Contestant, Role},
    drain::{Drained, drain},
    options::Options,
    report::{Report, Run},
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["__compile"] {
        return oncebox::plugin::compile_child_main();
    }
    let options = match Options::parse(&args) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    match compare(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every contestant that drained applied every key once.
fn compare(options: &Options) -> Result<bool> {
    let kit = Kit::build().context("cannot build the handler")?;
    let mut contestants = contestant::all(options);
    let mut runs: BTreeMap<Role, Vec<Run>> = BTreeMap::new();
    for contestant in &mut contestants {
        if let Err(error) = calibrate(&kit, contestant, options) {
            println!("   {:<34} no figure: {error:#}", contestant.name());
            runs.entry(contestant.role).or_default().push(Run::Failed(format!("{error:#}")));
        }
    }
    // They have no figure, and take no time from the others.
    let untried: BTreeSet<Role> = runs.keys().copied().collect();
    for block in 0..options.blocks {
        println!("== block {} of {}", block + 1, options.blocks);
        for contestant in in_turn(contestants.iter().filter(|one| !untried.contains(&one.role)), block) {
            let run = match drain(&kit, contestant, contestant.events) {
                Ok(drained) => {
                    println!("   {:<34} {:>9.0} events/s", contestant.name(), drained.per_second);
                    Run::Checked(drained)
                }
                Err(error) => {
                    println!("   {:<34} no figure: {error:#}", contestant.name());
                    Run::Failed(format!("{error:#}"))
                }
            };
            runs.entry(contestant.role).or_default().push(run);
        }
    }
    let latencies = latencies(&kit, &contestants, &untried, options);
    let handler_us = kit.handler_us(if options.quick { 2_000 } else { 20_000 })?;
    let report = Report::of(&contestants, &runs, handler_us, &latencies);
    println!("\n{report}");
    if let Some(path) = &options.json {
        std::fs::write(path, report.json()?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(runs.values().flatten().all(|run| matches!(run, Run::Checked(_))))
}

/// Of those who take part in it, in turns as the drains; each round's.
fn latencies(
    kit: &Kit,
    contestants: &[Contestant],
    untried: &BTreeSet<Role>,
    options: &Options,
) -> BTreeMap<Role, Vec<Latency>> {
    let may = |one: &&Contestant| latency::takes_part(one.role) && !untried.contains(&one.role);
    let mut rounds: BTreeMap<Role, Vec<Latency>> = BTreeMap::new();
    for round in 0..options.blocks {
        println!("== at {:.0} events/s, round {} of {}", latency::RATE, round + 1, options.blocks);
        for one in in_turn(contestants.iter().filter(may), round) {
            match latency::latency(kit, one) {
                Ok(latency) => {
                    let Latency { p50_ms, p99_ms, .. } = latency;
                    println!("   {:<34} p50 {p50_ms:>7.1} p99 {p99_ms:>7.1} ms", one.name());
                    rounds.entry(one.role).or_default().push(latency);
                }
                Err(error) => println!("   {:<34} no figure: {error:#}", one.name()),
            }
        }
    }
    rounds
}

/// Forwards, then backwards.
fn in_turn<'a>(contestants: impl Iterator<Item = &'a Contestant>, round: usize) -> Vec<&'a Contestant> {
    let mut turn: Vec<&Contestant> = contestants.collect();
    if round % 2 == 1 {
        turn.reverse();
    }
    turn
}

/// Finds the concurrency at which it is fastest, where that is to be searched, and how many events take long enough.
fn calibrate(kit: &Kit, contestant: &mut Contestant, options: &Options) -> Result<()> {
    let mut best: Option<(u16, Drained)> = None;
    for concurrency in contestant.choices.clone() {
        contestant.concurrency = concurrency;
        let drained = drain(kit, contestant, contestant.trial)?;
        println!("   {:<34} {:>9.0} events/s, to find out how many it needs", contestant.name(), drained.per_second);
        if best.as_ref().is_none_or(|(_, best)| drained.per_second > best.per_second) {
            best = Some((concurrency, drained));
        }
    }
    if let Some((concurrency, drained)) = best {
        contestant.concurrency = concurrency;
        contestant.events = options.events(drained.per_second);
    }
    Ok(())
}
