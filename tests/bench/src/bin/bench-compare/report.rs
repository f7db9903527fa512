//! The table for people and the figures for programs.

use std::{collections::BTreeMap, fmt};

use anyhow::Result;
use oncebox_bench::{
    cost::Cost,
    statistics::{Ratio, median, ratio},
};
use oncebox_tests::latency::Latency;
use serde_json::{Map, Value, json};

use crate::{
    contestant::{Contestant, Role},
    drain::Drained,
    latency,
};

/// What became of one drain.
#[derive(Debug, Clone)]
pub(crate) enum Run {
    /// Its tables were right.
    Checked(Drained),
    /// There is no figure, for this reason.
    Failed(String),
}

impl Run {
    fn drained(&self) -> Option<&Drained> {
        match self {
            Self::Checked(drained) => Some(drained),
            Self::Failed(_) => None,
        }
    }
}

struct Line {
    role: Role,
    name: String,
    per_second: Option<f64>,
    cost: Option<Cost>,
    ratio: Option<Ratio>,
    is_checked: bool,
    failure: Option<String>,
}

/// All figures of a comparison.
pub(crate) struct Report {
    lines: Vec<Line>,
    ceiling: Option<(f64, Ratio)>,
    handler_us: f64,
    /// At a low rate, of those who have a figure.
    latencies: Vec<(Role, Waited)>,
}

impl Report {
    /// From the drains of all blocks, and the times at a low rate.
    pub(crate) fn of(
        contestants: &[Contestant],
        runs: &BTreeMap<Role, Vec<Run>>,
        handler_us: f64,
        latencies: &BTreeMap<Role, Vec<Latency>>,
    ) -> Self {
        let of = |role: Role| runs.get(&role).map_or(&[][..], Vec::as_slice);
        let rates = |role: Role| of(role).iter().map(|run| run.drained().map(|drained| drained.per_second));
        let pairs = |theirs: &mut dyn Iterator<Item = Option<f64>>| -> Vec<(f64, f64)> {
            rates(Role::Ours).zip(theirs).filter_map(|(ours, theirs)| Some((ours?, theirs?))).collect()
        };
        let line = |contestant: &Contestant| {
            let role = contestant.role;
            let known: Vec<f64> = rates(role).flatten().collect();
            let costs: Vec<Cost> = of(role).iter().filter_map(|run| run.drained()?.cost).collect();
            let failure = of(role).iter().find_map(|run| match run {
                Run::Failed(why) => Some(why.clone()),
                Run::Checked(_) => None,
            });
            Line {
                role,
                name: contestant.name(),
                per_second: median(&known),
                cost: middle(&costs),
                ratio: role.is_rival().then(|| ratio(&pairs(&mut rates(role)))).flatten(),
                is_checked: failure.is_none() && !known.is_empty(),
                failure,
            }
        };
        // In each block: whoever did nothing but the three parts, one after the other on the same processors.
        let mut ceilings = rates(Role::FloorDatabase).zip(rates(Role::FloorBroker)).map(|(database, broker)| {
            let (database, broker) = (database?, broker?);
            Some(1.0 / (1.0 / database + 1.0 / broker + handler_us / 1e6))
        });
        let all: Vec<Option<f64>> = ceilings.by_ref().collect();
        let known: Vec<f64> = all.iter().copied().flatten().collect();
        let ceiling = median(&known).zip(ratio(&pairs(&mut all.into_iter())));
        let latencies = latencies.iter().filter_map(|(role, rounds)| Some((*role, Waited::of(rounds)?))).collect();
        Self { lines: contestants.iter().map(line).collect(), ceiling, handler_us, latencies }
    }

    /// The figures, as `docs/performance.md` names them.
    pub(crate) fn json(&self) -> Result<String> {
        let mut ratios = Map::new();
        let mut insert = |key: &str, ratio: Ratio| {
            let interval = ratio.interval.map(|(low, high)| json!([low, high]));
            ratios.insert(key.to_owned(), json!(ratio.median));
            ratios.insert(format!("{key}_interval"), json!(interval));
        };
        for line in &self.lines {
            if let Some(ratio) = line.ratio {
                insert(line.role.key(), ratio);
            }
        }
        if let Some((_, ratio)) = self.ceiling {
            insert("ceiling", ratio);
        }
        let of = |line: &Line| {
            let cost = line.cost;
            json!({
                "events_per_s": line.per_second,
                "fsyncs_per_event": cost.map(|cost| cost.fsyncs),
                "round_trips_per_event": cost.map(|cost| cost.round_trips),
                "redo_bytes_per_event": cost.map(|cost| cost.redo_bytes),
                "commits_per_event": cost.map(|cost| cost.commits),
                "cpu_us_per_event": cost.map(|cost| cost.host_us),
                "database_cpu_us_per_event": cost.map(|cost| cost.database_us),
                "rss_mib": cost.map(|cost| cost.peak_mib),
                "name": line.name,
            })
        };
        let ours = self.lines.iter().find(|line| line.role == Role::Ours).map(of);
        let others: Map<String, Value> = self
            .lines
            .iter()
            .filter(|line| line.role != Role::Ours)
            .map(|line| (line.role.key().to_owned(), of(line)))
            .collect();
        let checked: Map<String, Value> =
            self.lines.iter().map(|line| (line.role.key().to_owned(), json!(line.is_checked))).collect();
        let figures = json!({
            "ratios": ratios,
            "ours": ours,
            "others": others,
            "ceiling_events_per_s": self.ceiling.map(|(rate, _)| rate),
            "handler_us": self.handler_us,
            "latency": self.latencies.iter().map(|(role, Waited { p50_ms, p99_ms, p99_of_rounds_ms })| {
                let waited = json!({ "p50_ms": p50_ms, "p99_ms": p99_ms, "p99_of_rounds_ms": p99_of_rounds_ms });
                (role.key().to_owned(), waited)
            }).collect::<Map<String, Value>>(),
            "checked": checked,
        });
        Ok(serde_json::to_string_pretty(&figures)? + "\n")
    }
}

