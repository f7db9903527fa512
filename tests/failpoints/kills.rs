//! A host that dies on a delivery's way.

use oncebox::failpoint::Place;
use oncebox_tests::fleet::Plan;

use crate::{
    Doing, places,
    stage::{DYING, DYING_CLASSIC, Events, Stage, is_all},
};

/// Deliveries that were seen again after the death of the one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenAgain {
    /// None: nothing of what the host had in its hands was committed.
    None,
    /// Some: what was committed and not acked comes again.
    Some,
    /// It depends on how much of the ack has reached the broker.
    Perhaps,
}

fn killed_at(places: impl Iterator<Item = Place>, events: Events) {
    let places: Vec<Place> = places.collect();
    let several = is_all().then_some(DYING_CLASSIC);
    for plan in [DYING].into_iter().chain(several) {
        killed_on(plan, &places, events);
    }
}

fn killed_on(plan: Plan, places: &[Place], events: Events) {
    let mut stage = Stage::new(plan);
    for place in places {
        let first = stage.published();
        let mut a = stage.armed(*place, "kill");
        stage.publish_until(&format!("a has died: {}", place.name()), events, || a.has_died());
        stage.all_applied_once(*place);
        // With many lanes one may have committed what another one's death leaves without an ack.
        if plan.tenants[0].queue == DYING.tenants[0].queue {
            let again = stage.duplicates(first);
            let as_told = match seen_again(*place) {
                SeenAgain::None => again == 0,
                SeenAgain::Some => again > 0,
                SeenAgain::Perhaps => true,
            };
            assert!(as_told, "{place:?}: {again} deliveries were seen again");
        }
    }
    stage.stop();
}

fn seen_again(place: Place) -> SeenAgain {
    match place {
        Place::AfterTake
        | Place::AfterIdentify
        | Place::AfterLookUp
        | Place::AfterRun
        | Place::AfterInboxInsert
        | Place::AfterFirstWrite
        | Place::AfterMiddleWrite
        | Place::AfterLastWrite
        | Place::HeldWritten
        | Place::AfterMarks
        | Place::BeforeRelease
        | Place::BeforeCommit => SeenAgain::None,
        Place::AfterCommit => SeenAgain::Some,
        Place::AfterAck
        | Place::ClaimTaken
        | Place::ClaimLocked
        | Place::ClaimMarked
        | Place::OfferWritten
        | Place::ReadyWritten
        | Place::Activated
        | Place::MigrationStatement => SeenAgain::Perhaps,
    }
}

#[test]
fn killed_before_its_unit_of_work_another_host_decides_everything_once() {
    killed_at(places(Doing::Running), Events::Applied);
}

#[test]
fn killed_inside_its_unit_of_work_nothing_of_it_stands_and_another_host_decides_it() {
    killed_at(places(Doing::Writing), Events::Applied);
}

#[test]
fn killed_while_it_parks_events_another_host_parks_and_applies_them() {
    killed_at(places(Doing::Parking), Events::Parked);
}

#[test]
fn killed_after_it_has_parked_events_they_come_again_as_duplicates_and_are_applied_once() {
    killed_at([Place::AfterCommit].into_iter(), Events::Parked);
}

#[test]
fn killed_after_its_commit_the_messages_come_again_and_are_duplicates() {
    killed_at(places(Doing::Settling), Events::Applied);
}
