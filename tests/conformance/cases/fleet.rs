//! What hosts tell each other.

use std::time::Duration;

use oncebox::store::{DeploymentId, LiveBoot};
use oncebox_core::ids::BootId;

use crate::bench::Bench;

const LONG: Duration = Duration::from_secs(3600);
const HERE: BootId = BootId([1; 16]);
const THERE: BootId = BootId([2; 16]);

async fn live(bench: &Bench, timeout: Duration) -> Vec<String> {
    let live = bench.store.boots_live(timeout).await.unwrap();
    live.into_iter().map(|LiveBoot { host, .. }| host).collect()
}

pub(crate) async fn a_boot_lives_until_it_drains_ends_or_is_not_seen(bench: Bench) {
    bench.store.boot_insert(HERE, "here").await.unwrap();
    bench.store.boot_insert(THERE, "there").await.unwrap();
    assert_eq!(live(&bench, LONG).await, ["here", "there"]);
    assert!(bench.store.boots_live(Duration::ZERO).await.unwrap().is_empty());
    bench.store.boot_beat(HERE, "here", true).await.unwrap();
    assert_eq!(live(&bench, LONG).await, ["there"], "a draining host takes no part any more");
    bench.store.boot_end(THERE).await.unwrap();
    assert!(live(&bench, LONG).await.is_empty());
}

pub(crate) async fn a_beat_makes_a_row_that_is_gone_anew(bench: Bench) {
    bench.store.boot_beat(HERE, "here", false).await.unwrap();
    assert_eq!(bench.store.boots_live(LONG).await.unwrap(), [LiveBoot { boot: HERE, host: "here".to_owned() }]);
}

pub(crate) async fn a_host_has_one_answer_to_a_deployment_its_newest(bench: Bench) {
    let (one, other) = (DeploymentId(1), DeploymentId(2));
    bench.store.deployment_answer(one, HERE, Err("no such table")).await.unwrap();
    bench.store.deployment_answer(one, THERE, Ok(())).await.unwrap();
    bench.store.deployment_answer(other, HERE, Ok(())).await.unwrap();
    let answer = async |boot| {
        let answers = bench.store.deployment_answers(one).await.unwrap();
        assert_eq!(answers.len(), 2);
        answers.into_iter().find(|answer| answer.boot == boot).unwrap().answer
    };
    assert_eq!((answer(HERE).await, answer(THERE).await), (Err("no such table".to_owned()), Ok(())));
    bench.store.deployment_answer(one, HERE, Ok(())).await.unwrap();
    assert_eq!(answer(HERE).await, Ok(()));
    // What the column does not take is cut, not refused.
    bench.store.deployment_answer(one, THERE, Err(&"ä".repeat(3_000))).await.unwrap();
    let long = answer(THERE).await.unwrap_err();
    assert!((4_000..=4_096).contains(&long.len()) && long.chars().all(|c| c == 'ä'), "{}", long.len());
}

pub(crate) async fn a_blocked_handler_is_told_with_its_first_reason_until_it_is_free(bench: Bench) {
    let long = "\u{e9}".repeat(200);
    assert_eq!(bench.store.handlers_blocked().await.unwrap(), []);
    bench.store.handler_block(bench.handler, Some(&long)).await.unwrap();
    bench.store.handler_block(bench.handler, Some("another")).await.unwrap();
    let blocked = bench.store.handlers_blocked().await.unwrap();
    let [one] = blocked.as_slice() else { panic!("{blocked:?}") };
    assert_eq!((one.handler, one.reason.len()), (bench.handler, 254), "as many whole letters as 255 bytes hold");
    assert!(one.since_us > 0);
    bench.store.handler_block(bench.handler, None).await.unwrap();
    assert_eq!(bench.store.handlers_blocked().await.unwrap(), []);
}