/// From publishing to decision: medians over the rounds.
#[derive(Debug, Clone, PartialEq)]
struct Waited {
    p50_ms: f64,
    p99_ms: f64,
    p99_of_rounds_ms: Vec<f64>,
}

impl Waited {
    /// `None`: there was no round.
    fn of(rounds: &[Latency]) -> Option<Self> {
        let of = |part: fn(&Latency) -> f64| rounds.iter().map(part).collect::<Vec<_>>();
        let p99_of_rounds_ms = of(|latency| latency.p99_ms);
        Some(Self {
            p50_ms: median(&of(|latency| latency.p50_ms))?,
            p99_ms: median(&p99_of_rounds_ms)?,
            p99_of_rounds_ms,
        })
    }
}

/// The medians of each cost.
fn middle(costs: &[Cost]) -> Option<Cost> {
    let of = |part: fn(&Cost) -> f64| median(&costs.iter().map(part).collect::<Vec<_>>());
    Some(Cost {
        fsyncs: of(|cost| cost.fsyncs)?,
        log_fsyncs: of(|cost| cost.log_fsyncs)?,
        round_trips: of(|cost| cost.round_trips)?,
        redo_bytes: of(|cost| cost.redo_bytes)?,
        commits: of(|cost| cost.commits)?,
        host_us: of(|cost| cost.host_us)?,
        database_us: of(|cost| cost.database_us)?,
        peak_mib: costs.iter().map(|cost| cost.peak_mib).max()?,
    })
}

fn told(ratio: Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => format!("{:.2} ({low:.2} to {high:.2})", ratio.median),
        None => format!("{:.2}", ratio.median),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "per event: fsyncs, round trips, commits, redo bytes, microseconds of processor time; peak memory\n"
        )?;
        writeln!(
            f,
            "{:<36} {:>9} {:>22} {:>7} {:>7} {:>8} {:>7} {:>7} {:>7} {:>6}",
            "", "events/s", "ours / theirs", "fsyncs", "trips", "commits", "redo", "host", "server", "MiB"
        )?;
        for line in &self.lines {
            let rate = line.per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
            write!(f, "{:<36} {rate:>9} {:>22}", line.name, line.ratio.map(told).unwrap_or_default())?;
            if let Some(cost) = line.cost {
                write!(f, " {:>7.4} {:>7.3} {:>8.4}", cost.fsyncs, cost.round_trips, cost.commits)?;
                write!(
                    f,
                    " {:>7.0} {:>7.1} {:>7.1} {:>6.0}",
                    cost.redo_bytes, cost.host_us, cost.database_us, cost.peak_mib
                )?;
            }
            writeln!(f)?;
            if let Some(why) = &line.failure {
                writeln!(f, "   not counted: {why}")?;
            }
        }
        if let Some((rate, ratio)) = self.ceiling {
            writeln!(f, "{:<36} {rate:>9.0} {:>22}", "the ceiling of the three floors", told(ratio))?;
        }
        writeln!(f, "an attempt of the handler in a fresh instance: {:.1} microseconds", self.handler_us)?;
        if !self.latencies.is_empty() {
            writeln!(
                f,
                "\nat {:.0} events/s, from publishing to decision, ms, and p99 of each round:\n",
                latency::RATE
            )?;
        }
        for (role, Waited { p50_ms, p99_ms, p99_of_rounds_ms }) in &self.latencies {
            let rounds: Vec<String> = p99_of_rounds_ms.iter().map(|ms| format!("{ms:.1}")).collect();
            writeln!(f, "{:<36} p50 {p50_ms:>7.1} p99 {p99_ms:>7.1}   {}", role.about(), rounds.join(" "))?;
        }
        Ok(())
    }
}
