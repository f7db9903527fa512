//! Key, fingerprint and ordering key of a message for one handler.
