//! A TOML document read key by key: every value checked where it stands, every error kept with its place.
//!
//! What may stand where is said by the descriptors of [`key`]; the same descriptors print the reference pages.

pub(crate) mod form;
pub(crate) mod key;
mod masked;
pub(crate) mod page;
pub(crate) mod shape;

use std::{
    cell::{Cell, RefCell},
    ops::Range,
};

use toml::de::{DeTable, DeValue};

use self::{
    key::{Key, Nested, Section},
    masked::Masked,
    shape::{Form, Shape},
};
use crate::text::{TextError, TextErrors, quoted};

/// Errors kept of one document; a hostile one must not make us keep more than it holds.
const ERRORS_MAX: usize = 50;

/// A parsed document and what was found wrong in it so far.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    masked: Masked,
    root: DeTable<'t>,
    /// Stands for tables that are absent.
    empty: DeTable<'t>,
    errors: RefCell<Vec<TextError>>,
    left_out: Cell<usize>,
    warnings: RefCell<Vec<TextError>>,
}

impl<'t> Document<'t> {
    /// Parses the text. The places that `secrets` finds in it, in order and apart, are covered in all that is shown of it.
    ///
    /// # Errors
    /// It is longer than `bytes_max`, or not TOML: then only the syntax is complained of.
    pub(crate) fn parse(
        file: &'t str,
        text: &'t str,
        bytes_max: usize,
        secrets: fn(&str) -> Vec<Range<usize>>,
    ) -> Result<Self, TextErrors> {
        if text.len() > bytes_max {
            let message = format!(
                "has {} bytes, above the limit of {}",
                key::grouped(text.len() as u64),
                key::grouped(bytes_max as u64)
            );
            return Err(TextError::of_file(file, message).into());
        }
        let masked = Masked::new(text, secrets(text));
        let (root, problems) = DeTable::parse_recoverable(text);
        let left_out = problems.len().saturating_sub(ERRORS_MAX);
        let errors = problems.iter().take(ERRORS_MAX).map(|problem| {
            let message = format!("not TOML: {}", problem.message());
            masked.error(file, text, problem.span().unwrap_or(0..0), message)
        });
        match TextErrors::collected(errors.collect(), left_out) {
            Some(errors) => Err(errors),
            None => Ok(Self {
                file,
                text,
                masked,
                root: root.into_inner(),
                empty: DeTable::default(),
                errors: RefCell::default(),
                left_out: Cell::new(0),
                warnings: RefCell::default(),
            }),
        }
    }

    /// The file's name, as it was given.
    pub(crate) fn file(&self) -> &str {
        self.file
    }

    /// The document's own table; `path` is what its keys are called by in messages, empty for a whole document.
    pub(crate) fn root(&self, path: impl Into<String>) -> Table<'_> {
        Table { spot: Spot { document: self, span: 0..0 }, path: path.into(), entries: &self.root }
    }

    /// The errors in the order of the lines, with the number of those not kept, and the warnings.
    pub(crate) fn into_findings(self) -> (Vec<TextError>, usize, Vec<TextError>) {
        let by_place = |mut found: Vec<TextError>| {
            found.sort_by_key(|error| (error.line, error.column));
            found
        };
        (by_place(self.errors.into_inner()), self.left_out.get(), by_place(self.warnings.into_inner()))
    }
}

/// A place of a document.
#[derive(Debug, Clone)]
pub(crate) struct Spot<'d> {
    document: &'d Document<'d>,
    span: Range<usize>,
}

