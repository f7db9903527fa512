//! Two units of work in each other's way, on a server.

use std::{sync::Arc, time::Duration};

use oncebox::store::{InboxMark, Lane, NewInbox, Savepoint, StartEnd, Store, StoreError, UnitOfWork};
use oncebox_core::{
    failure::Class,
    ids::{BusinessKey, LeaseToken, MessageHash},
    life::{HeldState, InboxState},
    value::Value,
};
use oncebox_tests::proxy::{Message, Plan, Protocol, Proxy, Then};
use tokio::task::JoinHandle;

use crate::bench::{Bench, LEASE, START, token_of};

/// Tries of what a race decides.
const TRIES: usize = 25;

/// How a waiter's unit ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It owned the key, and committed.
    First,
    /// It saw the row of somebody else's unit.
    Known(LeaseToken, InboxState),
}

/// A unit of another host: it inserts the keys and ends; a deadlock or a lock wait makes it begin again. The answer
/// tells how it ended, and how often it was made to begin again by a deadlock.
async fn waiter(bench: &Bench, token: u8, keys: &[&str]) -> JoinHandle<(Ended, usize)> {
    let store = bench.tenant().open_patient().await.unwrap();
    let rows: Vec<_> = keys.iter().map(|key| bench.new_inbox(*key)).collect();
    tokio::spawn(async move {
        let (mut lane, mut again) = (store.lane().await.unwrap(), 0);
        loop {
            let mut unit = lane.begin().await.unwrap();
            match unit.inbox_insert(token_of(token), &rows).await {
                Ok(found) if found[0].token == token_of(token) => {
                    unit.commit().await.unwrap();
                    return (Ended::First, again);
                }
                Ok(found) => {
                    unit.commit().await.unwrap();
                    return (Ended::Known(found[0].token, found[0].state), again);
                }
                Err(StoreError::Busy { message }) => {
                    unit.rollback().await.unwrap();
                    assert!(message.contains("1213"), "{message}");
                    again += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    })
}

async fn holder<'a>(bench: &Bench, lane: &'a mut Box<dyn Lane>, key: &str) -> Box<dyn UnitOfWork + 'a> {
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox(key)]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    unit
}

async fn ends(waiters: Vec<JoinHandle<(Ended, usize)>>) -> (Vec<Ended>, usize) {
    let (mut ends, mut again) = (Vec::new(), 0);
    for waiter in waiters {
        let (end, times) = waiter.await.unwrap();
        ends.push(end);
        again += times;
    }
    (ends, again)
}

pub(crate) async fn whoever_waits_for_a_key_sees_the_row_that_was_committed(bench: Bench) {
    let mut lane = bench.lane().await;
    for at in 0..TRIES {
        let key = format!("k-{at}");
        let mut unit = holder(&bench, &mut lane, &key).await;
        let waiters = vec![waiter(&bench, 2, &[&key]).await, waiter(&bench, 3, &[&key]).await];
        bench.tenant().waiting(2);
        let applied = at % 2 == 0;
        if !applied {
            let mark = InboxMark {
                handler: bench.handler,
                key: BusinessKey::new(key.as_str()),
                state: InboxState::Parked,
                deployment: None,
                attempts: 1,
                code: None,
                result: None,
            };
            unit.inbox_mark(&[mark]).await.unwrap();
        }
        unit.release(Savepoint::Marks).await.unwrap();
        unit.commit().await.unwrap();
        let state = if applied { InboxState::Applied } else { InboxState::Parked };
        let known = || Ended::Known(token_of(1), state);
        assert_eq!(ends(waiters).await, (vec![known(), known()], 0), "{key}");
    }
}

