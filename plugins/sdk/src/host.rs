//! The one door to the host: in a component the contract's imports, natively the stand-in of [`crate::testing`].

#[cfg(not(target_arch = "wasm32"))]
use crate::testing::current as host;
use crate::{
    Value,
    bindings::oncebox::handler::{db, types},
    log::Level,
};
#[cfg(target_arch = "wasm32")]
use imports as host;

/// Stages a declared statement. Nothing is written when this returns.
pub fn stage(statement: &str, params: &[Value]) {
    host::stage(statement, params);
}

/// Asks a declared query, inside the open unit of work.
pub fn query(query: &str, params: &[Value]) -> db::Rows {
    host::query(query, params)
}

/// A declared configuration value.
pub fn config(name: &str) -> Option<String> {
    host::config(name)
}

pub(crate) fn emit(destination: &str, event: &types::Outgoing) -> String {
    host::emit(destination, event)
}

pub(crate) fn log(level: Level, message: &str, fields: &[(String, String)]) {
    host::log(level, message, fields);
}

pub(crate) fn now_us() -> u64 {
    host::now_us()
}

pub(crate) fn random(len: u32) -> Vec<u8> {
    host::random(len)
}

pub(crate) fn attempt() -> u32 {
    host::attempt()
}

pub(crate) fn generation() -> u32 {
    host::generation()
}

pub(crate) fn tenant() -> String {
    host::tenant()
}

pub(crate) fn handler() -> String {
    host::handler()
}

pub(crate) fn traceparent() -> Option<String> {
    host::traceparent()
}

#[cfg(target_arch = "wasm32")]
mod imports {
    pub(super) use crate::bindings::oncebox::handler::{
        config::get as config,
        context::{attempt, generation, handler, now_us, random, tenant, traceparent},
        db::{query, stage},
        events::emit,
        log::write as log,
    };
}
