//! Holds what is in a tenant's tables, at its broker and in its hosts against the promise. What is broken is named by its
//! invariant and shown by the rows that break it.
//!
//! [`rules`] are queries over one tenant's tables; [`sent`] knows what was published; [`live`] looks at queues, sessions
//! and processes.

pub mod live;
pub mod rules;
pub mod sent;

use std::fmt;

use oncebox::store::{Store, StoreError, UnitOfWork};
use oncebox_core::value::Value;

use crate::{database::Tables, feed::Feed};
use rules::Scope;
use sent::Sent;

/// What must hold, however a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// I1: what the broker has confirmed has one end.
    NoLoss,
    /// I2: the effect of a key is there once.
    Once,
    /// I3: inbox row, staged writes, outgoing events and held rows are there together or not at all.
    Atomic,
    /// I4: what is not at the broker any more is in the tables.
    AckAfterCommit,
    /// I5: nothing is there that was never sent.
    NoPhantom,
    /// I7: nothing is written under a lease that is over.
    Fencing,
    /// I8: effects of one ordering key come in the order in which they were sent.
    Order,
    /// I9: what counts as an attempt is counted, once, and nothing else.
    Retries,
    /// I10: nothing is left to do, and nobody holds on to anything.
    Liveness,
    /// I11: an effect is the one of the version that the inbox row names.
    Version,
    /// I12: nothing of one tenant is at another one.
    Isolation,
    /// I13: what is held is kept as it came, bytes and headers.
    Kept,
    /// I14: a host takes no more of the machine than it may.
    Bounds,
    /// I15: what the lanes counted is what there is.
    Books,
}

impl Invariant {
    /// All that are checked, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::NoLoss,
        Self::Once,
        Self::Atomic,
        Self::AckAfterCommit,
        Self::NoPhantom,
        Self::Fencing,
        Self::Order,
        Self::Retries,
        Self::Liveness,
        Self::Version,
        Self::Isolation,
        Self::Kept,
        Self::Bounds,
        Self::Books,
    ];

    /// Its number and name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoLoss => "I1 no loss",
            Self::Once => "I2 once",
            Self::Atomic => "I3 atomic",
            Self::AckAfterCommit => "I4 ack after commit",
            Self::NoPhantom => "I5 no phantom",
            Self::Fencing => "I7 fencing",
            Self::Order => "I8 order",
            Self::Retries => "I9 retries",
            Self::Liveness => "I10 liveness",
            Self::Version => "I11 version",
            Self::Isolation => "I12 isolation",
            Self::Kept => "I13 kept",
            Self::Bounds => "I14 bounds",
            Self::Books => "I15 books",
        }
    }
}

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// What it belongs to.
    pub invariant: Invariant,
    /// What should be so.
    pub rule: String,
    /// What is not.
    pub rows: Vec<String>,
}

impl Broken {
    /// Of a rule; `None` where no row breaks it.
    #[must_use]
    pub fn by(invariant: Invariant, rule: impl Into<String>, rows: Vec<String>) -> Option<Self> {
        (!rows.is_empty()).then(|| Self { invariant, rule: rule.into(), rows })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: broken by {}", self.invariant.name(), self.rule, self.rows.len())?;
        self.rows.iter().take(20).try_for_each(|row| write!(f, "\n    {row}"))
    }
}

/// Sees to it that nothing is broken.
///
/// # Panics
/// Something is; the message shows all of it.
#[track_caller]
pub fn expect_none(broken: &[Broken]) {
    let shown: String = broken.iter().map(|broken| format!("\n  {broken}")).collect();
    assert!(broken.is_empty(), "{shown}");
}

/// All rules over the tables of a tenant whose handlers the probe `ledger` serves; also while it is in use, since what
/// belongs together is committed together.
///
/// # Panics
/// One is broken; the message shows its rows.
#[track_caller]
pub fn check_promise(tables: &impl Tables) {
    expect_none(&broken(tables));
}

/// What of these rules is broken.
#[track_caller]
#[must_use]
pub fn broken(tables: &impl Tables) -> Vec<Broken> {
    let rules = rules::all(Scope::Ledger, None);
    rules.into_iter().filter_map(|rule| Broken::by(rule.invariant, rule.says, tables.lines(&rule.sql))).collect()
}

/// The rules over the `ob_*` tables alone, read through a store; each line names a rule and a row that breaks it.
/// `put_aside` is the number of verdicts `parked` and `dead` without a run; `None`: there may be any number of them.
///
/// # Errors
/// The tables could not be read.
pub async fn imbalances(store: &dyn Store, put_aside: Option<u64>) -> Result<Vec<String>, StoreError> {
    let mut lane = store.lane().await?;
    let mut unit = lane.begin().await?;
    let mut found = Vec::new();
    for rule in rules::all(Scope::Tables, put_aside) {
        let rows = lines(unit.as_mut(), &rule.sql).await?;
        found.extend(rows.iter().map(|row| format!("{}: {}: {row}", rule.invariant.name(), rule.says)));
    }
    unit.rollback().await?;
    Ok(found)
}

async fn lines(unit: &mut dyn UnitOfWork, sql: &str) -> Result<Vec<String>, StoreError> {
    let failed = |message: String| StoreError::Statement { what: "the checker", message };
    let answer = unit.query(&sql.into(), &[], 20).await.map_err(|error| failed(format!("{}\n{sql}", error.message)))?;
    let text = |row: &Vec<Value>| match row.first() {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(Value::Bytes(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        other => Err(failed(format!("{sql}: {other:?}"))),
    };
    answer.rows.iter().map(text).collect()
}

/// Checks that every message of a feed was decided, once, by the one handler that it was for.
///
/// # Panics
/// A key is missing or has another end, or a message was counted twice or not at all.
#[track_caller]
pub fn check_feed(tables: &impl Tables, handler: &str, feed: &Feed) {
    check_ends(tables, handler, feed);
    let expected = [feed.again, feed.poison].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    assert_eq!(counted(tables), expected, "seen again, poison letters");
}

/// The same for messages that a broker may have delivered again after their verdict was committed: each of those counts
/// as seen again, and does nothing else.
///
/// # Panics
/// A key is missing or has another end, or a message was not counted at all.
#[track_caller]
pub fn check_feed_delivered_again(tables: &impl Tables, handler: &str, feed: &Feed) {
    check_ends(tables, handler, feed);
    let (counted, expected) = (counted(tables), [feed.again, feed.poison]);
    let is_less = |(counted, expected): (i64, usize)| usize::try_from(counted).is_ok_and(|counted| counted < expected);
    assert!(!counted.into_iter().zip(expected).any(is_less), "{counted:?}, sent were {expected:?}");
}

#[track_caller]
fn check_ends(tables: &impl Tables, handler: &str, feed: &Feed) {
    expect_none(&Sent::of(handler, feed).broken(tables));
    assert_eq!(tables.number("SELECT count(*) FROM ob_local"), 0, "messages that nobody has decided");
}

/// Deliveries of a key that was there, and of poison.
#[track_caller]
fn counted(tables: &impl Tables) -> [i64; 2] {
    [
        "SELECT CAST(coalesce(sum(duplicates), 0) AS SIGNED) FROM ob_inbox",
        "SELECT CAST(coalesce(sum(times), 0) AS SIGNED) FROM ob_held WHERE state = 4",
    ]
    .map(|sql| tables.number(sql))
}
