//! What people ask.

use oncebox::store::{
    DeploymentId, Gauges, HandlerId, HeldFilter, HeldId, KeyStory, NewAttempt, NewHeld, OutboxRow, OutboxState,
};
use oncebox_core::{
    failure::Class,
    ids::{BootId, BusinessKey},
    life::HeldState,
};

use crate::bench::{Bench, message, token_of};

pub(crate) async fn a_trace_tells_all_of_a_key(bench: Bench) {
    let key = BusinessKey::new([1]);
    assert_eq!(bench.store.trace(bench.handler, &key).await.unwrap(), KeyStory::default());
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox([1])]).await.unwrap();
    let conflict = NewHeld { key: Some(key.clone()), state: HeldState::Conflict, ..bench.new_held(2) };
    let ids = unit.held_insert(&[bench.new_held(1), conflict, bench.new_held(3)]).await.unwrap();
    let attempt = NewAttempt {
        held: ids[0],
        generation: 0,
        boot: BootId([1; 16]),
        deployment: Some(DeploymentId(1)),
        started_us: 1,
        ended_us: 2,
        class: Class::Trap,
        code: "unreachable".into(),
        message: "m".into(),
        backtrace: None,
    };
    unit.attempt_insert(&[attempt]).await.unwrap();
    let outgoing = |event_id: &str, key: &BusinessKey| OutboxRow {
        event_id: event_id.into(),
        destination: "next".into(),
        state: OutboxState::Confirmed,
        handler: bench.handler,
        key: key.clone(),
        generation: 0,
        position: 0,
        ordering_key: None,
        event_type: "points.awarded".into(),
        subject: None,
        content_type: None,
        schema: None,
        attributes: Vec::new(),
        headers: Vec::new(),
        payload: Vec::new(),
        traceparent: None,
        due_us: 0,
    };
    unit.outbox_insert(&[outgoing("ob-1", &key), outgoing("ob-2", &BusinessKey::new([3]))]).await.unwrap();
    unit.commit().await.unwrap();
    let story = bench.store.trace(bench.handler, &key).await.unwrap();
    assert_eq!(story.inbox.as_ref().map(|inbox| inbox.event_id.as_str()), Some("e-1"));
    let held: Vec<_> = story.held.iter().map(|held| (held.row.held, held.row.state, held.attempts.len())).collect();
    assert_eq!(held, [(ids[0], HeldState::Parked, 1), (ids[1], HeldState::Conflict, 0)]);
    assert_eq!(story.held[0].body, message(b"first"));
    let outgoing: Vec<_> = story.outgoing.iter().map(|out| (out.event_id.as_str(), out.state)).collect();
    assert_eq!(outgoing, [("ob-1", OutboxState::Confirmed)]);
    let other = HandlerId(bench.handler.0 + 1);
    assert_eq!(bench.store.trace(other, &key).await.unwrap(), KeyStory::default());
}

pub(crate) async fn held_rows_are_listed_by_handler_state_and_place(bench: Bench) {
    let state = |identity, state| NewHeld { state, ..bench.new_held(identity) };
    let poison = NewHeld {
        handler: HandlerId::NONE,
        key: None,
        fingerprint: None,
        rule: None,
        deployment: None,
        event_id: None,
        event_type: None,
        event_time_us: None,
        ..state(4, HeldState::Poison)
    };
    let rows = [
        state(1, HeldState::Parked),
        state(2, HeldState::Dead),
        state(3, HeldState::Resolved),
        poison,
        state(5, HeldState::Dead),
    ];
    let ids = bench.hold(&rows).await;
    let list = async |filter: HeldFilter| -> Vec<HeldId> {
        bench.store.held_list(&filter).await.unwrap().iter().map(|row| row.held).collect()
    };
    let all = HeldFilter { limit: 100, ..HeldFilter::default() };
    assert_eq!(list(all.clone()).await, [ids[0], ids[1], ids[3], ids[4]]);
    assert_eq!(list(HeldFilter { handler: Some(HandlerId::NONE), ..all.clone() }).await, [ids[3]]);
    assert_eq!(list(HeldFilter { states: vec![HeldState::Dead], ..all.clone() }).await, [ids[1], ids[4]]);
    assert_eq!(list(HeldFilter { states: vec![HeldState::Resolved], ..all.clone() }).await, [ids[2]]);
    assert_eq!(list(HeldFilter { after: ids[1].0, limit: 1, ..all.clone() }).await, [ids[3]]);
    assert_eq!(list(HeldFilter { after: ids[4].0, ..all }).await, []);
    let story = bench.store.held_show(ids[3]).await.unwrap().unwrap();
    assert_eq!((story.row.key, story.row.event_id, story.row.fingerprint), (None, None, None));
    assert_eq!(bench.store.held_show(HeldId(ids[4].0 + 1)).await.unwrap(), None);
}

pub(crate) async fn gauges_count_what_is_held_and_what_waits(bench: Bench) {
    assert_eq!(bench.store.gauges().await.unwrap(), Gauges::default());
    let row = |identity, state, received_us| NewHeld { state, received_us, ..bench.new_held(identity) };
    let rows = [
        row(1, HeldState::Parked, 20),
        row(2, HeldState::Parked, 10),
        row(3, HeldState::Dead, 1),
        row(4, HeldState::Resolved, 1),
    ];
    bench.hold(&rows).await;
    bench.store.local_offer("b", &[message(b"1")]).await.unwrap();
    bench.store.local_offer("a", &[message(b"1"), message(b"2")]).await.unwrap();
    let mut gauges = bench.store.gauges().await.unwrap();
    gauges.held.sort_by_key(|(_, state, _)| state.number());
    assert_eq!(gauges.held, [(bench.handler, HeldState::Parked, 2), (bench.handler, HeldState::Dead, 1)]);
    assert_eq!(gauges.oldest_parked_us, Some(10));
    assert_eq!(gauges.local, [("a".into(), 2), ("b".into(), 1)]);
}
