//! The rules over one tenant's tables: each is a query for what breaks it, one text a row, in SQL that SQLite, MySQL and
//! MariaDB read alike. Names and keys are bytes there, and texts only after a CAST.

use oncebox_core::failure::Class;

use super::Invariant;

/// A rule as a query.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What it belongs to.
    pub invariant: Invariant,
    /// What should be so.
    pub says: &'static str,
    /// The rows that break it.
    pub sql: String,
}

/// Which tables there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The `ob_*` tables alone.
    Tables,
    /// The probe's `ledger` and `counter` too, written by nothing else, for one outgoing event an entry.
    Ledger,
}

/// A handler's verdicts as the lanes counted them, beside the rows that they must have left; handler 0: none.
const BOOKS: &str = "
  WITH tally AS (SELECT handler_id, verdict, sum(n) AS n FROM ob_tally GROUP BY handler_id, verdict),
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

/// Inbox rows beside what their events left behind.
const EFFECT: &str = "
  WITH effect AS (
    SELECT CAST(h.name AS CHAR) AS handler, CAST(i.business_key AS CHAR) AS entry, i.state,
      (SELECT count(*) FROM ledger AS l
        WHERE l.handler = CAST(h.name AS CHAR) AND l.entry = CAST(i.business_key AS CHAR)) AS entries,
      (SELECT count(*) FROM ob_outbox AS o
        WHERE o.handler_id = i.handler_id AND o.business_key = i.business_key) AS sent
    FROM ob_inbox AS i JOIN ob_handler AS h USING (handler_id))
";

/// Before the query, what it belongs to, what it says, and the query.
type Text = (&'static str, Invariant, &'static str, &'static str);

/// Of the `ob_*` tables alone.
const TABLES: [Text; 10] = [
    (
        "",
        Invariant::Atomic,
        "a parked or dead key has one open held row in that state, any other key has none",
        "SELECT concat(CAST(h.name AS CHAR), ' ', CAST(i.business_key AS CHAR), ': state ', i.state) FROM ob_inbox AS i
         JOIN ob_handler AS h USING (handler_id)
         WHERE coalesce((SELECT group_concat(x.state) FROM ob_held AS x WHERE x.handler_id = i.handler_id
             AND x.business_key = i.business_key AND x.state IN (0, 1)), '-')
           <> CASE i.state WHEN 2 THEN '0' WHEN 3 THEN '1' ELSE '-' END",
    ),
    (
        "",
        Invariant::Atomic,
        "a parked or dead held row has its key",
        "SELECT concat('held row ', x.held_id, ' ', CAST(x.business_key AS CHAR), ': state ', x.state) FROM ob_held AS x
         WHERE x.state IN (0, 1) AND NOT EXISTS (SELECT 1 FROM ob_inbox AS i
           WHERE i.handler_id = x.handler_id AND i.business_key = x.business_key AND i.state = x.state + 2)",
    ),
    (
        "",
        Invariant::Atomic,
        "an outgoing event belongs to an applied key",
        "SELECT concat(CAST(o.event_id AS CHAR), ' of ', CAST(o.business_key AS CHAR)) FROM ob_outbox AS o
         WHERE NOT EXISTS (SELECT 1 FROM ob_inbox AS i
           WHERE i.handler_id = o.handler_id AND i.business_key = o.business_key AND i.state = 0)",
    ),
    (
        "",
        Invariant::Fencing,
        "only a parked row is under a lease",
        "SELECT concat('held row ', held_id, ': state ', state) FROM ob_held WHERE state <> 0 AND lease_token IS NOT NULL",
    ),
    (
        "",
        Invariant::Fencing,
        "the attempts of a held row have numbers from 1, none left out",
        "SELECT concat('held row ', held_id, ': ', count(*), ' attempts up to ', max(attempt)) FROM ob_attempt
         GROUP BY held_id, generation HAVING count(*) <> max(attempt) OR min(attempt) <> 1",
    ),
    (
        "",
        Invariant::Retries,
        "an attempt ends after it has begun and belongs to a held row",
        "SELECT concat('held row ', a.held_id, ': attempt ', a.attempt) FROM ob_attempt AS a
         WHERE a.ended_at < a.started_at OR NOT EXISTS (SELECT 1 FROM ob_held AS x WHERE x.held_id = a.held_id)",
    ),
    (
        "",
        Invariant::Kept,
        "a held row has its message",
        "SELECT concat('held row ', held_id) FROM ob_held
         WHERE held_id NOT IN (SELECT held_id FROM ob_body WHERE revision = 0)",
    ),
    (
        BOOKS,
        Invariant::Books,
        "applied, skipped and dead are rows",
        "SELECT concat(handler, ': applied ', applied, ' of ', inbox_applied, ', skipped ', skipped, ' of ',
           inbox_skipped, ', dead ', dead, ' of ', inbox_dead + letters) FROM books
         WHERE applied <> inbox_applied OR dead <> inbox_dead + letters
           OR (skipped <> inbox_skipped AND handler_id <> 0) -- without a handler: what its source ignores",
    ),
    (
        BOOKS,
        Invariant::Books,
        "duplicates and conflicts are counted on the keys' rows",
        "SELECT concat(handler, ': ', duplicate, ' + ', conflict, ' of ', inbox_again) FROM books
         WHERE duplicate + conflict <> inbox_again",
    ),
    (
        BOOKS,
        Invariant::Books,
        "conflicts are sightings on conflict rows",
        "SELECT concat(handler, ': ', conflict, ' of ', conflicts) FROM books WHERE conflict <> conflicts",
    ),
];

