//! The end of a run: everything heals, what is left is worked off, and the checker looks at all of it.

use std::time::Duration;

use oncebox::clock;
use oncebox_tests::{
    checker::{Broken, Invariant, broken, live, sent::Sent},
    database::Tables as _,
    feed::Expected,
    fleet::Tenant,
    host::Footprint,
};

use crate::{
    Violations,
    stage::{Done, ORDERED_TENANT, SHORT_ATTEMPTS_MAX, Stage},
    traffic::Traffic,
};

/// The longest wait of a host for a silent server, and what is left, on a busy machine.
const DRAINED_IN: Duration = Duration::from_mins(8);
/// Of one tenant: lanes, slow lanes, and the store's own, of two hosts; and as many that a server has not missed yet.
const SESSIONS_MAX: usize = 2 * 2 * 10;
/// Of one tenant: a source of each of two hosts.
const CONNECTIONS_MAX: usize = 2;
/// A host may grow by this over its first look.
const GROWTH: Footprint = Footprint { resident_mb: 300, open_files: 60 };

/// Heals, drains and checks, and adds what it finds to what was found on the way; the sentence for a run in which nothing is broken.
pub(crate) fn end(
    stage: &mut Stage,
    traffic: &[Traffic],
    played: Duration,
    again: usize,
    mut violations: Violations,
) -> Result<String, Violations> {
    let began = clock::monotonic();
    println!("{:>7.1} s  everything heals", played.as_secs_f64());
    stage.heal();
    let fleet = stage.fleet.clone();
    for tenant in &fleet.tenants {
        tenant.drained(DRAINED_IN);
    }
    stage.ready();
    stage.sample();
    println!("== drained {:.0} s later; checking", began.elapsed().as_secs_f64());
    let metrics = stage.metrics();
    for (tenant, own) in fleet.tenants.iter().zip(traffic) {
        let others = fleet.tenants.iter().zip(traffic).filter(|(other, _)| other.name != tenant.name);
        let others: Vec<&Traffic> = others.map(|(_, traffic)| traffic).collect();
        violations.extend(check(tenant, own, &others, &metrics).into_iter().map(|broken| (tenant.name, broken)));
    }
    violations.extend(footprints(stage).into_iter().map(|broken| ("-", broken)));
    stage.end();
    if violations.is_empty() { Ok(sentence(stage, traffic, again)) } else { Err(violations) }
}

fn check(tenant: &Tenant, own: &Traffic, others: &[&Traffic], metrics: &[String]) -> Vec<Broken> {
    let session = tenant.session();
    let mut found = broken(&session);
    let sent = Sent::of("a", &own.feed).with_origins();
    let sent = if tenant.name == ORDERED_TENANT { sent } else { sent.counted(SHORT_ATTEMPTS_MAX) };
    found.extend(sent.broken(&session));
    found.extend(live::order(&session, "a", &own.order));
    found.extend(live::isolation(&session, others.iter().flat_map(|other| other.feed.keys.keys().map(String::as_str))));
    found.extend(live::metered(&session, tenant.name, metrics));
    found.extend(live::liveness(tenant, SESSIONS_MAX, CONNECTIONS_MAX));
    let decided = session.number("SELECT CAST(coalesce(sum(n), 0) AS SIGNED) FROM ob_tally");
    let rows = (usize::try_from(decided).unwrap_or(0) < own.feed.lines.len())
        .then(|| format!("{decided} verdicts of {} messages", own.feed.lines.len()));
    found.extend(Broken::by(Invariant::Books, "every message has a verdict", rows.into_iter().collect()));
    found
}

/// What the hosts held over the run; flat, but for what a start costs.
fn footprints(stage: &Stage) -> Vec<Broken> {
    let mut found = Vec::new();
    for (host, samples) in stage.samples() {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { continue };
        let most = |of: fn(&Footprint) -> u64| samples.iter().map(of).max().unwrap_or_default();
        let files = |one: &Footprint| u64::try_from(one.open_files).unwrap_or(u64::MAX);
        println!(
            "host {host}: {} MB and {} open files at first, {} and {} at last, {} and {} at most; of {} looks from one to \
             the next {:+.3} MB and {:+.3} files",
            first.resident_mb,
            first.open_files,
            last.resident_mb,
            last.open_files,
            most(|one| one.resident_mb),
            most(files),
            samples.len(),
            slope(samples.iter().map(|one| one.resident_mb)),
            slope(samples.iter().map(files)),
        );
        let bound = Footprint {
            resident_mb: first.resident_mb + GROWTH.resident_mb,
            open_files: first.open_files + GROWTH.open_files,
        };
        found.extend(live::bounds(host, samples, bound));
    }
    found
}

/// By how much the values grow from one to the next: the line of least squares.
fn slope(values: impl Iterator<Item = u64>) -> f64 {
    let number = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let points: Vec<(f64, f64)> = (0..).zip(values).map(|(at, value)| (number(at), number(value))).collect();
    let count = number(points.len() as u64);
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(at, _)| (at - middle).powi(2)).sum();
    let rise: f64 = points.iter().map(|(at, value)| (at - middle) * (value - level)).sum();
    if spread > 0.0 { rise / spread } else { 0.0 }
}

fn sentence(stage: &Stage, traffic: &[Traffic], again: usize) -> String {
    let sum = |of: &dyn Fn(&Traffic) -> usize| traffic.iter().map(of).sum::<usize>();
    let number = |sql: &str| stage.fleet.tenants.iter().map(|tenant| tenant.session().number(sql)).sum::<i64>();
    let Done { kills, stops, freezes, database, broker, connections, at_messages, deployments } = stage.done;
    format!(
        "Of {} published messages ({again} more published again) with {} distinct keys, {} keys are applied, {} skipped and \
         {} dead; {} deliveries were duplicates, {} conflicts and {} poison letters are kept; through {kills} kill -9 and \
         {stops} stops of a host, {freezes} freezes, {database} faults of MySQL, {broker} of RabbitMQ, {connections} of \
         connections, {at_messages} at chosen messages and {deployments} deployments nothing was lost and nothing doubled.",
        sum(&|traffic| traffic.feed.lines.len()),
        sum(&|traffic| traffic.feed.keys.len()),
        sum(&|traffic| traffic.with_end(Expected::Applied)),
        sum(&|traffic| traffic.with_end(Expected::Skipped)),
        sum(&|traffic| traffic.with_end(Expected::Dead)),
        number("SELECT CAST(coalesce(sum(n), 0) AS SIGNED) FROM ob_tally WHERE verdict = 1"),
        number("SELECT count(*) FROM ob_held WHERE state = 2"),
        number("SELECT count(*) FROM ob_held WHERE state = 4"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_the_growth_from_one_value_to_the_next() {
        let flat = |values: &[u64]| slope(values.iter().copied());
        assert!((flat(&[5, 7, 9, 11]) - 2.0).abs() < 1e-9);
        assert!(flat(&[5, 9, 5, 9, 5]).abs() < 1e-9);
        assert!((flat(&[9, 8, 7]) + 1.0).abs() < 1e-9);
        assert!(flat(&[3]).abs() < 1e-9 && flat(&[]).abs() < 1e-9);
    }
}
