//! Looks at what is not in one tenant's tables alone: its queue, its sessions, other tenants, the hosts' processes and
//! their own counts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Broken, Invariant};
use crate::{
    database::Tables,
    fleet::{QUEUE, Tenant},
    host::Footprint,
    services::Counts,
};

/// A unit of work is over within seconds, or its session is hanging.
const TRANSACTION_MAX_S: u32 = 5;

/// While hosts are at work: of messages that were confirmed before the queue was counted, `undecided` were not in the
/// tables after that. So they were all at the broker in between.
#[must_use]
pub fn ack_after_commit(undecided: usize, at_broker: u64) -> Option<Broken> {
    let is_broken = u64::try_from(undecided).is_ok_and(|undecided| undecided > at_broker);
    let row = format!("{undecided} confirmed messages are not in the tables, {at_broker} are at the broker");
    let rows = if is_broken { vec![row] } else { Vec::new() };
    Broken::by(Invariant::AckAfterCommit, "what is neither decided nor at the broker is lost", rows)
}

/// When nothing comes any more: nothing is left to do, no transaction is open for long, and there are no more sessions
/// and connections than the hosts have lanes and sources for.
#[must_use]
#[track_caller]
pub fn liveness(tenant: &Tenant, sessions_max: usize, connections_max: usize) -> Vec<Broken> {
    let (session, database) = (tenant.session(), &tenant.database.database);
    let mut left = Vec::new();
    let Counts { ready, unacked } = tenant.vhost.counts(QUEUE);
    if (ready, unacked) != (0, 0) {
        left.push(format!("queue {QUEUE}: {ready} ready, {unacked} unacked"));
    }
    left.extend(session.lines("SELECT concat('held row ', held_id, ' ', code) FROM ob_held WHERE state = 0"));
    left.extend(session.lines("SELECT concat('message ', local_id) FROM ob_local"));
    // `innodb_trx` reads the running texts of everybody, and fails where one has bytes that are no text (3854).
    let open = session.lines(&format!(
        "SELECT concat('session ', p.processlist_id, ': in a transaction for ', floor(t.timer_wait / 1e12), ' s')
         FROM performance_schema.events_transactions_current AS t JOIN performance_schema.threads AS p USING (thread_id)
         WHERE t.state = 'ACTIVE' AND p.processlist_user = '{}' AND t.timer_wait > {TRANSACTION_MAX_S} * 1e12",
        database.runtime.name
    ));
    let mut many = Vec::new();
    let sessions = database.sessions_of(&database.runtime).len();
    if sessions > sessions_max {
        many.push(format!("{sessions} sessions of the hosts, at most {sessions_max}"));
    }
    let connections = tenant.vhost.connections();
    if connections > connections_max {
        many.push(format!("{connections} connections of the hosts to the broker, at most {connections_max}"));
    }
    [("nothing is left to do", left), ("no transaction stays open", open), ("no connection is left over", many)]
        .into_iter()
        .filter_map(|(rule, rows)| Broken::by(Invariant::Liveness, format!("{}: {rule}", tenant.name), rows))
        .collect()
}

/// Effects of each ordering key came in the order in which their keys were sent: `(ordering key, business key)`, the first
/// time of each.
#[must_use]
#[track_caller]
pub fn order(tables: &impl Tables, handler: &str, sent: &[(String, String)]) -> Option<Broken> {
    let lines: BTreeMap<&str, &str> = sent.iter().map(|(line, key)| (key.as_str(), line.as_str())).collect();
    let mut wanted = BTreeMap::<&str, Vec<&str>>::new();
    for (line, key) in sent {
        wanted.entry(line).or_default().push(key);
    }
    let entries = tables.lines(&format!("SELECT entry FROM ledger WHERE handler = '{handler}' ORDER BY id"));
    let mut found = BTreeMap::<&str, Vec<&str>>::new();
    for entry in &entries {
        if let Some(line) = lines.get(entry.as_str()) {
            found.entry(line).or_default().push(entry);
        }
    }
    let differs = |(line, wanted): (&&str, &Vec<&str>)| {
        let found = found.get(line).map_or(&[][..], Vec::as_slice);
        let at = wanted.iter().zip(found).position(|(wanted, found)| wanted != found)?;
        Some(format!("{line}: {} where {} should be, the {}th", found[at], wanted[at], at + 1))
    };
    let rows = wanted.iter().filter_map(differs).collect();
    Broken::by(Invariant::Order, "effects of an ordering key come in the order in which they were sent", rows)
}

/// Nothing of these keys, which are of other tenants, is in the tables.
#[must_use]
#[track_caller]
pub fn isolation<'k>(tables: &impl Tables, others: impl IntoIterator<Item = &'k str>) -> Option<Broken> {
    let others: BTreeSet<&str> = others.into_iter().collect();
    let places = [
        "SELECT concat('ob_inbox ', CAST(business_key AS CHAR)) FROM ob_inbox",
        "SELECT concat('ob_held ', CAST(business_key AS CHAR)) FROM ob_held WHERE business_key IS NOT NULL",
        "SELECT concat('ob_outbox ', CAST(business_key AS CHAR)) FROM ob_outbox",
        "SELECT concat('ledger ', entry) FROM ledger",
    ];
    let rows = places.iter().flat_map(|sql| tables.lines(sql));
    let is_foreign = |row: &String| row.split_once(' ').is_some_and(|(_, key)| others.contains(key));
    Broken::by(Invariant::Isolation, "no key of another tenant is here", rows.filter(is_foreign).collect())
}

/// The processes' own counts of verdicts, as `/metrics` tells them, are no more than what is committed: `metrics` of all
/// hosts that live.
#[must_use]
#[track_caller]
pub fn metered(tables: &impl Tables, tenant: &str, metrics: &[String]) -> Option<Broken> {
    let names = ["applied", "duplicate", "conflict", "skipped", "parked", "dead"];
    let mut rows = Vec::new();
    for (number, verdict) in names.iter().enumerate() {
        let is_own = |line: &&str| {
            line.starts_with("oncebox_verdicts_total{")
                && line.contains(&format!("tenant=\"{tenant}\""))
                && line.contains(&format!("verdict=\"{verdict}\""))
        };
        let count = |line: &str| line.rsplit_once(' ').and_then(|(_, n)| n.parse::<i64>().ok()).unwrap_or(0);
        let metered: i64 = metrics.iter().flat_map(|text| text.lines()).filter(is_own).map(count).sum();
        let tallied = tables
            .number(&format!("SELECT CAST(coalesce(sum(n), 0) AS SIGNED) FROM ob_tally WHERE verdict = {number}"));
        if metered > tallied {
            rows.push(format!("{verdict}: {metered} in /metrics, {tallied} committed"));
        }
    }
    Broken::by(Invariant::Books, "a verdict that is counted in /metrics is committed", rows)
}

/// A host never held more than this.
#[must_use]
pub fn bounds(host: &str, samples: &[Footprint], most: Footprint) -> Option<Broken> {
    let is_over = |one: &&Footprint| one.resident_mb > most.resident_mb || one.open_files > most.open_files;
    let row = |one: &Footprint| format!("{} MB, {} open files", one.resident_mb, one.open_files);
    let rule = format!("{host} holds {} MB and {} open files at most", most.resident_mb, most.open_files);
    Broken::by(Invariant::Bounds, rule, samples.iter().filter(is_over).map(row).collect())
}
