//! Starts and their ends: what Blame writes down of deliveries and claims.

use std::sync::Arc;

use oncebox_core::{
    blame::{Open, Starts},
    ids::{LeaseToken, MessageHash},
};

use super::{HandlerId, HeldId, StoreError};

/// What a message is known by before anything is understood of it: the source and the message's hash.
pub type MessageKey = (Arc<str>, MessageHash);

/// A row of `ob_start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRow {
    /// Of which message.
    pub message: MessageHash,
    /// Whose run alone; `HandlerId::NONE`: of the message, beside others.
    pub handler: HandlerId,
    /// Those that have no end.
    pub starts: Starts,
}

/// An end: of a message, with all that was begun of it, or of one handler's run alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartEnd {
    /// Of which message.
    pub message: MessageKey,
    /// Whose run alone; `None`: the message is decided.
    pub handler: Option<HandlerId>,
}

/// What is about to run alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspect {
    /// A delivery, for this handler.
    Delivered(MessageKey, HandlerId),
    /// A claim, under this token.
    Claimed(HeldId, LeaseToken),
}

/// Hashes as a list that the database takes apart: one text, however many there are.
pub(super) fn listed(messages: &[MessageHash]) -> String {
    let hashes: Vec<String> = messages.iter().map(ToString::to_string).collect();
    serde_json::to_string(&hashes).unwrap_or_default()
}

/// Ends as such a list: source and hash in hexadecimal digits, and a handler or null.
pub(super) fn ends_listed(ends: &[StartEnd]) -> String {
    let ends: Vec<(String, String, Option<i64>)> = ends
        .iter()
        .map(|StartEnd { message: (source, hash), handler }| {
            (hex(source.as_bytes()), hash.to_string(), handler.map(|handler| handler.0))
        })
        .collect();
    serde_json::to_string(&ends).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Reads a column of starts.
pub(super) fn starts(table: &'static str, bytes: &[u8]) -> Result<Starts, StoreError> {
    let corrupt = || StoreError::Corrupt { table, message: "a column of starts holds something else".to_owned() };
    Starts::from_bytes(bytes).ok_or_else(corrupt)
}

/// The two columns of a held row.
pub(super) fn columns(open: &Open) -> (Vec<u8>, Vec<u8>) {
    (open.beside.to_bytes(), open.alone.to_bytes())
}
