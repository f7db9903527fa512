//! What a producer may put into a message and the client library cannot bear.
//!
//! AMQP's short strings and the names of headers are bytes; the library takes only UTF-8 for them and drops the whole
//! connection at anything else, so that one message would stop its queue for good, and count up the deliveries of its
//! neighbours. Tables nested thousands deep would end the process: the library reads them by recursion. The sieve looks
//! at each frame before the library does and rewrites the few that it must. Nothing is lost by that: bytes that are no
//! text come through as a header of their own ([`RAW`]), and become the message's property again.

use std::collections::HashMap;

/// Beginning of the name of a header that carries a property's bytes: `oncebox-raw:message-id`.
pub(super) const RAW: &str = "oncebox-raw:";

/// Tables in tables, at most; what is deeper is replaced.
const DEPTH_MAX: usize = 32;

/// What stands for it.
const TOO_DEEP: &[u8] = b"(nested too deeply)";

/// A frame beyond this is no frame of a broker that keeps to what was agreed.
const FRAME_MAX: usize = 4 << 20;

/// Channel, size and type before a frame's payload; one byte behind it.
const HEAD: usize = 7;

const METHOD: u8 = 1;
const HEADER: u8 = 2;

/// Facts of a message that are no text, by name.
type Facts = Vec<(&'static str, Vec<u8>)>;

/// Looks at what comes in, frame by frame.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    /// The beginning of a frame that is looked at as a whole.
    partial: Vec<u8>,
    /// Bytes that go through as they are.
    pass: usize,
    /// Nothing is looked at any more: this is not AMQP.
    blind: bool,
    /// Of each channel: the facts of a delivery whose header has not come yet.
    raw: HashMap<u16, Facts>,
}

impl Sieve {
    /// Takes in what has come and gives out what the library may see.
    pub(super) fn push(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        while !input.is_empty() {
            if self.blind {
                out.extend_from_slice(input);
                return;
            }
            if self.pass > 0 {
                let (through, rest) = input.split_at(self.pass.min(input.len()));
                out.extend_from_slice(through);
                self.pass -= through.len();
                input = rest;
                continue;
            }
            let wanted = self.frame_len().unwrap_or(HEAD) - self.partial.len();
            let (part, rest) = input.split_at(wanted.min(input.len()));
            self.partial.extend_from_slice(part);
            input = rest;
            self.frame(out);
        }
    }

    /// The length of the frame that has begun, once its head is there.
    fn frame_len(&self) -> Option<usize> {
        let size = self.partial.get(3..HEAD)?;
        Some(HEAD + usize::try_from(u32::from_be_bytes(size.try_into().ok()?)).ok()? + 1)
    }

    /// Lets the frame that has begun go if it is complete, or its head if it is not looked at.
    fn frame(&mut self, out: &mut Vec<u8>) {
        let Some(len) = self.frame_len() else { return };
        let kind = self.partial[0];
        if self.partial.starts_with(b"AMQP") || len > FRAME_MAX {
            self.blind = true;
            out.append(&mut self.partial);
        } else if kind != METHOD && kind != HEADER {
            self.pass = len - self.partial.len();
            out.append(&mut self.partial);
        } else if self.partial.len() == len {
            let frame = std::mem::take(&mut self.partial);
            match self.rewritten(&frame) {
                Some(payload) => {
                    out.extend_from_slice(&frame[..3]);
                    out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
                    out.extend_from_slice(&payload);
                    out.push(frame[len - 1]);
                }
                None => out.extend_from_slice(&frame),
            }
        }
    }

    /// The payload as the library can read it; `None`: it can, or nobody can.
    fn rewritten(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let channel = u16::from_be_bytes([frame[1], frame[2]]);
        let payload = &frame[HEAD..frame.len() - 1];
        if frame[0] == METHOD {
            let (payload, raw) = deliver(payload)?;
            if raw.is_empty() {
                self.raw.remove(&channel);
                return None;
            }
            self.raw.insert(channel, raw);
            return Some(payload);
        }
        let raw = self.raw.remove(&channel).unwrap_or_default();
        content_header(payload, raw)
    }
}

