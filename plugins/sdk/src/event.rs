//! Reading an event.

use serde::de::DeserializeOwned;

use crate::{Event, Failure};

impl Event {
    /// Reads the payload as JSON.
    ///
    /// # Errors
    /// [`Failure::reject`] with code `bad-payload`, saying where the payload is not what `T` expects: it would not be
    /// so at the next attempt either.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(serde_json::from_slice(&self.payload)?)
    }

    /// The value of the first header of that name, compared without regard to ASCII case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value.as_slice())
    }

    /// The value of a CloudEvents extension attribute, or of a fact that the host adds (queue, partition, …).
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}
