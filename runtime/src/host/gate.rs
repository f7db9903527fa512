//! The gate that all plugins of the process run through: many beside each other, or one suspect alone.
//!
//! Whoever waits here may hold nothing that others need to get out: no lock of a row, no open unit of work. So a run
//! inside a unit has its pass before the unit begins.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// One a process. Fair: whoever asks to run alone waits for those that run and not for those that come after.
#[derive(Debug, Default)]
pub struct Gate(Arc<RwLock<()>>);

/// Held by a run, or by a unit with runs inside, beside others.
#[derive(Debug)]
pub struct Beside {
    _pass: OwnedRwLockReadGuard<()>,
}

/// Held by a suspect from before its start is written down until its end is committed: meanwhile nothing but the suspect
/// can be the plugin that ends the process.
#[derive(Debug)]
pub struct Alone {
    _pass: OwnedRwLockWriteGuard<()>,
}

impl Gate {
    /// Waits until no suspect runs.
    pub async fn beside(&self) -> Beside {
        Beside { _pass: self.0.clone().read_owned().await }
    }

    /// Waits until no plugin runs; none begins as long as the answer is held.
    pub async fn alone(&self) -> Alone {
        Alone { _pass: self.0.clone().write_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn many_run_beside_each_other_and_a_suspect_beside_nobody() {
        let gate = Gate::default();
        let (one, other) = (gate.beside().now_or_never(), gate.beside().now_or_never());
        assert!(one.is_some() && other.is_some());
        let mut suspect = Box::pin(gate.alone());
        assert!(suspect.as_mut().now_or_never().is_none());
        drop(one);
        assert!(suspect.as_mut().now_or_never().is_none(), "the other one still runs");
        let mut late = Box::pin(gate.beside());
        assert!(late.as_mut().now_or_never().is_none(), "who comes later must not keep the suspect waiting for ever");
        drop(other);
        let alone = suspect.now_or_never();
        assert!(alone.is_some() && late.as_mut().now_or_never().is_none());
        drop(alone);
        assert!(late.now_or_never().is_some());
    }
}
