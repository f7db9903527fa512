//! The protocol as it is holds in every scenario, and all that the model can do happens in one of them.

use std::collections::BTreeSet;

use oncebox_model::{Ending, Explored, Scenario, explore};

/// Many times what any of them has.
const STATES_MAX: usize = 5_000_000;

/// Everything was looked into, nothing is broken, and there is a state at rest.
fn holds(scenario: &Scenario) -> BTreeSet<&'static str> {
    let name = scenario.name;
    let Explored { states, quiescent, kinds, ending, .. } = explore(scenario, STATES_MAX, |_| {});
    if let Ending::Violated { broken, trace } = &ending {
        panic!("{name}: {broken}\n{}", trace.join("\n"));
    }
    assert_eq!(ending, Ending::Holds, "{name}: {states} states");
    assert!(quiescent > 0, "{name}: nothing ever comes to an end");
    kinds
}

#[test]
fn every_scenario_holds_and_each_kind_of_action_is_taken() {
    let mut taken = BTreeSet::new();
    for scenario in Scenario::all() {
        taken.extend(holds(&scenario));
    }
    let all = [
        "ack behind a gap",
        "channel lost",
        "claim",
        "consume",
        "crash",
        "late commit",
        "lease ends",
        "lock wait",
        "orphan ends",
        "person",
        "purge delete",
        "purge mark",
        "purge select",
        "session lost",
        "step",
        "take",
    ];
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn an_exploration_that_is_cut_short_does_not_say_that_all_holds() {
    let cut = explore(&Scenario::named("duplicates").unwrap(), 1_000, |_| {});
    assert_eq!(cut.ending, Ending::Unfinished);
}
