//! AMQP 0-9-1, as far as it is needed to see acks and deliveries: frames, methods, contents (the specification, 2.3.5 and
//! 4.2).

use super::link::Says;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const BASIC: u16 = 60;
const PUBLISH: u16 = 40;
const RETURN: u16 = 50;
const DELIVER: u16 = 60;
const GET_OK: u16 = 71;
const ACK: u16 = 80;
/// What a client says first, before any frame; a server that wants another version too.
const GREETING: &[u8] = b"AMQP";
const GREETING_LENGTH: usize = 8;

/// Reads one way of a connection.
#[derive(Default)]
pub(super) struct Reader {
    is_greeted: bool,
}

struct Frame<'a> {
    kind: u8,
    channel: u16,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// Class and method.
    fn method(&self) -> Option<(u16, u16)> {
        if self.kind != METHOD {
            return None;
        }
        Some((short(self.payload)?, short(self.payload.get(2..)?)?))
    }
}

impl Reader {
    /// The first message and its length: a frame, or a method with all of its content.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<(usize, Says)> {
        if !self.is_greeted {
            let is_greeting = bytes.get(..GREETING.len())? == GREETING;
            if is_greeting && bytes.len() < GREETING_LENGTH {
                return None;
            }
            self.is_greeted = true;
            if is_greeting {
                return Some((GREETING_LENGTH, Says::Nothing));
            }
        }
        let (frame, end) = frame(bytes, 0)?;
        match frame.method() {
            Some((BASIC, DELIVER)) => Some((content(bytes, end, frame.channel)?, Says::Delivery)),
            Some((BASIC, PUBLISH | RETURN | GET_OK)) => Some((content(bytes, end, frame.channel)?, Says::Nothing)),
            Some((BASIC, ACK)) => Some((end, Says::Ack)),
            Some(_) | None => Some((end, Says::Nothing)),
        }
    }
}

/// Where the content of a channel ends; frames of other channels may stand between its own.
fn content(bytes: &[u8], mut at: usize, channel: u16) -> Option<usize> {
    let mut left: Option<u64> = None;
    while left != Some(0) {
        let (frame, end) = frame(bytes, at)?;
        at = end;
        if frame.channel != channel {
            continue;
        }
        match (frame.kind, left) {
            // Class, weight, and the size of the body.
            (HEADER, None) => left = Some(u64::from_be_bytes(*frame.payload.get(4..)?.first_chunk()?)),
            (BODY, Some(size)) => left = Some(size.saturating_sub(u64::try_from(frame.payload.len()).ok()?)),
            // The channel was closed in the midst of it.
            _ => return Some(end),
        }
    }
    Some(at)
}

/// The frame at a place, and where it ends: type, channel, size, payload, end byte.
fn frame(bytes: &[u8], at: usize) -> Option<(Frame<'_>, usize)> {
    let bytes = bytes.get(at..)?;
    let (kind, channel) = (*bytes.first()?, short(bytes.get(1..)?)?);
    let size = usize::try_from(u32::from_be_bytes(*bytes.get(3..)?.first_chunk()?)).ok()?;
    let end = 7 + size;
    bytes.get(end)?;
    Some((Frame { kind, channel, payload: &bytes[7..end] }, at + end + 1))
}

fn short(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}
