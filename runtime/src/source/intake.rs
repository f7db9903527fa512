//! What is the same for every kind of source: how messages are understood, and which handlers get them.

use std::sync::Arc;

use oncebox_core::{
    config::{self, Route, Unrouted},
    envelope::EnvelopeRule,
    identify::Limits,
};

/// A source's name, envelope and routes.
#[derive(Debug, Clone)]
pub struct Intake {
    /// The tenant's name.
    pub tenant: Arc<str>,
    /// Oncebox's name of the source.
    pub name: Arc<str>,
    /// How its messages are understood.
    pub envelope: EnvelopeRule,
    /// What becomes of a message that no route takes.
    pub unrouted: Unrouted,
    /// Limits of its messages.
    pub limits: Limits,
    /// The routes that begin here.
    routes: Vec<Route>,
}

impl Intake {
    /// The source of that name, with the routes of the tenant that begin at it.
    #[must_use]
    pub fn new(
        tenant: &Arc<str>,
        settings: &config::Tenant,
        name: &str,
        source: &config::Source,
        limits: Limits,
    ) -> Self {
        Self {
            tenant: tenant.clone(),
            name: name.into(),
            envelope: source.envelope.clone(),
            unrouted: source.unrouted,
            limits,
            routes: settings.routes.iter().filter(|route| route.source == name).cloned().collect(),
        }
    }

    /// The handlers that a route gives events of this type to. The configuration gives one handler an event once.
    #[must_use]
    pub fn handlers(&self, event_type: &str) -> Vec<&str> {
        let takes = |route: &&Route| {
            let types = &route.event_types;
            types.is_empty() || types.iter().any(|pattern| config::type_matches(pattern, event_type))
        };
        self.routes.iter().filter(takes).flat_map(|route| &route.handlers).map(String::as_str).collect()
    }

    /// Every handler that some event of the source may be for.
    pub fn all_handlers(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().flat_map(|route| &route.handlers).map(String::as_str)
    }
}
