//! Holds a tenant's tables against each other: whatever the host did, they must tell one story.

use std::collections::BTreeMap;

use oncebox::store::{HandlerId, Store, StoreError, UnitOfWork};
use oncebox_core::{failure::Class, life::Verdict, value::Value};

/// Counts that must be equal: what is compared, and the two texts.
const EQUAL: [(&str, &str, &str); 5] = [
    (
        "parked inbox rows, and parked rows held for them",
        "SELECT count(*) FROM ob_inbox WHERE state = 2",
        "SELECT count(*) FROM ob_inbox AS i WHERE state = 2 AND 1 = (SELECT count(*) FROM ob_held AS h
           WHERE h.handler_id = i.handler_id AND h.business_key = i.business_key AND h.state = 0)",
    ),
    (
        "parked held rows, and keys parked for them",
        "SELECT count(*) FROM ob_held WHERE state = 0",
        "SELECT count(*) FROM ob_inbox WHERE state = 2",
    ),
    (
        "dead inbox rows, and dead rows held for them",
        "SELECT count(*) FROM ob_inbox WHERE state = 3",
        "SELECT count(*) FROM ob_inbox AS i WHERE state = 3 AND 1 = (SELECT count(*) FROM ob_held AS h
           WHERE h.handler_id = i.handler_id AND h.business_key = i.business_key AND h.state = 1)",
    ),
    (
        "held rows, and held rows with a body",
        "SELECT count(*) FROM ob_held",
        "SELECT count(*) FROM ob_held WHERE held_id IN (SELECT held_id FROM ob_body WHERE revision = 0)",
    ),
    (
        "outgoing events, and outgoing events of applied keys",
        "SELECT count(*) FROM ob_outbox",
        "SELECT count(*) FROM ob_outbox AS o JOIN ob_inbox AS i
           ON i.handler_id = o.handler_id AND i.business_key = o.business_key WHERE i.state = 0",
    ),
];

/// Of each handler: a verdict's tally, and the rows that it must have left (`{}` stands for the handler).
const VERDICTS: [(&str, &[Verdict], &str); 5] = [
    (
        "applied, and applied rows",
        &[Verdict::Applied],
        "SELECT count(*) FROM ob_inbox WHERE handler_id = {} AND state = 0",
    ),
    (
        "skipped, and skipped rows",
        &[Verdict::Skipped],
        "SELECT count(*) FROM ob_inbox WHERE handler_id = {} AND state = 1",
    ),
    (
        "dead, and dead rows with poison",
        &[Verdict::Dead],
        "SELECT (SELECT count(*) FROM ob_inbox WHERE handler_id = {} AND state = 3)
           + (SELECT coalesce(sum(times), 0) FROM ob_held WHERE handler_id = {} AND state = 4)",
    ),
    (
        "conflicts, and times of conflict rows",
        &[Verdict::Conflict],
        "SELECT coalesce(sum(times), 0) FROM ob_held WHERE handler_id = {} AND state = 2",
    ),
    (
        "duplicates and conflicts, and further deliveries counted",
        &[Verdict::Duplicate, Verdict::Conflict],
        "SELECT coalesce(sum(duplicates), 0) FROM ob_inbox WHERE handler_id = {}",
    ),
];

/// Every difference between the tables, in words; none: the books balance. `put_aside` is the number of verdicts
/// `parked` and `dead` without a run; `None`: there may be any number of them. All is read in one transaction, so that a
/// host may be at work meanwhile.
///
/// # Errors
/// The tables could not be read.
pub async fn imbalances(store: &dyn Store, put_aside: Option<u64>) -> Result<Vec<String>, StoreError> {
    let mut lane = store.lane().await?;
    let mut unit = lane.begin().await?;
    let found = read(unit.as_mut(), &store.handlers().await?, put_aside).await;
    unit.rollback().await?;
    found
}

async fn read(
    unit: &mut dyn UnitOfWork,
    handlers: &BTreeMap<String, HandlerId>,
    put_aside: Option<u64>,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for (what, one, other) in EQUAL {
        compare(what, number(unit, one).await?, number(unit, other).await?, &mut found);
    }
    for (name, handler) in handlers {
        for (what, verdicts, rows) in VERDICTS {
            let handler = handler.to_string();
            let rows = number(unit, &rows.replace("{}", &handler)).await?;
            let tally = number(unit, &tally(verdicts, &format!("handler_id = {handler}"))).await?;
            compare(&format!("{name}: {what}"), tally, rows, &mut found);
        }
    }
    let failed = number(unit, &tally(&[Verdict::Parked, Verdict::Dead], "TRUE")).await?;
    let poison = number(unit, "SELECT coalesce(sum(times), 0) FROM ob_held WHERE state = 4").await?;
    // Of a death nothing came back: the verdict is that of the one that is given up without a run.
    let deaths = Class::DeathAlone.number();
    let attempts = number(unit, &format!("SELECT count(*) FROM ob_attempt WHERE class <> {deaths}")).await?;
    let put_aside = put_aside.map_or((failed - poison - attempts).max(0), i128::from);
    let what = "verdicts parked and dead, and attempts that did not apply";
    compare(what, failed - poison, attempts + put_aside, &mut found);
    Ok(found)
}

/// The text that sums some verdicts.
fn tally(verdicts: &[Verdict], of: &str) -> String {
    let verdicts: Vec<String> = verdicts.iter().map(|verdict| verdict.number().to_string()).collect();
    format!("SELECT coalesce(sum(n), 0) FROM ob_tally WHERE verdict IN ({}) AND {of}", verdicts.join(", "))
}

fn compare(what: &str, one: i128, other: i128, found: &mut Vec<String>) {
    if one != other {
        found.push(format!("{what}: {one} and {other}"));
    }
}

async fn number(unit: &mut dyn UnitOfWork, sql: &str) -> Result<i128, StoreError> {
    let failed = |message: String| StoreError::Statement { what: "the checker", message };
    let answer = unit.query(&sql.into(), &[], 1).await.map_err(|error| failed(error.message))?;
    match answer.rows.first().and_then(|row| row.first()) {
        Some(Value::Signed(number)) => Ok(i128::from(*number)),
        Some(Value::Unsigned(number)) => Ok(i128::from(*number)),
        // What a server calls a sum.
        Some(Value::Decimal(number)) => number.parse().map_err(|_| failed(format!("{sql}: {number}"))),
        other => Err(failed(format!("{sql}: {other:?}"))),
    }
}
