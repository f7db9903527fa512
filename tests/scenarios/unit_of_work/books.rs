//! The checker of the books is itself checked: each planted fault must make it speak.

use oncebox_core::failure::Class;
use oncebox_tests::checker::imbalances;

use crate::bench::{Bench, deliver, effect, failed, outgoing, over, text, write};

async fn bench_with_some_of_everything() -> Bench {
    let bench = Bench::new().await;
    let emitting = oncebox::plugin::Outcome::Applied {
        result: None,
        writes: vec![write("effect", &[text("e")])],
        events: vec![outgoing("plain", "emits", "cdc", 0)],
    };
    let batch = [
        effect(deliver(&bench.plain, "a", 1)),
        over(deliver(&bench.plain, "parked", 1), failed(Class::GuestRetry, "later")),
        over(deliver(&bench.plain, "dead", 1), failed(Class::GuestReject, "no")),
        over(deliver(&bench.plain, "emits", 1), emitting),
    ];
    bench.unit(&batch).await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 1))]).await;
    bench.unit(&[effect(deliver(&bench.plain, "a", 2))]).await;
    bench
}

on_every_store!(each_planted_fault_makes_the_checker_speak);
async fn each_planted_fault_makes_the_checker_speak() {
    for (fault, said) in [
        ("DELETE FROM ob_inbox WHERE business_key = x'656d697473'", "plain: applied, and applied rows: 2 and 1"),
        ("DELETE FROM ob_tally WHERE verdict = 1", "plain: duplicates and conflicts, and further"),
        ("UPDATE ob_tally SET n = n + 1 WHERE verdict = 0", "plain: applied, and applied rows: 3 and 2"),
        ("UPDATE ob_inbox SET duplicates = 0 WHERE duplicates > 0", "plain: duplicates and conflicts, and further"),
        ("UPDATE ob_inbox SET state = 0 WHERE state = 2", "parked held rows, and keys parked for them: 1 and 0"),
        ("UPDATE ob_held SET state = 5 WHERE state = 0", "parked inbox rows, and parked rows held for them: 1 and 0"),
        ("UPDATE ob_held SET state = 5 WHERE state = 1", "dead inbox rows, and dead rows held for them: 1 and 0"),
        ("UPDATE ob_held SET times = 2 WHERE state = 2", "plain: conflicts, and times of conflict rows: 1 and 2"),
        ("DELETE FROM ob_attempt WHERE held_id > 0", "verdicts parked and dead, and attempts that did not apply"),
        ("DELETE FROM ob_body WHERE held_id > 0", "held rows, and held rows with a body: 3 and 0"),
        ("UPDATE ob_outbox SET business_key = x'64656164'", "outgoing events, and outgoing events of applied"),
    ] {
        let bench = bench_with_some_of_everything().await;
        assert!(bench.run(fault).await > 0, "{fault}");
        let found = imbalances(bench.store.as_ref(), Some(0)).await.unwrap();
        assert!(found.iter().any(|found| found.starts_with(said)), "{fault}: {found:#?}");
    }
}
