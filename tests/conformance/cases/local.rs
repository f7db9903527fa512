//! Local sources: offered, claimed under a lease, settled.

use oncebox::store::{LocalId, NewLocal};
use oncebox_core::value::Value;

use crate::bench::{Bench, LEASE, NO_LEASE, message, token_of};

async fn settle(bench: &Bench, messages: &[(LocalId, u8)]) -> Vec<LocalId> {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let messages: Vec<_> = messages.iter().map(|(id, token)| (*id, token_of(*token))).collect();
    let lost = unit.local_settle(&messages).await.unwrap();
    unit.commit().await.unwrap();
    lost
}

pub(crate) async fn an_offered_message_is_claimed_once_and_comes_back_whole(bench: Bench) {
    let before = bench.store.now_us().await.unwrap();
    assert_eq!(bench.store.local_offer("orders", &[message(b"1"), message(b"2")]).await.unwrap(), 2);
    let taken = bench.store.local_claim("orders", 9, token_of(1), LEASE).await.unwrap();
    assert_eq!(taken.iter().map(|local| &local.message).collect::<Vec<_>>(), [&message(b"1"), &message(b"2")]);
    assert!(taken.iter().all(|local| local.hops == 0 && local.deliveries == 1 && local.received_us >= before));
    assert_eq!(bench.store.local_claim("orders", 9, token_of(2), LEASE).await.unwrap(), []);
}

pub(crate) async fn claims_take_the_oldest_due_first_and_only_their_own_source(bench: Bench) {
    let local = |body: &[u8], due_us| NewLocal { source: "orders".into(), message: message(body), hops: 2, due_us };
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.local_insert(&[local(b"late", 30), local(b"early", 10), local(b"middle", 20)]).await.unwrap();
    unit.commit().await.unwrap();
    bench.store.local_offer("other", &[message(b"other")]).await.unwrap();
    let mut claimed = Vec::new();
    for token in [1, 2] {
        let taken = bench.store.local_claim("orders", 2, token_of(token), LEASE).await.unwrap();
        assert!(taken.iter().all(|local| local.hops == 2));
        let mut bodies: Vec<_> = taken.into_iter().map(|local| local.message.body).collect();
        bodies.sort();
        claimed.push(bodies);
    }
    assert_eq!(claimed, [vec![b"early".to_vec(), b"middle".to_vec()], vec![b"late".to_vec()]]);
}

pub(crate) async fn a_claim_that_was_taken_over_cannot_settle(bench: Bench) {
    bench.store.local_offer("orders", &[message(b"1"), message(b"2")]).await.unwrap();
    let first = bench.store.local_claim("orders", 2, token_of(1), NO_LEASE).await.unwrap();
    let second = bench.store.local_claim("orders", 1, token_of(2), LEASE).await.unwrap();
    assert_eq!((second[0].id, second[0].deliveries), (first[0].id, 2));
    // The other one was not taken over: its token still holds, although its time is over.
    assert_eq!(settle(&bench, &[(first[0].id, 1), (first[1].id, 1)]).await, [first[0].id]);
    assert_eq!(bench.number("SELECT count(*) FROM ob_local").await, 1);
    assert_eq!(settle(&bench, &[(first[0].id, 2)]).await, []);
    assert_eq!(settle(&bench, &[(first[0].id, 2)]).await, [first[0].id]);
}

pub(crate) async fn a_renewed_lease_is_not_taken_over(bench: Bench) {
    bench.store.local_offer("orders", &[message(b"1"), message(b"2")]).await.unwrap();
    bench.store.local_claim("orders", 1, token_of(1), NO_LEASE).await.unwrap();
    bench.store.local_renew(&[token_of(9), token_of(1)], LEASE).await.unwrap();
    let taken = bench.store.local_claim("orders", 9, token_of(2), LEASE).await.unwrap();
    assert_eq!(taken.iter().map(|local| local.message.body.as_slice()).collect::<Vec<_>>(), [b"2"]);
}

pub(crate) async fn a_delayed_event_is_not_claimed_before_its_time(bench: Bench) {
    let due_us = bench.store.now_us().await.unwrap() + 3_600_000_000;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    let local = NewLocal { source: "orders".into(), message: message(b"1"), hops: 1, due_us };
    unit.local_insert(&[local]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(bench.store.local_claim("orders", 9, token_of(1), LEASE).await.unwrap(), []);
    assert_eq!(bench.number("SELECT count(*) FROM ob_local WHERE lease_token IS NULL").await, 1);
}

pub(crate) async fn a_settled_message_is_gone_with_its_unit_and_back_with_its_rollback(bench: Bench) {
    bench.store.local_offer("orders", &[message(b"1")]).await.unwrap();
    let id = bench.store.local_claim("orders", 1, token_of(1), LEASE).await.unwrap()[0].id;
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    assert_eq!(unit.local_settle(&[(id, token_of(1))]).await.unwrap(), []);
    unit.rollback().await.unwrap();
    assert_eq!(bench.rows("SELECT local_id FROM ob_local").await, [[Value::Signed(id.0)]]);
    assert_eq!(settle(&bench, &[(id, 1)]).await, []);
    assert_eq!(bench.number("SELECT count(*) FROM ob_local").await, 0);
}
