//! Oncebox: a host runtime for event handlers.

pub mod module;
pub mod plugin;
