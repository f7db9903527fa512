//! The shapes that a value may have, each with how it is read and how the reference page shows it.

use std::fmt::Debug;

use toml::de::DeValue;

use super::{Item, form, key::grouped};
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

/// Unsigned integers that a key may be read into; the range of the key is a range of the type.
pub(crate) trait Number: Copy + Into<u64> + TryFrom<u64> + Sync {}
impl<T: Copy + Into<u64> + TryFrom<u64> + Sync> Number for T {}

/// An integer with a default.
#[derive(Debug)]
pub(crate) struct Integer<T> {
    /// Least value.
    pub(crate) min: T,
    /// Greatest value.
    pub(crate) max: T,
    /// What holds without one.
    pub(crate) default: T,
}

impl<T: Number> Shape for Integer<T> {
    type Value = T;

    fn read(&self, item: &Item<'_>) -> Option<T> {
        read_integer(item, self.min, self.max)
    }

    fn absent(&self) -> T {
        self.default
    }

    fn shown(&self) -> String {
        integer_shown(self.min, self.max)
    }

    fn absent_shown(&self) -> String {
        format!("`{}`", grouped(self.default.into()))
    }
}

/// An integer that may be left out.
#[derive(Debug)]
pub(crate) struct MaybeInteger<T> {
    /// Least value.
    pub(crate) min: T,
    /// Greatest value.
    pub(crate) max: T,
    /// What holds without one, for the page.
    pub(crate) absent: &'static str,
}

impl<T: Number> Shape for MaybeInteger<T> {
    type Value = Option<T>;

    fn read(&self, item: &Item<'_>) -> Option<Option<T>> {
        read_integer(item, self.min, self.max).map(Some)
    }

    fn absent(&self) -> Option<T> {
        None
    }

    fn shown(&self) -> String {
        integer_shown(self.min, self.max)
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
}

/// Reads an integer within its range.
pub(crate) fn read_integer<T: Number>(item: &Item<'_>, min: T, max: T) -> Option<T> {
    let (min, max) = (min.into(), max.into());
    let Some(integer) = item.value.as_integer() else {
        item.refuse_type("an integer");
        return None;
    };
    let range = format!("give {} to {}", grouped(min), grouped(max));
    // The text of a TOML integer fits `from_str_radix`; what does not fit 128 bits is out of every range.
    match i128::from_str_radix(integer.as_str(), integer.radix()).map(u64::try_from) {
        Ok(Ok(number)) if number < min => {
            item.refuse(format!("is {}, below its least value {}", grouped(number), grouped(min)), range);
            None
        }
        Ok(Ok(number)) if number <= max => T::try_from(number).ok(),
        Ok(Ok(number)) => {
            item.refuse(format!("is {}, above its limit {}", grouped(number), grouped(max)), range);
            None
        }
        Ok(Err(_)) | Err(_) => {
            item.refuse(format!("is {integer}, out of its range"), range);
            None
        }
    }
}

fn integer_shown<T: Number>(min: T, max: T) -> String {
    format!("integer, {} to {}", grouped(min.into()), grouped(max.into()))
}

/// A float, or an integer taken as one, that may be left out.
#[derive(Debug)]
pub(crate) struct MaybeFloat {
    /// Least value.
    pub(crate) min: f64,
    /// Greatest value.
    pub(crate) max: f64,
    /// What holds without one, for the page.
    pub(crate) absent: &'static str,
}

impl Shape for MaybeFloat {
    type Value = Option<f64>;

    fn read(&self, item: &Item<'_>) -> Option<Option<f64>> {
        let digits = match (item.value.as_float(), item.value.as_integer()) {
            (Some(float), _) => float.as_str(),
            (None, Some(integer)) if integer.radix() == 10 => integer.as_str(),
            (None, Some(_) | None) => {
                item.refuse_type("a number");
                return None;
            }
        };
        match digits.parse::<f64>() {
            Ok(number) if (self.min..=self.max).contains(&number) => Some(Some(number)),
            Ok(_) | Err(_) => {
                item.refuse(format!("is {digits}, out of its range"), format!("give {:?} to {:?}", self.min, self.max));
                None
            }
        }
    }

    fn absent(&self) -> Option<f64> {
        None
    }

