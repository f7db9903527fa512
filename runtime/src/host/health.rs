//! Whether the host can do its work, and what is missing if not.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use tokio::sync::watch;

/// Reasons why the host is not ready; none: ready.
#[derive(Debug, Default)]
pub struct Health {
    reasons: Mutex<BTreeMap<String, String>>,
    ready: watch::Sender<bool>,
}

impl Health {
    /// Notes what is missing, under a name by which it can be taken back; true if that is news.
    pub fn missing(&self, what: impl Into<String>, reason: impl Into<String>) -> bool {
        let reason = reason.into();
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready.send_if_modified(|ready| std::mem::replace(ready, false));
        reasons.insert(what.into(), reason.clone()) != Some(reason)
    }

    /// Takes a reason back; true if it was there.
    pub fn mended(&self, what: &str) -> bool {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let was_missing = reasons.remove(what).is_some();
        if was_missing {
            self.ready.send_if_modified(|ready| std::mem::replace(ready, reasons.is_empty()) != reasons.is_empty());
        }
        was_missing
    }

    /// Follows whether nothing is missing.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// What is missing, by name.
    #[must_use]
    pub fn reasons(&self) -> BTreeMap<String, String> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
