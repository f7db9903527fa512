//! `cargo model`: explores scenarios of the protocol, with other budgets and planted faults where asked for.

use std::process::ExitCode;

use oncebox_model::{Budget, Ending, Explored, Fault, Outcome, Progress, Scenario, explore};

const USAGE: &str = "\
Explores all that may happen to a batch on its way through the host, and holds it against the invariants.

cargo model [SCENARIO]... [--fault NAME] [BUDGET]...
cargo model --list                 names scenarios and faults

Without a scenario: all of them, or the one in which the fault shows.

  --fault NAME      plants a fault in the protocol
  --crashes N       kill -9 of a host, so often at most
  --lost N          a connection to the database is lost, the answer to its COMMIT with it
  --broker N        a connection to the broker is lost
  --person N        a person decides a held row
  --purge N         the purge mark is moved
  --hosts N         2 or 3
  --batch N         deliveries in a batch: 1 or 2
  --outcomes LIST   how events may end: applied,waited,retry,reject,unrun
  --states-max N    gives up after so many states (default 50000000; each takes about 100 bytes)

Examples:
  cargo model order --crashes 2
  cargo model --fault ack_before_commit
  cargo model duplicates --broker 1 --outcomes applied,retry

Exit codes: 0 all holds, 1 something is broken (the shortest way there is printed), 2 usage, 3 not all was explored.";

const STATES_MAX: usize = 50_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h")) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if args == ["--list"] {
        list();
        return ExitCode::SUCCESS;
    }
    match asked(&args) {
        Ok(asked) => run(&asked),
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What is asked for.
struct Asked {
    scenarios: Vec<Scenario>,
    states_max: usize,
}

fn asked(args: &[&str]) -> Result<Asked, String> {
    let (mut names, mut flags, mut args) = (Vec::new(), Vec::new(), args.iter());
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--") {
            Some(flag) => flags.push((flag, *args.next().ok_or_else(|| format!("--{flag} needs a value"))?)),
            None => names.push(*arg),
        }
    }
    let fault = flags.iter().find(|(flag, _)| *flag == "fault").map(|(_, name)| *name);
    let fault =
        fault.map(|name| Fault::named(name).ok_or_else(|| format!("there is no fault `{name}`"))).transpose()?;
    let mut scenarios: Vec<Scenario> = match (names.is_empty(), fault) {
        (true, None) => Scenario::all(),
        (true, Some(fault)) => Scenario::named(fault.shows().0).into_iter().collect(),
        (false, _) => names
            .into_iter()
            .map(|name| Scenario::named(name).ok_or_else(|| format!("there is no scenario `{name}`")))
            .collect::<Result<_, _>>()?,
    };
    let mut states_max = STATES_MAX;
    for scenario in &mut scenarios {
        scenario.fault = fault;
        for (flag, value) in &flags {
            change(scenario, &mut states_max, flag, value)?;
        }
    }
    Ok(Asked { scenarios, states_max })
}

fn change(scenario: &mut Scenario, states_max: &mut usize, flag: &str, value: &str) -> Result<(), String> {
    let number = |from: usize, to: usize| {
        let number = value.parse::<usize>().ok().filter(|number| (from..=to).contains(number));
        number.ok_or_else(|| format!("--{flag} {value}: a number from {from} to {to}"))
    };
    let few = || number(0, 3).map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    let Budget { crashes, lost, broker, person, purge } = &mut scenario.budget;
    match flag {
        "fault" => {}
        "crashes" => *crashes = few()?,
        "lost" => *lost = few()?,
        "broker" => *broker = few()?,
        "person" => *person = few()?,
        "purge" => *purge = few()?,
        "hosts" => scenario.hosts = number(2, 3)?,
        "batch" => scenario.batch = number(1, 2)?,
        "states-max" => *states_max = number(1, usize::MAX)?,
        "outcomes" => scenario.outcomes = value.split(',').map(outcome).collect::<Result<_, _>>()?,
        _ => return Err(format!("there is no --{flag}")),
    }
    if scenario.budget.crashes + scenario.budget.lost > 3 {
        return Err("--crashes and --lost: three at most together".to_owned());
    }
    Ok(())
}

