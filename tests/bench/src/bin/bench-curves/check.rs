//! Whether a tenant's tables hold what they must after a drain: each key once, with all that belongs to it.

use anyhow::{Result, ensure};
use oncebox_bench::stage::Stage;
use oncebox_tests::{database::Tables as _, services::Session};

use crate::scenario::{Plugin, Scenario};

/// What failed, and how often: what is not as expected mostly comes of that.
fn failures(session: &Session) -> String {
    let held = "SELECT CONCAT(code, ' ', count(*)) FROM ob_held GROUP BY code ORDER BY code";
    let held = session.lines(held);
    if held.is_empty() { String::new() } else { format!("; held: {}", held.join(", ")) }
}

pub(crate) fn check(stage: &Stage, scenario: &Scenario) -> Result<()> {
    let session = stage.session();
    let keys = i64::from(scenario.keys());
    let plugins: &[(&str, &str)] = match scenario.plugin {
        Plugin::Points => &[
            ("ledger rows", "SELECT count(*) FROM points_ledger"),
            ("orders in the ledger", "SELECT count(DISTINCT order_id) FROM points_ledger"),
            ("points", "SELECT CAST(sum(points) AS SIGNED) FROM points_account"),
        ],
        Plugin::Probe => &[
            ("ledger rows", "SELECT count(*) FROM ledger"),
            ("entries in the ledger", "SELECT count(DISTINCT entry) FROM ledger"),
            ("the sum", "SELECT CAST(sum(total) AS SIGNED) FROM counter"),
        ],
    };
    for (what, sql) in plugins {
        let n = session.number(sql);
        ensure!(n == keys, "{what}: {n} instead of {keys}");
    }
    let books = |verdict: u8| {
        session.number(&format!("SELECT CAST(COALESCE(sum(n), 0) AS SIGNED) FROM ob_tally WHERE verdict = {verdict}"))
    };
    let found = [
        ("keys", session.number("SELECT count(*) FROM ob_inbox"), keys + i64::from(scenario.inbox_rows)),
        ("keys that are not applied", session.number("SELECT count(*) FROM ob_inbox WHERE state <> 0"), 0),
        ("outgoing events", session.number("SELECT count(*) FROM ob_outbox"), keys),
        ("applied", books(0), keys),
        ("duplicates", books(1), i64::from(scenario.history())),
        ("parked", books(4), i64::from(scenario.parks())),
    ];
    for (what, n, wanted) in found {
        ensure!(n == wanted, "{what}: {n} instead of {wanted}{}", failures(&session));
    }
    Ok(())
}
