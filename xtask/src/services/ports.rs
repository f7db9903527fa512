//! Ports of the loopback interface that nobody else listens on.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, TcpListener},
};

use crate::run::{Failed, Result};

/// The ports of one instance, by what they are for.
pub(super) type Ports = BTreeMap<String, u16>;

/// How far from the wanted port another is looked for, and in which steps: the neighbours are often somebody's default.
const REACH: u16 = 500;
const STEP: usize = 10;

/// Chooses a port for each purpose: the wanted one, or one above it that is free and not chosen here already.
pub(super) fn choose(wanted: &[(&str, u16)], free: impl Fn(u16) -> bool) -> Result<Ports> {
    let mut ports = Ports::new();
    for (purpose, first) in wanted {
        let last = first.saturating_add(REACH);
        // The other wanted ones are left to those who want them.
        let asked = |port: u16| wanted.iter().any(|(name, number)| name != purpose && *number == port);
        let port = (*first..=last)
            .step_by(STEP)
            .find(|port| !asked(*port) && !ports.values().any(|p| p == port) && free(*port));
        let port = port.ok_or_else(|| {
            Failed::Step(format!("failed to find a free port for `{purpose}` from {first} to {last}; end what listens"))
        })?;
        ports.insert((*purpose).to_owned(), port);
    }
    Ok(ports)
}

/// Whether nobody listens on that port.
pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_gives_way_to_one_above_it_that_nobody_wants() {
        let wanted = [("port", 100), ("tls_port", 101), ("api_port", 110)];
        let chosen = |free: fn(u16) -> bool| {
            let ports = choose(&wanted, free).unwrap();
            [ports["port"], ports["tls_port"], ports["api_port"]]
        };
        assert_eq!(chosen(|_| true), [100, 101, 110]);
        assert_eq!(chosen(|port| port != 100), [120, 101, 110]);
        assert_eq!(chosen(|port| port > 110), [120, 111, 130]);
    }

    #[test]
    fn no_free_port_is_an_error_that_names_the_range() {
        let Err(Failed::Step(message)) = choose(&[("port", 65_500)], |_| false) else {
            panic!("a port out of nothing")
        };
        assert!(message.contains("from 65500 to 65535"), "{message}");
    }

    #[test]
    fn a_port_that_is_listened_on_is_not_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_free(port));
        drop(listener);
        assert!(is_free(port));
    }
}
