//! From a failure and what was counted before it to park or dead, and from attempt to delay.

use std::time::Duration;

use crate::failure::{Answer, Class, Failure};

/// A handler's retry policy, all defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Counted attempts before dead.
    pub attempts_max: u32,
    /// First delay.
    pub first: Duration,
    /// Growth from one delay to the next.
    pub factor: f64,
    /// Longest delay.
    pub delay_max: Duration,
    /// From the first receipt on; an attempt that could only come later is not waited for.
    pub deadline: Duration,
    /// Counted attempts of traps, limits and 1062 before dead.
    pub short_attempts_max: u32,
    /// Ends of the host's process, with nothing but the event running, before dead.
    pub deaths_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 12,
            first: Duration::from_secs(1),
            factor: 3.0,
            delay_max: Duration::from_hours(1),
            deadline: Duration::from_hours(24),
            short_attempts_max: 3,
            deaths_max: 2,
        }
    }
}

/// What was counted of an event before the attempt that failed just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Counted attempts.
    pub attempts: u32,
    /// Of these: traps, limits and 1062.
    pub attempts_short: u32,
}

/// What is done with a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The event stays undecided and is tried again; nothing is counted.
    Again,
    /// Parked, due after `delay`, with these counters.
    Park {
        /// From now.
        delay: Duration,
        /// Counters to keep.
        counted: Counted,
    },
    /// Dead, with these counters.
    Die {
        /// Counters to keep.
        counted: Counted,
    },
}

/// The wait before an event of a blocked handler is tried again: somebody has to mend something first.
pub const BLOCKED_DELAY: Duration = Duration::from_secs(5);

/// The wait before an event that was put aside without a run (a backlog) is looked at again.
pub const UNRUN_DELAY: Duration = Duration::from_secs(1);

