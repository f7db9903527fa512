//! The cases, by what they are about.

pub(crate) mod books;
pub(crate) mod catalogue;
pub(crate) mod embedded;
pub(crate) mod fleet;
pub(crate) mod folded;
pub(crate) mod held;
pub(crate) mod inbox;
pub(crate) mod lifecycle;
pub(crate) mod local;
pub(crate) mod modules;
pub(crate) mod order;
pub(crate) mod savepoints;
pub(crate) mod server_faults;
pub(crate) mod server_locks;
pub(crate) mod server_tls;
pub(crate) mod server_types;
pub(crate) mod starts;
pub(crate) mod statements;
pub(crate) mod stories;
