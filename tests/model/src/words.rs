//! A state in one line, for a trace.

use std::fmt::Write as _;

use crate::{
    database::{Due, Row},
    scenario::Scenario,
    state::{Place, State},
};

const KEY: [char; 3] = ['A', 'B', 'C'];

/// A row's name.
pub(crate) fn row_name(row: Row) -> String {
    match row {
        Row::Inbox(key) => format!("the inbox row of {}", KEY[usize::from(key)]),
        Row::Order => "the order row".to_owned(),
        Row::Held(identity) => format!("held row {}", identity + 1),
    }
}

/// What the tables and the queue say.
pub(crate) fn standing(state: &State, scenario: &Scenario) -> String {
    let mut words = String::from("|");
    for (key, row) in state.tables.inbox.iter().enumerate().filter_map(|(key, row)| Some((key, (*row)?))) {
        let _ = write!(words, " inbox {}/{}: {};", KEY[key], row.fingerprint, row.state.name());
    }
    for (at, (key, fingerprint)) in scenario.identities().into_iter().enumerate() {
        let Some(row) = state.tables.held[at] else { continue };
        let due = match row.due {
            Due::Never => "",
            Due::Now => ", due",
            Due::Leased => ", leased",
        };
        let _ = write!(words, " held {}/{fingerprint}: {}{due};", KEY[usize::from(key)], row.state.name());
    }
    if let Some(order) = state.tables.order {
        let _ = write!(words, " order row: {} held;", order.held);
    }
    let applied = state.seen.applied.iter().enumerate().filter(|(_, times)| **times > 0);
    for (key, times) in applied {
        let _ = write!(words, " effect of {}: {times};", KEY[key]);
    }
    for (at, _) in scenario.messages.iter().enumerate() {
        let place = match state.queue.messages[at] {
            Place::Ready => "in the queue".to_owned(),
            Place::Unacked { host } => format!("at host {}", host + 1),
            Place::Acked => "acked".to_owned(),
        };
        let end = if at + 1 == scenario.messages.len() { "" } else { "," };
        let _ = write!(words, " message {} {place}{end}", at + 1);
    }
    words
}
