//! Values on their way to a prepared statement.

use sqlx::{
    Arguments as _, Encode, MySql, Type,
    encode::IsNull,
    error::BoxDynError,
    mysql::{MySqlArguments, MySqlTypeInfo},
};

use super::errors::MysqlError;

/// The values of one execution, owned.
#[derive(Debug, Default)]
pub(super) struct Args {
    values: MySqlArguments,
    refused: Option<String>,
}

impl Args {
    /// One more value.
    pub(super) fn add<'q, T: Encode<'q, MySql> + Type<MySql>>(&mut self, value: T) {
        if let Err(error) = self.values.add(value) {
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

/// An exact decimal, bound as one: as text it would go through DOUBLE wherever a statement calculates with it.
pub(super) struct Decimal<'t> {
    /// Its digits.
    pub(super) text: &'t str,
    /// How the server names the type.
    pub(super) kind: &'t MySqlTypeInfo,
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
