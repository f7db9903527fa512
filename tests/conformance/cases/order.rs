//! The lock rows of ordering keys, and the places of what is held behind each other.

use std::time::Duration;

use oncebox::store::{HeldId, HeldMark, NewHeld, OrderKey, OrderRow, Place};
use oncebox_core::{blame::Open, ids::BusinessKey, life::HeldState};

use crate::bench::{Bench, START, token_of};

const LEASE: Duration = Duration::from_secs(60);

fn key(bench: &Bench, name: &str) -> OrderKey {
    (bench.handler, name.as_bytes().to_vec())
}

fn row(bench: &Bench, name: &str, held: u32, next_place: u64, head: Option<u64>) -> OrderRow {
    OrderRow { key: key(bench, name), held, next_place, head }
}

/// A held row of line `name`.
fn held(bench: &Bench, identity: u8, state: HeldState, due_us: Option<i64>, name: &str, place: u64) -> NewHeld {
    let place = Some(Place { ordering_key: name.as_bytes().to_vec(), place });
    NewHeld { state, due_us, place, key: Some(BusinessKey::new([identity])), ..bench.new_held(identity) }
}

async fn locked(bench: &Bench, names: &[&str]) -> Vec<OrderRow> {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let keys: Vec<OrderKey> = names.iter().map(|name| key(bench, name)).collect();
    let rows = unit.order_lock(&keys).await.unwrap();
    unit.commit().await.unwrap();
    rows
}

async fn due(bench: &Bench, names: &[&str]) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let keys: Vec<OrderKey> = names.iter().map(|name| key(bench, name)).collect();
    unit.order_lock(&keys).await.unwrap();
    unit.order_due(&keys).await.unwrap();
    unit.commit().await.unwrap();
}

pub(crate) async fn an_order_row_is_made_by_its_lock_and_kept_as_it_was_marked(bench: Bench) {
    assert_eq!(locked(&bench, &["a", "b"]).await, [row(&bench, "a", 0, 0, None), row(&bench, "b", 0, 0, None)]);
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.order_lock(&[key(&bench, "b")]).await.unwrap();
    unit.order_mark(&[row(&bench, "b", 3, 7, None)]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(locked(&bench, &["a", "b"]).await, [row(&bench, "a", 0, 0, None), row(&bench, "b", 3, 7, None)]);
}

pub(crate) async fn the_head_of_a_line_is_its_first_row_that_is_parked_or_dead(bench: Bench) {
    let rows = [
        held(&bench, 1, HeldState::Dead, None, "a", 4),
        held(&bench, 2, HeldState::Parked, None, "a", 5),
        held(&bench, 3, HeldState::Parked, Some(1), "b", 9),
        held(&bench, 4, HeldState::Resolved, None, "c", 1),
    ];
    bench.hold(&rows).await;
    let heads: Vec<_> = locked(&bench, &["a", "b", "c", "d"]).await.into_iter().map(|row| row.head).collect();
    assert_eq!(heads, [Some(4), Some(9), None, None]);
}

pub(crate) async fn only_a_parked_head_that_waits_is_made_due(bench: Bench) {
    let later = bench.store.now_us().await.unwrap() + 3_600_000_000;
    let rows = [
        held(&bench, 1, HeldState::Parked, None, "waits", 1),
        held(&bench, 2, HeldState::Parked, None, "waits", 2),
        held(&bench, 3, HeldState::Dead, None, "dead", 1),
        held(&bench, 4, HeldState::Parked, None, "dead", 2),
        held(&bench, 5, HeldState::Parked, Some(later), "has its time", 1),
        held(&bench, 6, HeldState::Parked, None, "has its time", 2),
    ];
    let ids = bench.hold(&rows).await;
    due(&bench, &["dead", "has its time", "waits"]).await;
    let claimed = bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    assert_eq!(claimed.iter().map(|row| row.held).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(claimed[0].place, Some(Place { ordering_key: b"waits".to_vec(), place: 1 }));
}

pub(crate) async fn a_resolved_row_gives_up_its_place_and_the_next_one_is_the_head(bench: Bench) {
    let rows = [held(&bench, 1, HeldState::Parked, Some(1), "a", 1), held(&bench, 2, HeldState::Parked, None, "a", 2)];
    let ids = bench.hold(&rows).await;
    bench.store.held_claim(bench.handler, 9, token_of(1), LEASE, START).await.unwrap();
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let mark = |held: HeldId| HeldMark {
        held,
        token: token_of(1),
        state: HeldState::Resolved,
        due_us: None,
        attempts: 1,
        attempts_short: 0,
        why: None,
        deployment: None,
        open: Open::default(),
    };
    unit.order_lock(&[key(&bench, "a")]).await.unwrap();
    unit.held_mark(&[mark(ids[0])]).await.unwrap();
    unit.order_due(&[key(&bench, "a")]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(locked(&bench, &["a"]).await[0].head, Some(2));
    let claimed = bench.store.held_claim(bench.handler, 9, token_of(2), LEASE, START).await.unwrap();
    assert_eq!(claimed.iter().map(|row| row.held).collect::<Vec<_>>(), [ids[1]]);
}

pub(crate) async fn two_units_of_one_line_come_one_after_the_other(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut first = lane.begin().await.unwrap();
    assert_eq!(first.order_lock(&[key(&bench, "a")]).await.unwrap()[0].head, None);
    let mut other = bench.lane().await;
    let wanted = key(&bench, "a");
    let second = tokio::spawn(async move {
        let mut unit = other.begin().await.unwrap();
        let rows = unit.order_lock(&[wanted]).await.unwrap();
        unit.commit().await.unwrap();
        rows
    });
    // It waits for the one before it, as the server sees it.
    bench.tenant().waiting_soon(1).await;
    first.held_insert(&[held(&bench, 1, HeldState::Parked, Some(1), "a", 0)]).await.unwrap();
    first.order_mark(&[row(&bench, "a", 1, 1, None)]).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), [row(&bench, "a", 1, 1, Some(0))]);
}
