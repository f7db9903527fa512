//! What a source hands over, before anything of it is understood.

/// One header: the name as text, the value as bytes, in the order received, duplicates kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The header's name as received.
    pub name: String,
    /// The header's value, byte for byte.
    pub value: Vec<u8>,
}

impl Header {
    /// A header from its parts.
    pub fn new(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// A message as the broker holds it, without the facts that differ from one delivery to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// Headers in order, without the broker's own (`x-delivery-count`, `x-death`, …).
    pub headers: Vec<Header>,
    /// The transport's content type, when it has one.
    pub content_type: Option<String>,
    /// Transport facts that a template may name, by the placeholder's full name: `amqp:message-id`, `kafka:key`, …
    pub properties: Vec<(String, Vec<u8>)>,
    /// Host facts equal at each delivery (queue, routing key, partition, offset), shown to the plugin as attributes.
    pub position: Vec<(String, String)>,
}

impl Message {
    /// The first header of that name, compared without regard to ASCII case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value.as_slice())
    }

    /// The transport property of that full placeholder name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&[u8]> {
        self.properties.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }
}
