//! What may stand in a document: the descriptors that the readers go by and the reference pages print.

use super::shape::Shape;

/// A key that is read as one value.
#[derive(Debug)]
pub(crate) struct Key<S> {
    /// The key as written.
    pub(crate) name: &'static str,
    /// What its value is.
    pub(crate) shape: S,
    /// One sentence for people, without a full stop.
    pub(crate) means: &'static str,
}

/// A key that holds tables with keys of their own.
#[derive(Debug)]
pub(crate) struct Nested {
    /// The key as written.
    pub(crate) name: &'static str,
    /// What its value is, for the page.
    pub(crate) shape: &'static str,
    /// What holds without it, for the page.
    pub(crate) absent: &'static str,
    /// One sentence for people, without a full stop.
    pub(crate) means: &'static str,
}

/// The keys of one table.
pub(crate) struct Section {
    /// The table's path, names in capitals; empty for the top of a document.
    pub(crate) path: &'static str,
    /// What the table is for, one or two sentences.
    pub(crate) about: &'static str,
    /// Its keys in the order of the page.
    pub(crate) keys: &'static [&'static dyn Described],
}

/// What a reference page says of a key.
pub(crate) trait Described: Sync {
    /// The key as written.
    fn name(&self) -> &'static str;
    /// What its value is.
    fn shape(&self) -> String;
    /// What holds without it.
    fn absent(&self) -> String;
    /// One sentence for people.
    fn means(&self) -> &'static str;
}

impl<S: Shape> Described for Key<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> String {
        self.shape.shown()
    }

    fn absent(&self) -> String {
        self.shape.absent_shown()
    }

    fn means(&self) -> &'static str {
        self.means
    }
}

impl Described for Nested {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> String {
        self.shape.to_owned()
    }

    fn absent(&self) -> String {
        self.absent.to_owned()
    }

    fn means(&self) -> &'static str {
        self.means
    }
}

/// A number as TOML lets people write it: `4_194_304`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, shown) in [(0, "0"), (999, "999"), (1_000, "1_000"), (67_108_864, "67_108_864")] {
            assert_eq!(grouped(number), shown);
        }
    }
}
