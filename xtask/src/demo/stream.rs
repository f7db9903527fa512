//! The demo's events, made by a seeded generator, and what must become of each.

use std::collections::BTreeMap;

use super::books::Expected;

/// Orders of the shop that are paid and counted.
const ORDERS: u64 = 1_800;
/// Orders of the campaign that is open from the start.
const GRANTS: u64 = 600;
/// Orders that come before their campaign.
const EARLY: u64 = 25;

/// The order that is told in full at the end: early, so tried again, and sent three times.
pub(super) const TRACED: &str = "O-early-1/C-10/gift";

/// Messages for sources, in the order of sending, and what the books must say once they are settled.
pub(super) struct Wave {
    /// What is in it, for people.
    pub(super) title: &'static str,
    /// Bodies by `TENANT/SOURCE`; the sources are fed side by side.
    pub(super) lines: Vec<(&'static str, Vec<String>)>,
    /// Events that must be parked, and nothing else undecided, before the next wave may start.
    pub(super) parked: u64,
    /// Whether the host is killed in its midst. A local source is settled in the unit of work itself, so that no number
    /// changes by it.
    pub(super) crash: bool,
}

/// All waves and what the books must say after the last.
pub(super) struct Stream {
    /// In the order of sending.
    pub(super) waves: Vec<Wave>,
    /// By (tenant/handler, verdict).
    pub(super) expected: BTreeMap<(String, &'static str), Expected>,
}

impl Stream {
    /// The same seed makes the same events in the same order.
    pub(super) fn generate(seed: u64) -> Self {
        let mut maker = Maker { random: Random(seed), expected: BTreeMap::new() };
        let first = Wave {
            title: "orders and coupons, many of them twice; some cannot succeed yet, some never, some are garbage",
            lines: vec![("shop/orders", maker.shop()), ("campaign/paid", maker.campaign())],
            parked: EARLY,
            crash: true,
        };
        let second = Wave {
            title: "the late campaign opens; orders come again, unchanged, changed or with a receipt that is taken",
            lines: vec![
                ("campaign/campaigns", maker.openings()),
                ("shop/orders", maker.shop_again()),
                ("campaign/paid", maker.campaign_again()),
            ],
            parked: 0,
            crash: false,
        };
        Self { waves: vec![first, second], expected: maker.expected }
    }

    /// How many messages there are.
    pub(super) fn len(&self) -> u64 {
        self.waves.iter().flat_map(|wave| &wave.lines).map(|(_, lines)| lines.len() as u64).sum()
    }
}

/// An order of the shop, `points-award`'s event; the rest of it follows from its number.
fn order(id: &str, number: u64, user: u64, amount: u64, receipt: u64) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"https://shop.example/orders","type":"order.paid","time":"2026-11-29T10:00:00Z","datacontenttype":"application/json","data":{{"orderId":{number},"userId":{user},"amount":{amount},"receiptNo":"R-{receipt:06}"}}}}"#
    )
}

/// A new version of a member's level.
fn level(user: u64, level: u64, version: u64) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"level-{user}-{version}","source":"https://shop.example/members","type":"member.level-changed","time":"2026-11-29T10:03:00Z","datacontenttype":"application/json","data":{{"userId":{user},"level":{level},"version":{version}}}}}"#
    )
}

/// A paid order that qualifies for a campaign, `coupon-grant`'s event.
fn grant(id: &str, order: &str, campaign: &str, user: u64, schema: u32) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"https://shop.example/payments","type":"order.paid","time":"2026-11-29T10:00:00Z","datacontenttype":"application/json","data":{{"schemaVersion":{schema},"orderId":"{order}","campaignId":"{campaign}","benefitType":"gift","userId":{user}}}}}"#
    )
}

/// The two users who have an account in the example's schema.
fn user(number: u64) -> u64 {
    if number.is_multiple_of(2) { 7 } else { 9 }
}

fn amount(number: u64) -> u64 {
    1 + number % 50
}

struct Maker {
    random: Random,
    expected: BTreeMap<(String, &'static str), Expected>,
}

impl Maker {
    fn expect(&mut self, handler: &str, verdict: &'static str, n: u64) {
        let entry = self.expected.entry((handler.to_owned(), verdict)).or_insert(Expected::Exactly(0));
        *entry = entry.plus(n);
    }

    fn or_more(&mut self, handler: &str, verdict: &'static str) {
        self.expected.entry((handler.to_owned(), verdict)).and_modify(Expected::or_more);
    }

