//! Templates of keys.
