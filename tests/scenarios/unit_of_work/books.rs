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
        (
            "DELETE FROM ob_inbox WHERE business_key = x'656d697473'",
            "I15 books: applied, skipped and dead are rows: plain: applied 2 of 1",
        ),
        (
            "DELETE FROM ob_tally WHERE verdict = 1",
            "I15 books: duplicates and conflicts are counted on the keys' rows: plain: ",
        ),
        (
            "UPDATE ob_tally SET n = n + 1 WHERE verdict = 0",
            "I15 books: applied, skipped and dead are rows: plain: applied 3 of 2",
        ),
        (
            "UPDATE ob_inbox SET duplicates = 0 WHERE duplicates > 0",
            "I15 books: duplicates and conflicts are counted on the keys' rows: plain: ",
        ),
        ("UPDATE ob_inbox SET state = 0 WHERE state = 2", "I3 atomic: a parked or dead held row has its key"),
        ("UPDATE ob_held SET state = 5 WHERE state = 0", "I3 atomic: a parked or dead key has one open held row"),
        ("UPDATE ob_held SET state = 5 WHERE state = 1", "I3 atomic: a parked or dead key has one open held row"),
        (
            "UPDATE ob_held SET times = 2 WHERE state = 2",
            "I15 books: conflicts are sightings on conflict rows: plain: 1 of 2",
        ),
        ("DELETE FROM ob_attempt WHERE held_id > 0", "I15 books: parked and dead, but for poison"),
        ("DELETE FROM ob_body WHERE held_id > 0", "I13 kept: a held row has its message"),
        ("UPDATE ob_outbox SET business_key = x'64656164'", "I3 atomic: an outgoing event belongs to an applied key"),
    ] {
        let bench = bench_with_some_of_everything().await;
        assert!(bench.run(fault).await > 0, "{fault}");
        let found = imbalances(bench.store.as_ref(), Some(0)).await.unwrap();
        assert!(found.iter().any(|found| found.starts_with(said)), "{fault}: {found:#?}");
    }
}