/// A `basic.deliver` with exchange and routing key as text; those that were none, as they came.
fn deliver(payload: &[u8]) -> Option<(Vec<u8>, Facts)> {
    let mut reader = Reader(payload);
    if reader.take(4)? != [0, 60, 0, 60] {
        return None;
    }
    reader.short()?;
    reader.take(9)?;
    let mut out = payload[..payload.len() - reader.0.len()].to_vec();
    let mut raw = Vec::new();
    for name in ["exchange", "routing-key"] {
        let bytes = reader.short()?;
        if std::str::from_utf8(bytes).is_ok() {
            short(bytes, &mut out);
        } else {
            short(&shown(bytes), &mut out);
            raw.push((name, bytes.to_vec()));
        }
    }
    out.extend_from_slice(reader.0);
    Some((out, raw))
}

/// The properties that come in this order, each with its bit of the flags.
const PROPERTIES: [(u16, &str, Shape); 14] = [
    (15, "content-type", Shape::Short),
    (14, "content-encoding", Shape::Short),
    (13, "headers", Shape::Table),
    (12, "delivery-mode", Shape::Fixed(1)),
    (11, "priority", Shape::Fixed(1)),
    (10, "correlation-id", Shape::Short),
    (9, "reply-to", Shape::Short),
    (8, "expiration", Shape::Short),
    (7, "message-id", Shape::Short),
    (6, "timestamp", Shape::Fixed(8)),
    (5, "type", Shape::Short),
    (4, "user-id", Shape::Short),
    (3, "app-id", Shape::Short),
    (2, "cluster-id", Shape::Short),
];

const HEADERS_BIT: u16 = 1 << 13;

#[derive(Clone, Copy)]
enum Shape {
    Short,
    Table,
    Fixed(usize),
}

/// A content header whose short strings are text and whose tables are not too deep, with `raw` as headers; `None`: it is
/// so already, or is no header that can be read.
fn content_header(payload: &[u8], mut raw: Facts) -> Option<Vec<u8>> {
    let mut reader = Reader(payload);
    let head = reader.take(12)?;
    let mut flags = u16::from_be_bytes(reader.take(2)?.try_into().ok()?);
    let (mut before, mut table, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let mut changed = !raw.is_empty();
    for (bit, name, shape) in PROPERTIES {
        if flags & (1 << bit) == 0 {
            continue;
        }
        let out = if bit > 13 { &mut before } else { &mut after };
        match shape {
            Shape::Fixed(len) => out.extend_from_slice(reader.take(len)?),
            Shape::Table => changed |= copy_table(reader.long()?, 1, &mut table)?,
            Shape::Short => {
                let bytes = reader.short()?;
                if std::str::from_utf8(bytes).is_ok() {
                    short(bytes, out);
                } else {
                    flags &= !(1 << bit);
                    raw.push((name, bytes.to_vec()));
                    changed = true;
                }
            }
        }
    }
    if !changed {
        return None;
    }
    for (name, bytes) in raw {
        short(format!("{RAW}{name}").as_bytes(), &mut table);
        table.push(b'S');
        long(&bytes, &mut table);
    }
    if !table.is_empty() {
        flags |= HEADERS_BIT;
    }
    let mut out = [head, &flags.to_be_bytes(), &before].concat();
    if flags & HEADERS_BIT != 0 {
        long(&table, &mut out);
    }
    out.extend_from_slice(&after);
    Some(out)
}

/// Copies a table's entries; whether one of them had to be changed. `None`: it is no table.
fn copy_table(entries: &[u8], depth: usize, out: &mut Vec<u8>) -> Option<bool> {
    let (mut reader, mut changed) = (Reader(entries), false);
    while !reader.0.is_empty() {
        let name = reader.short()?;
        if std::str::from_utf8(name).is_ok() {
            short(name, out);
        } else {
            short(&shown(name), out);
            changed = true;
        }
        changed |= copy_value(&mut reader, depth, out)?;
    }
    Some(changed)
}

fn copy_value(reader: &mut Reader<'_>, depth: usize, out: &mut Vec<u8>) -> Option<bool> {
    let kind = *reader.take(1)?.first()?;
    let fixed = match kind {
        b't' | b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        b'V' => 0,
        b'S' | b'x' => {
            out.push(kind);
            long(reader.long()?, out);
            return Some(false);
        }
        b'F' | b'A' if depth >= DEPTH_MAX => {
            reader.long()?;
            out.push(b'S');
            long(TOO_DEEP, out);
            return Some(true);
        }
        b'F' | b'A' => {
            let (mut inner, mut changed) = (Vec::new(), false);
            let entries = reader.long()?;
            if kind == b'F' {
                changed = copy_table(entries, depth + 1, &mut inner)?;
            } else {
                let mut values = Reader(entries);
                while !values.0.is_empty() {
                    changed |= copy_value(&mut values, depth + 1, &mut inner)?;
                }
            }
            out.push(kind);
            long(&inner, out);
            return Some(changed);
        }
        _ => return None,
    };
    out.push(kind);
    out.extend_from_slice(reader.take(fixed)?);
    Some(false)
}

/// Bytes as text: what is no UTF-8 as `%` and two digits, cut to what a short string holds.
fn shown(bytes: &[u8]) -> Vec<u8> {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
    }
    let cut = out.floor_char_boundary(usize::from(u8::MAX));
    out.truncate(cut);
    out.into_bytes()
}

