//! Values on their way to a statement: bound to a prepared one, or written into a text.

use std::fmt::Write as _;

use sqlx::{
    Arguments as _, Encode, MySql, Type,
    encode::IsNull,
    error::BoxDynError,
    mysql::{MySqlArguments, MySqlTypeInfo},
};

use super::{errors::MysqlError, literal};

/// The values of one execution, owned.
#[derive(Debug, Default)]
pub(super) struct Args {
    values: MySqlArguments,
    refused: Option<String>,
    /// Where they are written into a text instead.
    text: Option<Text>,
}

/// A text that is being written, a row of values at a time.
#[derive(Debug, Default)]
struct Text {
    written: String,
    /// What of the row's template is still to come.
    rest: &'static str,
}

/// What can be bound, and written as a literal.
pub(super) trait Bind<'q>: Encode<'q, MySql> + Type<MySql> {
    /// Writes it as a literal.
    fn push(&self, text: &mut String);
}

impl Args {
    /// Values that are written into a text which begins so; [`Args::row`] comes before those of a row.
    pub(super) fn text(head: &str) -> Self {
        Self { text: Some(Text { written: head.to_owned(), rest: "" }), ..Self::default() }
    }

    /// Begins a row, with `before` it; of a template that has a `?` for each value.
    pub(super) fn row(&mut self, before: &str, template: &'static str) {
        if let Some(Text { written, rest }) = &mut self.text {
            written.extend([*rest, before]);
            *rest = template;
        }
    }

    /// The text, with this behind its rows.
    pub(super) fn written(self, tail: &str) -> String {
        let Text { mut written, rest } = self.text.unwrap_or_default();
        written.extend([rest, tail]);
        written
    }

    /// One more value.
    pub(super) fn add<'q>(&mut self, value: impl Bind<'q>) {
        if let Some(Text { written, rest }) = &mut self.text {
            let (before, after) = rest.split_once('?').unwrap_or((rest, ""));
            written.push_str(before);
            value.push(written);
            *rest = after;
        } else if let Err(error) = self.values.add(value) {
            self.refused = Some(error.to_string());
        }
    }

    /// All of them, if the driver could encode each.
    pub(super) fn finished(self, what: &'static str) -> Result<MySqlArguments, MysqlError> {
        match self.refused {
            None => Ok(self.values),
            Some(message) => Err(MysqlError::Answer { what, message }),
        }
    }
}

/// The values in order: `args![1, "a"]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => {{
        #[allow(unused_mut, clippy::allow_attributes, reason = "without values nothing is added")]
        let mut args = $crate::store::mysql::args::Args::default();
        $(args.add($value);)*
        args
    }};
}

macro_rules! digits {
    ($($kind:ty)*) => {$(
        impl Bind<'_> for $kind {
            fn push(&self, text: &mut String) {
                // Writing to a string does not fail.
                let _ = write!(text, "{self}");
            }
        }
    )*};
}
digits!(u8 u16 u32 u64);

impl Bind<'_> for i64 {
    fn push(&self, text: &mut String) {
        literal::push_signed(text, *self);
    }
}

impl Bind<'_> for f64 {
    fn push(&self, text: &mut String) {
        let _ = write!(text, "({self:e})");
    }
}

impl Bind<'_> for bool {
    fn push(&self, text: &mut String) {
        text.push(if *self { '1' } else { '0' });
    }
}

impl<'q> Bind<'q> for &'q str {
    fn push(&self, text: &mut String) {
        literal::push_text(text, self);
    }
}

impl Bind<'_> for String {
    fn push(&self, text: &mut String) {
        literal::push_text(text, self);
    }
}

impl<'q> Bind<'q> for &'q [u8] {
    fn push(&self, text: &mut String) {
        literal::push_bytes(text, self);
    }
}

impl Bind<'_> for Vec<u8> {
    fn push(&self, text: &mut String) {
        literal::push_bytes(text, self);
    }
}

impl<'q, const N: usize> Bind<'q> for &'q [u8; N]
where
    Self: Encode<'q, MySql> + Type<MySql>,
{
    fn push(&self, text: &mut String) {
        literal::push_bytes(text, *self);
    }
}

impl<'q, T: Bind<'q>> Bind<'q> for Option<T>
where
    Self: Encode<'q, MySql> + Type<MySql>,
{
    fn push(&self, text: &mut String) {
        match self {
            Some(value) => value.push(text),
            None => text.push_str("NULL"),
        }
    }
}

/// An exact decimal, bound as one: as text it would go through DOUBLE wherever a statement calculates with it.
pub(super) struct Decimal<'t> {
    /// Its digits.
    pub(super) text: &'t str,
    /// How the server names the type.
    pub(super) kind: &'t MySqlTypeInfo,
}

impl Bind<'_> for Decimal<'_> {
    fn push(&self, text: &mut String) {
        literal::push_text(text, self.text);
    }
}

impl Type<MySql> for Decimal<'_> {
    fn type_info() -> MySqlTypeInfo {
        <str as Type<MySql>>::type_info()
    }
}

impl Encode<'_, MySql> for Decimal<'_> {
    fn encode_by_ref(&self, buffer: &mut Vec<u8>) -> Result<IsNull, BoxDynError> {
        <&str as Encode<'_, MySql>>::encode_by_ref(&self.text, buffer)
    }

    fn produces(&self) -> Option<MySqlTypeInfo> {
        Some(self.kind.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_where_a_rows_template_has_its_marks() {
        let mut args = Args::text("INSERT INTO t (a, b, c, d) VALUES ");
        for (before, name) in [("", Some("x")), (", ", None)] {
            args.row(before, "(?, 0, ?, ?, NOW())");
            args.add(-7_i64);
            args.add(name);
            args.add(&b"\xff"[..]);
        }
        assert_eq!(
            args.written(" AS new"),
            "INSERT INTO t (a, b, c, d) VALUES ((-7), 0, 'x', _binary x'FF', NOW()), \
             ((-7), 0, NULL, _binary x'FF', NOW()) AS new"
        );
    }
}
