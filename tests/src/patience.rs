//! Waiting for something to become true: no test sleeps for a time that should be enough.

use std::{thread, time::Duration};

use oncebox::clock;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(3);

/// How long anything may take here, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until there is an answer.
///
/// # Panics
/// There is none at the deadline.
#[track_caller]
pub fn eventually<T>(what: &str, deadline: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = clock::monotonic();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < deadline, "after {deadline:?}: not {what}");
        thread::park_timeout(LOOK);
    }
}

/// Lets a time pass: for the pace of a feed and for moments chosen by chance, never to wait for something.
pub fn pass(time: Duration) {
    let began = clock::monotonic();
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}