/// With the probe's tables.
const LEDGER: [Text; 8] = [
    (
        EFFECT,
        Invariant::Once,
        "a key has one entry and has sent one event at most",
        "SELECT concat(handler, ' ', entry, ': ', entries, ' entries, ', sent, ' sent') FROM effect
         WHERE entries > 1 OR sent > 1",
    ),
    (
        "",
        Invariant::Once,
        "the counter is the ledger's sum",
        "SELECT concat(c.handler, ': n ', c.n, ', total ', c.total) FROM counter AS c
         WHERE c.n <> (SELECT count(*) FROM ledger AS l WHERE l.handler = c.handler)
           OR c.total <> (SELECT coalesce(sum(amount), 0) FROM ledger AS l WHERE l.handler = c.handler)",
    ),
    (
        EFFECT,
        Invariant::Atomic,
        "an applied key has its entry and has sent its event, any other has neither",
        "SELECT concat(handler, ' ', entry, ': state ', state, ', ', entries, ' entries, ', sent, ' sent')
         FROM effect WHERE entries <> (state = 0) OR sent <> (state = 0)",
    ),
    (
        EFFECT,
        Invariant::NoPhantom,
        "no entry without an inbox row",
        "SELECT concat(l.handler, ' ', l.entry, ' by event ', l.event_id) FROM ledger AS l
         LEFT JOIN effect AS e ON e.handler = l.handler AND e.entry = l.entry WHERE e.entry IS NULL",
    ),
    (
        "",
        Invariant::Retries,
        "a parked or dead row has counted its failed attempts, and none that a server or the host has failed",
        "SELECT concat('held row ', x.held_id, ' ', CAST(x.business_key AS CHAR), ': ', x.attempts, ' counted') FROM ob_held AS x
         WHERE x.state IN (0, 1) AND x.attempts <> (SELECT count(*) FROM ob_attempt AS a
           WHERE a.held_id = x.held_id AND a.generation = x.generation AND a.class > 2)",
    ),
    (
        "",
        Invariant::Retries,
        "what was applied after it was parked has counted its failed attempts and the last one",
        "SELECT concat('held row ', x.held_id, ' ', CAST(x.business_key AS CHAR), ': ', i.attempts, ' counted') FROM ob_held AS x
         JOIN ob_inbox AS i ON i.handler_id = x.handler_id AND i.business_key = x.business_key
         WHERE x.state = 5 AND i.state = 0 AND i.attempts <> 1 + (SELECT count(*) FROM ob_attempt AS a
           WHERE a.held_id = x.held_id AND a.generation = x.generation AND a.class > 2)",
    ),
    (
        "",
        Invariant::Retries,
        "an attempt begins when the one before it has ended",
        "SELECT concat('held row ', a.held_id, ': attempt ', b.attempt) FROM ob_attempt AS a
         JOIN ob_attempt AS b ON b.held_id = a.held_id AND b.generation = a.generation AND b.attempt = a.attempt + 1
         WHERE b.started_at < a.ended_at",
    ),
    (
        "",
        Invariant::Version,
        "an entry is of the version that its key's row names",
        "SELECT concat(l.handler, ' ', l.entry, ': version ', l.version, ', row of ', m.version) FROM ob_inbox AS i
         JOIN ob_handler AS h ON h.handler_id = i.handler_id
         JOIN ledger AS l ON l.handler = CAST(h.name AS CHAR) AND l.entry = CAST(i.business_key AS CHAR)
         JOIN ob_deployment AS d ON d.deployment_id = i.deployment_id JOIN ob_module AS m ON m.digest = d.digest
         WHERE concat(l.version, '.0.0') <> m.version",
    ),
];

/// All rules of a scope. `put_aside` is the number of verdicts `parked` and `dead` without a run; `None`: there may be
/// any number of them.
#[must_use]
pub fn all(scope: Scope, put_aside: Option<u64>) -> Vec<Rule> {
    let more: &[Text] = match scope {
        Scope::Tables => &[],
        Scope::Ledger => &LEDGER,
    };
    let rule = |(with, invariant, says, sql): &Text| Rule { invariant: *invariant, says, sql: format!("{with} {sql}") };
    TABLES.iter().chain(more).map(rule).chain([runs(put_aside)]).collect()
}

fn runs(put_aside: Option<u64>) -> Rule {
    // Of a death nothing came back: the verdict is that of the one that is given up without a run.
    let death = Class::DeathAlone.number();
    let differ = put_aside.map_or("b.failed < b.letters + b.attempts".to_owned(), |put_aside| {
        format!("b.failed <> b.letters + b.attempts + {put_aside}")
    });
    Rule {
        invariant: Invariant::Books,
        says: "parked and dead, but for poison and what was put aside without a run, are attempts that did not apply",
        sql: format!(
            "SELECT concat(b.failed, ' parked and dead, ', b.letters, ' poison, ', b.attempts, ' attempts') FROM (SELECT
               (SELECT coalesce(sum(n), 0) FROM ob_tally WHERE verdict IN (4, 5)) AS failed,
               (SELECT coalesce(sum(times), 0) FROM ob_held WHERE state = 4) AS letters,
               (SELECT count(*) FROM ob_attempt WHERE class <> {death}) AS attempts) AS b WHERE {differ}"
        ),
    }
}
