//! Whether the host can do its work, and what is missing if not.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Reasons why the host is not ready; none: ready.
#[derive(Debug, Default)]
pub struct Health {
    reasons: Mutex<BTreeMap<String, String>>,
}

impl Health {
    /// Notes what is missing, under a name by which it can be taken back; true if that is news.
    pub fn missing(&self, what: impl Into<String>, reason: impl Into<String>) -> bool {
        let reason = reason.into();
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.insert(what.into(), reason.clone()) != Some(reason)
    }

    /// Takes a reason back; true if it was there.
    pub fn mended(&self, what: &str) -> bool {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).remove(what).is_some()
    }

    /// What is missing, by name.
    #[must_use]
    pub fn reasons(&self) -> BTreeMap<String, String> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
