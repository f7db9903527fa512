//! Some of everything that may become of a message, and faults that break each invariant, in SQL for any store.

use oncebox_tests::{
    checker::{Broken, Invariant, broken, expect_none, live, sent::Sent},
    database::Tables,
    feed::{Expected, Feed, event},
};
use serde_json::json;

/// As the configurations of these tests have it.
const SHORT_ATTEMPTS_MAX: u32 = 2;

/// A key of each end, a duplicate, a conflict, and poison of both kinds.
pub(crate) fn feed() -> Feed {
    let mut feed = Feed::default();
    for (key, amount, what, end) in [
        ("applied", 1, "apply", Expected::Applied),
        ("twice", 2, "until", Expected::Applied),
        ("dead", 3, "reject", Expected::Dead),
        ("trapped", 4, "trap", Expected::Dead),
        ("skipped", 5, "skip", Expected::Skipped),
        ("other", 6, "apply", Expected::Applied),
        ("applied", 1, "apply", Expected::Applied),
        ("other", 7, "apply", Expected::Applied),
    ] {
        let n = feed.lines.len();
        let data = json!({ "key": key, "amount": amount, "do": what, "times": 2 });
        feed.lines.push(event(&format!("e-{n}"), &data));
        feed.lines_keys.push(Some(key.to_owned()));
        feed.runs.insert(key.to_owned(), what);
        feed.again += usize::from(feed.keys.insert(key.to_owned(), end).is_some());
    }
    feed.conflicts.insert("other".to_owned());
    for poison in ["{garbage".to_owned(), event("keyless", &json!({ "amount": 1 }))] {
        feed.lines.push(poison);
        feed.lines_keys.push(None);
        feed.poison += 1;
    }
    feed
}

/// What each breaks, and how. Keys of the `ob_*` tables are bytes: `applied` is x'6170706c696564', and so on.
const FAULTS: [(Invariant, &str); 24] = [
    (Invariant::NoLoss, "DELETE FROM ob_inbox WHERE business_key = x'6170706c696564'"),
    (Invariant::NoLoss, "UPDATE ob_inbox SET state = 1 WHERE business_key = x'6170706c696564'"),
    (Invariant::NoLoss, "DELETE FROM ob_held WHERE state = 4"),
    (Invariant::NoLoss, "DELETE FROM ob_held WHERE state = 2"),
    (
        Invariant::Once,
        "INSERT INTO ledger (handler, entry, amount, event_id, version) VALUES ('a', 'applied', 1, 'x', 1)",
    ),
    (Invariant::Once, "UPDATE counter SET n = n + 1"),
    (Invariant::Atomic, "DELETE FROM ledger WHERE entry = 'applied'"),
    (Invariant::Atomic, "DELETE FROM ob_outbox WHERE business_key = x'6170706c696564'"),
    (Invariant::Atomic, "UPDATE ob_held SET state = 5 WHERE state = 1"),
    (Invariant::Atomic, "UPDATE ob_inbox SET state = 0 WHERE state = 3"),
    (
        Invariant::NoPhantom,
        "INSERT INTO ledger (handler, entry, amount, event_id, version) VALUES ('a', 'ghost', 1, 'x', 1)",
    ),
    (Invariant::NoPhantom, "UPDATE ob_inbox SET business_key = x'67686f7374' WHERE business_key = x'736b6970706564'"),
    (Invariant::Fencing, "UPDATE ob_held SET lease_token = x'00112233445566778899aabbccddeeff' WHERE state = 1"),
    (Invariant::Fencing, "UPDATE ob_attempt SET attempt = 7 WHERE attempt = 1"),
    (Invariant::Order, "UPDATE ledger SET id = id + 1000 WHERE entry = 'applied'"),
    (Invariant::Retries, "UPDATE ob_inbox SET attempts = 3 WHERE business_key = x'7477696365'"),
    (Invariant::Retries, "UPDATE ob_held SET attempts = 7 WHERE state = 1"),
    (Invariant::Retries, "UPDATE ob_attempt SET held_id = held_id + 1000"),
    (Invariant::Version, "UPDATE ledger SET version = 2 WHERE entry = 'applied'"),
    (
        Invariant::Isolation,
        "UPDATE ob_inbox SET business_key = x'666f726569676e' WHERE business_key = x'736b6970706564'",
    ),
    (Invariant::Kept, "DELETE FROM ob_body WHERE revision = 0"),
    (Invariant::Kept, "UPDATE ob_body SET payload = x'7b7d' WHERE revision = 0"),
    (Invariant::Books, "UPDATE ob_tally SET n = n + 1 WHERE verdict = 0"),
    (Invariant::Books, "DELETE FROM ob_tally WHERE verdict = 1"),
];

fn look(tables: &impl Tables, sent: &Sent<'_>) -> Vec<Broken> {
    let mut found = broken(tables);
    found.extend(sent.clone().counted(SHORT_ATTEMPTS_MAX).broken(tables));
    // The second one is applied at its second attempt only.
    let line = ["applied", "twice"].map(|key| ("line".to_owned(), key.to_owned()));
    found.extend(live::order(tables, "a", &line));
    found.extend(live::isolation(tables, ["foreign"]));
    found
}

/// Each fault is found, and without one nothing is.
#[track_caller]
pub(crate) fn each_is_found(tables: &impl Tables, execute: impl Fn(&str), sent: &Sent<'_>, more: &[(Invariant, &str)]) {
    expect_none(&look(tables, sent));
    for (invariant, fault) in FAULTS.iter().chain(more) {
        execute("BEGIN");
        execute(fault);
        let found = look(tables, sent);
        execute("ROLLBACK");
        assert!(found.iter().any(|broken| broken.invariant == *invariant), "{}: {fault}: {found:#?}", invariant.name());
    }
    expect_none(&look(tables, sent));
}
