//! Texts of a form, and lists of them.

use super::Shape;
use crate::{
    document::{Item, key::grouped},
    text::quoted,
};

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

/// Entries of a list; each is compared with all before it.
const ITEMS_MAX: usize = 1_024;

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
        if elements.len() > ITEMS_MAX {
            let complaint = format!(
                "has {} entries, above the limit of {}",
                grouped(elements.len() as u64),
                grouped(ITEMS_MAX as u64)
            );
            item.refuse(complaint, format!("give up to {}", grouped(ITEMS_MAX as u64)));
            return None;
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
        format!("list of up to {}; each: {}", grouped(ITEMS_MAX as u64), self.form.shown)
    }

    fn absent_shown(&self) -> String {
        if self.items_min > 0 { "required".to_owned() } else { format!("`[]`: {}", self.absent) }
    }
}
