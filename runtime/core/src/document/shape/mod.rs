//! The shapes that a value may have, each with how it is read and how the reference page shows it.

mod number;
mod text;

use std::fmt::Debug;

use toml::de::DeValue;

pub(crate) use self::{
    number::{Integer, MaybeFloat, MaybeInteger, read_integer},
    text::{Form, MaybeText, Text, Texts},
};
use super::{Item, form};
use crate::text::quoted;

/// How a value is read, and what holds without one.
pub(crate) trait Shape: Sync {
    /// What is read.
    type Value;
    /// Reads the value; `None` when it was refused, with its errors kept.
    fn read(&self, item: &Item<'_>) -> Option<Self::Value>;
    /// What holds without a value, and what reading goes on with after a refused one.
    fn absent(&self) -> Self::Value;
    /// Whether a value must be given.
    fn required(&self) -> bool {
        false
    }
    /// The value's type and range, for the page.
    fn shown(&self) -> String;
    /// What holds without a value, for the page.
    fn absent_shown(&self) -> String;
}

/// `true` or `false`, `false` when absent.
#[derive(Debug)]
pub(crate) struct Flag;

impl Shape for Flag {
    type Value = bool;

    fn read(&self, item: &Item<'_>) -> Option<bool> {
        let flag = item.value.as_bool();
        if flag.is_none() {
            item.refuse_type("true or false");
        }
        flag
    }

    fn absent(&self) -> bool {
        false
    }

    fn shown(&self) -> String {
        "boolean".to_owned()
    }

    fn absent_shown(&self) -> String {
        "`false`".to_owned()
    }
}

/// One of a few words.
#[derive(Debug)]
pub(crate) struct OneOf<T: 'static> {
    /// The words and what they stand for.
    pub(crate) choices: &'static [(&'static str, T)],
    /// What holds without one, and whether that is a default or only what reading goes on with.
    pub(crate) absent: Absent<T>,
}

/// One of a few words that may be left out.
#[derive(Debug)]
pub(crate) struct MaybeOneOf<T: 'static> {
    /// The words and what they stand for.
    pub(crate) choices: &'static [(&'static str, T)],
    /// What holds without one, for the page.
    pub(crate) absent: &'static str,
}

impl<T: Copy + Sync> Shape for MaybeOneOf<T> {
    type Value = Option<T>;

    fn read(&self, item: &Item<'_>) -> Option<Option<T>> {
        read_word(item, self.choices).map(Some)
    }

    fn absent(&self) -> Option<T> {
        None
    }

    fn shown(&self) -> String {
        words_shown(self.choices)
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
}

fn read_word<T: Copy>(item: &Item<'_>, choices: &[(&'static str, T)]) -> Option<T> {
    let DeValue::String(word) = item.value else {
        item.refuse_type("a string");
        return None;
    };
    let found = choices.iter().find(|(name, _)| name == word);
    if found.is_none() {
        let known = choices.iter().map(|(name, _)| *name);
        item.refuse(format!("is {}, which is not known", quoted(word)), form::nearest(word, "value", known));
    }
    found.map(|(_, value)| *value)
}

fn words_shown<T>(choices: &[(&'static str, T)]) -> String {
    choices.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(" or ")
}

/// What holds without a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Absent<T> {
    /// This value.
    Default(T),
    /// An error, after which reading goes on with this value.
    Required(T),
}

impl<T: Copy + PartialEq + Debug + Sync> Shape for OneOf<T> {
    type Value = T;

    fn read(&self, item: &Item<'_>) -> Option<T> {
        read_word(item, self.choices)
    }

    fn absent(&self) -> T {
        match self.absent {
            Absent::Default(value) | Absent::Required(value) => value,
        }
    }

    fn required(&self) -> bool {
        matches!(self.absent, Absent::Required(_))
    }

    fn shown(&self) -> String {
        words_shown(self.choices)
    }

    fn absent_shown(&self) -> String {
        match self.absent {
            Absent::Required(_) => "required".to_owned(),
            Absent::Default(default) => {
                let name = self.choices.iter().find(|(_, value)| *value == default).map_or("", |(name, _)| *name);
                format!("`\"{name}\"`")
            }
        }
    }
}

/// The kind of a store, source or destination: one that this build has.
#[derive(Debug)]
pub(crate) struct Kind<T: 'static> {
    /// The kinds that this build has.
    pub(crate) known: &'static [(&'static str, T)],
    /// Kinds of Oncebox that no build of this version has; the feature that brings one has its name.
    pub(crate) elsewhere: &'static [&'static str],
    /// Kinds whose features a build may have already, for something else.
    pub(crate) later: &'static [&'static str],
}

/// Features of a default build, as messages name them; a build may have fewer, and then says so where it opens what it
/// lacks.
const FEATURES: &str = "embedded, mysql, rabbitmq";

impl<T: Copy + Sync> Shape for Kind<T> {
    type Value = Option<T>;

    fn read(&self, item: &Item<'_>) -> Option<Option<T>> {
        let DeValue::String(word) = item.value else {
            item.refuse_type("a string");
            return None;
        };
        if let Some((_, kind)) = self.known.iter().find(|(name, _)| name == word) {
            return Some(Some(*kind));
        }
        let known = self.known.iter().map(|(name, _)| *name);
        if self.elsewhere.iter().any(|name| name == word) {
            let message = format!(
                "kind \"{word}\" needs the feature \"{word}\", which this build of oncebox does not have (it has: {FEATURES})"
            );
            let help = format!("use a build with that feature, or one of: {}", known.collect::<Vec<_>>().join(", "));
            item.spot.refuse(message, Some(help));
        } else if self.later.iter().any(|name| name == word) {
            let help = format!("use one of: {}", known.collect::<Vec<_>>().join(", "));
            item.refuse(format!("is \"{word}\", which is not possible here in this version of oncebox"), help);
        } else {
            let all = known.chain(self.elsewhere.iter().copied()).chain(self.later.iter().copied());
            item.refuse(format!("is {}, which is not known", quoted(word)), form::nearest(word, "kind", all));
        }
        None
    }

    fn absent(&self) -> Option<T> {
        None
    }

    fn required(&self) -> bool {
        true
    }

    fn shown(&self) -> String {
        words_shown(self.known)
    }

    fn absent_shown(&self) -> String {
        "required".to_owned()
    }
}
