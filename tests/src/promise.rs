//! Holds a tenant's tables against the promise, where the probe `ledger` serves the handlers.
//!
//! Each rule is a query for the rows that break it, so that a failure shows them.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    database::{Database, Tables},
    feed::Feed,
};

/// `effect`: inbox rows beside what their events left behind. `books`: a handler's verdicts as the lanes counted them.
/// For both SQLite and MySQL: there names and keys are bytes, and texts only after a CAST.
const VIEWS: &str = "
  WITH effect AS (
    SELECT CAST(h.name AS CHAR) AS handler, CAST(i.business_key AS CHAR) AS entry, i.state,
      (SELECT count(*) FROM ledger AS l
        WHERE l.handler = CAST(h.name AS CHAR) AND l.entry = CAST(i.business_key AS CHAR)) AS entries,
      (SELECT count(*) FROM ob_outbox AS o
        WHERE o.handler_id = i.handler_id AND o.business_key = i.business_key) AS sent
    FROM ob_inbox AS i JOIN ob_handler AS h USING (handler_id)),
  tally AS (SELECT handler_id, verdict, sum(n) AS n FROM ob_tally GROUP BY handler_id, verdict),
  books AS (
    SELECT CAST(h.name AS CHAR) AS handler, h.handler_id,
      coalesce((SELECT n FROM tally AS t WHERE t.handler_id = h.handler_id AND verdict = 0), 0) AS applied,
      coalesce((SELECT n FROM tally AS t WHERE t.handler_id = h.handler_id AND verdict = 1), 0) AS duplicate,
      coalesce((SELECT n FROM tally AS t WHERE t.handler_id = h.handler_id AND verdict = 2), 0) AS conflict,
      coalesce((SELECT n FROM tally AS t WHERE t.handler_id = h.handler_id AND verdict = 3), 0) AS skipped,
      coalesce((SELECT n FROM tally AS t WHERE t.handler_id = h.handler_id AND verdict = 5), 0) AS dead,
      (SELECT count(*) FROM ob_inbox AS i WHERE i.handler_id = h.handler_id AND state = 0) AS inbox_applied,
      (SELECT count(*) FROM ob_inbox AS i WHERE i.handler_id = h.handler_id AND state = 1) AS inbox_skipped,
      (SELECT count(*) FROM ob_inbox AS i WHERE i.handler_id = h.handler_id AND state = 3) AS inbox_dead,
      (SELECT coalesce(sum(duplicates), 0) FROM ob_inbox AS i WHERE i.handler_id = h.handler_id) AS inbox_again,
      (SELECT coalesce(sum(times), 0) FROM ob_held AS x WHERE x.handler_id = h.handler_id AND state = 2) AS conflicts,
      (SELECT coalesce(sum(times), 0) FROM ob_held AS x WHERE x.handler_id = h.handler_id AND state = 4) AS letters
    FROM (SELECT handler_id, name FROM ob_handler UNION ALL SELECT 0, '-') AS h)
";

/// Name of the rule, and the query for the rows that break it.
const RULES: [(&str, &str); 8] = [
    (
        "applied once or not at all: inbox row, ledger and outbox agree",
        "SELECT concat(handler, ' ', entry, ': state ', state, ', ', entries, ' entries, ', sent, ' sent')
         FROM effect WHERE entries <> (state = 0) OR sent <> (state = 0)",
    ),
    (
        "no entry without an inbox row",
        "SELECT concat(l.handler, ' ', l.entry, ' by event ', l.event_id) FROM ledger AS l
         LEFT JOIN effect AS e ON e.handler = l.handler AND e.entry = l.entry WHERE e.entry IS NULL",
    ),
    (
        "no outgoing event without an inbox row",
        "SELECT concat(o.event_id, ' of ', CAST(o.business_key AS CHAR)) FROM ob_outbox AS o WHERE NOT EXISTS (
           SELECT 1 FROM ob_inbox AS i WHERE i.handler_id = o.handler_id AND i.business_key = o.business_key)",
    ),
    (
        "the counter is the ledger's sum",
        "SELECT concat(c.handler, ': n ', c.n, ', total ', c.total) FROM counter AS c
         WHERE c.n <> (SELECT count(*) FROM ledger AS l WHERE l.handler = c.handler)
           OR c.total <> (SELECT coalesce(sum(amount), 0) FROM ledger AS l WHERE l.handler = c.handler)",
    ),
    (
        "a parked or dead key has one open held row in that state, any other key has none",
        "SELECT concat(CAST(h.name AS CHAR), ' ', CAST(i.business_key AS CHAR), ': state ', i.state) FROM ob_inbox AS i
         JOIN ob_handler AS h USING (handler_id)
         WHERE coalesce((SELECT group_concat(x.state) FROM ob_held AS x WHERE x.handler_id = i.handler_id
             AND x.business_key = i.business_key AND x.state IN (0, 1)), '-')
           <> CASE i.state WHEN 2 THEN '0' WHEN 3 THEN '1' ELSE '-' END",
    ),
    (
        "applied, skipped and dead in the books are rows",
        "SELECT concat(handler, ': applied ', applied, ' of ', inbox_applied, ', skipped ', skipped, ' of ',
           inbox_skipped, ', dead ', dead, ' of ', inbox_dead + letters) FROM books
         WHERE applied <> inbox_applied OR dead <> inbox_dead + letters
           OR (skipped <> inbox_skipped AND handler_id <> 0) -- without a handler: what its source ignores",
    ),
    (
        "duplicates and conflicts in the books are counted on the keys' rows",
        "SELECT concat(handler, ': ', duplicate, ' + ', conflict, ' of ', inbox_again) FROM books
         WHERE duplicate + conflict <> inbox_again",
    ),
    (
        "conflicts in the books are sightings on conflict rows",
        "SELECT concat(handler, ': ', conflict, ' of ', conflicts) FROM books WHERE conflict <> conflicts",
    ),
];

