//! Why a message cannot be understood, or has no key.

use crate::{
    failure::{Class, Failure},
    fingerprint::FingerprintError,
    template::{RenderError, ValueProblem},
};

/// A message without an identity: kept as a dead letter with its raw bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Poison {
    /// What is wrong, for groups and filters.
    pub code: PoisonCode,
    /// One sentence with the place and the measured value.
    pub message: String,
}

/// The kinds of poison; their names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PoisonCode {
    /// The body is over `payload_bytes_max`.
    PayloadTooLarge,
    /// The payload should be JSON and is not, or is JSON that two readers could understand differently.
    BadPayload,
    /// A CloudEvents envelope that breaks CloudEvents 1.0, or a fact of the source's `envelope` that is unusable.
    BadEnvelope,
    /// A batch of CloudEvents, which is no event.
    EventBatch,
    /// A time that is not of the declared form or beyond what the stores can hold.
    BadTime,
    /// The rule's pointers meet a payload that is not JSON.
    NotJson,
    /// A placeholder of the key is missing, null or empty.
    NoKey,
    /// A placeholder of the key has a value that is neither integer nor text, or more than one.
    BadKey,
    /// The key is over `key_bytes_max` after encoding.
    KeyTooLong,
    /// A placeholder of the ordering key is missing, null or empty.
    NoOrderingKey,
    /// A placeholder of the ordering key has a value that is neither integer nor text, or more than one.
    BadOrderingKey,
    /// The ordering key is over `key_bytes_max` after encoding.
    OrderingKeyTooLong,
}

impl PoisonCode {
    /// All codes.
    pub const ALL: [Self; 12] = [
        Self::PayloadTooLarge,
        Self::BadPayload,
        Self::BadEnvelope,
        Self::EventBatch,
        Self::BadTime,
        Self::NotJson,
        Self::NoKey,
        Self::BadKey,
        Self::KeyTooLong,
        Self::NoOrderingKey,
        Self::BadOrderingKey,
        Self::OrderingKeyTooLong,
    ];

    /// The name used in tables, logs, metrics and docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PayloadTooLarge => "payload-too-large",
            Self::BadPayload => "bad-payload",
            Self::BadEnvelope => "bad-envelope",
            Self::EventBatch => "event-batch",
            Self::BadTime => "bad-time",
            Self::NotJson => "not-json",
            Self::NoKey => "no-key",
            Self::BadKey => "bad-key",
            Self::KeyTooLong => "key-too-long",
            Self::NoOrderingKey => "no-ordering-key",
            Self::BadOrderingKey => "bad-ordering-key",
            Self::OrderingKeyTooLong => "ordering-key-too-long",
        }
    }
}

/// What is wrong with a rendered key, apart from which key it is.
enum KeyProblem {
    None,
    Bad,
    TooLong,
    NotJson,
}

fn key_problem(error: &RenderError) -> KeyProblem {
    match error {
        RenderError::TooLong { .. } => KeyProblem::TooLong,
        RenderError::Value { problem, .. } => match problem {
            ValueProblem::Missing | ValueProblem::Null | ValueProblem::Empty => KeyProblem::None,
            ValueProblem::NotJson => KeyProblem::NotJson,
            ValueProblem::Float
            | ValueProblem::NegativeZero
            | ValueProblem::Boolean
            | ValueProblem::Object
            | ValueProblem::Array
            | ValueProblem::Ambiguous => KeyProblem::Bad,
        },
    }
}

impl Poison {
    /// A poison from its parts.
    pub fn new(code: PoisonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn of_key(error: &RenderError) -> Self {
        let code = match key_problem(error) {
            KeyProblem::None => PoisonCode::NoKey,
            KeyProblem::Bad => PoisonCode::BadKey,
            KeyProblem::TooLong => PoisonCode::KeyTooLong,
            KeyProblem::NotJson => PoisonCode::NotJson,
        };
        Self::new(code, format!("business key: {error}{}", limit_of(error)))
    }

    pub(super) fn of_ordering_key(error: &RenderError) -> Self {
        let code = match key_problem(error) {
            KeyProblem::None => PoisonCode::NoOrderingKey,
            KeyProblem::Bad => PoisonCode::BadOrderingKey,
            KeyProblem::TooLong => PoisonCode::OrderingKeyTooLong,
            KeyProblem::NotJson => PoisonCode::NotJson,
        };
        Self::new(code, format!("ordering key: {error}{}", limit_of(error)))
    }

    pub(super) fn of_fingerprint(error: &FingerprintError) -> Self {
        let code = match error {
            FingerprintError::NotJson => PoisonCode::NotJson,
            FingerprintError::Number(_) => PoisonCode::BadPayload,
        };
        Self::new(code, error.to_string())
    }
}

fn limit_of(error: &RenderError) -> &'static str {
    match error {
        RenderError::TooLong { .. } => " (key_bytes_max)",
        RenderError::Value { .. } => "",
    }
}

impl From<Poison> for Failure {
    fn from(poison: Poison) -> Self {
        Self::new(Class::Poison, poison.code.name(), poison.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_that_a_failure_can_carry() {
        let names: std::collections::HashSet<_> = PoisonCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), PoisonCode::ALL.len());
        for name in names {
            assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
        }
    }

    #[test]
    fn a_poison_is_a_failure_of_its_class() {
        let failure = Failure::from(Poison::new(PoisonCode::NoKey, "business key: {/id} is missing"));
        assert_eq!(failure, Failure::new(Class::Poison, "no-key", "business key: {/id} is missing"));
    }
}
