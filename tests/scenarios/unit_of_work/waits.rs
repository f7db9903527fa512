//! Locks of others in the way of a unit of work, on servers.

use std::sync::Arc;

use oncebox::{
    host::{Delivery, Fate, Item, Link, Ran, Target, unit_of_work},
    plugin::{Outcome, StagedWrite},
    store::{Lane, Store, StoreError},
};
use oncebox_core::{failure::Class, life::Verdict, value::Value};

use crate::{
    bench::{Bench, applied, deliver, effect, outgoing, over, text, write},
    fates,
};

const AWARD: &str = "UPDATE points SET points = points + 1 WHERE user_id = ?";

/// Whoever holds rows of the business's tables, until it is let go.
struct Stranger(Box<dyn oncebox::store::UnitOfWork + 'static>);

impl Stranger {
    /// Holds users' rows.
    async fn with(store: &Arc<dyn Store>, users: &[i64]) -> Self {
        let lane: &'static mut Box<dyn Lane> = Box::leak(Box::new(store.lane().await.unwrap()));
        let mut unit = lane.begin().await.unwrap();
        for user in users {
            assert_eq!(unit.staged_write(&AWARD.into(), &[Value::Signed(*user)]).await, Ok(1));
        }
        Self(unit)
    }
}

async fn with_users(users: i64) -> Bench {
    let bench = Bench::new().await;
    for user in 2..=users {
        bench.run(&format!("INSERT INTO points (user_id, points) VALUES ({user}, 0)")).await;
    }
    bench
}

fn award(bench: &Bench, key: &str, user: i64) -> Item {
    award_by(deliver(&bench.plain, key, 1), key, user)
}

fn award_by(delivery: Delivery, key: &str, user: i64) -> Item {
    let writes = [write("effect", &[text(key)]), write("award-or-reject", &[Value::Signed(user)])];
    over(delivery, applied(&writes))
}

async fn points(bench: &Bench) -> Vec<String> {
    bench.texts("SELECT points FROM points ORDER BY user_id").await
}

on_servers!(an_event_that_waits_too_long_is_taken_out_and_the_others_go_on);
async fn an_event_that_waits_too_long_is_taken_out_and_the_others_go_on() {
    let bench = with_users(3).await;
    let stranger = Stranger::with(&bench.store, &[2]).await;
    let batch = [award(&bench, "a", 1), award(&bench, "b", 2), award(&bench, "c", 3)];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Waited Applied]);
    assert_eq!(bench.effects().await, ["a", "c"]);
    // It owns no key: any other lane may take it.
    assert_eq!(bench.texts("SELECT business_key FROM ob_inbox ORDER BY business_key").await, ["a", "c"]);
    stranger.0.rollback().await.unwrap();
    let [_, b, _] = batch;
    assert_eq!(bench.verdicts(&[b]).await, fates![Applied]);
    assert_eq!(points(&bench).await, ["1", "1", "1"]);
}

on_servers!(after_two_waits_a_unit_keeps_what_it_has_and_leaves_the_rest);
async fn after_two_waits_a_unit_keeps_what_it_has_and_leaves_the_rest() {
    let bench = with_users(3).await;
    let stranger = Stranger::with(&bench.store, &[2]).await;
    let batch: Vec<Item> =
        [("a", 1), ("b", 2), ("c", 3), ("d", 2), ("e", 2), ("f", 3)].map(|(key, user)| award(&bench, key, user)).into();
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Waited Applied Waited Again Again]);
    assert_eq!(bench.effects().await, ["a", "c"]);
    stranger.0.rollback().await.unwrap();
}

on_servers!(an_event_that_waited_often_enough_is_put_aside_uncounted);
async fn an_event_that_waited_often_enough_is_put_aside_uncounted() {
    let bench = with_users(2).await;
    let stranger = Stranger::with(&bench.store, &[2]).await;
    let mut delivery = deliver(&bench.plain, "a", 1);
    for tries in 1..=3 {
        let item = award_by(delivery, "a", 2);
        assert_eq!(bench.verdicts(std::slice::from_ref(&item)).await, fates![Waited]);
        delivery = item.delivery;
        delivery.waited(3);
        assert_eq!(delivery.unrun.is_some(), tries == 3);
    }
    let failure = delivery.unrun.clone().unwrap();
    assert_eq!((failure.class, failure.code.as_str()), (Class::Unrun, "lock-wait"));
    let item = Item { delivery, ran: Ran::Unrun(failure) };
    assert_eq!(bench.verdicts(&[item]).await, fates![Parked]);
    let row = bench.store.held_show(bench.held().await[0]).await.unwrap().unwrap().row;
    assert_eq!((row.attempts, row.code.as_str()), (0, "lock-wait"));
    stranger.0.rollback().await.unwrap();
    // When its time has come it runs like any other.
    let claimed = bench.claim(&bench.plain, std::time::Duration::from_secs(60)).await.remove(0);
    assert_eq!(bench.verdicts(&[award_by(claimed, "a", 2)]).await, fates![Applied]);
    assert_eq!(points(&bench).await, ["0", "1"]);
}