impl Spot<'_> {
    /// Keeps an error of this place.
    pub(crate) fn refuse(&self, message: impl Into<String>, help: Option<String>) {
        if !self.is_left_out() {
            self.document.errors.borrow_mut().push(TextError { help, ..self.error(message) });
        }
    }

    /// Whether an error of this place is only counted, because enough are kept; it is counted by this.
    fn is_left_out(&self) -> bool {
        let full = self.document.errors.borrow().len() >= ERRORS_MAX;
        if full {
            self.document.left_out.set(self.document.left_out.get() + 1);
        }
        full
    }

    /// Keeps a warning of this place.
    pub(crate) fn warn(&self, message: impl Into<String>, help: impl Into<String>) {
        self.document.warnings.borrow_mut().push(self.error(message).with_help(help));
    }

    /// `FILE:LINE`, for a message about another place.
    pub(crate) fn file_and_line(&self) -> String {
        let error = self.error("");
        format!("{}:{}", error.file, error.line)
    }

    /// Whether it is the same place.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.document.text, other.document.text) && self.span == other.span
    }

    fn error(&self, message: impl Into<String>) -> TextError {
        let Document { file, text, masked, .. } = self.document;
        masked.error(file, text, self.span.clone(), message.into())
    }
}

/// A value of a document.
#[derive(Debug, Clone)]
pub(crate) struct Item<'d> {
    /// Where it stands.
    pub(crate) spot: Spot<'d>,
    /// What messages call it, e.g. `statements.award.rows`.
    pub(crate) path: String,
    /// The value itself.
    pub(crate) value: &'d DeValue<'d>,
}

impl<'d> Item<'d> {
    /// Keeps an error about this value: `complaint` goes on after its path.
    pub(crate) fn refuse(&self, complaint: impl AsRef<str>, help: impl Into<String>) {
        self.spot.refuse(format!("{} {}", self.path, complaint.as_ref()), Some(help.into()));
    }

    /// Keeps the error that this value has another type than `due`.
    pub(crate) fn refuse_type(&self, due: &str) {
        let found = self.value.type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        self.refuse(format!("is {article} {found}, where {due} is due"), format!("write {due}"));
    }

    /// The elements of an array; `None` when it is none.
    pub(crate) fn elements(&self) -> Option<Vec<Item<'d>>> {
        let element = |(index, value): (usize, &'d toml::Spanned<DeValue<'d>>)| Item {
            spot: Spot { document: self.spot.document, span: value.span() },
            path: format!("{}[{index}]", self.path),
            value: value.get_ref(),
        };
        self.value.as_array().map(|array| array.iter().enumerate().map(element).collect())
    }

    /// The value as a table; `None` when it is none.
    pub(crate) fn as_table(&self) -> Option<Table<'d>> {
        let entries = self.value.as_table()?;
        Some(Table { spot: self.spot.clone(), path: self.path.clone(), entries })
    }
}

/// A table of a document.
#[derive(Debug, Clone)]
pub(crate) struct Table<'d> {
    /// Where its header, or its brace, stands.
    pub(crate) spot: Spot<'d>,
    /// What messages call it, e.g. `statements.award`; empty for a whole document.
    pub(crate) path: String,
    entries: &'d DeTable<'d>,
}

impl<'d> Table<'d> {
    /// Keeps an error about this table: `complaint` goes on after its path.
    pub(crate) fn refuse(&self, complaint: impl AsRef<str>, help: impl Into<String>) {
        self.spot.refuse(format!("{} {}", self.path, complaint.as_ref()), Some(help.into()));
    }

    /// Refuses every key that the section does not name, with the nearest that it names.
    pub(crate) fn refuse_unknown(&self, section: &Section) {
        for (name, spot, _) in self.entries() {
            if section.keys.iter().any(|key| key.name() == name) || spot.is_left_out() {
                continue;
            }
            let place = if self.path.is_empty() { "at the top".to_owned() } else { format!("in [{}]", self.path) };
            let known = section.keys.iter().map(|key| key.name());
            spot.refuse(format!("unknown key {} {place}", quoted(&name)), Some(form::nearest(&name, "key", known)));
        }
    }