fn outcome(name: &str) -> Result<Outcome, String> {
    match name {
        "applied" => Ok(Outcome::Applied),
        "waited" => Ok(Outcome::Waited),
        "retry" => Ok(Outcome::Retry),
        "reject" => Ok(Outcome::Reject),
        "unrun" => Ok(Outcome::Unrun),
        _ => Err(format!("there is no outcome `{name}`")),
    }
}

fn list() {
    println!("scenarios:");
    for scenario in Scenario::all() {
        println!("  {:<32} {}", scenario.name, scenario.about);
    }
    println!("\nfaults, each with the scenario in which it shows, and what it breaks there:");
    for fault in Fault::ALL {
        let (scenario, broken) = fault.shows();
        println!("  {:<32} {scenario}: {broken}", fault.name());
    }
}

fn run(asked: &Asked) -> ExitCode {
    let mut worst = 0;
    for scenario in &asked.scenarios {
        let fault = scenario.fault.map(|fault| format!(" with {}", fault.name())).unwrap_or_default();
        println!("{}{fault}: {}", scenario.name, scenario.about);
        let explored = explore(scenario, asked.states_max, |Progress { states, waiting, depth }| {
            eprintln!("  {states} states, {waiting} of them to be looked into, depth {depth} …");
        });
        worst = worst.max(report(&explored));
    }
    ExitCode::from(match worst {
        0 => 0,
        1 => 3,
        _ => 1,
    })
}

/// Prints it; the answer is 0 where all holds, 1 where not all was explored, 2 where something is broken.
fn report(explored: &Explored) -> u8 {
    let Explored { states, steps, depth, quiescent, ending, .. } = explored;
    println!("  {states} states, {steps} steps, depth {depth}, {quiescent} states at rest");
    match ending {
        Ending::Holds => {
            println!("  all holds\n");
            0
        }
        Ending::Unfinished => {
            println!("  nothing is broken so far; not all was explored (--states-max)\n");
            1
        }
        Ending::Violated { broken, trace } => {
            println!("  BROKEN: {broken}; the shortest way there:");
            for (number, line) in trace.iter().enumerate() {
                println!("{:>4} {line}", number + 1);
            }
            println!();
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Vec<&'static str> {
        asked(args).unwrap().scenarios.iter().map(|scenario| scenario.name).collect()
    }

    #[test]
    fn without_a_scenario_all_are_meant_and_of_a_fault_the_one_where_it_shows() {
        assert_eq!(names(&[]).len(), Scenario::all().len());
        assert_eq!(names(&["--fault", "keys_unsorted"]), ["mixed"]);
        assert_eq!(names(&["order", "--fault", "keys_unsorted", "purge"]), ["order", "purge"]);
    }

    #[test]
    fn a_budget_replaces_that_of_each_scenario() {
        let asked = asked(&["duplicates", "--crashes", "0", "--broker", "2", "--outcomes", "applied,unrun"]).unwrap();
        let [Scenario { budget, outcomes, .. }] = asked.scenarios.as_slice() else { panic!("one scenario") };
        assert_eq!(*budget, Budget { lost: 1, broker: 2, ..Budget::default() });
        assert_eq!(*outcomes, [Outcome::Applied, Outcome::Unrun]);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_name() {
        for (args, word) in [
            (vec!["oder"], "`oder`"),
            (vec!["--fault", "none"], "`none`"),
            (vec!["--lots", "1"], "--lots"),
            (vec!["--lost"], "--lost needs"),
            (vec!["--hosts", "4"], "from 2 to 3"),
            (vec!["--crashes", "2", "--lost", "2"], "three at most"),
            (vec!["--outcomes", "lost"], "`lost`"),
        ] {
            let message = asked(&args).err().unwrap_or_default();
            assert!(message.contains(word), "{args:?}: {message}");
        }
    }
}
