//! Places on a delivery's way at which a test lets the process die, hang or dawdle. They are there with the feature
//! `failpoints` alone: without it [`reach`] is nothing, and no name of a place is in the binary.
//!
//! `ONCEBOX_FAILPOINTS="after-commit=kill,claim-taken@3=stop"`: a place, from which time it is reached on (1 unless
//! said), and what happens then, once: `kill` (as `kill -9`: nothing is flushed, no destructor runs), `stop` (all
//! threads hang until SIGCONT) or `sleep:MS` (this thread alone).

macro_rules! places {
    ($($(#[$about:meta])+ $place:ident $name:literal)*) => {
        /// A place that the host passes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Place {
            $($(#[$about])+ $place,)*
        }

        #[cfg(feature = "failpoints")]
        impl Place {
            /// All places, in the order of a delivery's way.
            pub const ALL: &[Self] = &[$(Self::$place),*];

            /// The name in `ONCEBOX_FAILPOINTS`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$place => $name,)*
                }
            }
        }
    };
}

places! {
    /// A source has handed messages over; nothing is known of them yet.
    AfterTake "after-take"
    /// They are deliveries with keys, and not in a lane yet.
    AfterIdentify "after-identify"
    /// A batch was looked up.
    AfterLookUp "after-look-up"
    /// Its events have run.
    AfterRun "after-run"
    /// The unit of work holds its inbox rows; nothing else is written.
    AfterInboxInsert "after-inbox-insert"
    /// One staged write stands.
    AfterFirstWrite "after-first-write"
    /// Half of the staged writes stand.
    AfterMiddleWrite "after-middle-write"
    /// All staged writes stand, and no mark.
    AfterLastWrite "after-last-write"
    /// Rows of events that are put aside stand, and not their attempts.
    HeldWritten "held-written"
    /// All marks stand.
    AfterMarks "after-marks"
    /// The savepoint is to be released.
    BeforeRelease "before-release"
    /// COMMIT is to be sent.
    BeforeCommit "before-commit"
    /// COMMIT was answered; the broker was told nothing.
    AfterCommit "after-commit"
    /// The broker's client was given the ack.
    AfterAck "after-ack"
    /// Parked rows are under this host's lease; nothing has run.
    ClaimTaken "claim-taken"
    /// The unit of work holds the rows of its claims.
    ClaimLocked "claim-locked"
    /// The outcome of claims is written and not committed.
    ClaimMarked "claim-marked"
    /// `oncebox deploy` has committed its offer.
    OfferWritten "offer-written"
    /// A host has answered an offer.
    ReadyWritten "ready-written"
    /// A host has made an offer the active deployment, and does not serve it yet.
    Activated "activated"
    /// `oncebox migrate` has run one statement more.
    MigrationStatement "migration-statement"
}

/// Nothing, where no test has chosen the place.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reach(_: Place) {}

/// Nothing.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn written(_: usize, _: usize) {}

/// Nobody stops between two writes.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn is_between_writes() -> bool {
    false
}

/// Nothing that could be wrong.
///
/// # Errors
/// None.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn check() -> Result<(), String> {
    Ok(())
}

#[cfg(feature = "failpoints")]
pub use self::armed::reach;
#[cfg(feature = "failpoints")]
pub(crate) use self::armed::{check, is_between_writes, written};

#[cfg(feature = "failpoints")]
mod armed {
    use std::{
        process::Command,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
        thread,
        time::Duration,
    };

    use super::Place;

    /// The variable of the environment that chooses.
    const VARIABLE: &str = "ONCEBOX_FAILPOINTS";

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Action {
        Kill,
        Stop,
        Sleep(Duration),
    }

    #[derive(Debug)]
    struct Chosen {
        place: Place,
        /// The time that counts, from 1.
        nth: u64,
        action: Action,
        reached: AtomicU64,
    }

    /// Acts if the place was chosen, and this is the time.
    pub fn reach(place: Place) {
        for chosen in chosen().iter().flatten().filter(|chosen| chosen.place == place) {
            if chosen.reached.fetch_add(1, Ordering::SeqCst) + 1 == chosen.nth {
                tracing::warn!(place = place.name(), action = ?chosen.action, "a failpoint is reached");
                act(chosen.action);
            }
        }
    }