    /// Reads the key's value; without one, or with one that is refused, what stands for an absent one.
    pub(crate) fn value<S: Shape>(&self, key: &Key<S>) -> S::Value {
        match self.item(key.name) {
            Some(item) => key.shape.read(&item).unwrap_or_else(|| key.shape.absent()),
            None => {
                if key.shape.required() {
                    let help = format!("add {} = …: {}", key.name, key.means);
                    self.spot.refuse(format!("{} is missing", self.path_of(key.name)), Some(help));
                }
                key.shape.absent()
            }
        }
    }

    /// The value of a key, unread.
    pub(crate) fn item(&self, name: &str) -> Option<Item<'d>> {
        let value = self.entries.get(name)?;
        let spot = Spot { document: self.spot.document, span: value.span() };
        Some(Item { spot, path: self.path_of(name), value: value.get_ref() })
    }

    /// Every entry in the order written: its key, the key's place, its value.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, Spot<'d>, Item<'d>)> {
        let document = self.spot.document;
        self.entries.iter().map(move |(name, value)| {
            let item = Item {
                spot: Spot { document, span: value.span() },
                path: self.path_of(name.get_ref()),
                value: value.get_ref(),
            };
            (name.get_ref().to_string(), Spot { document, span: name.span() }, item)
        })
    }

    /// Whether it has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The table under a key; `None` when absent or, with an error kept, when it is another value.
    pub(crate) fn table(&self, key: &Nested) -> Option<Table<'d>> {
        let item = self.item(key.name)?;
        let table = item.as_table();
        if table.is_none() {
            item.refuse_type("a table");
        }
        table
    }

    /// The table under a key, or one without entries in its place, for its defaults.
    pub(crate) fn table_or_empty(&self, key: &Nested) -> Table<'d> {
        let (spot, path) = (self.spot.clone(), self.path_of(key.name));
        self.table(key).unwrap_or(Table { entries: &spot.document.empty, spot, path })
    }

    /// The entries of the table under a key, of those whose names have the form.
    pub(crate) fn named(&self, key: &Nested, form: &Form) -> Vec<(String, Item<'d>)> {
        let Some(table) = self.table(key) else { return Vec::new() };
        let mut named = Vec::new();
        for (name, spot, item) in table.entries() {
            match (form.check)(&name) {
                Ok(()) => named.push((name, item)),
                Err(complaint) => {
                    spot.refuse(
                        format!("the name {} in [{}] {complaint}", quoted(&name), table.path),
                        Some(form.help()),
                    );
                }
            }
        }
        named
    }

    /// The tables in the table under a key, of those whose names have the form.
    pub(crate) fn named_tables(&self, key: &Nested, form: &Form) -> Vec<(String, Table<'d>)> {
        let mut tables = Vec::new();
        for (name, item) in self.named(key, form) {
            match item.as_table() {
                Some(table) => tables.push((name, table)),
                None => item.refuse_type("a table"),
            }
        }
        tables
    }

    /// The tables of an array of tables under a key.
    pub(crate) fn tables(&self, key: &Nested) -> Vec<Table<'d>> {
        let Some(item) = self.item(key.name) else { return Vec::new() };
        let Some(elements) = item.elements() else {
            item.refuse_type("an array of tables");
            return Vec::new();
        };
        let mut tables = Vec::new();
        for element in elements {
            match element.as_table() {
                Some(table) => tables.push(table),
                None => element.refuse_type("a table"),
            }
        }
        tables
    }

    /// The texts under a key with their places, whatever else is in the array.
    pub(crate) fn texts_with_spots(&self, name: &str) -> Vec<(&'d str, Spot<'d>)> {
        let elements = self.item(name).and_then(|item| item.elements()).unwrap_or_default();
        elements.into_iter().filter_map(|element| Some((element.value.as_str()?, element.spot))).collect()
    }

    /// The place of a key's value, or of the table when the key is absent.
    pub(crate) fn spot_of(&self, name: &str) -> Spot<'d> {
        self.item(name).map_or_else(|| self.spot.clone(), |item| item.spot)
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
