//! The kinds of events, each for a handler of its own.

/// Which handler an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    Slow,
    Failing,
}

impl Kind {
    /// The event type.
    pub(crate) const fn event_type(self) -> &'static str {
        match self {
            Self::Good => "order.paid",
            Self::Slow => "order.slow",
            Self::Failing => "order.failing",
        }
    }

    /// The handler's name.
    pub(crate) const fn handler(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Slow => "slow",
            Self::Failing => "failing",
        }
    }
}
