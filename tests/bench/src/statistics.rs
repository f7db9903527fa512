//! Ratios of rates that were measured in turns, and how sure they are.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// A ratio with the interval that holds it with 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The median over the blocks.
    pub median: f64,
    /// The interval; none of a single block.
    pub interval: Option<(f64, f64)>,
}

/// Samples of the bootstrap.
const SAMPLES: usize = 2_000;

/// Of pairs, one a block. `None`: there is none.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let logs: Vec<f64> = pairs.iter().map(|(ours, theirs)| (ours / theirs).ln()).collect();
    let middle = median(&logs)?.exp();
    if logs.len() == 1 {
        return Some(Ratio { median: middle, interval: None });
    }
    // The same figures give the same interval.
    let mut random = StdRng::seed_from_u64(1);
    let mut medians: Vec<f64> = (0..SAMPLES)
        .filter_map(|_| {
            let sample: Vec<f64> = logs.iter().map(|_| logs[random.random_range(0..logs.len())]).collect();
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: usize| medians[(medians.len() - 1) * share / 1_000].exp();
    Some(Ratio { median: middle, interval: Some((at(25), at(975))) })
}

/// The middle one, or the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ratio_is_within_its_interval() {
        let pairs = [(10.0, 2.0), (12.0, 2.0), (9.0, 2.0), (40.0, 2.0), (11.0, 2.0)];
        let Ratio { median, interval } = ratio(&pairs).unwrap();
        let (low, high) = interval.unwrap();
        assert!((median - 5.5).abs() < 1e-9, "{median}");
        assert!((4.4..=5.5).contains(&low) && (5.5..=20.1).contains(&high), "{low} {high}");
        assert_eq!(ratio(&pairs), ratio(&pairs));
    }

    #[test]
    fn one_block_has_no_interval_and_none_no_ratio() {
        let one = ratio(&[(3.0, 2.0)]).unwrap();
        assert!((one.median - 1.5).abs() < 1e-12 && one.interval.is_none());
        assert_eq!(ratio(&[]), None);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
