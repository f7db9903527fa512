//! From a message to the event that it carries.

/// A source's `envelope`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvelopeRule;