/// Checks every rule; for a database that is in use as well, since what belongs together is committed together.
///
/// # Panics
/// One is broken; the message shows its rows.
#[track_caller]
pub fn check_promise(database: &impl Tables) {
    let broken: String = broken_rules(database).iter().map(|rule| format!("\n  {rule}")).collect();
    assert!(broken.is_empty(), "{broken}");
}

/// The rules that are broken, each with its rows.
///
/// # Panics
/// The tables cannot be read.
#[must_use]
#[track_caller]
pub fn broken_rules(database: &impl Tables) -> Vec<String> {
    let mut broken = Vec::new();
    for (rule, query) in RULES {
        let rows = database.lines(&format!("{VIEWS} {query}"));
        if !rows.is_empty() {
            let mut shown = format!("{rule}: broken by {} rows", rows.len());
            for row in rows.iter().take(20) {
                let _ = write!(shown, "\n    {row}");
            }
            broken.push(shown);
        }
    }
    broken
}

/// Keys that were published, that their handler would apply, and that are not applied.
///
/// # Panics
/// The tables cannot be read.
#[must_use]
#[track_caller]
pub fn not_applied<K: AsRef<str>>(database: &impl Tables, published: &[K]) -> Vec<String> {
    let applied: BTreeSet<String> =
        database.lines("SELECT CAST(business_key AS CHAR) FROM ob_inbox WHERE state = 0").into_iter().collect();
    let published = published.iter().map(AsRef::as_ref);
    published.filter(|key| !applied.contains(*key)).map(|key| format!("{key} is not applied")).collect()
}

/// Parked and dead rows whose counter does not say how many of their counted runs are on record; where a person has
/// replayed a row it begins anew.
///
/// # Panics
/// The tables cannot be read.
#[must_use]
#[track_caller]
pub fn attempts_off_record(database: &impl Tables) -> Vec<String> {
    database.lines(
        "SELECT concat(CAST(business_key AS CHAR), ': ', attempts, ' attempts, ', n, ' on record') FROM (
           SELECT h.business_key, h.attempts, (SELECT count(*) FROM ob_attempt AS a
             WHERE a.held_id = h.held_id AND a.generation = h.generation AND a.class <> 1 /* blocked */) AS n
           FROM ob_held AS h WHERE h.state IN (0, 1)) AS counted
         WHERE attempts <> n",
    )
}

/// Checks that every message of a feed was decided, once, by the one handler that it was for.
///
/// # Panics
/// A key is missing or has another end, or a message was counted twice or not at all.
#[track_caller]
pub fn check_feed(database: &Database, handler: &str, feed: &Feed) {
    let (counted, expected) = (ends(database, handler, feed), expected(feed));
    assert_eq!(counted, expected, "keys, seen again, poison letters");
}

/// The same for messages that a broker may have delivered again after their verdict was committed: each of those counts
/// as seen again, and does nothing else.
///
/// # Panics
/// A key is missing or has another end, or a message was not counted at all.
#[track_caller]
pub fn check_feed_delivered_again(database: &Database, handler: &str, feed: &Feed) {
    let (counted, expected) = (ends(database, handler, feed), expected(feed));
    assert_eq!(counted[0], expected[0], "keys");
    assert!(counted[1] >= expected[1] && counted[2] >= expected[2], "{counted:?}, sent were {expected:?}");
}

fn expected(feed: &Feed) -> [i64; 3] {
    [feed.keys.len(), feed.again, feed.poison].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Compares the keys' ends; the answer is what was counted: keys, seen again, poison letters.
#[track_caller]
fn ends(database: &Database, handler: &str, feed: &Feed) -> [i64; 3] {
    let found = database.lines(&format!(
        "SELECT CAST(i.business_key AS TEXT) || ' ' || i.state FROM ob_inbox AS i JOIN ob_handler AS h USING (handler_id)
         WHERE h.name = '{handler}' ORDER BY 1"
    ));
    let mut expected: Vec<String> = feed.keys.iter().map(|(key, end)| format!("{key} {}", end.state())).collect();
    expected.sort();
    let lost: Vec<_> = expected.iter().filter(|line| found.binary_search(line).is_err()).collect();
    let odd: Vec<_> = found.iter().filter(|line| expected.binary_search(line).is_err()).collect();
    assert!(lost.is_empty() && odd.is_empty(), "not as expected: {lost:?}, but {odd:?}");
    let counted = |column: &str| database.number(&format!("{VIEWS} SELECT sum({column}) FROM books"));
    assert_eq!(database.number("SELECT count(*) FROM ob_local"), 0, "messages that nobody has decided");
    [database.number("SELECT count(*) FROM ob_inbox"), counted("inbox_again"), counted("letters")]
}
