//! A state in the middle of a step, with whoever answers its questions.

use crate::{invariants::Broken, oracle::Oracle, scenario::Scenario, state::State};

/// What a step works on.
pub(crate) struct World<'a> {
    pub(crate) state: State,
    pub(crate) scenario: &'a Scenario,
    pub(crate) oracle: &'a mut Oracle,
    /// The first thing that this step has broken.
    pub(crate) broken: Option<Broken>,
    /// What happens, in words; only for a trace.
    pub(crate) words: Option<Vec<String>>,
}

impl World<'_> {
    /// Tells what happens, if somebody listens.
    pub(crate) fn say(&mut self, words: impl FnOnce() -> String) {
        if let Some(all) = &mut self.words {
            all.push(words());
        }
    }
}