/// After a ROLLBACK nearly every try ends in a deadlock; after what the store does instead, one in hundreds.
pub(crate) async fn a_key_that_is_given_back_deadlocks_nobody_who_waits_for_it(bench: Bench) {
    let (mut lane, mut deadlocks) = (bench.lane().await, 0);
    for at in 0..TRIES {
        let key = format!("k-{at}");
        let unit = holder(&bench, &mut lane, &key).await;
        let waiters = vec![waiter(&bench, 2, &[&key]).await, waiter(&bench, 3, &[&key]).await];
        bench.tenant().waiting(2);
        unit.give_up().await.unwrap();
        let (ends, again) = ends(waiters).await;
        assert_eq!(ends.iter().filter(|end| **end == Ended::First).count(), 1, "{key}: {ends:?}");
        deadlocks += again;
    }
    assert!(deadlocks <= TRIES / 10, "{deadlocks} deadlocks in {TRIES} tries");
}

pub(crate) async fn a_holder_whose_connection_dies_leaves_its_key_to_exactly_one(bench: Bench) {
    for at in 0..5 {
        let (mut lane, key) = (bench.lane().await, format!("k-{at}"));
        let mut unit = holder(&bench, &mut lane, &key).await;
        unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 1)".into(), &[]).await.unwrap();
        let own = bench.session_of(unit.as_mut()).await;
        let waiters = vec![waiter(&bench, 2, &[&key]).await, waiter(&bench, 3, &[&key]).await];
        bench.tenant().waiting(2);
        bench.tenant().database.execute(&format!("KILL {own}"));
        // A deadlock between the two is allowed here: nobody gave the key back.
        let (ends, _) = ends(waiters).await;
        assert_eq!(ends.iter().filter(|end| **end == Ended::First).count(), 1, "{key}: {ends:?}");
        assert!(matches!(unit.commit().await, Err(StoreError::Away { .. })));
        assert_eq!(bench.number("SELECT count(*) FROM points").await, 0);
    }
}

