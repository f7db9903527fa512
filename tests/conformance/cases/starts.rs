//! Starts and their ends: what Blame finds in the tables after a crash.

use std::time::Duration;

use oncebox::store::{HandlerId, HeldMark, StartEnd, StartRow, Store as _, Suspect, Use, sqlite::SqliteStore};
use oncebox_core::{
    blame::{Open, STARTS_MAX, Start, Starts},
    ids::{BootId, MessageHash},
    life::HeldState,
};

use crate::bench::{Bench, LEASE, NO_LEASE, token_of};

const fn boot(byte: u8) -> BootId {
    BootId([byte; 16])
}

fn start(byte: u8) -> Start {
    Start { boot: boot(byte), at_us: i64::from(byte) * 1_000 }
}

fn starts(bytes: impl IntoIterator<Item = u8>) -> Starts {
    Starts(bytes.into_iter().map(start).collect())
}

const fn hash(byte: u8) -> MessageHash {
    MessageHash([byte; 32])
}

/// What is known of messages of `orders` when this life begins them; in the order of message and handler.
async fn begun(bench: &Bench, messages: &[u8], by: u8) -> Vec<StartRow> {
    let hashes: Vec<_> = messages.iter().map(|byte| hash(*byte)).collect();
    let mut rows = bench.store.start_insert("orders", &hashes, start(by)).await.unwrap();
    rows.sort_by_key(|row| (row.message, row.handler));
    rows
}

fn row(message: u8, handler: i64, by: impl IntoIterator<Item = u8>) -> StartRow {
    StartRow { message: hash(message), handler: HandlerId(handler), starts: starts(by) }
}

fn of(message: u8, handler: Option<i64>) -> StartEnd {
    StartEnd { message: ("orders".into(), hash(message)), handler: handler.map(HandlerId) }
}

async fn alone(bench: &Bench, message: u8, handler: i64, by: u8) {
    let suspect = Suspect::Delivered(("orders".into(), hash(message)), HandlerId(handler));
    assert!(bench.lane().await.start_alone(&suspect, start(by)).await.unwrap());
}

async fn end(bench: &Bench, ends: &[StartEnd]) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.start_end(ends).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn a_message_that_comes_again_is_counted_once_a_life(bench: Bench) {
    assert_eq!(begun(&bench, &[], 1).await, []);
    assert_eq!(begun(&bench, &[1, 2], 1).await, [], "nothing is known of what is begun for the first time");
    assert_eq!(begun(&bench, &[2, 3], 2).await, [row(2, 0, [1, 2]), row(3, 0, [2])]);
    // Of the same life, whose connection was cut.
    assert_eq!(begun(&bench, &[2], 2).await, [row(2, 0, [1, 2])]);
    assert_eq!(begun(&bench, &[2], 1).await, [row(2, 0, [1, 2, 1])]);
    // Another source's message of the same hash is another message.
    assert_eq!(bench.store.start_insert("other", &[hash(2)], start(3)).await.unwrap(), []);
    assert_eq!(bench.number("SELECT times FROM ob_start WHERE source = 'orders' ORDER BY times DESC LIMIT 1").await, 4);
}

pub(crate) async fn a_column_of_starts_keeps_the_newest(bench: Bench) {
    let last = u8::try_from(STARTS_MAX).unwrap() + 4;
    for by in 1..last {
        begun(&bench, &[1], by).await;
        alone(&bench, 1, 7, by).await;
    }
    assert_eq!(begun(&bench, &[1], last).await, [row(1, 0, 5..=last), row(1, 7, 4..last)]);
}

pub(crate) async fn an_end_is_of_a_message_or_of_one_handlers_run_alone(bench: Bench) {
    begun(&bench, &[1, 2], 1).await;
    alone(&bench, 1, 7, 1).await;
    alone(&bench, 1, 8, 1).await;
    end(&bench, &[of(1, Some(7))]).await;
    assert_eq!(begun(&bench, &[1], 2).await, [row(1, 0, [1, 2]), row(1, 8, [1])]);
    // One that is not there is no error: its message was counted by nobody.
    end(&bench, &[of(1, None), of(9, None)]).await;
    assert_eq!(begun(&bench, &[1, 2], 3).await, [row(1, 0, [3]), row(2, 0, [1, 3])]);
    bench.store.start_end(&[of(1, None), of(2, None)]).await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM ob_start").await, 0);
}

pub(crate) async fn the_end_of_a_unit_that_is_rolled_back_is_none(bench: Bench) {
    begun(&bench, &[1], 1).await;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.start_end(&[of(1, None)]).await.unwrap();
    unit.rollback().await.unwrap();
    drop(lane);
    assert_eq!(begun(&bench, &[1], 2).await, [row(1, 0, [1, 2])]);
}

