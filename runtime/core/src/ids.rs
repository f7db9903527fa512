//! Newtypes for the byte strings that must never be mixed up.

use std::{fmt, sync::Arc};

/// The business's own name of an effect, e.g. `order:42:paid`; bytes, compared byte for byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusinessKey(Arc<[u8]>);

impl BusinessKey {
    /// Wraps the bytes of a key that a rule has rendered or a table has kept.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Into::<Vec<u8>>::into(bytes).into())
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BusinessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for BusinessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BusinessKey({})", shown(&self.0))
    }
}

/// Bytes made safe to print: UTF-8 text stays, control characters and other bytes become `\xNN`.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

macro_rules! fixed_bytes {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// The bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }

            /// Reads it back from a table's column; `None` when the length is not right.
            #[must_use]
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

fixed_bytes!(
    /// 32-byte hash of what must be equal in the payload when the key is equal.
    Fingerprint,
    32
);
fixed_bytes!(
    /// The sha256 of a packed component: a module's identity.
    ModuleDigest,
    32
);
fixed_bytes!(
    /// Hash of a message as the producer sent it: body, properties, routing key and headers without the broker's own.
    MessageHash,
    32
);
fixed_bytes!(
    /// What makes a row of `ob_held` unique: (handler, key, fingerprint), or (source, handler or none, message hash).
    HeldIdentity,
    32
);
fixed_bytes!(
    /// Hash of all that makes up a handler's rule.
    RuleHash,
    32
);
fixed_bytes!(
    /// The random value that every write under a lease, and every inbox row of a unit of work, must match.
    LeaseToken,
    16
);
fixed_bytes!(
    /// One life of a host process.
    BootId,
    16
);

impl ModuleDigest {
    /// Parses 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_key_never_carries_a_control_character() {
        assert_eq!(shown(b"order:\x1b[31m\0\xff\xc3\xa1"), "order:\\x1b[31m\\x00\\xff\u{e1}");
    }

    #[test]
    fn a_digest_reads_back_from_its_own_hexadecimal_form() {
        let digest = ModuleDigest([0xa7; 32]);
        assert_eq!(ModuleDigest::from_hex(&digest.to_string()), Some(digest));
        assert_eq!(ModuleDigest::from_hex("a7"), None);
    }
}