pub(crate) async fn keys_in_order_never_deadlock(bench: Bench) {
    let mut deadlocks = 0;
    for at in 0..TRIES {
        let keys: Vec<String> = (0..8).map(|n| format!("k-{at}-{n}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut waiters = Vec::new();
        for token in 2..6 {
            waiters.push(waiter(&bench, token, &keys).await);
        }
        let (ends, again) = ends(waiters).await;
        assert_eq!(ends.iter().filter(|end| **end == Ended::First).count(), 1, "{ends:?}");
        deadlocks += again;
    }
    assert_eq!(deadlocks, 0);
}

/// An unrelated program that holds a row, and may want another.
struct Stranger(Box<dyn UnitOfWork + 'static>);

impl Stranger {
    async fn with(store: &Arc<dyn Store>, statements: &[&str]) -> Self {
        let lane = Box::leak(Box::new(store.lane().await.unwrap()));
        let mut unit = lane.begin().await.unwrap();
        for statement in statements {
            unit.staged_write(&(*statement).into(), &[]).await.unwrap();
        }
        Self(unit)
    }
}

const UPDATE: &str = "UPDATE points SET points = points + 1 WHERE user_id = ?";

async fn update(unit: &mut dyn UnitOfWork, user: i64) -> Result<u64, oncebox::store::StatementError> {
    unit.staged_write(&UPDATE.into(), &[Value::Signed(user)]).await
}

pub(crate) async fn after_a_deadlock_nothing_more_is_written_in_the_transactions_name(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points) VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    assert_eq!(update(unit.as_mut(), 1).await, Ok(1));
    // The other one has written more: the server undoes ours.
    let heavy = "UPDATE points SET points = points + 10 WHERE user_id > 1";
    let insert = "INSERT INTO points (user_id, points) VALUES (11, 0), (12, 0), (13, 0), (14, 0), (15, 0), (16, 0)";
    let patient: Arc<dyn Store> = bench.tenant().open_patient().await.unwrap();
    let mut stranger = Stranger::with(&patient, &[heavy, insert]).await;
    let crossing = tokio::spawn(async move {
        let done = update(stranger.0.as_mut(), 1).await;
        stranger.0.commit().await.unwrap();
        done
    });
    bench.tenant().waiting(1);
    let error = update(unit.as_mut(), 2).await.unwrap_err();
    assert_eq!((error.class, error.number), (Class::Infrastructure, Some(1213)), "{error}");
    assert_eq!(crossing.await.unwrap(), Ok(1));
    // Each further call is refused here: the server would commit it by itself.
    let more = unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (99, 0)".into(), &[]).await;
    assert_eq!(more.unwrap_err().number, Some(1213));
    assert!(matches!(unit.rollback_to(Savepoint::Marks).await, Err(StoreError::Busy { .. })));
    assert!(matches!(unit.inbox_delete(token_of(1), &[bench.key("k")]).await, Err(StoreError::Busy { .. })));
    assert!(matches!(unit.commit().await, Err(StoreError::Busy { .. })));
    // The lane goes on.
    let mut unit = lane.begin().await.unwrap();
    assert_eq!(update(unit.as_mut(), 3).await, Ok(1));
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 0);
    assert_eq!(bench.number("SELECT count(*) FROM points WHERE user_id = 99").await, 0);
    let points = bench.rows("SELECT points FROM points WHERE user_id <= 3 ORDER BY user_id").await;
    assert_eq!(points, [[Value::Signed(1)], [Value::Signed(10)], [Value::Signed(11)]]);
}

pub(crate) async fn a_wait_that_is_too_long_undoes_its_statement_and_no_more(bench: Bench) {
    bench.run("INSERT INTO points (user_id, points) VALUES (1, 0), (2, 0)").await;
    let stranger = Stranger::with(&bench.store, &["UPDATE points SET points = 5 WHERE user_id = 2"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    assert_eq!(update(unit.as_mut(), 1).await, Ok(1));
    let error = update(unit.as_mut(), 2).await.unwrap_err();
    assert_eq!((error.class, error.number), (Class::Infrastructure, Some(1205)), "{error}");
    assert!(error.lock_wait("it").is_some());
    assert_eq!(unit.staged_write(&"DELETE FROM points WHERE user_id = 9".into(), &[]).await, Ok(0));
    unit.release(Savepoint::Marks).await.unwrap();
    unit.commit().await.unwrap();
    stranger.0.rollback().await.unwrap();
    let points = bench.rows("SELECT points FROM points ORDER BY user_id").await;
    assert_eq!(points, [[Value::Signed(1)], [Value::Signed(0)]]);
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 1);
}

pub(crate) async fn a_wait_for_a_key_that_is_too_long_leaves_the_unit_able_to_give_back(bench: Bench) {
    let mut other = bench.lane().await;
    let holder = holder(&bench, &mut other, "b").await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(2), &[bench.new_inbox("a")]).await.unwrap();
    let error = unit.inbox_insert(token_of(2), &[bench.new_inbox("b")]).await.unwrap_err();
    assert!(matches!(&error, StoreError::Busy { message } if message.contains("1205")), "{error}");
    unit.give_up().await.unwrap();
    holder.commit().await.unwrap();
    assert_eq!(bench.rows("SELECT business_key FROM ob_inbox").await, [[Value::Bytes(b"b".to_vec())]]);
}

pub(crate) async fn a_delivery_waits_for_the_claim_of_its_key_and_sees_what_became_of_it(bench: Bench) {
    bench.insert(1, &["\u{1}"]).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let state = |state| InboxMark {
        handler: bench.handler,
        key: BusinessKey::new([1]),
        state,
        deployment: None,
        attempts: 1,
        code: None,
        result: None,
    };
    unit.inbox_mark(&[state(InboxState::Parked)]).await.unwrap();
    unit.held_insert(&[bench.new_held(1)]).await.unwrap();
    unit.commit().await.unwrap();
    let held = bench.store.held_claim(bench.handler, 1, token_of(9), LEASE, START).await.unwrap()[0].held;
    let mut claims = lane.begin().await.unwrap();
    let key = (bench.handler, BusinessKey::new([1]));
    let row = claims.inbox_lock(&[key]).await.unwrap().remove(0).unwrap();
    assert_eq!(row.state, InboxState::Parked);
    assert_eq!(claims.held_lock(&[(held, token_of(9))]).await.unwrap(), [true]);
    let delivery = waiter(&bench, 2, &["\u{1}"]).await;
    bench.tenant().waiting(1);
    claims.inbox_mark(&[state(InboxState::Applied)]).await.unwrap();
    claims.commit().await.unwrap();
    assert_eq!(delivery.await.unwrap(), (Ended::Known(token_of(1), InboxState::Applied), 0));
}

pub(crate) async fn two_units_that_bring_the_same_letter_at_once_write_it_once(bench: Bench) {
    let letter = oncebox::store::NewHeld { state: HeldState::Poison, key: None, ..bench.new_held(7) };
    let mut lane = bench.lane().await;
    let mut first = lane.begin().await.unwrap();
    let id = first.held_insert(std::slice::from_ref(&letter)).await.unwrap()[0];
    let store = bench.tenant().open_patient().await.unwrap();
    let second = tokio::spawn(async move {
        let mut lane = store.lane().await.unwrap();
        let mut unit = lane.begin().await.unwrap();
        let ids = unit.held_insert(&[letter]).await.unwrap();
        unit.commit().await.unwrap();
        ids[0]
    });
    bench.tenant().waiting(1);
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), id);
    assert_eq!(bench.number("SELECT times FROM ob_held").await, 2);
    assert_eq!(bench.number("SELECT count(*) FROM ob_body").await, 1);
}

