//! Numbers within a range.

use super::Shape;
use crate::document::{Item, key::grouped};

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
