//! Faults that a test plants, to see that the tests' checkers find them. They are there with the feature
//! `planted-faults` alone: without it [`is`] is always false.
//!
//! A process plants the one that `ONCEBOX_PLANTED_FAULT` names; a test in this process plants one for a future
//! (`scope`). Each is asked for at one line, the one that prevents it.

macro_rules! faults {
    ($($(#[$about:meta])+ $fault:ident $name:literal)*) => {
        /// A mistake that the host does not make.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$about])+ $fault,)*
        }

        #[cfg(feature = "planted-faults")]
        impl Fault {
            /// All faults.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// The name in `ONCEBOX_PLANTED_FAULT`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    /// The broker hears "done" before the unit of work has begun.
    AckBeforeCommit "ack_before_commit"
    /// After a wait that was too long the unit goes on with the half of the event that stands.
    NoRollbackOn1205 "no_rollback_on_1205"
    /// Whatever the look-up has not seen is taken for first.
    SelectThenInsert "select_then_insert"
    /// A batch that is done again has the token of the first time.
    TokenReusedAfterLostCommit "token_reused_after_lost_commit"
    /// The savepoint undoes the marks of an event, and they are not written again.
    MarksLostBySecondFailure "marks_lost_by_second_failure"
    /// "Done up to here" reaches over a gap.
    AckMultipleOvershoot "ack_multiple_overshoot"
    /// A conflict is concluded from what the look-up saw.
    ConflictFromSnapshot "conflict_from_snapshot"
    /// A claim is decided whoever has it now.
    UnfencedClaim "unfenced_claim"
    /// The inbox is written with INSERT IGNORE.
    InsertIgnore "insert_ignore"
    /// Whether a lease is over is told by the host's clock.
    HostClockLease "host_clock_lease"
}

/// Whether the fault is planted: it is not.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
#[must_use]
pub const fn is(_: Fault) -> bool {
    false
}

/// By how much the host's clock is wrong: it is not.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) const fn clock_ahead_us() -> i64 {
    0
}

/// Nothing that could be wrong.
///
/// # Errors
/// None.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) fn check() -> Result<(), String> {
    Ok(())
}

#[cfg(feature = "planted-faults")]
pub(crate) use self::chosen::{check, clock_ahead_us};
#[cfg(feature = "planted-faults")]
pub use self::chosen::{is, scope, with_clock_ahead};

#[cfg(feature = "planted-faults")]
mod chosen {
    use std::{sync::OnceLock, time::Duration};

    use super::Fault;

    /// The variable of the environment that chooses.
    const VARIABLE: &str = "ONCEBOX_PLANTED_FAULT";

    tokio::task_local! {
        static PLANTED: Option<Fault>;
        static CLOCK_AHEAD: Duration;
    }

    /// Whether the fault is planted, for this task or else for this process.
    #[must_use]
    pub fn is(fault: Fault) -> bool {
        let own = PLANTED.try_with(|own| *own);
        own.unwrap_or_else(|_| chosen().as_ref().ok().copied().flatten()) == Some(fault)
    }

    /// Runs a future with a fault, or with none whatever the environment says. What it spawns is another task.
    pub async fn scope<F: Future>(fault: Option<Fault>, future: F) -> F::Output {
        PLANTED.scope(fault, future).await
    }

    /// Runs a future on a host whose wall clock is ahead.
    pub async fn with_clock_ahead<F: Future>(ahead: Duration, future: F) -> F::Output {
        CLOCK_AHEAD.scope(ahead, future).await
    }

    /// By how much the host's clock is wrong, in microseconds.
    pub(crate) fn clock_ahead_us() -> i64 {
        CLOCK_AHEAD.try_with(|ahead| i64::try_from(ahead.as_micros()).unwrap_or(0)).unwrap_or(0)
    }

    /// Whether the choice can be read.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check() -> Result<(), String> {
        chosen().as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn chosen() -> &'static Result<Option<Fault>, String> {
        static CHOSEN: OnceLock<Result<Option<Fault>, String>> = OnceLock::new();
        CHOSEN.get_or_init(|| std::env::var(VARIABLE).map_or(Ok(None), |name| read(&name)))
    }

    fn read(name: &str) -> Result<Option<Fault>, String> {
        let found = Fault::ALL.iter().copied().find(|fault| fault.name() == name);
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
            format!("{VARIABLE}: `{name}` is no fault; there are {}", names.join(", "))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fault_is_read_by_its_name_or_refused() {
            assert_eq!(read("insert_ignore"), Ok(Some(Fault::InsertIgnore)));
            assert!(read("insert").unwrap_err().contains("is no fault; there are ack_before_commit,"));
        }

        #[tokio::test]
        async fn a_fault_is_planted_for_its_future_alone() {
            let here = || (is(Fault::InsertIgnore), is(Fault::UnfencedClaim), clock_ahead_us());
            let inside = with_clock_ahead(Duration::from_secs(1), async { here() });
            assert_eq!(scope(Some(Fault::InsertIgnore), inside).await, (true, false, 1_000_000));
            assert_eq!(scope(None, async { here() }).await, (false, false, 0));
        }
    }
}