    /// Between the staged writes of a unit: `done` of `of` stand.
    pub(crate) fn written(done: usize, of: usize) {
        if done == 1 {
            reach(Place::AfterFirstWrite);
        }
        if done == of.div_ceil(2) {
            reach(Place::AfterMiddleWrite);
        }
        if done == of {
            reach(Place::AfterLastWrite);
        }
    }

    /// Whether a place between two writes was chosen: then each of them is a trip of its own.
    pub(crate) fn is_between_writes() -> bool {
        let between = [Place::AfterFirstWrite, Place::AfterMiddleWrite, Place::AfterLastWrite];
        chosen().iter().flatten().any(|chosen| between.contains(&chosen.place))
    }

    /// Whether the choice can be read: a test must not believe in a place that does not exist.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check() -> Result<(), String> {
        chosen().as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn chosen() -> &'static Result<Vec<Chosen>, String> {
        static CHOSEN: OnceLock<Result<Vec<Chosen>, String>> = OnceLock::new();
        CHOSEN.get_or_init(|| std::env::var(VARIABLE).map_or_else(|_| Ok(Vec::new()), |text| read(&text)))
    }

    fn read(text: &str) -> Result<Vec<Chosen>, String> {
        text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(read_one).collect()
    }

    fn read_one(text: &str) -> Result<Chosen, String> {
        let wrong = |what: &str| format!("{VARIABLE}: `{text}` {what}");
        let (place, action) =
            text.split_once('=').ok_or_else(|| wrong("has no action: PLACE=kill, stop or sleep:MS"))?;
        let (name, nth) = place.split_once('@').unwrap_or((place, "1"));
        let place = Place::ALL.iter().copied().find(|place| place.name() == name);
        let place = place.ok_or_else(|| {
            let names: Vec<&str> = Place::ALL.iter().map(|place| place.name()).collect();
            wrong(&format!("names no place; there are {}", names.join(", ")))
        })?;
        let nth = nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(|| wrong("has no number from 1 behind the @"))?;
        let action = match (action, action.strip_prefix("sleep:").and_then(|ms| ms.parse().ok())) {
            ("kill", _) => Action::Kill,
            ("stop", _) => Action::Stop,
            (_, Some(ms)) => Action::Sleep(Duration::from_millis(ms)),
            (_, None) => return Err(wrong("has another action than kill, stop or sleep:MS")),
        };
        Ok(Chosen { place, nth, action, reached: AtomicU64::new(0) })
    }

    fn act(action: Action) {
        match action {
            Action::Kill => {
                signal("-KILL");
                // Whatever the signal takes to come: nobody gets past this place.
                loop {
                    thread::park();
                }
            }
            Action::Stop => signal("-STOP"),
            Action::Sleep(time) => thread::sleep(time),
        }
    }

    /// By the program `kill`: the standard library has no safe call that ends or stops its own process.
    fn signal(signal: &str) {
        let sent = Command::new("kill").args([signal, &std::process::id().to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            tracing::error!(signal, "a failpoint cannot run `kill`");
            std::process::abort();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_choice_is_read_whole_or_refused_with_what_is_wrong() {
            let read = |text| {
                let chosen = super::read(text)?;
                Ok::<_, String>(chosen.iter().map(|one| (one.place, one.nth, one.action)).collect::<Vec<_>>())
            };
            let all = read("after-commit=kill, claim-taken@3=stop,after-run=sleep:20,").unwrap();
            let sleep = Action::Sleep(Duration::from_millis(20));
            assert_eq!(
                all,
                [
                    (Place::AfterCommit, 1, Action::Kill),
                    (Place::ClaimTaken, 3, Action::Stop),
                    (Place::AfterRun, 1, sleep)
                ]
            );
            assert_eq!(read("").unwrap(), []);
            for (text, why) in [
                ("after-commit", "no action"),
                ("after-comit=kill", "names no place; there are after-take,"),
                ("after-commit@0=kill", "no number from 1"),
                ("after-commit=sleep:x", "another action"),
            ] {
                let error = read(text).unwrap_err();
                assert!(error.contains(why), "{error}");
            }
        }

        #[test]
        fn no_two_places_have_one_name() {
            let mut names: Vec<&str> = Place::ALL.iter().map(|place| place.name()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), Place::ALL.len());
        }
    }
}
