//! What is published, made from the seed before anything begins.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use oncebox_tests::{
    feed::{Chance, Expected, Feed, Mix, event},
    fleet::Tenant,
};
use serde_json::json;

use crate::pace::Pace;

const MIX: Mix = Mix { duplicates: 30, conflicts: 2, poison: 5 };
/// Messages that are confirmed together.
const CHUNK: usize = 10;
const LINES: u64 = 12;

/// The messages for a tenant's handler `a`, as far as they are confirmed.
pub(crate) struct Traffic {
    pub(crate) feed: Feed,
    /// Of an ordered handler, each key with its ordering key, in the order of the first message of each.
    pub(crate) order: Vec<(String, String)>,
    /// Lines that are confirmed, from the first.
    confirmed: AtomicUsize,
}

impl Traffic {
    /// Of every kind, in any order.
    pub(crate) fn mixed(seed: u64, count: usize, tenant: &str) -> Self {
        Self { feed: Feed::mixed_for(tenant, seed, count, MIX), order: Vec::new(), confirmed: AtomicUsize::new(0) }
    }

    /// Events with ordering keys, a tenth of them applied at the second attempt, a fifth of the messages duplicates.
    pub(crate) fn ordered(seed: u64, count: usize, tenant: &str) -> Self {
        let (mut chance, mut feed, mut order) = (Chance::new(seed), Feed::default(), Vec::new());
        let mut known: Vec<(String, serde_json::Value, &'static str)> = Vec::new();
        for n in 0..count {
            let before = usize::try_from(chance.below(known.len().max(1) as u64)).ok().and_then(|at| known.get(at));
            let (key, data, what) = match (chance.below(5), before) {
                (0, Some(before)) => before.clone(),
                _ => {
                    let (line, what) = (
                        format!("line-{}", chance.below(LINES)),
                        if chance.below(10) == 0 { "until" } else { "apply" },
                    );
                    let key = format!("{tenant}/{line}/{n}");
                    let data = json!({ "key": key, "amount": 1, "line": line, "do": what, "times": 2 });
                    order.push((line, key.clone()));
                    known.push((key.clone(), data.clone(), what));
                    (key, data, what)
                }
            };
            feed.lines.push(event(&format!("e-{n}"), &data));
            feed.lines_keys.push(Some(key.clone()));
            feed.runs.insert(key.clone(), what);
            feed.again += usize::from(feed.keys.insert(key, Expected::Applied).is_some());
        }
        Self { feed, order, confirmed: AtomicUsize::new(0) }
    }

    /// Publishes all of it evenly; how many messages had to be published again.
    pub(crate) fn publish(&self, tenant: &Tenant, time: Duration, pace: &Pace) -> usize {
        let mut publisher = tenant.publisher();
        let chunks = u32::try_from(self.feed.lines.len().div_ceil(CHUNK)).unwrap_or(u32::MAX);
        for (number, chunk) in (0..).zip(self.feed.lines.chunks(CHUNK)) {
            pace.until(time * number / chunks);
            publisher.publish(chunk);
            self.confirmed.fetch_add(chunk.len(), Ordering::SeqCst);
        }
        publisher.again
    }

    /// Keys of messages that are confirmed by now.
    pub(crate) fn confirmed(&self) -> Vec<&str> {
        let confirmed = self.confirmed.load(Ordering::SeqCst);
        let keys: BTreeMap<&str, ()> =
            self.feed.lines_keys[..confirmed].iter().flatten().map(|key| (key.as_str(), ())).collect();
        keys.into_keys().collect()
    }

    /// Distinct keys that have this end.
    pub(crate) fn with_end(&self, end: Expected) -> usize {
        self.feed.keys.values().filter(|other| **other == end).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordered_feed_names_each_key_once_in_the_order_of_its_first_message() {
        let traffic = Traffic::ordered(3, 500, "v");
        let mut first = Vec::new();
        for key in traffic.feed.lines_keys.iter().flatten() {
            if !first.contains(key) {
                first.push(key.clone());
            }
        }
        assert_eq!(traffic.order.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>(), first);
        assert_eq!(first.len() + traffic.feed.again, 500);
        assert!(
            traffic.feed.again > 50 && traffic.order.iter().all(|(line, key)| key.starts_with(&format!("v/{line}/")))
        );
    }
}
