//! The randomness of an attempt: a stream of HMAC-SHA256 in counter mode, the same whenever the attempt is repeated.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes that one call may ask for.
pub(super) const RANDOM_BYTES_MAX: u32 = 65_536;

/// The stream of (tenant secret, handler, business key, generation).
pub(super) struct RandomStream {
    mac: Hmac<Sha256>,
    block: [u8; 32],
    used: usize,
    counter: u64,
}

impl RandomStream {
    /// Begins the stream. Fields are framed by their lengths, so that no two tuples make the same input.
    pub(super) fn new(secret: &[u8; 32], handler: &str, business_key: &[u8], generation: u32) -> Self {
        let mut mac = keyed(secret);
        for field in [b"oncebox random 1".as_slice(), handler.as_bytes(), business_key, &generation.to_be_bytes()] {
            mac.update(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_be_bytes());
            mac.update(field);
        }
        Self { mac, block: [0; 32], used: 32, counter: 0 }
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len);
        while out.len() < len {
            if self.used == self.block.len() {
                let mut mac = self.mac.clone();
                mac.update(&self.counter.to_be_bytes());
                self.block = mac.finalize().into_bytes().into();
                self.counter += 1;
                self.used = 0;
            }
            let wanted = (len - out.len()).min(self.block.len() - self.used);
            out.extend_from_slice(&self.block[self.used..self.used + wanted]);
            self.used += wanted;
        }
        out
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn keyed(secret: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_does_not_depend_on_how_it_is_cut() {
        let mut whole = RandomStream::new(&[7; 32], "points", b"order:42:paid", 0);
        let mut parts = RandomStream::new(&[7; 32], "points", b"order:42:paid", 0);
        let mut joined = parts.take(5);
        joined.extend(parts.take(0));
        joined.extend(parts.take(70));
        assert_eq!(whole.take(75), joined);
    }

    #[test]
    fn every_field_changes_the_stream_and_none_can_pass_for_its_neighbour() {
        let streams = [
            RandomStream::new(&[7; 32], "points", b"a", 0).take(16),
            RandomStream::new(&[8; 32], "points", b"a", 0).take(16),
            RandomStream::new(&[7; 32], "pointsa", b"", 0).take(16),
            RandomStream::new(&[7; 32], "points", b"b", 0).take(16),
            RandomStream::new(&[7; 32], "points", b"a", 1).take(16),
        ];
        let distinct: std::collections::BTreeSet<_> = streams.iter().collect();
        assert_eq!(distinct.len(), streams.len());
    }
}