on_servers!(a_query_that_waits_too_long_takes_its_event_out);
async fn a_query_that_waits_too_long_takes_its_event_out() {
    let mut bench = with_users(2).await;
    let Target::Handler(_, deployed) = &mut bench.inside else { panic!("nobody") };
    let query = Arc::get_mut(deployed).unwrap().queries.get_mut("count").unwrap();
    query.sql = "SELECT points FROM points WHERE user_id = 2 FOR UPDATE".into();
    let stranger = Stranger::with(&bench.store, &[2]).await;
    let inside = |key: &str| Item { delivery: deliver(&bench.inside, key, 1), ran: Ran::Inside };
    let batch = [inside("a"), effect(deliver(&bench.plain, "b", 1))];
    assert_eq!(bench.verdicts(&batch).await, fates![Waited Applied]);
    stranger.0.rollback().await.unwrap();
    assert_eq!(bench.verdicts(&[inside("a")]).await, fates![Applied]);
}

on_servers!(a_deadlock_makes_the_whole_batch_again_and_nothing_twice);
async fn a_deadlock_makes_the_whole_batch_again_and_nothing_twice() {
    let bench = with_users(12).await;
    // Without folding the second event's row is asked for after the first one's.
    let patient: Arc<dyn Store> = bench.tenant().open_patient().await.unwrap();
    let heavy: Vec<i64> = (2..=12).collect();
    let mut stranger = Stranger::with(&patient, &heavy).await;
    let batch = vec![award(&bench, "a", 1), award(&bench, "b", 2)];
    let mut link = Link::from(patient.lane().await.unwrap());
    let crossing = async {
        bench.tenant().waiting_soon(1).await;
        // Ours holds user 1 and waits for user 2: the server undoes it, which has written less.
        assert_eq!(stranger.0.staged_write(&AWARD.into(), &[Value::Signed(1)]).await, Ok(1));
        stranger.0.commit().await.unwrap();
    };
    let (done, ()) = tokio::join!(bench.lane.decide(&mut link, batch, None), crossing);
    let mut fates: Vec<Fate> = done.iter().flat_map(|(_, done)| done.fates.clone()).collect();
    fates.sort_by_key(|fate| format!("{fate:?}"));
    assert_eq!(fates, fates![Applied Applied]);
    assert!(done.len() >= 2, "the batch was not cut: {}", done.len());
    assert_eq!(points(&bench).await[..3], ["2", "2", "1"]);
    assert_eq!(bench.tally(Verdict::Applied).await, 2);
    bench.balanced().await;
}

on_servers!(a_unit_that_fails_gives_its_keys_back_and_deadlocks_nobody_who_waits);
async fn a_unit_that_fails_gives_its_keys_back_and_deadlocks_nobody_who_waits() {
    let bench = Bench::new().await;
    let patient: Arc<dyn Store> = bench.tenant().open_patient().await.unwrap();
    let [mut failing, mut one, mut two] =
        [patient.lane().await.unwrap(), patient.lane().await.unwrap(), patient.lane().await.unwrap()];
    let emits = |key: &str, writes: &[StagedWrite]| {
        // Always the same id: the second of them cannot be written.
        let events = vec![outgoing("plain", "same", "cdc", 0)];
        let outcome = Outcome::Applied { result: None, writes: writes.to_vec(), events };
        over(deliver(&bench.plain, key, 1), outcome)
    };
    bench.unit(&[emits("first", &[])]).await;
    for at in 0..5 {
        let key = format!("k{at}");
        let stranger = Stranger::with(&patient, &[1]).await;
        let batch = [emits(&key, &[write("award-or-reject", &[Value::Signed(1)])])];
        let (first, second) = ([effect(deliver(&bench.plain, &key, 1))], [effect(deliver(&bench.plain, &key, 1))]);
        let others = async {
            bench.tenant().waiting_soon(1).await;
            let freed = async {
                bench.tenant().waiting_soon(3).await;
                stranger.0.rollback().await.unwrap();
            };
            tokio::join!(
                unit_of_work(&bench.lane, one.as_mut(), &first),
                unit_of_work(&bench.lane, two.as_mut(), &second),
                freed
            )
        };
        let (failed, (one, two, ())) = tokio::join!(unit_of_work(&bench.lane, failing.as_mut(), &batch), others);
        let error = failed.unwrap_err();
        assert!(matches!(error, StoreError::Statement { what: "outbox insert", .. }), "{error}");
        let mut fates = [one.unwrap().fates[0], two.unwrap().fates[0]];
        fates.sort_by_key(|fate| format!("{fate:?}"));
        assert_eq!(fates, fates![Applied Duplicate]);
    }
    assert_eq!(points(&bench).await, ["0"]);
    bench.balanced().await;
}
