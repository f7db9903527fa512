//! Events that a handler sends.

use serde::Serialize;

use crate::{Failure, bindings::oncebox::handler::types, host};

/// An event on its way to a destination; begun by the function that `manifest!` makes for the destination, ended by
/// [`Outgoing::emit`].
#[derive(Debug, Clone, PartialEq)]
#[must_use = "nothing is sent before `emit`"]
pub struct Outgoing {
    destination: &'static str,
    event: types::Outgoing,
}

impl Outgoing {
    pub(crate) fn new(destination: &'static str, ordering_key: Option<&[u8]>) -> Self {
        let event = types::Outgoing {
            event_type: String::new(),
            subject: None,
            content_type: None,
            schema: None,
            ordering_key: ordering_key.map(<[u8]>::to_vec),
            delay_ms: None,
            attributes: Vec::new(),
            headers: Vec::new(),
            payload: Vec::new(),
        };
        Self { destination, event }
    }

    /// Sets type and body: `body` as JSON, content type `application/json`.
    ///
    /// # Errors
    /// [`Failure::reject`] with code `bad-outgoing` when `body` has no JSON form (a map with keys that are not texts).
    pub fn json(self, event_type: impl Into<String>, body: &impl Serialize) -> Result<Self, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::reject("bad-outgoing", error.to_string()))?;
        Ok(self.body(event_type, "application/json", body))
    }

    /// Sets type and body: any bytes, with their content type.
    pub fn body(
        mut self,
        event_type: impl Into<String>,
        content_type: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        self.event.event_type = event_type.into();
        self.event.content_type = Some(content_type.into());
        self.event.payload = body.into();
        self
    }

    /// Sets what the event is about (CloudEvents `subject`).
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.event.subject = Some(subject.into());
        self
    }

    /// Names the schema of the body (CloudEvents `dataschema`).
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.event.schema = Some(schema.into());
        self
    }

    /// Holds the event back until `ms` milliseconds after the commit.
    pub fn delay_ms(mut self, ms: u64) -> Self {
        self.event.delay_ms = Some(ms);
        self
    }

    /// Adds an attribute that the kind of destination knows, e.g. `amqp.priority`.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.event.attributes.push((name.into(), value.into()));
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.event.headers.push(types::Header { name: name.into(), value: value.into() });
        self
    }

    /// Asks the host to send the event if, and only if, this attempt is applied; returns the id that it will carry,
    /// the same at every attempt.
    pub fn emit(self) -> String {
        host::emit(self.destination, &self.event)
    }
}