/// On a table of few rows a server likes to read it whole, and would wait for every lock in it.
pub(crate) async fn no_statement_of_a_unit_waits_for_a_neighbours_row(bench: Bench) {
    let rows = [1, 2, 3].map(|byte| bench.new_held(byte));
    bench.insert(1, &["a", "b", "c"]).await;
    let ids = bench.hold(&rows).await;
    let message = crate::bench::message(b"1");
    bench.store.local_offer("orders", &[message.clone(), message.clone(), message]).await.unwrap();
    bench.store.held_claim(bench.handler, 9, token_of(5), LEASE, START).await.unwrap();
    let local = bench.store.local_claim("orders", 9, token_of(5), LEASE).await.unwrap();
    let hold = "UPDATE ob_inbox SET attempts = 7 WHERE business_key = 'c'";
    let held = format!("UPDATE ob_held SET attempts = 7 WHERE held_id = {}", ids[2].0);
    let locals = format!("UPDATE ob_local SET deliveries = 7 WHERE local_id = {}", local[2].id.0);
    let order = "INSERT INTO ob_order (handler_id, ordering_key, used_at) VALUES (1, 'c', NOW())";
    let hashes = [1, 2, 3].map(|byte| MessageHash([byte; 32]));
    assert_eq!(bench.store.start_insert("orders", &hashes, START).await.unwrap(), []);
    let begun = "UPDATE ob_start SET times = 7 WHERE source = 'orders' AND message_hash = UNHEX(REPEAT('03', 32))";
    let stranger = Stranger::with(&bench.store, &[hold, &held, &locals, order, begun]).await;
    let mut lane = bench.lane().await;
    for both in [false, true] {
        let keys = if both { vec![bench.key("a"), bench.key("b")] } else { vec![bench.key("a")] };
        let claims: Vec<_> = ids.iter().take(keys.len()).map(|id| (*id, token_of(5))).collect();
        let messages: Vec<_> = local.iter().take(keys.len()).map(|local| (local.id, token_of(5))).collect();
        let orders: Vec<_> = keys.iter().map(|(handler, key)| (*handler, key.as_bytes().to_vec())).collect();
        let mut unit = lane.begin().await.unwrap();
        let locked = unit.inbox_lock(&keys).await.unwrap();
        assert!(locked.iter().all(Option::is_some));
        let orders = unit.order_lock(&orders).await.unwrap();
        assert_eq!(unit.held_lock(&claims).await.unwrap(), vec![true; keys.len()]);
        let marks: Vec<_> = claims
            .iter()
            .map(|(held, token)| oncebox::store::HeldMark {
                held: *held,
                token: *token,
                state: HeldState::Resolved,
                due_us: None,
                attempts: 1,
                attempts_short: 0,
                why: None,
                deployment: None,
                open: oncebox_core::blame::Open::default(),
            })
            .collect();
        unit.held_mark(&marks).await.unwrap();
        unit.order_mark(&orders).await.unwrap();
        assert_eq!(unit.local_settle(&messages).await.unwrap(), []);
        let end = |hash: &MessageHash| StartEnd { message: ("orders".into(), *hash), handler: None };
        unit.start_end(&hashes.iter().take(keys.len()).map(end).collect::<Vec<_>>()).await.unwrap();
        unit.inbox_delete(token_of(1), &keys).await.unwrap();
        assert_eq!(unit.inbox_lock(&keys).await.unwrap(), vec![None; keys.len()]);
        unit.rollback().await.unwrap();
    }
    stranger.0.rollback().await.unwrap();
}

