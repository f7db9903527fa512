//! A host that hangs past every lease, and comes back when another one has done its work.

use oncebox::failpoint::Place;
use oncebox_tests::{fleet::Plan, patience::eventually};

use crate::{
    Doing, doing, places,
    stage::{Events, HANGING, HANGING_CLASSIC, LONG, Stage, is_all},
};

fn stopped_at(chosen: &[Place]) {
    stopped_on(HANGING, chosen);
    if is_all() {
        stopped_on(HANGING_CLASSIC, chosen);
    }
}

fn stopped_on(plan: Plan, chosen: &[Place]) {
    let mut stage = Stage::new(plan);
    for place in chosen {
        let events = match doing(*place) {
            Doing::Running | Doing::Writing | Doing::Settling => Events::Applied,
            Doing::Parking | Doing::Claiming => Events::Parked,
            Doing::Deploying | Doing::Migrating => panic!("{place:?} is no place of a delivery"),
        };
        let a = stage.armed(*place, "stop");
        stage.publish_until(&format!("a hangs: {}", place.name()), events, || a.hangs());
        // Its session is ended by the server, its deliveries are given back, its leases run out; all of it goes to b.
        stage.all_applied_once(*place);
        assert!(a.hangs());
        let over = "SELECT count(*) FROM ob_boot WHERE host = 'a' AND ended_at IS NULL
            AND seen_at < UTC_TIMESTAMP(6) - INTERVAL 2 SECOND";
        eventually("the others take it for over", LONG, || (stage.number(over) > 0).then_some(()));

        a.thaw();
        eventually("a is ready again", LONG, || (a.get("/readyz").0 == 200).then_some(()));
        stage.publish(events);
        stage.all_applied_once(*place);
        a.stop();
    }
    stage.stop();
}

/// These, or with all that is asked for every place of these kinds.
fn or_all(chosen: &[Place], kinds: &[Doing]) -> Vec<Place> {
    if is_all() { kinds.iter().flat_map(|kind| places(*kind)).collect() } else { chosen.to_vec() }
}

#[test]
fn hanging_inside_its_unit_of_work_past_every_lease_it_commits_nothing() {
    let chosen = [Place::AfterInboxInsert, Place::AfterMiddleWrite, Place::BeforeCommit];
    stopped_at(&or_all(&chosen, &[Doing::Running, Doing::Writing, Doing::Parking]));
}

#[test]
fn hanging_past_every_lease_with_what_is_committed_or_claimed_it_does_nothing_again() {
    stopped_at(&or_all(&[Place::AfterCommit, Place::ClaimTaken], &[Doing::Settling, Doing::Claiming]));
}
