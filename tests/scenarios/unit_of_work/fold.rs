//! The same INSERT of many events is one statement, and nobody can tell by what comes of it.

use oncebox::host::{Fate, Item, Target};
use oncebox_core::{failure::Class, fold, value::Value};

use crate::{
    bench::{Bench, applied, breaks, deliver, effect, failed, next_version, over, text, write},
    fates,
    faulty::{Commit, FaultyLane},
};

async fn unit(bench: &Bench, batch: &[Item]) -> (Vec<Fate>, FaultyLane) {
    let mut lane = FaultyLane::new(bench.store.lane().await.unwrap(), Commit::Done);
    let done = bench.unit_on(&mut lane, batch).await.unwrap();
    (done.fates, lane)
}

fn once(bench: &Bench, key: &str, code: &str) -> Item {
    over(deliver(&bench.plain, key, 1), applied(&[write("once", &[text(code)]), write("effect", &[text(key)])]))
}

on_every_store!(events_that_write_alike_are_written_by_one_statement_each);
async fn events_that_write_alike_are_written_by_one_statement_each() {
    let bench = Bench::new().await;
    let mut batch: Vec<Item> = (0..20).map(|n| once(&bench, &format!("k{n:02}"), &format!("c{n}"))).collect();
    batch.insert(3, over(deliver(&bench.plain, "odd", 1), failed(Class::GuestReject, "no")));
    let (fates, lane) = unit(&bench, &batch).await;
    assert_eq!(fates.iter().filter(|fate| **fate == fates![Applied][0]).count(), 20);
    assert_eq!((lane.count("staged_insert_many"), lane.count("staged_write"), lane.count("rollback_to")), (2, 0, 0));
    let expected: Vec<String> = (0..20).map(|n| format!("k{n:02}")).collect();
    assert_eq!(bench.effects().await, expected);
}

on_every_store!(a_statement_of_its_own_stands_between_folded_ones);
async fn a_statement_of_its_own_stands_between_folded_ones() {
    let bench = Bench::new().await;
    let award = |key: &str| {
        let writes = [write("effect", &[text(key)]), write("award-or-reject", &[text("1")])];
        over(deliver(&bench.plain, key, 1), applied(&writes))
    };
    let (fates, lane) = unit(&bench, &[award("a"), award("b")]).await;
    assert_eq!(fates, fates![Applied Applied]);
    assert_eq!((lane.count("staged_insert_many"), lane.count("staged_write")), (1, 2));
    assert_eq!(bench.texts("SELECT points FROM points").await, ["2"]);
}

on_every_store!(updates_of_many_rows_are_one_statement_and_those_of_one_row_follow_each_other);
async fn updates_of_many_rows_are_one_statement_and_those_of_one_row_follow_each_other() {
    let bench = Bench::new().await;
    bench.run("INSERT INTO points (user_id, points) VALUES (2, 0), (3, 0)").await;
    let award = |key: &str, user| award_to(&bench, key, user);
    let (fates, lane) = unit(&bench, &[award("a", 3), award("b", 1), award("c", 3), award("d", 2)]).await;
    assert_eq!(fates, fates![Applied Applied Applied Applied]);
    assert_eq!((lane.count("staged_update_many"), lane.count("staged_write")), (1, 1));
    assert_eq!(bench.texts("SELECT points FROM points ORDER BY user_id").await, ["1", "1", "2"]);
}

on_every_store!(an_update_that_finds_no_row_is_the_only_one_at_fault);
async fn an_update_that_finds_no_row_is_the_only_one_at_fault() {
    let bench = Bench::new().await;
    bench.run("INSERT INTO points (user_id, points) VALUES (2, 0)").await;
    let batch = [award_to(&bench, "a", 1), award_to(&bench, "b", 7), award_to(&bench, "c", 2)];
    let (fates, lane) = unit(&bench, &batch).await;
    assert_eq!(fates, fates![Applied Dead Applied]);
    assert_eq!(lane.count("staged_update_many"), 1);
    assert_eq!(bench.texts("SELECT points FROM points ORDER BY user_id").await, ["1", "1"]);
}

fn award_to(bench: &Bench, key: &str, user: i64) -> Item {
    over(deliver(&bench.plain, key, 1), applied(&[write("award-or-reject", &[Value::Signed(user)])]))
}

