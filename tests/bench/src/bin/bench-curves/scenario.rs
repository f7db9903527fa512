//! What one drain is to be like, and the messages of it.

use std::ops::Range;

/// The plugin behind every handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// The example `points-award`.
    Points,
    /// The probe `ledger`, which an event can ask to fail once.
    Probe,
}

/// The order of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Each is a little above the last, as most numbers of orders are.
    Rising,
    /// Anywhere among those that are there: the worst for an index.
    Scattered,
}

/// A load. All shares are percents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) plugin: Plugin,
    pub(crate) keys: Keys,
    /// Messages, of all tenants together.
    pub(crate) events: u32,
    pub(crate) payload_bytes: usize,
    /// Handlers of each tenant, with a module of their own each.
    pub(crate) modules: u32,
    pub(crate) tenants: u32,
    /// Of the messages, those whose key was applied before.
    pub(crate) duplicates: u32,
    /// Of the events, those that fail at the first attempt.
    pub(crate) parked: u32,
    /// Rows of the inbox before.
    pub(crate) inbox_rows: u32,
    pub(crate) batch_max: Option<u32>,
    pub(crate) lanes: Option<u32>,
    /// Accounts that are raised in turn.
    pub(crate) users: u32,
}

/// Numbers from here on are of the warm-up.
const WARM_UP: u32 = 1 << 30;

/// What is spread evenly over an odd factor and 2^32 meets no number twice.
const SCATTER: u32 = 2_654_435_761;

impl Scenario {
    /// What everything is compared with: 256 bytes, one handler, every event new, none fails, an empty inbox, a host on its
    /// defaults.
    pub(crate) const BASE: Self = Self {
        plugin: Plugin::Points,
        keys: Keys::Rising,
        events: 0,
        payload_bytes: 256,
        modules: 1,
        tenants: 1,
        duplicates: 0,
        parked: 0,
        inbox_rows: 0,
        batch_max: None,
        lanes: None,
        users: oncebox_tests::points::USERS,
    };

    /// The base that this one is compared with.
    pub(crate) fn base(&self) -> Self {
        Self { plugin: self.plugin, keys: self.keys, ..Self::BASE }
    }

    /// Events of each tenant that are applied before anything is measured.
    pub(crate) fn history(&self) -> u32 {
        share(self.each(), self.duplicates)
    }

    /// Messages of each tenant.
    pub(crate) fn each(&self) -> u32 {
        self.events / self.tenants
    }

    /// The numbers of each tenant's messages, in the order in which they come; those below [`Scenario::history`] are there
    /// already.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let (mut old, mut new) = (0, self.history());
        let next = |counter: &mut u32| {
            *counter += 1;
            *counter - 1
        };
        (0..self.each()).map(|n| next(if is_one_of(n, self.duplicates) { &mut old } else { &mut new })).collect()
    }

    /// Events of each tenant that are to be applied in the end, history included.
    pub(crate) fn keys(&self) -> u32 {
        self.each() - share(self.each(), self.duplicates) + self.history() + self.warmed()
    }

    /// Numbers of each tenant's events that fail once before anything is measured: a host does not try again for its first
    /// seconds ([`Plugin::Points`] never fails).
    pub(crate) const fn warm_up(&self) -> Range<u32> {
        match self.plugin {
            Plugin::Points => WARM_UP..WARM_UP,
            Plugin::Probe => WARM_UP..WARM_UP + 20,
        }
    }

    /// How many these are.
    pub(crate) const fn warmed(&self) -> u32 {
        let Range { start, end } = self.warm_up();
        end - start
    }

    /// Events of each tenant that fail at the first attempt.
    pub(crate) fn parks(&self) -> u32 {
        share(self.each(), self.parked) + self.warmed()
    }

    /// The event type of a handler, and of its events.
    pub(crate) fn event_type(&self, module: u32) -> String {
        match (self.plugin, self.modules) {
            (Plugin::Probe, _) => "entry".to_owned(),
            (Plugin::Points, 1) => "order.paid".to_owned(),
            (Plugin::Points, _) => format!("order.paid.{module}"),
        }
    }

    /// A handler's name.
    pub(crate) fn handler(&self, module: u32) -> String {
        if self.modules == 1 { "points".to_owned() } else { format!("points-{module}") }
    }

    /// The event type and the body of a tenant's message.
    pub(crate) fn message(&self, n: u32) -> (String, String) {
        let order = order(self.keys, n);
        let bare = match self.plugin {
            Plugin::Points => {
                // Or each account would always be raised by the same handler.
                let turn = if self.modules == 1 { 0 } else { n / self.modules };
                let user = (n + turn) % self.users;
                format!("{{\"orderId\": {order}, \"userId\": {user}, \"amount\": 1, \"receiptNo\": \"R-{n}\"")
            }
            Plugin::Probe if n >= WARM_UP || is_one_of(n, self.parked) => {
                format!("{{\"key\": \"k-{order}\", \"amount\": 1, \"do\": \"until\", \"times\": 2")
            }
            Plugin::Probe => format!("{{\"key\": \"k-{order}\", \"amount\": 1"),
        };
        (self.event_type(n % self.modules), padded(&bare, self.payload_bytes))
    }
}

