//! Faults of claims.

use std::time::Duration;

use oncebox::{
    host::{Target, unit_of_work},
    planted::{Fault, with_clock_ahead},
    store::{Store as _, Use},
};
use oncebox_core::{failure::Class, ids::LeaseToken};

use crate::{
    bench::{deliver, failed, over},
    stage::{LEASE, Stage, caught},
};

/// One event that is parked after its first attempt.
async fn park(stage: &Stage) {
    let parked = over(deliver(&stage.bench.plain, "a", 1), failed(Class::GuestRetry, "later"));
    stage.bench.unit(&[parked]).await;
}

#[test]
fn a_claim_that_is_decided_under_an_old_token_is_found_by_its_attempts() {
    let story = async |stage: &Stage| {
        park(stage).await;
        let (bench, plain) = (&stage.bench, &stage.bench.plain);
        // The lease of the first is over at once, and the second takes the row; both run, and both fail.
        let late = bench.claim(plain, Duration::ZERO).await;
        let now = bench.claim_now(plain, LEASE).await;
        let mut connection = bench.store.lane().await.unwrap();
        for claim in [late, now].into_iter().flatten() {
            let again = over(claim, failed(Class::GuestRetry, "later"));
            unit_of_work(&bench.lane, connection.as_mut(), &[again]).await.unwrap();
        }
        Vec::new()
    };
    caught(Fault::UnfencedClaim, story, &["a: 2 counted"]);
}

#[test]
fn a_lease_that_is_over_by_a_wrong_clock_is_found_taken_by_two() {
    let story = async |stage: &Stage| {
        park(stage).await;
        let (bench, plain) = (&stage.bench, &stage.bench.plain);
        assert_eq!(bench.claim(plain, LEASE).await.len(), 1);
        let Target::Handler(handler, _) = plain else { panic!("nobody claims") };
        let leased = "SELECT COUNT(*) FROM ob_held WHERE lease_token IS NOT NULL AND due_at > UTC_TIMESTAMP(6)";
        assert_eq!(stage.database().number(leased), 1);
        // Another host, whose clock is an hour ahead.
        let other = bench.tenant().open(Use::Command).await.unwrap();
        let claim = other.held_claim(handler.id, 100, LeaseToken([9; 16]), LEASE, bench.lane.tenant.start());
        let taken = with_clock_ahead(Duration::from_hours(1), claim).await.unwrap();
        taken.iter().map(|row| format!("{} is under two leases", row.key)).collect()
    };
    caught(Fault::HostClockLease, story, &["a is under two leases"]);
}
