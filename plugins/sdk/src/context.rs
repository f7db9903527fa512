//! What a handler may know besides the event. All of it is the same at every attempt, but for [`attempt`].

use crate::host;

/// The time at which the host first recorded the event, in microseconds since 1970-01-01 UTC.
///
/// It is kept from the first parking on, so that a later attempt sees the same time. There is no other clock.
#[must_use]
pub fn now_us() -> u64 {
    host::now_us()
}

/// `len` random bytes, the same at every attempt for this event's business key.
///
/// They come from a secret of the tenant and are not to be guessed from outside; ids made from them are stable, so that
/// a second attempt makes the same row.
#[must_use]
pub fn random(len: u32) -> Vec<u8> {
    host::random(len)
}

/// [`random`] bytes as lower-case hexadecimal digits, two for each byte: an id for a text column.
#[must_use]
pub fn random_hex(len: u32) -> String {
    let mut hex = String::with_capacity(2 * len as usize);
    for byte in random(len) {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    hex
}

/// The number of this attempt, from 1.
#[must_use]
pub fn attempt() -> u32 {
    host::attempt()
}

/// 0, and one more for each time that a person has authorised this business key to be applied again.
#[must_use]
pub fn generation() -> u32 {
    host::generation()
}

/// The name of the tenant.
#[must_use]
pub fn tenant() -> String {
    host::tenant()
}

/// The name under which the tenant runs this handler.
#[must_use]
pub fn handler() -> String {
    host::handler()
}

/// The message's own W3C trace context, unchanged.
#[must_use]
pub fn traceparent() -> Option<String> {
    host::traceparent()
}
