//! The hash of what must be equal when the key is equal.
