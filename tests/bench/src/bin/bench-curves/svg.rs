//! A curve as a picture: ratios over an axis, with the budgets. The same figures give the same bytes.

use std::fmt::Write as _;

use crate::{
    axes::{Axis, Figure, Scale},
    measure::Line,
};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 616.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 300.0;
/// Half of the mark of a budget.
const MARK: f64 = 16.0;
/// Figures further apart than this stand on a logarithmic axis.
const FAR: f64 = 12.0;

/// Readable on a light and on a dark page.
const STYLE: &str = "<style>
text { font: 12px sans-serif; fill: #333 } .title { font-size: 15px; font-weight: bold } .end { text-anchor: end }
.middle { text-anchor: middle } .grid { stroke: #ccc } .one { stroke: #888 } path { fill: none; stroke-width: 2 }
.cost { stroke: #0969da } .time { stroke: #8250df; stroke-dasharray: 6 4 } .log-fsyncs { stroke: #1a7f37 }
.budget { stroke: #cf222e; stroke-width: 3 } circle { fill: #fff; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } circle { fill: #111 }
.cost { stroke: #58a6ff } .time { stroke: #bc8cff } .log-fsyncs { stroke: #56d364 } .budget { stroke: #ff7b72 } }
</style>";

/// A straight scale from figures to the picture.
struct Ruler {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    scale: Scale,
}

impl Ruler {
    fn at(&self, value: f64) -> f64 {
        let of = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        };
        let share = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        self.from + share * (self.to - self.from)
    }
}

/// The curve of an axis.
pub(crate) fn chart(axis: Axis, lines: &[&Line]) -> String {
    let figures: &[Figure] = if axis == Axis::Tenants {
        &[Figure::Cost, Figure::Time, Figure::LogFsyncs]
    } else {
        &[Figure::Cost, Figure::Time]
    };
    let across = across(axis, lines);
    let up = up(figures, lines);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" role=\"img\">\n\
         <title>What an event costs: {}</title>\n{STYLE}\n",
        axis.about()
    );
    let mut put = |line: String| {
        text += &line;
        text.push('\n');
    };
    put(format!("<text class=\"title\" x=\"{LEFT:.0}\" y=\"24\">What an event costs, base = 1</text>"));
    legend(figures, lines, &mut put);
    grid(&up, &mut put);
    for line in lines {
        let (x, label) = (across.at(place(axis, lines, line)), line.point.label());
        put(format!("<text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>", BOTTOM + 18.0));
        if let Some(budget) = line.point.budget {
            let y = up.at(budget.at_most);
            put(format!(
                "<line class=\"budget\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
                x - MARK,
                x + MARK
            ));
        }
    }
    for figure in figures {
        curve(axis, lines, *figure, (&across, &up), &mut put);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    put(format!("<text class=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>", HEIGHT - 16.0, axis.about()));
    text + "</svg>\n"
}

fn legend(figures: &[Figure], lines: &[&Line], put: &mut impl FnMut(String)) {
    let about = |figure: &Figure| match figure {
        Figure::Cost => "processor time",
        Figure::Time => "time (1 / throughput)",
        Figure::LogFsyncs => "fsyncs of the logs",
    };
    let mut all: Vec<(&str, String)> = figures.iter().map(|figure| (figure.name(), about(figure).to_owned())).collect();
    if let Some(budget) = lines.iter().find_map(|line| line.point.budget) {
        all.push(("budget", format!("budget of {}", about(&budget.figure))));
    }
    let mut x = LEFT;
    for (class, about) in all {
        put(format!("<path class=\"{class}\" d=\"M{x:.0} 42h20\"/>"));
        put(format!("<text x=\"{:.0}\" y=\"46\">{about}</text>", x + 26.0));
        x += 150.0;
    }
}

/// A few lines across at round figures, and one at the base.
fn grid(up: &Ruler, put: &mut impl FnMut(String)) {
    let ticks: Vec<f64> = match up.scale {
        Scale::Linear => {
            let step = [0.1, 0.2, 0.5, 1.0].into_iter().find(|step| up.high / step <= 7.0).unwrap_or(2.0);
            (0..=7).map(|n| step * f64::from(n)).filter(|tick| *tick <= up.high).collect()
        }
        Scale::Logarithmic => {
            let all = (-3..6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
            all.filter(|tick| (up.low..=up.high).contains(tick)).collect()
        }
    };
    for tick in ticks {
        let y = up.at(tick);
        put(format!("<path class=\"grid\" d=\"M{LEFT:.0} {y:.1}H{RIGHT:.0}\" style=\"stroke-width: 1\"/>"));
        let digits = if tick >= 10.0 { 0 } else { usize::from(tick > 0.0 && tick < 0.1) + 1 };
        let label = format!("{tick:.digits$}");
        put(format!("<text class=\"end\" x=\"{:.0}\" y=\"{:.1}\">{label}</text>", LEFT - 6.0, y + 4.0));
    }
    let y = up.at(1.0);
    put(format!("<path class=\"one\" d=\"M{LEFT:.0} {y:.1}H{RIGHT:.0}\" style=\"stroke-width: 1\"/>"));
}

/// Points that were not measured leave a gap.
fn curve(axis: Axis, lines: &[&Line], figure: Figure, rulers: (&Ruler, &Ruler), put: &mut impl FnMut(String)) {
    let (class, mut path, mut dots, mut pen) = (figure.name(), String::new(), Vec::new(), 'M');
    for line in lines {
        let Ok(measured) = &line.outcome else {
            pen = 'M';
            continue;
        };
        let (x, y) = (rulers.0.at(place(axis, lines, line)), rulers.1.at(measured.ratio(figure)));
        // A String takes everything.
        let _ = write!(path, "{pen}{x:.1} {y:.1}");
        dots.push((x, y, measured.ratio(figure)));
        pen = 'L';
    }
    put(format!("<path class=\"{class}\" d=\"{path}\"/>"));
    for (x, y, ratio) in dots {
        put(format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" style=\"stroke-dasharray: none\"><title>{}: \
             {ratio:.2}</title></circle>",
            figure.name()
        ));
    }
}

/// Nothing has no logarithm: it stands a tenth before the smallest.
fn place(axis: Axis, lines: &[&Line], line: &Line) -> f64 {
    let value = line.point.value;
    if value > 0 || axis.scale() == Scale::Linear {
        return f64::from(value);
    }
    lines
        .iter()
        .map(|line| line.point.value)
        .filter(|value| *value > 0)
        .min()
        .map_or(1.0, |least| f64::from(least) / 10.0)
}

fn across(axis: Axis, lines: &[&Line]) -> Ruler {
    let places = || lines.iter().map(|line| place(axis, lines, line));
    let (low, high) = (places().fold(f64::INFINITY, f64::min), places().fold(0.0, f64::max));
    // A single point stands in the middle.
    let (low, high) = match axis.scale() {
        _ if low < high => (low, high),
        Scale::Linear => (low - 1.0, high + 1.0),
        Scale::Logarithmic => (low / 10.0, high * 10.0),
    };
    Ruler { low, high, from: LEFT + 30.0, to: RIGHT - 30.0, scale: axis.scale() }
}

fn up(figures: &[Figure], lines: &[&Line]) -> Ruler {
    let measured = lines.iter().filter_map(|line| line.outcome.as_ref().ok());
    let ratios = measured.flat_map(|measured| figures.iter().map(|figure| measured.ratio(*figure)));
    let budgets = lines.iter().filter_map(|line| line.point.budget).map(|budget| budget.at_most);
    let all: Vec<f64> = ratios.chain(budgets).chain([1.0]).collect();
    let (low, high) = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max));
    let (low, high, scale) =
        if high > FAR { (low / 1.2, high * 1.2, Scale::Logarithmic) } else { (0.0, high * 1.2, Scale::Linear) };
    Ruler { low, high, from: BOTTOM, to: TOP, scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::tests::lines;

    #[test]
    fn a_chart_has_its_points_its_budgets_and_always_the_same_bytes() {
        let all = lines(Axis::Modules, &[1.0, 1.2, 1.5]);
        let own: Vec<&Line> = all.iter().collect();
        let text = chart(Axis::Modules, &own);
        assert_eq!(text, chart(Axis::Modules, &own));
        // From 86 to 586 for 1 to 1,000 handlers: 100 stand at two thirds; 1.8 is the top, so that 1.2 is a third below it.
        assert!(text.contains("<path class=\"cost\" d=\"M86.0 168.9L419.3 142.7L586.0 103.3\"/>"), "{text}");
        assert_eq!(text.matches("<line class=\"budget\"").count(), 3);
        assert_eq!(text.matches("<circle").count(), 6);
        assert!(text.contains(">1000</text>") && text.contains("prefers-color-scheme: dark"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_a_gap() {
        let mut all = lines(Axis::Duplicates, &[1.0, 0.9, 0.6, 0.4, 0.2]);
        all[2].outcome = Err("it stands still".to_owned());
        let text = chart(Axis::Duplicates, &all.iter().collect::<Vec<_>>());
        let cost = text.lines().find(|line| line.starts_with("<path class=\"cost\" d=\"M86")).unwrap();
        assert_eq!((cost.matches('M').count(), cost.matches('L').count()), (2, 2), "{cost}");
    }

    #[test]
    fn figures_far_apart_stand_on_a_logarithmic_axis() {
        let near = lines(Axis::Payload, &[0.9, 1.0, 1.0, 1.1, 1.5, 2.0, 3.0, 8.0]);
        let far = lines(Axis::Payload, &[0.9, 1.0, 1.0, 1.1, 1.5, 4.0, 20.0, 90.0]);
        let scale = |lines: &[Line]| up(&[Figure::Cost], &lines.iter().collect::<Vec<_>>()).scale;
        assert_eq!((scale(&near), scale(&far)), (Scale::Linear, Scale::Logarithmic));
    }

    #[test]
    fn no_rows_stand_a_tenth_before_the_least() {
        let all = lines(Axis::Inbox, &[1.0, 1.0, 1.1, 1.2]);
        let own: Vec<&Line> = all.iter().collect();
        assert!((place(Axis::Inbox, &own, own[0]) - 10_000.0).abs() < 1e-9);
    }
}
