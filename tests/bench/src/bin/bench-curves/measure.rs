//! The order of the drains: a base before and after each point, shared with its neighbours, for the machine is another one
//! from minute to minute.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::Result;
use oncebox_bench::stage::Kit;

use crate::{
    axes::{Budget, Figure, Point},
    drain::{Drained, drain},
    scenario::Scenario,
};

/// A point and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) point: Point,
    /// Or why there is no figure.
    pub(crate) outcome: Result<Measured, String>,
}

/// A point's drain, and its figures divided by the mean of the bases next to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) drained: Drained,
    pub(crate) cost: f64,
    pub(crate) time: f64,
    pub(crate) log_fsyncs: f64,
}

impl Measured {
    fn of(drained: Drained, before: &Drained, after: &Drained) -> Self {
        let ratio = |figure: fn(&Drained) -> f64| figure(&drained) / f64::midpoint(figure(before), figure(after));
        Self {
            drained,
            cost: ratio(|drained| drained.cost.host_us + drained.cost.database_us),
            time: ratio(|drained| 1.0 / drained.per_second),
            log_fsyncs: ratio(|drained| drained.cost.log_fsyncs),
        }
    }

    pub(crate) const fn ratio(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Cost => self.cost,
            Figure::Time => self.time,
            Figure::LogFsyncs => self.log_fsyncs,
        }
    }

    pub(crate) fn is_within(&self, budget: Budget) -> bool {
        self.ratio(budget.figure) <= budget.at_most
    }
}

/// Events of the drain that tells how fast this machine is.
const TRIAL: u32 = 5_000;
const EVENTS_MIN: u32 = 400;
const EVENTS_MAX: u32 = 200_000;

/// Measures all points, one after the other.
pub(crate) fn measure(kit: &Kit, points: Vec<Point>, seconds: f64) -> Result<Vec<Line>> {
    let trial = drain(kit, &Scenario { events: TRIAL, ..Scenario::BASE })?;
    println!("== base: {:.0} events/s, to find out how many it needs", trial.per_second);
    let enough = trial.per_second * seconds / 0.9;
    let mut lines = Vec::new();
    let mut last: Option<(Scenario, Result<Drained, String>)> = None;
    for point in points {
        let base = Scenario { events: events(enough, 1.0), ..point.scenario.base() };
        let before = match last.take() {
            Some((scenario, drained)) if scenario == base => drained,
            Some(_) | None => told("base", try_drain(kit, &base)),
        };
        let scenario = Scenario { events: events(enough, point.weight), ..point.scenario.clone() };
        let name = format!("{} {}", point.axis.name(), point.label());
        let drained = told(&name, try_drain(kit, &scenario));
        let after = told("base", try_drain(kit, &base));
        let outcome = drained.and_then(|drained| {
            let of_base = |base: &Result<Drained, String>| base.clone().map_err(|why| format!("its base: {why}"));
            Ok(Measured::of(drained, &of_base(&before)?, &of_base(&after)?))
        });
        lines.push(Line { point, outcome });
        last = Some((base, after));
    }
    Ok(lines)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two numbers that fit")]
fn events(enough: f64, weight: f64) -> u32 {
    (enough * weight).clamp(EVENTS_MIN.into(), EVENTS_MAX.into()) as u32
}

/// The helpers of the tests panic where a server does not do as it should: that is no figure, and the others go on.
fn try_drain(kit: &Kit, scenario: &Scenario) -> Result<Drained, String> {
    match catch_unwind(AssertUnwindSafe(|| drain(kit, scenario))) {
        Ok(drained) => drained.map_err(|error| format!("{error:#}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            Err(text.lines().next().unwrap_or("a panic").to_owned())
        }
    }
}

fn told(name: &str, drained: Result<Drained, String>) -> Result<Drained, String> {
    match &drained {
        Ok(Drained { events, per_second, cost }) => println!(
            "   {name:<18} {events:>7} events {per_second:>8.0}/s {:>8.1} + {:>6.1} us {:>7.3} trips",
            cost.host_us, cost.database_us, cost.round_trips
        ),
        Err(why) => println!("   {name:<18} no figure: {why}"),
    }
    drained
}

#[cfg(test)]
mod tests {
    use oncebox_bench::cost::Cost;

    use super::*;

    #[test]
    fn a_point_is_divided_by_the_mean_of_its_bases() {
        let drained = |per_second: f64, host_us: f64, log_fsyncs: f64| Drained {
            events: 1_000,
            per_second,
            cost: Cost {
                fsyncs: 2.0 * log_fsyncs,
                log_fsyncs,
                round_trips: 0.1,
                redo_bytes: 900.0,
                commits: 0.01,
                host_us,
                database_us: 10.0,
                peak_mib: 40,
            },
        };
        let (before, after) = (drained(1_000.0, 20.0, 0.01), drained(500.0, 40.0, 0.03));
        let measured = Measured::of(drained(100.0, 50.0, 0.03), &before, &after);
        // 60 by the mean of 30 and 50; 10 ms by the mean of 1 ms and 2 ms.
        assert!((measured.cost - 1.5).abs() < 1e-9 && (measured.time - 10.0 / 1.5).abs() < 1e-9, "{measured:?}");
        assert!((measured.log_fsyncs - 1.5).abs() < 1e-9);
        assert!(measured.is_within(Budget { figure: Figure::Cost, at_most: 1.6 }));
        assert!(!measured.is_within(Budget { figure: Figure::Time, at_most: 1.6 }));
    }

    #[test]
    fn a_drain_has_as_many_events_as_its_time_allows() {
        assert_eq!(
            (events(30_000.0, 0.5), events(30_000.0, 0.001), events(1e7, 1.0)),
            (15_000, EVENTS_MIN, EVENTS_MAX)
        );
    }
}
