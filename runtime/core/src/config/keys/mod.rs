//! The keys of `oncebox.toml` and `tenants.d/NAME.toml`: what the reader accepts and the reference page prints.

mod handler;
mod host;
mod server;
mod source;
mod store;
mod tenant;

pub(crate) use self::{handler::*, host::*, server::*, source::*, store::*, tenant::*};
use crate::document::{
    key::{Nested, Section},
    page,
};

pub(crate) static HOST: Nested =
    Nested { name: "host", shape: "table", absent: "the defaults", means: "what holds for the whole host" };
pub(crate) static TENANTS: Nested = Nested {
    name: "tenants",
    shape: "tables by name, `[a-z0-9-]{1,64}`",
    absent: "none",
    means: "the tenants; each may stand in a file of its own, `tenants.d/NAME.toml`, with the same keys",
};

/// The whole file.
pub(crate) static FILE: Section =
    Section { path: "", about: "The configuration of one host.", keys: &[&HOST, &TENANTS] };

/// The reference page of `oncebox.toml`, as it stands in `docs/reference/config.md`.
#[must_use]
pub fn reference() -> String {
    page::page(
        "oncebox.toml: the configuration",
        "What the operator says. A key that is not listed here is refused, so that none is believed in that does nothing.",
        &[
            &FILE,
            &HOST_SECTION,
            &HOST_LIMITS_SECTION,
            &TENANT,
            &STORE_SECTION,
            &SECRET_SECTION,
            &CONNECTION,
            &SOURCE,
            &ENVELOPE_SECTION,
            &ROUTE,
            &HANDLER,
            &LIMITS_SECTION,
            &RETRY_SECTION,
            &DESTINATION,
        ],
    )
}