fn short(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(bytes);
}

fn long(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// What is left of a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let len = *self.take(1)?.first()?;
        self.take(len.into())
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        self.take(usize::try_from(len).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind, 0, 1];
        long(payload, &mut frame);
        frame.push(0xce);
        frame
    }

    fn sifted(input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Sieve::default().push(input, &mut out);
        out
    }

    fn shorts(texts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        texts.iter().for_each(|text| short(text, &mut out));
        out
    }

    fn table(entries: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, kind, value) in entries {
            short(name, &mut out);
            out.push(*kind);
            if b"SFAx".contains(kind) { long(value, &mut out) } else { out.extend_from_slice(value) }
        }
        out
    }

    /// A content header with these flags and properties.
    fn header(flags: u16, properties: &[u8]) -> Vec<u8> {
        frame(HEADER, &[&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4], flags.to_be_bytes().as_slice(), properties].concat())
    }

    fn long_of(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        long(bytes, &mut out);
        out
    }

    fn delivery(exchange: &[u8], routing_key: &[u8]) -> Vec<u8> {
        let rest = [&[0, 0, 0, 0, 0, 0, 0, 7, 1], shorts(&[exchange, routing_key]).as_slice()].concat();
        frame(METHOD, &[&[0, 60, 0, 60], shorts(&[b"tag"]).as_slice(), &rest].concat())
    }

    #[test]
    fn what_the_library_can_read_goes_through_as_it_came() {
        let all_kinds = table(&[
            (b"t", b't', &[1]),
            (b"s", b's', &[0, 1]),
            (b"I", b'I', &[0, 0, 0, 1]),
            (b"D", b'D', &[2, 0, 0, 0, 1]),
            (b"T", b'T', &[0; 8]),
            (b"V", b'V', &[]),
            (b"S", b'S', b"\xff is allowed here"),
            (b"F", b'F', &table(&[("ü".as_bytes(), b'x', &[0xff])])),
            (b"A", b'A', &[b'V', b't', 0]),
        ]);
        let frames = [
            delivery(b"shop", "schlüssel".as_bytes()),
            header(1 << 15 | HEADERS_BIT | 1 << 12, &[shorts(&[b"text/plain"]), long_of(&all_kinds), vec![2]].concat()),
            frame(3, b"\xff\xfebody"),
            frame(8, b""),
            frame(METHOD, &[0, 60, 0, 31, 0xff]),
            header(0, b""),
        ]
        .concat();
        assert_eq!(sifted(&frames), frames);
        assert_eq!(sifted(b"AMQP\0\0\x09\x01"), b"AMQP\0\0\x09\x01");
    }

    #[test]
    fn it_does_not_matter_in_which_pieces_it_comes() {
        let input =
            [delivery(b"", b"\xff"), header(1 << 7, &shorts(&[b"\xfe"])), frame(3, b"body"), header(0, b"")].concat();
        let whole = sifted(&input);
        assert_ne!(whole, input);
        for size in 1..input.len() {
            let (mut sieve, mut out) = (Sieve::default(), Vec::new());
            input.chunks(size).for_each(|piece| sieve.push(piece, &mut out));
            assert_eq!(out, whole, "{size}");
        }
    }

    #[test]
    fn a_property_that_is_no_text_comes_as_a_header() {
        let flags = 1 << 15 | 1 << 7 | 1 << 6;
        let properties = [shorts(&[b"text/plain", b"id-\xff"]), vec![0; 8]].concat();
        let expected =
            [shorts(&[b"text/plain"]), long_of(&table(&[(b"oncebox-raw:message-id", b'S', b"id-\xff")])), vec![0; 8]]
                .concat();
        assert_eq!(sifted(&header(flags, &properties)), header(1 << 15 | HEADERS_BIT | 1 << 6, &expected));
    }

    #[test]
    fn so_does_a_routing_key_and_only_with_its_own_delivery() {
        let input = [delivery(b"", b"key-\xff"), header(0, b""), delivery(b"", b"key"), header(0, b"")].concat();
        let raw = long_of(&table(&[(b"oncebox-raw:routing-key", b'S', b"key-\xff")]));
        let expected =
            [delivery(b"", b"key-%FF"), header(HEADERS_BIT, &raw), delivery(b"", b"key"), header(0, b"")].concat();
        assert_eq!(sifted(&input), expected);
    }

    #[test]
    fn a_name_that_is_no_text_is_shown_as_text_and_cut() {
        let long_name = [[0xff; 100].as_slice(), b"abc"].concat();
        let input = table(&[(b"n\xff", b'V', &[]), (&long_name, b't', &[1])]);
        let expected = table(&[(b"n%FF", b'V', &[]), ("%FF".repeat(85).as_bytes(), b't', &[1])]);
        assert_eq!(sifted(&header(HEADERS_BIT, &long_of(&input))), header(HEADERS_BIT, &long_of(&expected)));
    }

    #[test]
    fn what_is_nested_too_deeply_is_replaced_where_it_begins_to_be() {
        let nested = |depth: usize, innermost: (u8, &[u8])| {
            (1..depth).fold(table(&[(b"n", innermost.0, innermost.1)]), |inner, _| table(&[(b"n", b'F', &inner)]))
        };
        let allowed = header(HEADERS_BIT, &long_of(&nested(32, (b'V', &[]))));
        assert_eq!(sifted(&allowed), allowed);
        let deep = header(HEADERS_BIT, &long_of(&nested(10_000, (b'V', &[]))));
        assert_eq!(sifted(&deep), header(HEADERS_BIT, &long_of(&nested(32, (b'S', TOO_DEEP)))));
    }

    #[test]
    fn what_nobody_can_read_goes_through_for_the_library_to_refuse() {
        for payload in [b"".as_slice(), &[0, 60, 0, 60], &[0, 60, 0, 60, 200, 1]] {
            let input = frame(METHOD, payload);
            assert_eq!(sifted(&input), input);
        }
        for properties in [b"".as_slice(), &[9, 1], &[0, 0, 0, 9]] {
            let input = header(1 << 15 | HEADERS_BIT, properties);
            assert_eq!(sifted(&input), input);
        }
        let unknown = header(HEADERS_BIT, &long_of(&table(&[(b"n", b'?', &[])])));
        assert_eq!(sifted(&unknown), unknown);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(input in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            sifted(&input);
            sifted(&header(0xfffc, &input));
            sifted(&frame(METHOD, &[&[0, 60, 0, 60], input.as_slice()].concat()));
        }
    }
}
