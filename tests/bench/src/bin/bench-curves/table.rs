//! The figures for people.

use std::fmt::Write as _;

use crate::measure::Line;

pub(crate) fn table(lines: &[Line]) -> String {
    let mut text = String::from(
        "per event: microseconds of processor time of host and server, statements, fsyncs, those of the logs, redo log's bytes;\n\
         cost (processor time), time (1 / throughput) and fsyncs of the logs in relation to the base next to it\n\n",
    );
    // A String takes everything.
    let _ = writeln!(
        text,
        "{:<10} {:>8} {:>8} {:>7} {:>7} {:>7} {:>8} {:>8} {:>8} {:>5} {:>7} {:>7} {:>7}  budget",
        "axis",
        "point",
        "events/s",
        "host",
        "server",
        "trips",
        "fsyncs",
        "of logs",
        "redo",
        "MiB",
        "cost",
        "time",
        "of logs"
    );
    for line in lines {
        let _ = writeln!(text, "{}", row(line).trim_end());
    }
    text
}

fn row(line: &Line) -> String {
    let place = format!("{:<10} {:>8}", line.point.axis.name(), line.point.label());
    let measured = match &line.outcome {
        Ok(measured) => measured,
        Err(why) => return format!("{place} not measured: {why}"),
    };
    let budget = line.point.budget.map_or_else(String::new, |budget| {
        let is_kept = if measured.is_within(budget) { "kept" } else { "EXCEEDED" };
        format!("{} at most {:.2}: {is_kept}", budget.figure.name(), budget.at_most)
    });
    let (per_second, cost) = (measured.drained.per_second, measured.drained.cost);
    format!(
        "{place} {per_second:>8.0} {:>7.1} {:>7.1} {:>7.3} {:>8.4} {:>8.4} {:>8.0} {:>5} {:>7.2} {:>7.2} {:>7.2}  {budget}",
        cost.host_us,
        cost.database_us,
        cost.round_trips,
        cost.fsyncs,
        cost.log_fsyncs,
        cost.redo_bytes,
        cost.peak_mib,
        measured.cost,
        measured.time,
        measured.log_fsyncs,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{axes::Axis, csv::tests::lines};

    #[test]
    fn a_budget_is_kept_or_exceeded_or_there_is_none() {
        let mut all = lines(Axis::Modules, &[1.0, 1.5]);
        all.extend(lines(Axis::Hot, &[3.0]));
        let text = table(&all);
        let ends: Vec<&str> = text.lines().skip(4).map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(ends[..2], ["cost at most 1.40: kept", "cost at most 1.40: EXCEEDED"]);
        assert!(text.ends_with("3.00    1.10    1.00\n"), "{text}");
    }
}
