//! Handlers with queries run inside the unit of work. The module asks how many effects there are, stages one more, and
//! returns the answer.

use std::time::Duration;

use oncebox::host::{Item, Ran};
use oncebox_core::failure::Class;

use crate::{
    bench::{Bench, deliver, effect},
    fates,
};

fn inside(bench: &Bench, key: &str) -> Item {
    Item { delivery: deliver(&bench.inside, key, 1), ran: Ran::Inside }
}

on_every_store!(what_one_event_staged_is_written_before_the_next_one_runs);
async fn what_one_event_staged_is_written_before_the_next_one_runs() {
    let bench = Bench::new().await;
    bench.unit(&[effect(deliver(&bench.plain, "outside", 1))]).await;
    let batch = ["b", "a", "c"].map(|key| inside(&bench, key));
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Applied Applied]);
    assert_eq!(bench.effects().await, ["outside", "inside", "inside", "inside"]);
    let results = "SELECT concat(business_key, '=', result) FROM ob_inbox WHERE result IS NOT NULL
        ORDER BY business_key";
    assert_eq!(bench.texts(results).await, ["a=2", "b=1", "c=3"]);
}

on_every_store!(a_duplicate_does_not_run_inside);
async fn a_duplicate_does_not_run_inside() {
    let bench = Bench::new().await;
    bench.unit(&[inside(&bench, "a")]).await;
    assert_eq!(bench.verdicts(&[inside(&bench, "a"), inside(&bench, "b")]).await, fates![Duplicate Applied]);
    assert_eq!(bench.effects().await.len(), 2);
}

on_every_store!(a_unit_that_is_out_of_time_runs_one_event_and_leaves_the_rest);
async fn a_unit_that_is_out_of_time_runs_one_event_and_leaves_the_rest() {
    let bench = Bench::with_unit_time(Duration::ZERO).await;
    let batch = ["a", "b", "c"].map(|key| inside(&bench, key));
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Again Again]);
    assert_eq!(bench.texts("SELECT business_key FROM ob_inbox").await, ["a"]);
    let rest = ["b", "c"].map(|key| inside(&bench, key));
    assert_eq!(bench.verdicts(&rest).await, fates![Applied Again]);
}

on_every_store!(a_query_whose_table_is_gone_parks_the_event_uncounted);
async fn a_query_whose_table_is_gone_parks_the_event_uncounted() {
    let bench = Bench::new().await;
    bench.run("DROP TABLE effect").await;
    assert_eq!(bench.verdicts(&[inside(&bench, "a")]).await, fates![Parked]);
    let row = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap().row;
    assert_eq!((row.class, row.attempts), (Class::Blocked, 0));
}
