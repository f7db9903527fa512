//! A host that dies with parked events in its hands.

use oncebox_tests::fleet::Plan;

use crate::{
    Doing, places,
    stage::{DYING, DYING_CLASSIC, Events, Stage, is_all},
};

#[test]
fn killed_with_claims_another_host_applies_them_when_their_lease_is_over() {
    killed_on(DYING);
    if is_all() {
        killed_on(DYING_CLASSIC);
    }
}

fn killed_on(plan: Plan) {
    let mut stage = Stage::new(plan);
    for place in places(Doing::Claiming) {
        let mut a = stage.armed(place, "kill");
        stage.publish_until(&format!("a has died: {}", place.name()), Events::Parked, || a.has_died());
        stage.all_applied_once(place);
    }
    // Each was parked once and applied once; a death counts no attempt, and loses none.
    let odd = "SELECT count(*) FROM ob_held WHERE state <> 5 OR attempts <> 2";
    let attempts = "SELECT count(*) FROM ob_attempt";
    assert_eq!((stage.number(odd), stage.number(attempts)), (0, i64::try_from(stage.published()).unwrap()));
    stage.stop();
}
