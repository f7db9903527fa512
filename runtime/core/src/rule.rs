//! How a handler makes key, fingerprint and ordering key.
