//! An event on an idle host has no added delay.

use oncebox_tests::{
    feed::entry,
    patience::{PATIENCE, eventually},
};

use crate::support::{ONE, settled};

#[test]
fn a_running_idle_host_decides_an_event_within_ten_milliseconds_of_its_commit() {
    let site = ONE.site();
    let host = site.start().ready();
    let database = site.database("t.db");
    for n in 0..20 {
        site.send("t/in", &[entry(&format!("e-{n}"), &format!("k-{n}"), 1)]);
        let decided = format!("SELECT count(*) FROM ob_inbox WHERE CAST(business_key AS TEXT) = 'k-{n}'");
        eventually("decided", PATIENCE, || (database.number(&decided) == 1).then_some(()));
    }
    settled(&database, PATIENCE);
    // The quickest of twenty: how long one takes depends on what else the machine does.
    let quickest = database.number("SELECT min(decided_at - received_at) FROM ob_inbox");
    let all = database.lines("SELECT CAST((decided_at - received_at) / 1000 AS TEXT) FROM ob_inbox ORDER BY 1");
    assert!(quickest <= 10_000, "{quickest} microseconds; all in milliseconds: {all:?}");
    host.stop();
}
