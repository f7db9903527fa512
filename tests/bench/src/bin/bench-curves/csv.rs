//! The figures for programs: one line for each point of all axes.

use crate::measure::Line;

const HEAD: &str = "axis,point,events,events_per_s,host_us,server_us,round_trips,fsyncs,log_fsyncs,redo_bytes,peak_mib,ratio_cost,\
                    ratio_time,budget,within\n";

/// Of a point that could not be measured all figures are empty, and `within` is `not measured`.
pub(crate) fn csv(lines: &[Line]) -> String {
    lines.iter().map(row).fold(HEAD.to_owned(), |text, row| text + &row + "\n")
}

fn row(line: &Line) -> String {
    let place = format!("{},{}", line.point.axis.name(), line.point.value);
    let budget = line.point.budget.map(|budget| format!("{}<={:.2}", budget.figure.name(), budget.at_most));
    let budget = budget.unwrap_or_default();
    let Ok(measured) = &line.outcome else { return format!("{place},,,,,,,,,,,,{budget},not measured") };
    let within = match line.point.budget {
        Some(budget) => {
            if measured.is_within(budget) {
                "yes"
            } else {
                "no"
            }
        }
        None => "",
    };
    let (drained, cost) = (measured.drained, measured.drained.cost);
    format!(
        "{place},{},{:.0},{:.1},{:.1},{:.4},{:.4},{:.4},{:.0},{},{:.3},{:.3},{budget},{within}",
        drained.events,
        drained.per_second,
        cost.host_us,
        cost.database_us,
        cost.round_trips,
        cost.fsyncs,
        cost.log_fsyncs,
        cost.redo_bytes,
        cost.peak_mib,
        measured.cost,
        measured.time,
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use oncebox_bench::cost::Cost;

    use super::*;
    use crate::{axes::Axis, drain::Drained, measure::Measured};

    /// Lines of an axis, each as costly as said.
    pub(crate) fn lines(axis: Axis, costs: &[f64]) -> Vec<Line> {
        let cost = Cost {
            fsyncs: 0.0123,
            log_fsyncs: 0.0061,
            round_trips: 0.05,
            redo_bytes: 1_000.4,
            commits: 0.004,
            host_us: 55.04,
            database_us: 66.0,
            peak_mib: 47,
        };
        let drained = Drained { events: 9_000, per_second: 1_234.4, cost };
        let measured = |cost: f64| Measured { drained, cost, time: 1.1, log_fsyncs: 1.0 };
        let points = axis.points(false).into_iter();
        points.zip(costs).map(|(point, cost)| Line { point, outcome: Ok(measured(*cost)) }).collect()
    }

    #[test]
    fn each_point_is_a_line_and_one_without_figures_says_so() {
        let mut lines = lines(Axis::Modules, &[1.0, 1.5]);
        lines.extend(super::tests::lines(Axis::Lanes, &[0.9]));
        let why = "it stands still".to_owned();
        lines.push(Line { outcome: Err(why), ..lines[1].clone() });
        let text = csv(&lines);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[1], "modules,1,9000,1234,55.0,66.0,0.0500,0.0123,0.0061,1000,47,1.000,1.100,cost<=1.40,yes");
        assert_eq!(rows[2], "modules,100,9000,1234,55.0,66.0,0.0500,0.0123,0.0061,1000,47,1.500,1.100,cost<=1.40,no");
        assert_eq!(rows[3], "lanes,1,9000,1234,55.0,66.0,0.0500,0.0123,0.0061,1000,47,0.900,1.100,,");
        assert_eq!(rows[4], "modules,100,,,,,,,,,,,,cost<=1.40,not measured");
        let columns = |row: &str| row.split(',').count();
        assert!(rows.iter().all(|row| columns(row) == 15), "{text}");
    }
}