on_every_store!(runs_of_two_versions_in_one_batch_are_each_written_by_their_own_statement);
async fn runs_of_two_versions_in_one_batch_are_each_written_by_their_own_statement() {
    let bench = Bench::new().await;
    let next = next_version(&bench.plain, "effect", "INSERT INTO effect (name) VALUES (UPPER(?))", "(UPPER(?))").await;
    let batch: Vec<Item> = ["a", "b", "c", "d"]
        .into_iter()
        .zip([&bench.plain, &next].into_iter().cycle())
        .map(|(key, version)| over(deliver(version, key, 1), applied(&[write("effect", &[text(key)])])))
        .collect();
    let (fates, _) = unit(&bench, &batch).await;
    assert_eq!(fates, fates![Applied Applied Applied Applied]);
    let mut effects = bench.effects().await;
    effects.sort();
    assert_eq!(effects, ["B", "D", "a", "c"]);
}

on_every_store!(two_handlers_that_write_alike_are_written_by_one_statement);
async fn two_handlers_that_write_alike_are_written_by_one_statement() {
    let bench = Bench::new().await;
    let batch: Vec<Item> = ["a", "b", "c", "d"]
        .into_iter()
        .zip([&bench.plain, &bench.other].into_iter().cycle())
        .map(|(key, handler)| over(deliver(handler, key, 1), applied(&[write("effect", &[text(key)])])))
        .collect();
    let (fates, lane) = unit(&bench, &batch).await;
    assert_eq!(fates, fates![Applied Applied Applied Applied]);
    assert_eq!((lane.count("staged_insert_many"), lane.count("staged_write")), (1, 0));
    assert_eq!(bench.effects().await, ["a", "b", "c", "d"]);
}

on_every_store!(when_one_of_them_fails_the_others_are_judged_one_by_one);
async fn when_one_of_them_fails_the_others_are_judged_one_by_one() {
    let bench = Bench::new().await;
    // The second of the same code breaks the folded statement, and is the only one that is at fault.
    let batch =
        [once(&bench, "a", "x"), once(&bench, "b", "y"), once(&bench, "c", "x"), breaks(deliver(&bench.plain, "d", 1))];
    let (fates, lane) = unit(&bench, &batch).await;
    assert_eq!(fates, fates![Applied Applied Parked Dead]);
    assert_eq!(bench.effects().await, ["a", "b"]);
    assert!(lane.count("staged_insert_many") >= 1 && lane.count("staged_write") >= 4);
    assert_eq!(lane.calls.iter().filter(|call| **call == "savepoint").count(), 1);
}

#[tokio::test]
async fn folded_or_not_the_same_comes_of_it() {
    let kinds = 7_usize;
    for seed in 0..40_usize {
        let mut outcomes = Vec::new();
        for folds in [true, false] {
            let mut bench = Bench::new().await;
            if !folds {
                unfold(&mut bench.plain);
            }
            let batch: Vec<Item> = (0..6)
                .map(|at| {
                    let key = format!("k{at}");
                    match (seed * 7 + at * (seed % 5 + 1)) % kinds {
                        0 | 1 => once(&bench, &key, &format!("c{}", at % 4)),
                        2 => effect(deliver(&bench.plain, &key, 1)),
                        3 => breaks(deliver(&bench.plain, &key, 1)),
                        4 => over(deliver(&bench.plain, &key, 1), failed(Class::GuestRetry, "later")),
                        5 => award_to(&bench, &key, at as i64 % 3),
                        _ => over(
                            deliver(&bench.plain, &key, 1),
                            applied(&[write("award-or-obsolete", &[text("2")]), write("effect", &[text(&key)])]),
                        ),
                    }
                })
                .collect();
            let fates = bench.verdicts(&batch).await;
            outcomes.push((fates, bench.effects().await, bench.texts("SELECT code FROM once ORDER BY code").await));
            let points = bench.texts("SELECT points FROM points ORDER BY user_id").await;
            outcomes.last_mut().unwrap().1.extend(points);
        }
        assert_eq!(outcomes[0], outcomes[1], "seed {seed}");
    }
}

fn unfold(target: &mut Target) {
    let Target::Handler(_, deployed) = target else { panic!("nobody") };
    let deployed = std::sync::Arc::get_mut(deployed).unwrap();
    for ready in deployed.statements.values_mut() {
        ready.fold = fold::Facts::default();
    }
}
