//! Where deliveries come from. This build has one kind: `local`, a table of the tenant's own database.

mod local;

pub use local::{LocalSource, Taken};
