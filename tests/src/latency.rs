//! How long events took from their publishing to their decision.

use std::collections::BTreeMap;

use crate::pace::Published;

/// Throughput and times from publish to decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Events a second, from the first publishing to the last decision.
    pub per_second: f64,
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// What one of a hundred took longer than.
    pub p99_ms: f64,
    /// Events that were not applied by the end of the measurement; they count as applied then.
    pub left: usize,
}

impl Latency {
    /// From what was published, and lines `order:NUMBER:paid TIME` of decisions; times are microseconds since 1970, of one
    /// machine's clock, and so is the end of the measurement.
    #[must_use]
    pub fn of(published: &[Published], decided: &[String], end_us: i64) -> Self {
        let decided: BTreeMap<&str, i64> = decided
            .iter()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(key, at)| Some((key.split(':').nth(1)?, at.parse().ok()?)))
            .collect();
        let mut took_us: Vec<i64> = Vec::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for Published { order, at_us, .. } in published {
            let done = decided.get(order.to_string().as_str()).copied().unwrap_or(end_us);
            took_us.push(done - at_us);
            (first, last) = (first.min(*at_us), last.max(done));
        }
        took_us.sort_unstable();
        let number = |us: i64| f64::from(i32::try_from(us / 100).unwrap_or(i32::MAX)) / 10.0;
        let percentile = |hundredths: usize| {
            let at = (took_us.len() * hundredths).div_ceil(100).saturating_sub(1);
            took_us.get(at).map_or(f64::NAN, |us| number(*us))
        };
        let count = f64::from(u32::try_from(took_us.len()).unwrap_or(u32::MAX));
        Self {
            per_second: count / (number(last.saturating_sub(first)) / 1_000.0),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            left: published.len().saturating_sub(decided.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(order: u32, at_us: i64) -> Published {
        Published { kind: 0, order, at_us }
    }

    #[test]
    fn percentiles_and_throughput_are_of_what_was_decided() {
        // Published every 10 ms, decided 1 to 100 ms later.
        let events: Vec<Published> = (1..=100).map(|n| published(n, i64::from(n) * 10_000)).collect();
        let decided: Vec<String> = events
            .iter()
            .map(|event| format!("order:{}:paid {}", event.order, event.at_us + i64::from(event.order) * 1_000))
            .collect();
        let Latency { per_second, p50_ms, p99_ms, left } = Latency::of(&events, &decided, 0);
        assert_eq!(left, 0);
        assert!((p50_ms - 50.0).abs() < 0.01 && (p99_ms - 99.0).abs() < 0.01, "{p50_ms} {p99_ms}");
        // From 10 ms to 1,100 ms.
        assert!((per_second - 100.0 / 1.09).abs() < 0.01, "{per_second}");
    }

    #[test]
    fn what_is_not_decided_counts_as_decided_at_the_end() {
        let events = [published(1, 0), published(2, 0)];
        let latency = Latency::of(&events, &["order:1:paid 1000".to_owned()], 2_000_000);
        assert_eq!((latency.left, latency.p99_ms, latency.per_second), (1, 2_000.0, 1.0));
    }
}
