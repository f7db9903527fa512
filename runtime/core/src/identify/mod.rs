//! Key, fingerprint and ordering key of a message for one handler.
//!
//! The second half of the step "identify"; the first, from message to event, is [`crate::envelope`].
//! Pure: the same message and rule give the same identity, on every host and at each delivery.

mod hash;
mod poison;

pub(crate) use hash::hex;
pub use hash::{held_identity_of_key, held_identity_of_message, message_hash, outgoing_event_id};
pub use poison::{Poison, PoisonCode};

use crate::{
    config::HostLimits,
    envelope::Envelope,
    fingerprint::fingerprint,
    ids::{BusinessKey, Fingerprint},
    message::Message,
    rule::Rule,
};

/// The limits that a message must keep to be identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `key_bytes_max`: bytes of a rendered business or ordering key.
    pub key_bytes_max: usize,
    /// `payload_bytes_max`: bytes of a message's body.
    pub payload_bytes_max: usize,
}

impl From<&HostLimits> for Limits {
    fn from(limits: &HostLimits) -> Self {
        Self {
            key_bytes_max: usize::try_from(limits.key_bytes_max).unwrap_or(usize::MAX),
            payload_bytes_max: usize::try_from(limits.payload_bytes_max).unwrap_or(usize::MAX),
        }
    }
}

/// What a message is to one handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The business's own name of the effect.
    pub key: BusinessKey,
    /// What must be equal when the key is equal.
    pub fingerprint: Fingerprint,
    /// Deliveries with the same one are applied in arrival order; `None` when the handler asks for no order.
    pub ordering_key: Option<Vec<u8>>,
}

/// Identifies an opened message by a handler's rule. `message` is the one that the envelope was opened from.
///
/// # Errors
/// [`Poison`]: the message has no identity for this handler.
pub fn identify(envelope: &Envelope, message: &Message, rule: &Rule, limits: &Limits) -> Result<Identity, Poison> {
    let values = envelope.values(message);
    let key = rule.key().render(values, limits.key_bytes_max).map_err(|error| Poison::of_key(&error))?;
    let fingerprint = fingerprint(rule.fingerprint(), envelope.payload_form(message))
        .map_err(|error| Poison::of_fingerprint(&error))?;
    let ordering_key = rule
        .ordering()
        .map(|template| template.render(values, limits.key_bytes_max))
        .transpose()
        .map_err(|error| Poison::of_ordering_key(&error))?;
    Ok(Identity { key: BusinessKey::new(key), fingerprint, ordering_key })
}

#[cfg(test)]
mod tests;
