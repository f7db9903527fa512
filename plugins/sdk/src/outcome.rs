//! How a handler ends.

pub use crate::bindings::oncebox::handler::types::{Done, Failure};
use crate::{
    ColumnError,
    bindings::oncebox::handler::types::{Rejection, RetryRequest},
};

impl Done {
    /// The event was handled: commit what was staged and emitted.
    #[must_use]
    pub fn applied() -> Self {
        Self::Applied(None)
    }

    /// Nothing had to be done, for this reason. What was staged or emitted is dropped; the event counts as handled.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::Skipped(reason.into())
    }

    /// Keeps a small result (`result_bytes_max`, 1 KiB by default) as evidence beside the business key, shown for it and
    /// for its duplicates. A skipped event has no result.
    #[must_use]
    pub fn with_result(self, result: impl Into<Vec<u8>>) -> Self {
        match self {
            Self::Applied(_) => Self::Applied(Some(result.into())),
            Self::Skipped(reason) => Self::Skipped(reason),
        }
    }
}

impl Failure {
    /// Something is not so yet: try again later, with the handler's delays, until its attempts are used up.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry(RetryRequest { reason: reason.into(), after_ms: None })
    }

    /// It will never work: a dead letter at once. `code` is what letters are grouped by: `[a-z0-9-]`, at most 64 of them.
    pub fn reject(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Reject(Rejection { code: code.into(), message: message.into() })
    }

    /// Asks for the next attempt in `ms` milliseconds, at the most the operator's `delay_ms_max`. A rejection has no
    /// next attempt and stays as it is.
    #[must_use]
    pub fn after_ms(self, ms: u32) -> Self {
        match self {
            Self::Retry(request) => Self::Retry(RetryRequest { after_ms: Some(ms), ..request }),
            Self::Reject(rejection) => Self::Reject(rejection),
        }
    }
}

/// A payload that is not what the handler expects: `bad-payload`.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::reject("bad-payload", error.to_string())
    }
}

/// A row that is not what the handler expects: `bad-column`.
impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Self {
        Self::reject("bad-column", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_for_a_delay_goes_with_a_retry_and_leaves_a_rejection_alone() {
        let retry = Failure::retry("campaign is not open").after_ms(250);
        let Failure::Retry(request) = retry else { panic!("{retry:?}") };
        assert_eq!((request.reason.as_str(), request.after_ms), ("campaign is not open", Some(250)));

        let rejection = Failure::reject("no-user", "user 7 is unknown");
        assert_eq!(rejection.clone().after_ms(250), rejection);
    }

    #[test]
    fn a_result_is_kept_for_an_applied_event_only() {
        assert_eq!(Done::applied().with_result("c-1"), Done::Applied(Some(b"c-1".to_vec())));
        assert_eq!(Done::skipped("not ours").with_result("c-1"), Done::Skipped("not ours".to_owned()));
    }
}
