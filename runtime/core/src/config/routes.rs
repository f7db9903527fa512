//! Reading `[[routes]]`, and checking that each handler gets each event once.

use super::{Route, keys, tenant::known_names};
use crate::{
    document::{Spot, Table, form::NAME, shape::Form},
    text::quoted,
};

type Named<'a, 'd> = &'a [(String, Table<'d>)];

/// Reads one route.
pub(super) fn read_route(table: &Table<'_>) -> Route {
    table.refuse_unknown(&keys::ROUTE);
    Route {
        source: table.value(&keys::ROUTE_SOURCE),
        event_types: table.value(&keys::ROUTE_EVENT_TYPES),
        handlers: table.value(&keys::ROUTE_HANDLERS),
    }
}

/// Refuses names of sources and handlers that are not there, and an event that a handler would get twice; warns of
/// sources and handlers that no route names.
pub(super) fn cross_check(routes: &[Table<'_>], sources: Named<'_, '_>, handlers: Named<'_, '_>) {
    let mut edges: Vec<Edge<'_>> = Vec::new();
    for route in routes {
        let source = route.item(keys::ROUTE_SOURCE.name).and_then(|item| Some((item.value.as_str()?, item.spot)));
        if let Some((name, spot)) = &source {
            refuse_absent("source", name, spot, sources);
        }
        for (handler, spot) in route.texts_with_spots(keys::ROUTE_HANDLERS.name) {
            refuse_absent("handler", handler, &spot, handlers);
            let Some((source, _)) = source else { continue };
            let event_types = route.texts_with_spots(keys::ROUTE_EVENT_TYPES.name);
            let event_types = event_types.into_iter().map(|(event_type, _)| event_type).collect();
            let edge = Edge { source, handler, event_types, route: route.spot.clone(), spot };
            edge.refuse_second(&edges);
            edges.push(edge);
        }
    }
    for (name, table) in sources {
        if !edges.iter().any(|edge| edge.source == name) {
            let message = format!("source {} stands in no route: its events have no handler", quoted(name));
            table.spot.warn(message, "add a route with it, or leave it out");
        }
    }
    for (name, table) in handlers {
        if !edges.iter().any(|edge| edge.handler == name) {
            let message = format!("handler {} stands in no route: it gets no event", quoted(name));
            table.spot.warn(message, "add it to a route, or leave it out");
        }
    }
}

/// One handler of one route.
struct Edge<'d> {
    source: &'d str,
    handler: &'d str,
    event_types: Vec<&'d str>,
    route: Spot<'d>,
    spot: Spot<'d>,
}

impl Edge<'_> {
    /// Refuses this edge when an earlier route brings the handler one of its events.
    fn refuse_second(&self, earlier: &[Edge<'_>]) {
        let same = earlier.iter().filter(|edge| edge.source == self.source && edge.handler == self.handler);
        // Twice in one route is refused where the list is read.
        for other in same.filter(|edge| !edge.route.is(&self.route)) {
            if let Some(event_type) = common_type(&self.event_types, &other.event_types) {
                let message = format!(
                    "handler {} gets event type {} of source {} by the route at {} already",
                    quoted(self.handler),
                    quoted(event_type),
                    quoted(self.source),
                    other.route.file_and_line(),
                );
                let help = "a handler gets an event once: leave it out of one of the two routes, or narrow event_types";
                self.spot.refuse(message, Some(help.to_owned()));
            }
        }
    }
}

fn refuse_absent(what: &str, name: &str, spot: &Spot<'_>, known: Named<'_, '_>) {
    let form: &Form = &NAME;
    if (form.check)(name).is_ok() && !known.iter().any(|(other, _)| other == name) {
        let help = known_names(&format!("{what}s"), known);
        spot.refuse(format!("the route names {what} {}, which the tenant does not have", quoted(name)), Some(help));
    }
}

/// An event type, or a beginning of some, that both lists take; no entries take all.
fn common_type<'a>(one: &[&'a str], other: &[&'a str]) -> Option<&'a str> {
    let all = |list: &[&'a str]| if list.is_empty() { vec!["*"] } else { list.to_vec() };
    let (one, other) = (all(one), all(other));
    one.iter().find_map(|a| other.iter().find_map(|b| common_pattern(a, b)))
}

/// The narrower of two patterns that have an event type in common.
fn common_pattern<'a>(a: &'a str, b: &'a str) -> Option<&'a str> {
    match (a.strip_suffix('*'), b.strip_suffix('*')) {
        (None, None) => (a == b).then_some(a),
        (Some(start), None) => b.starts_with(start).then_some(b),
        (None, Some(start)) => a.starts_with(start).then_some(a),
        (Some(start_a), Some(start_b)) if start_b.starts_with(start_a) => Some(b),
        (Some(start_a), Some(start_b)) => start_a.starts_with(start_b).then_some(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_patterns_have_in_common_what_the_narrower_one_takes() {
        for (a, b, common) in [
            ("a", "a", Some("a")),
            ("a", "b", None),
            ("order.*", "order.paid", Some("order.paid")),
            ("order.paid", "order.*", Some("order.paid")),
            ("order.*", "member.joined", None),
            ("order.*", "order.paid.*", Some("order.paid.*")),
            ("order.paid.*", "*", Some("order.paid.*")),
            ("order.*", "member.*", None),
        ] {
            assert_eq!(common_pattern(a, b), common, "{a} {b}");
        }
    }

    #[test]
    fn a_list_without_entries_takes_all() {
        assert_eq!(common_type(&[], &[]), Some("*"));
        assert_eq!(common_type(&[], &["x"]), Some("x"));
        assert_eq!(common_type(&["x", "y"], &["z", "y"]), Some("y"));
    }
}
