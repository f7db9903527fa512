//! Holds a tenant's tables against each other: whatever the host did, they must tell one story.

use oncebox::store::{HandlerId, Store, StoreError};
use oncebox_core::{life::Verdict, value::Value};

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

/// Every difference between the tables, in words; none: the books balance. `put_aside` is the number of verdicts
/// `parked` and `dead` without a run.
///
/// # Errors
/// The tables could not be read.
pub async fn imbalances(store: &dyn Store, put_aside: u64) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for (what, one, other) in EQUAL {
        compare(what, count(store, one).await?, count(store, other).await?, &mut found);
    }
    for (name, handler) in store.handlers().await? {
        for (what, tally, rows) in verdicts(store, handler).await? {
            compare(&format!("{name}: {what}"), tally, rows, &mut found);
        }
    }
    let tally = tallies(store).await?;
    let poison = count(store, "SELECT coalesce(sum(times), 0) FROM ob_held WHERE state = 4").await?;
    let failed = tally(None, &[Verdict::Parked, Verdict::Dead]) - poison;
    let attempts = count(store, "SELECT count(*) FROM ob_attempt").await? + i128::from(put_aside);
    compare("verdicts parked and dead, and attempts that did not apply", failed, attempts, &mut found);
    Ok(found)
}

type Comparison = (&'static str, i128, i128);

/// A handler's tallies against its rows.
async fn verdicts(store: &dyn Store, handler: HandlerId) -> Result<Vec<Comparison>, StoreError> {
    let tally = tallies(store).await?;
    let of = |verdicts: &[Verdict]| tally(Some(handler), verdicts);
    let inbox = async |state: u8| {
        let sql = format!("SELECT count(*) FROM ob_inbox WHERE handler_id = {handler} AND state = {state}");
        count(store, &sql).await
    };
    let times = async |state: u8| {
        let held = "SELECT coalesce(sum(times), 0) FROM ob_held";
        count(store, &format!("{held} WHERE handler_id = {handler} AND state = {state}")).await
    };
    let duplicates = format!("SELECT coalesce(sum(duplicates), 0) FROM ob_inbox WHERE handler_id = {handler}");
    Ok(vec![
        ("applied, and applied rows", of(&[Verdict::Applied]), inbox(0).await?),
        ("skipped, and skipped rows", of(&[Verdict::Skipped]), inbox(1).await?),
        ("dead, and dead rows with poison", of(&[Verdict::Dead]), inbox(3).await? + times(4).await?),
        ("conflicts, and times of conflict rows", of(&[Verdict::Conflict]), times(2).await?),
        (
            "duplicates and conflicts, and further deliveries counted",
            of(&[Verdict::Duplicate, Verdict::Conflict]),
            count(store, &duplicates).await?,
        ),
    ])
}

/// The sum of some verdicts of a handler, or of all.
async fn tallies(store: &dyn Store) -> Result<impl Fn(Option<HandlerId>, &[Verdict]) -> i128 + use<>, StoreError> {
    let tallies = store.tallies().await?;
    Ok(move |handler: Option<HandlerId>, verdicts: &[Verdict]| {
        let meant = tallies
            .iter()
            .filter(|(own, verdict, _)| handler.is_none_or(|handler| handler == *own) && verdicts.contains(verdict));
        meant.map(|(_, _, n)| i128::from(*n)).sum()
    })
}

fn compare(what: &str, one: i128, other: i128, found: &mut Vec<String>) {
    if one != other {
        found.push(format!("{what}: {one} and {other}"));
    }
}

async fn count(store: &dyn Store, sql: &str) -> Result<i128, StoreError> {
    let failed = |message: String| StoreError::Statement { what: "checker", message };
    let mut lane = store.lane().await?;
    let mut unit = lane.begin().await?;
    let answer = unit.query(&sql.into(), &[], 1).await.map_err(|error| failed(error.message))?;
    unit.rollback().await?;
    match answer.rows.first().and_then(|row| row.first()) {
        Some(Value::Signed(number)) => Ok(i128::from(*number)),
        other => Err(failed(format!("{sql}: {other:?}"))),
    }
}