pub(crate) async fn a_claim_is_a_start_and_its_mark_says_what_is_kept(bench: Bench) {
    let carried = Open { beside: starts([1]), alone: starts([2]) };
    let parked = oncebox::store::NewHeld { open: carried, ..bench.new_held(1) };
    let held = bench.hold(std::slice::from_ref(&parked)).await[0];
    let claim = async |token, lease, by| {
        let rows = bench.store.held_claim(bench.handler, 9, token_of(token), lease, start(by)).await.unwrap();
        (rows[0].open.beside.clone(), rows[0].open.alone.clone())
    };
    assert_eq!(claim(1, NO_LEASE, 3).await, (starts([1, 3]), starts([2])));
    assert_eq!(claim(2, NO_LEASE, 3).await, (starts([1, 3]), starts([2])), "once a life");
    assert_eq!(claim(3, LEASE, 4).await, (starts([1, 3, 4]), starts([2])));
    let mark = |state, open| HeldMark {
        held,
        token: token_of(3),
        state,
        due_us: Some(1),
        attempts: 1,
        attempts_short: 0,
        why: None,
        deployment: None,
        open,
    };
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let kept = Open { beside: Starts::default(), alone: starts([2]) };
    unit.held_mark(&[mark(HeldState::Parked, kept)]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(claim(3, LEASE, 5).await, (starts([5]), starts([2])));
    let mut unit = lane.begin().await.unwrap();
    unit.held_mark(&[mark(HeldState::Resolved, Open::default())]).await.unwrap();
    unit.commit().await.unwrap();
    drop(lane);
    // Opened again, it brings its own.
    bench.hold(&[oncebox::store::NewHeld { due_us: Some(1), ..parked }]).await;
    assert_eq!(claim(4, LEASE, 6).await, (starts([1, 6]), starts([2])));
}

pub(crate) async fn only_a_claim_under_its_token_may_run_alone(bench: Bench) {
    let held = bench.hold(&[bench.new_held(1)]).await[0];
    bench.store.held_claim(bench.handler, 9, token_of(1), NO_LEASE, start(1)).await.unwrap();
    let mut lane = bench.lane().await;
    for (token, ours) in [(1, true), (2, false)] {
        assert_eq!(lane.start_alone(&Suspect::Claimed(held, token_of(token)), start(token)).await.unwrap(), ours);
    }
    drop(lane);
    let again = bench.store.held_claim(bench.handler, 9, token_of(3), LEASE, start(3)).await.unwrap();
    assert_eq!(again[0].open, Open { beside: starts([1, 3]), alone: starts([1]) });
}

pub(crate) async fn the_tables_know_whether_a_life_has_ended_has_a_successor_or_is_silent(bench: Bench) {
    for (byte, host) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
        bench.store.boot_insert(boot(byte), host).await.unwrap();
    }
    bench.run(&format!("UPDATE ob_boot SET started_at = {} WHERE boot_id = x'{}'", bench.at(1), boot(1))).await;
    bench.run(&format!("UPDATE ob_boot SET seen_at = {} WHERE boot_id = x'{}'", bench.at(1), boot(3))).await;
    bench.store.boot_end(boot(4)).await.unwrap();
    let lives = bench.store.boot_lives(&[1, 2, 3, 4, 5].map(boot)).await.unwrap();
    let told = |byte| lives.get(&boot(byte)).map(|life| (life.has_ended, life.has_successor));
    assert_eq!(
        [1, 2, 3, 4, 5].map(told),
        [Some((false, true)), Some((false, false)), Some((false, false)), Some((true, false)), None]
    );
    let years = Duration::from_hours(24 * 365);
    assert!(lives[&boot(3)].unseen > 10 * years, "{lives:?}");
    assert!(lives[&boot(2)].unseen < years, "{lives:?}");
}

pub(crate) async fn a_life_that_the_next_one_had_to_end_has_crashed(bench: Bench) {
    for byte in [1, 2] {
        bench.store.boot_insert(boot(byte), "here").await.unwrap();
    }
    bench.store.boot_end(boot(2)).await.unwrap();
    let path = bench.path().clone();
    let Bench { store, place: _place, .. } = bench;
    drop(store);
    let store = SqliteStore::open(&path, None, Use::Host).await.unwrap();
    let lives = store.boot_lives(&[boot(1), boot(2)]).await.unwrap();
    let told = |byte| (lives[&boot(byte)].has_ended, lives[&boot(byte)].has_successor);
    assert_eq!([told(1), told(2)], [(false, true), (true, false)]);
}
