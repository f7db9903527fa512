//! Modules as files: making one from a plugin's folder, packing its manifest into it, and reading what it may do.
//!
//! Nothing here runs a module or decides whether it may serve; that is for the plugin engine and the SQL gate.

mod artifact;
mod build;
mod encode;
mod error;
mod inspect;
mod pack;
mod report;

pub use build::{Built, build};
pub use error::ModuleError;
pub use inspect::{
    InspectedConfig, InspectedDestination, InspectedParam, InspectedQuery, InspectedStatement, Inspection, inspect,
};
pub use pack::{MANIFEST_SECTION, digest, manifest, manifest_section, pack};