/// The number in a key.
pub(crate) const fn order(keys: Keys, n: u32) -> u32 {
    match keys {
        Keys::Rising => n,
        Keys::Scattered => n.wrapping_mul(SCATTER),
    }
}

/// What makes a number scattered, in SQL.
pub(crate) fn order_sql(n: &str) -> String {
    format!("({n} * {SCATTER}) MOD 4294967296")
}

/// An object without its end, made as long as asked by a field that no handler looks at.
fn padded(bare: &str, bytes: usize) -> String {
    const FIELD: &str = ", \"pad\": \"\"}";
    match bytes.checked_sub(bare.len() + FIELD.len()) {
        Some(missing) => format!("{bare}, \"pad\": \"{}\"}}", "x".repeat(missing)),
        None => format!("{bare}}}"),
    }
}

fn share(n: u32, percent: u32) -> u32 {
    u32::try_from(u64::from(n) * u64::from(percent) / 100).unwrap_or(u32::MAX)
}

/// Whether the one with this number is among so many percent, evenly spread.
fn is_one_of(n: u32, percent: u32) -> bool {
    share(n + 1, percent) > share(n, percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_asked_or_as_short_as_it_goes() {
        for bytes in [256, 1_024, 1 << 20] {
            let scenario = Scenario { payload_bytes: bytes, ..Scenario::BASE };
            assert_eq!(scenario.message(12_345).1.len(), bytes);
        }
        let smallest = Scenario { payload_bytes: 64, ..Scenario::BASE };
        assert_eq!(smallest.message(7).1, r#"{"orderId": 7, "userId": 7, "amount": 1, "receiptNo": "R-7"}"#);
    }

    #[test]
    fn duplicates_are_among_the_new_ones() {
        let scenario = Scenario { events: 10, duplicates: 50, ..Scenario::BASE };
        assert_eq!(scenario.numbers(), [5, 0, 6, 1, 7, 2, 8, 3, 9, 4]);
        assert_eq!((scenario.history(), scenario.keys()), (5, 10));
        let all = Scenario { duplicates: 100, ..scenario };
        assert_eq!((all.numbers(), all.keys()), ((0..10).collect(), 10));
    }

    #[test]
    fn one_of_ten_fails_once() {
        let scenario = Scenario { plugin: Plugin::Probe, events: 1_000, parked: 10, ..Scenario::BASE };
        let failing = (0..1_000).filter(|n| scenario.message(*n).1.contains("until")).count();
        assert_eq!((failing, scenario.parks()), (100, 120));
    }
}