/// Decides a failed attempt. `age` is the time since the event's first receipt; `jitter` is uniform in `0.0..1.0`.
#[must_use]
pub fn decide(failure: &Failure, before: Counted, age: Duration, policy: &RetryPolicy, jitter: f64) -> Decision {
    let (short, max) = match failure.class.answer() {
        Answer::AgainUncounted => return Decision::Again,
        Answer::ParkUncounted => {
            let delay = if failure.class == Class::Blocked { BLOCKED_DELAY } else { UNRUN_DELAY };
            return Decision::Park { delay, counted: before };
        }
        Answer::Dead => return Decision::Die { counted: count(before, Kind::Long) },
        Answer::ParkCounted => (Kind::Long, policy.attempts_max),
        Answer::ParkShort => (Kind::Short, policy.short_attempts_max),
    };
    let counted = count(before, short);
    let used = match short {
        Kind::Long => counted.attempts,
        Kind::Short => counted.attempts_short,
    };
    let wait = delay(counted.attempts, failure.after, policy, jitter);
    if used >= max || counted.attempts >= policy.attempts_max || age.saturating_add(wait) > policy.deadline {
        Decision::Die { counted }
    } else {
        Decision::Park { delay: wait, counted }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Long,
    Short,
}

fn count(before: Counted, kind: Kind) -> Counted {
    Counted {
        attempts: before.attempts.saturating_add(1),
        attempts_short: match kind {
            Kind::Long => before.attempts_short,
            Kind::Short => before.attempts_short.saturating_add(1),
        },
    }
}

/// The delay after counted attempt number `attempt` (from 1): exponential, capped, with full jitter; a plugin's own
/// wish is clamped to the cap and not jittered.
#[must_use]
pub fn delay(attempt: u32, wish: Option<Duration>, policy: &RetryPolicy, jitter: f64) -> Duration {
    if let Some(wish) = wish {
        return wish.min(policy.delay_max);
    }
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = policy.first.as_secs_f64() * policy.factor.max(1.0).powi(exponent);
    let capped = grown.min(policy.delay_max.as_secs_f64());
    Duration::try_from_secs_f64(capped * jitter.clamp(0.0, 1.0)).unwrap_or(policy.delay_max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failed(class: Class) -> Failure {
        Failure::new(class, "code", "message")
    }

    fn at(attempts: u32, attempts_short: u32) -> Counted {
        Counted { attempts, attempts_short }
    }

    #[test]
    fn an_infrastructure_fault_never_costs_an_attempt_and_never_makes_a_dead_letter() {
        let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
        let decision = decide(&failed(Class::Infrastructure), at(99, 99), Duration::MAX, &policy, 0.5);
        assert_eq!(decision, Decision::Again);
        let blocked = decide(&failed(Class::Blocked), at(99, 99), Duration::MAX, &policy, 0.5);
        assert_eq!(blocked, Decision::Park { delay: BLOCKED_DELAY, counted: at(99, 99) });
        let unrun = decide(&failed(Class::Unrun), at(99, 99), Duration::MAX, &policy, 0.5);
        assert_eq!(unrun, Decision::Park { delay: UNRUN_DELAY, counted: at(99, 99) });
    }

    #[test]
    fn a_retry_is_dead_at_its_twelfth_attempt_and_a_trap_at_its_third() {
        let policy = RetryPolicy::default();
        let alive = decide(&failed(Class::GuestRetry), at(10, 0), Duration::ZERO, &policy, 0.0);
        assert_eq!(alive, Decision::Park { delay: Duration::ZERO, counted: at(11, 0) });
        let dead = decide(&failed(Class::GuestRetry), at(11, 0), Duration::ZERO, &policy, 0.0);
        assert_eq!(dead, Decision::Die { counted: at(12, 0) });
        let second = decide(&failed(Class::Trap), at(5, 1), Duration::ZERO, &policy, 0.0);
        assert_eq!(second, Decision::Park { delay: Duration::ZERO, counted: at(6, 2) });
        let third = decide(&failed(Class::Trap), at(6, 2), Duration::ZERO, &policy, 0.0);
        assert_eq!(third, Decision::Die { counted: at(7, 3) });
    }

    #[test]
    fn an_attempt_past_the_deadline_is_not_waited_for() {
        let policy = RetryPolicy { deadline: Duration::from_secs(10), ..RetryPolicy::default() };
        let wish = Failure { after: Some(Duration::from_secs(4)), ..failed(Class::GuestRetry) };
        let inside = decide(&wish, at(0, 0), Duration::from_secs(6), &policy, 0.0);
        assert_eq!(inside, Decision::Park { delay: Duration::from_secs(4), counted: at(1, 0) });
        let outside = decide(&wish, at(0, 0), Duration::from_secs(7), &policy, 0.0);
        assert_eq!(outside, Decision::Die { counted: at(1, 0) });
    }

    #[test]
    fn delays_grow_by_the_factor_up_to_the_cap_and_a_wish_is_clamped() {
        let policy = RetryPolicy::default();
        let full: Vec<u64> = (1..=9).map(|n| delay(n, None, &policy, 1.0).as_secs()).collect();
        assert_eq!(full, [1, 3, 9, 27, 81, 243, 729, 2187, 3600]);
        assert_eq!(delay(3, None, &policy, 0.5), Duration::from_millis(4500));
        assert_eq!(delay(1, Some(Duration::from_hours(2)), &policy, 0.0), Duration::from_hours(1));
        assert_eq!(delay(u32::MAX, None, &policy, 1.0), Duration::from_hours(1));
    }

    proptest! {
        #[test]
        fn whatever_fails_counts_at_most_one_attempt_and_waits_at_most_the_cap(
            number in 0u8..19, attempts in 0u32..40, short in 0u32..10, age in 0u64..200_000, jitter in 0.0f64..1.0,
        ) {
            let policy = RetryPolicy::default();
            let class = Class::from_number(number).unwrap();
            match decide(&failed(class), at(attempts, short), Duration::from_secs(age), &policy, jitter) {
                Decision::Again => prop_assert_eq!(class, Class::Infrastructure),
                Decision::Park { delay, counted } => {
                    prop_assert!(delay <= policy.delay_max);
                    prop_assert!(counted.attempts <= attempts + 1);
                }
                Decision::Die { counted } => prop_assert_eq!(counted.attempts, attempts + 1),
            }
        }
    }
}
