//! Reading `fingerprint`: `"payload"` or a list of JSON pointers, in a manifest and in a configuration.

use super::FingerprintSpec;
use crate::{
    document::{Item, form::POINTER, shape::Shape},
    fingerprint,
    text::quoted,
};

/// Pointers that one fingerprint may cover.
const POINTERS_MAX: usize = 64;

/// A fingerprint, required or not.
#[derive(Debug)]
pub(crate) struct MaybeFingerprint {
    /// Whether it must be given.
    pub(crate) required: bool,
    /// What holds without one, for the page.
    pub(crate) absent: &'static str,
}

impl Shape for MaybeFingerprint {
    type Value = Option<FingerprintSpec>;

    fn read(&self, item: &Item<'_>) -> Option<Self::Value> {
        const HELP: &str = "write \"payload\", or the pointers that matter, such as [\"/userId\", \"/amount\"]";
        if let Some(word) = item.value.as_str() {
            if word == "payload" {
                return Some(Some(FingerprintSpec::Payload));
            }
            item.refuse(format!("is {}, which is neither \"payload\" nor a list", quoted(word)), HELP);
            return None;
        }
        let Some(elements) = item.elements() else {
            item.refuse_type("\"payload\" or a list of JSON pointers");
            return None;
        };
        if elements.is_empty() || elements.len() > POINTERS_MAX {
            item.refuse(format!("has {} pointers, where 1 to {POINTERS_MAX} may be", elements.len()), HELP);
            return None;
        }
        let mut pointers = Vec::with_capacity(elements.len());
        for element in elements {
            let pointer = POINTER.read(&element)?;
            if pointers.contains(&pointer) {
                element.refuse(format!("repeats {}, which would do nothing", quoted(&pointer)), "leave it out");
            }
            pointers.push(pointer);
        }
        let spec = FingerprintSpec::Pointers(pointers);
        match fingerprint::to_text(&spec) {
            Ok(_) => Some(Some(spec)),
            Err(error) => {
                item.refuse(format!("cannot be used: {error}"), HELP);
                None
            }
        }
    }

    fn absent(&self) -> Self::Value {
        None
    }

    fn required(&self) -> bool {
        self.required
    }

    fn shown(&self) -> String {
        "`\"payload\"`, or a list of 1 to 64 JSON pointers".to_owned()
    }

    fn absent_shown(&self) -> String {
        self.absent.to_owned()
    }
}