pub(crate) async fn a_session_whose_call_is_over_its_time_is_killed_and_what_it_did_is_undone(bench: Bench) {
    let proxy = Proxy::start(&bench.tenant().database.server().address(), Protocol::Mysql);
    let store = bench.tenant().open_through(&proxy, Duration::from_millis(500)).await.unwrap();
    let mut lane = store.lane().await.unwrap();
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    let own = bench.session_of(unit.as_mut()).await;
    proxy.plan(Plan { at: Message::Statement("SAVEPOINT"), then: Then::Mute });
    // It goes with whatever comes next.
    unit.savepoint(Savepoint::Marks).await.unwrap();
    let error = unit.inbox_lock(&[bench.key("k")]).await.unwrap_err();
    assert!(matches!(&error, StoreError::Away { message } if message.contains("was killed after 500 ms")), "{error}");
    assert!(!bench.tenant().database.sessions_of(&bench.tenant().database.runtime).contains(&own));
    drop(unit);
    // The lane opens another session by itself; the key is free.
    let mut unit = lane.begin().await.unwrap();
    let rows = unit.inbox_insert(token_of(2), &[bench.new_inbox("k")]).await.unwrap();
    assert_eq!(rows[0].token, token_of(2));
    unit.commit().await.unwrap();
}

/// Keys are listed by handler: a server that read all rows of a handler for it would wait here.
pub(crate) async fn keys_that_are_locked_or_counted_leave_their_neighbours_free(bench: Bench) {
    bench.insert(1, &["a", "b", "c", "d"]).await;
    let mut looking = bench.lane().await;
    let seen = looking.inbox_look_up(&["a", "b", "c", "d"].map(|key| bench.key(key))).await.unwrap();
    let seen = |key: &str| {
        let row = seen.iter().find(|row| row.key == BusinessKey::new(key)).cloned();
        NewInbox { seen: row, ..bench.new_inbox(key) }
    };
    let (mut one, mut other) = (bench.lane().await, bench.lane().await);
    let (mut one, mut other) = (one.begin().await.unwrap(), other.begin().await.unwrap());
    assert!(one.inbox_lock(&[bench.key("a"), bench.key("c")]).await.unwrap().iter().all(Option::is_some));
    assert_eq!(other.inbox_insert(token_of(2), &["b", "d"].map(seen)).await.unwrap().len(), 2);
    assert_eq!(one.inbox_insert(token_of(3), &["a", "c"].map(seen)).await.unwrap().len(), 2);
    assert_eq!(one.inbox_lock(&[bench.key("a"), bench.key("c")]).await.unwrap().len(), 2);
    other.commit().await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(bench.number("SELECT sum(duplicates) FROM ob_inbox").await, 4);
}
