//! How long a source waits before it tries its broker again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// The wait before try number `tries` (from 0): 100 ms, doubled each time up to 10 s, of which `jitter` (uniform in
/// `0.0..1.0`) takes away up to half, so that the hosts of a fleet do not come back all at once.
#[must_use]
pub fn reconnect_delay(tries: u32, jitter: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1u32.checked_shl(tries.min(16)).unwrap_or(u32::MAX)).min(LONGEST);
    doubled.mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_longest_and_jitter_halves_it_at_most() {
        let millis = |tries, jitter| reconnect_delay(tries, jitter).as_millis();
        assert_eq!(
            [0, 1, 2, 6, 7, 8, 40, u32::MAX].map(|tries| millis(tries, 0.0)),
            [100, 200, 400, 6_400, 10_000, 10_000, 10_000, 10_000]
        );
        assert_eq!([0.0, 0.5, 1.0].map(|jitter| millis(3, jitter)), [800, 600, 400]);
    }
}
