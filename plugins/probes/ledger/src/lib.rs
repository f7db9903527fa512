//! A handler for the scenarios: its writes can be counted, and it fails in the way that the event asks for.
#![forbid(unsafe_code)]

use oncebox_sdk::prelude::*;
use serde::{Deserialize, Serialize};

oncebox_sdk::manifest!();

#[derive(Deserialize)]
struct Entry {
    key: String,
    amount: i64,
    #[serde(default, rename = "do")]
    what: What,
    /// Turns of a loop, for `spin`; the attempt that works at last, for `until`, or that ends the process.
    #[serde(default)]
    times: u64,
    /// The one handler that does so, for what ends the process; the others apply.
    at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    #[default]
    Apply,
    Skip,
    Reject,
    Trap,
    /// Asks for further attempts until there were `times` of them.
    Until,
    /// Takes its time, then applies.
    Spin,
    /// Emits an event that does the same, under a longer key.
    Forward,
    /// Asks for further attempts until there were `times` of them; then a test build of the host aborts.
    Abort,
    /// The same, and it takes memory until somebody ends it.
    Hoard,
}

#[derive(Serialize)]
struct Entered {
    key: String,
    amount: i64,
    #[serde(rename = "do")]
    what: &'static str,
}

struct Ledger;

impl Handler for Ledger {
    fn handle(event: &Event) -> Result<Done, Failure> {
        let entry: Entry = event.json()?;
        let handler = context::handler();
        db::enter(&handler, &entry.key, entry.amount, &event.id);
        db::count(entry.amount, &handler);
        let forward = matches!(entry.what, What::Forward);
        let entered = Entered {
            key: if forward { format!("{}'", entry.key) } else { entry.key },
            amount: entry.amount,
            what: if forward { "forward" } else { "apply" },
        };
        events::out().json("entered", &entered)?.emit();
        match entry.what {
            What::Apply | What::Forward => {}
            What::Abort | What::Hoard if entry.at.as_ref().is_some_and(|at| *at != handler) => {}
            What::Spin => spin(entry.times),
            What::Skip => return Ok(Done::skipped("as asked")),
            What::Reject => return Err(Failure::reject("as-asked", "the event asks for it")),
            What::Trap => panic!("the event asks for it"),
            What::Until if u64::from(context::attempt()) < entry.times => {
                return Err(Failure::retry(format!("attempt {} of {}", context::attempt(), entry.times)));
            }
            What::Abort | What::Hoard if u64::from(context::attempt()) < entry.times => {
                return Err(Failure::retry(format!("attempt {} of {}", context::attempt(), entry.times)));
            }
            What::Abort => log::info!("abort the process"),
            What::Hoard => log::info!("take all memory"),
            What::Until => {}
        }
        Ok(Done::applied())
    }
}

fn spin(times: u64) {
    for turn in 0..times {
        std::hint::black_box(turn);
    }
}

oncebox_sdk::export!(Ledger);
