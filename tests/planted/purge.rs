//! A purge that does what the design forbids. The host has none yet: mark and deletes are the test's.

use oncebox::plugin::Outcome;
use oncebox_tests::{checker::broken, services::Kind};

use crate::{
    bench::{deliver, on, over},
    stage::Stage,
    units::unit,
};

/// Decided before this, a row may be purged.
const MARK: &str = "'2001-01-01'";

/// A purge has selected a key whose row another one deletes, and which comes anew before the first gets to it.
async fn purged_late(stage: &Stage, delete: &str) -> Vec<String> {
    let (plain, database) = (&stage.bench.plain, stage.database());
    let skipped = Outcome::Skipped { reason: "nothing to do".into() };
    assert!(unit(stage, &[over(deliver(plain, "a", 1), skipped)]).await);
    database.execute("UPDATE ob_inbox SET decided_at = '2000-01-01' WHERE business_key = 'a'");
    database.execute(&format!("DELETE FROM ob_inbox WHERE business_key = 'a' AND decided_at < {MARK}"));
    assert!(unit(stage, &[Stage::entry(plain, "a", 1)]).await);
    database.execute(delete);
    assert!(unit(stage, &[Stage::entry(plain, "a", 1)]).await);
    let found = broken(database).into_iter().map(|broken| broken.to_string());
    // The books keep what a purge takes.
    found.filter(|broken| !broken.contains("books")).collect()
}

#[test]
fn a_key_that_came_anew_and_is_deleted_by_key_alone_is_found_applied_twice() {
    on(Some(Kind::Mysql), async || {
        let right = format!("DELETE FROM ob_inbox WHERE business_key = 'a' AND decided_at < {MARK}");
        assert_eq!(purged_late(&Stage::new().await, &right).await, Vec::<String>::new());
        let found = purged_late(&Stage::new().await, "DELETE FROM ob_inbox WHERE business_key = 'a'").await;
        assert!(found.iter().any(|row| row.contains("plain a: state 0, 2 entries")), "{found:?}");
    });
}