    fn shop(&mut self) -> Vec<String> {
        const AWARD: &str = "shop/points-award";
        let mut line = Line::default();
        for number in 1..=ORDERS {
            line.original(order(&format!("order-{number}"), number, user(number), amount(number), number));
            if number.is_multiple_of(4) {
                // The producer never heard the confirm: the same message, or the same payment in a new one.
                let id = if number.is_multiple_of(8) { format!("order-{number}") } else { format!("repair-{number}") };
                line.later(&mut self.random, order(&id, number, user(number), amount(number), number));
                self.expect(AWARD, "duplicate", 1);
            }
            self.expect(AWARD, "applied", 1);
        }
        for number in 1..=20 {
            line.anywhere(&mut self.random, order(&format!("stranger-{number}"), 5_000 + number, 8, 5, 5_000 + number));
            self.expect(AWARD, "dead", 1);
        }
        for number in 1..=5 {
            let keyless = format!(r#"{{"type":"order.paid","eventId":"keyless-{number}","userId":7,"amount":1}}"#);
            line.anywhere(&mut self.random, keyless);
            self.expect(AWARD, "dead", 1);
            line.anywhere(&mut self.random, format!("<xml>till {number} speaks another language</xml>"));
            line.anywhere(&mut self.random, format!(r#"{{"type":"order.shipped","eventId":"unrouted-{number}"}}"#));
            self.expect("shop/-", "dead", 2);
        }
        for member in [7, 9] {
            line.anywhere(&mut self.random, level(member, 3, 3));
            self.expect("shop/points-level", "applied", 1);
        }
        line.merged()
    }

    fn campaign(&mut self) -> Vec<String> {
        const GRANT: &str = "campaign/coupon-grant";
        let mut line = Line::default();
        for number in 1..=GRANTS {
            let order = format!("O-{number}");
            line.original(grant(&format!("E-{number}"), &order, "C-9", user(number), 1));
            if number.is_multiple_of(5) {
                line.later(&mut self.random, grant(&format!("E-{number}-again"), &order, "C-9", user(number), 1));
                self.expect(GRANT, "duplicate", 1);
            }
            self.expect(GRANT, "applied", 1);
            self.expect("campaign/coupon-notice", "applied", 1);
        }
        for number in 1..=EARLY {
            let order = format!("O-early-{number}");
            line.original(grant(&format!("E-early-{number}"), &order, "C-10", user(number), 1));
            // Its parked row is the key's one owner: the copy is a duplicate of it, and never runs beside it.
            line.later(&mut self.random, grant(&format!("E-early-{number}-again"), &order, "C-10", user(number), 1));
            self.expect(GRANT, "duplicate", 1);
            self.expect(GRANT, "parked", 1);
            self.expect(GRANT, "applied", 1);
            self.expect("campaign/coupon-notice", "applied", 1);
        }
        // How often they are tried before the campaign opens depends on the machine.
        self.or_more(GRANT, "parked");
        for number in 1..=10 {
            line.anywhere(&mut self.random, grant(&format!("E-new-{number}"), &format!("O-new-{number}"), "C-9", 7, 2));
            self.expect(GRANT, "dead", 1);
        }
        for number in 1..=5 {
            line.anywhere(&mut self.random, format!("{{\"type\":\"order.paid\",\"half\":{number}"));
            self.expect("campaign/-", "dead", 1);
        }
        line.merged()
    }

    fn openings(&mut self) -> Vec<String> {
        self.expect("campaign/campaign-open", "applied", 1);
        vec![
            r#"{"specversion":"1.0","id":"C-10-opened","source":"https://shop.example/campaigns","type":"campaign.opened","datacontenttype":"application/json","data":{"campaignId":"C-10","title":"Cake for one","faceCents":800}}"#.to_owned(),
        ]
    }

    fn shop_again(&mut self) -> Vec<String> {
        const AWARD: &str = "shop/points-award";
        let mut line = Line::default();
        for number in (1..=ORDERS).step_by(3) {
            line.original(order(&format!("replay-{number}"), number, user(number), amount(number), number));
            self.expect(AWARD, "duplicate", 1);
        }
        // Not in the first wave: without an ordering key, the first of two to be decided is not always the first sent.
        for number in (1..=ORDERS).filter(|number| number.is_multiple_of(60)) {
            let changed = order(&format!("changed-{number}"), number, user(number), 1_000, number);
            line.anywhere(&mut self.random, changed);
            self.expect(AWARD, "conflict", 1);
        }
        for number in 1..=20 {
            line.anywhere(&mut self.random, order(&format!("again-{number}"), 5_000 + number, 8, 5, 5_000 + number));
            self.expect(AWARD, "duplicate", 1);
        }
        // A taken receipt is an error of this order, tried three times in all, and never a duplicate.
        for number in 1..=5 {
            line.anywhere(&mut self.random, order(&format!("receipt-{number}"), 6_000 + number, 7, 5, number));
            self.expect(AWARD, "parked", 2);
            self.expect(AWARD, "dead", 1);
        }
        // On a machine that is slow enough, a backlog of the handler is put aside, uncounted.
        self.or_more(AWARD, "parked");
        for (member, version) in [(7, 1), (7, 2), (9, 1), (9, 2)] {
            line.anywhere(&mut self.random, level(member, version, version));
            self.expect("shop/points-level", "skipped", 1);
        }
        line.merged()
    }

    fn campaign_again(&mut self) -> Vec<String> {
        const GRANT: &str = "campaign/coupon-grant";
        let mut line = Line::default();
        for number in 1..=EARLY {
            line.original(grant(&format!("E-early-{number}"), &format!("O-early-{number}"), "C-10", user(number), 1));
            self.expect(GRANT, "duplicate", 1);
        }
        for number in (1..=GRANTS).filter(|number| number.is_multiple_of(40)) {
            let wrong = grant(&format!("E-{number}-wrong"), &format!("O-{number}"), "C-9", 8, 1);
            line.anywhere(&mut self.random, wrong);
            self.expect(GRANT, "conflict", 1);
        }
        line.merged()
    }
}

/// One source's messages before they are put in order: originals in turn, the others somewhere among them.
#[derive(Default)]
struct Line {
    originals: usize,
    messages: Vec<(u64, String)>,
}

/// The room between two originals.
const GAP: u64 = 1 << 20;

impl Line {
    fn place(&self) -> u64 {
        u64::try_from(self.originals).unwrap_or(u64::MAX / GAP) * GAP
    }

    fn original(&mut self, body: String) {
        self.originals += 1;
        self.messages.push((self.place(), body));
    }

    /// After the newest original, and at most 200 originals later.
    fn later(&mut self, random: &mut Random, body: String) {
        let place = self.place() + 1 + random.below(200 * GAP);
        self.messages.push((place, body));
    }

    fn anywhere(&mut self, random: &mut Random, body: String) {
        let place = random.below(self.place() + 1);
        self.messages.push((place, body));
    }

    fn merged(mut self) -> Vec<String> {
        self.messages.sort_by_key(|(place, _)| *place);
        self.messages.into_iter().map(|(_, body)| body).collect()
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`; the bias of the remainder does not matter for an order of events.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_stream_and_another_seed_another_order_of_the_same_events() {
        let lines = |seed| {
            let waves = Stream::generate(seed).waves;
            waves.into_iter().flat_map(|wave| wave.lines).flat_map(|(_, lines)| lines).collect::<Vec<_>>()
        };
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        assert_eq!(lines(1), lines(1));
        assert_ne!(lines(1), lines(2));
        assert_eq!(sorted(lines(1)), sorted(lines(2)));
    }

    #[test]
    fn a_copy_never_comes_before_its_original() {
        for seed in 0..20 {
            let wave = Stream::generate(seed).waves.remove(0);
            let paid = &wave.lines[1].1;
            let place = |id: &str| paid.iter().position(|line| line.contains(&format!("\"id\":\"{id}\""))).unwrap();
            for number in 1..=EARLY {
                assert!(place(&format!("E-early-{number}")) < place(&format!("E-early-{number}-again")), "{seed}");
            }
        }
    }

    #[test]
    fn the_numbers_that_are_expected_are_those_of_the_story() {
        let expected = Stream::generate(42).expected;
        let of = |handler: &str, verdict| expected.get(&(handler.to_owned(), verdict)).copied();
        assert_eq!(of("shop/points-award", "applied"), Some(Expected::Exactly(1_800)));
        // 1,800 / 4 in the first wave, 600 orders and 20 strangers again in the second.
        assert_eq!(of("shop/points-award", "duplicate"), Some(Expected::Exactly(1_070)));
        assert_eq!(of("shop/points-award", "conflict"), Some(Expected::Exactly(30)));
        // 20 strangers, 5 without a key, 5 with a taken receipt.
        assert_eq!(of("shop/points-award", "dead"), Some(Expected::Exactly(30)));
        assert_eq!(of("campaign/coupon-grant", "applied"), Some(Expected::Exactly(625)));
        // 600 / 5, and the early ones twice.
        assert_eq!(of("campaign/coupon-grant", "duplicate"), Some(Expected::Exactly(170)));
        assert_eq!(of("campaign/coupon-notice", "applied"), Some(Expected::Exactly(625)));
        assert_eq!(of("campaign/coupon-grant", "parked"), Some(Expected::AtLeast(25)));
    }
}