    fn shown(&self) -> String {
        format!("number, {:?} to {:?}", self.min, self.max)
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
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

/// What a text must look like.
#[derive(Debug)]
pub(crate) struct Form {
    /// The form in words, e.g. ``name, `[a-z0-9-]{1,64}` ``.
    pub(crate) shown: &'static str,
    /// Accepts the text, or says what is wrong with it: words that go on after its path.
    pub(crate) check: fn(&str) -> Result<(), String>,
}

impl Form {
    /// What is expected, for a help line.
    pub(crate) fn help(&self) -> String {
        format!("expected: {}", self.shown.replace('`', ""))
    }

    /// Reads a text of this form.
    pub(crate) fn read(&self, item: &Item<'_>) -> Option<String> {
        let Some(text) = item.value.as_str() else {
            item.refuse_type("a string");
            return None;
        };
        match (self.check)(text) {
            Ok(()) => Some(text.to_owned()),
            Err(complaint) => {
                item.refuse(complaint, self.help());
                None
            }
        }
    }
}

/// A text that must be given, or that has a default.
#[derive(Debug)]
pub(crate) struct Text {
    /// What it must look like.
    pub(crate) form: &'static Form,
    /// What holds without one; `None`: it must be given.
    pub(crate) default: Option<&'static str>,
}

impl Shape for Text {
    type Value = String;

    fn read(&self, item: &Item<'_>) -> Option<String> {
        self.form.read(item)
    }

    fn absent(&self) -> String {
        self.default.unwrap_or_default().to_owned()
    }

    fn required(&self) -> bool {
        self.default.is_none()
    }

    fn shown(&self) -> String {
        self.form.shown.to_owned()
    }

    fn absent_shown(&self) -> String {
        self.default.map_or_else(|| "required".to_owned(), |default| format!("`\"{default}\"`"))
    }
}

/// A text that may be left out.
#[derive(Debug)]
pub(crate) struct MaybeText {
    /// What it must look like.
    pub(crate) form: &'static Form,
    /// What holds without one, for the page.
    pub(crate) absent: &'static str,
}

impl Shape for MaybeText {
    type Value = Option<String>;

    fn read(&self, item: &Item<'_>) -> Option<Option<String>> {
        self.form.read(item).map(Some)
    }

    fn absent(&self) -> Option<String> {
        None
    }

    fn shown(&self) -> String {
        self.form.shown.to_owned()
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
}

/// A list of texts, none of them twice.
#[derive(Debug)]
pub(crate) struct Texts {
    /// What each must look like.
    pub(crate) form: &'static Form,
    /// Least number; above 0 the list must be given.
    pub(crate) items_min: usize,
    /// What an empty list means, for the page.
    pub(crate) absent: &'static str,
}

impl Shape for Texts {
    type Value = Vec<String>;

    fn read(&self, item: &Item<'_>) -> Option<Vec<String>> {
        let Some(elements) = item.elements() else {
            item.refuse_type("an array of strings");
            return None;
        };
        if elements.len() < self.items_min {
            item.refuse(
                format!("has {} entries, below its least number {}", elements.len(), self.items_min),
                self.form.help(),
            );
        }
        let mut texts = Vec::with_capacity(elements.len());
        for element in elements {
            let Some(text) = self.form.read(&element) else { continue };
            if texts.contains(&text) {
                element.refuse(format!("repeats {}, which would do nothing", quoted(&text)), "leave it out");
            } else {
                texts.push(text);
            }
        }
        Some(texts)
    }

    fn absent(&self) -> Vec<String> {
        Vec::new()
    }

    fn required(&self) -> bool {
        self.items_min > 0
    }

    fn shown(&self) -> String {
        format!("list; each: {}", self.form.shown)
    }

    fn absent_shown(&self) -> String {
        if self.items_min > 0 { "required".to_owned() } else { format!("`[]`: {}", self.absent) }
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
        let DeValue::String(word) = item.value else {
            item.refuse_type("a string");
            return None;
        };
        let found = self.choices.iter().find(|(name, _)| name == word);
        if found.is_none() {
            let known = self.choices.iter().map(|(name, _)| *name);
            item.refuse(format!("is {}, which is not known", quoted(word)), form::nearest(word, "value", known));
        }
        found.map(|(_, value)| *value)
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
        self.choices.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(" or ")
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
    /// Kinds of Oncebox that this build does not have; the feature that brings one has its name.
    pub(crate) elsewhere: &'static [&'static str],
}

/// Features of this build, as messages name them.
const FEATURES: &str = "embedded";

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
        } else {
            let all = known.chain(self.elsewhere.iter().copied());
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
        self.known.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(" or ")
    }

    fn absent_shown(&self) -> String {
        "required".to_owned()
    }
}
