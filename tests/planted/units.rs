//! Faults of a unit of work.

use std::time::Duration;

use oncebox::{
    host::{Item, Link, unit_of_work},
    planted::Fault,
    store::Store as _,
};
use oncebox_core::{identify::Identity, ids::BusinessKey};
use oncebox_tests::{
    feed::TOO_MUCH,
    proxy::{Message, Plan, Protocol, Proxy, Then},
};

use crate::{
    bench::deliver,
    stage::{Stage, Stranger, caught},
};

/// One unit of work on a connection of its own; one that fails decides nothing.
pub(crate) async fn unit(stage: &Stage, batch: &[Item]) -> bool {
    let mut connection = stage.bench.store.lane().await.unwrap();
    unit_of_work(&stage.bench.lane, connection.as_mut(), batch).await.is_ok()
}

#[test]
fn half_of_an_event_that_waited_too_long_is_found_without_its_inbox_row() {
    let story = async |stage: &Stage| {
        let (plain, other) = (&stage.bench.plain, &stage.bench.other);
        let stranger = Stranger::with(&stage.bench.store, "other").await;
        let batch = [Stage::entry(plain, "a", 1), Stage::entry(other, "b", 1), Stage::entry(plain, "c", 1)];
        assert!(unit(stage, &batch).await);
        stranger.0.rollback().await.unwrap();
        Vec::new()
    };
    caught(Fault::NoRollbackOn1205, story, &["no entry without an inbox row: broken by 1\n    other b"]);
}

#[test]
fn a_key_that_the_look_up_has_not_seen_is_found_applied_twice() {
    let story = async |stage: &Stage| {
        // Both have looked the key up, and run, before one of them is committed.
        let both = [(); 2].map(|()| [Stage::entry(&stage.bench.plain, "a", 1)]);
        for batch in &both {
            unit(stage, batch).await;
        }
        Vec::new()
    };
    caught(Fault::SelectThenInsert, story, &["plain a: state 0, 2 entries"]);
}

#[test]
fn a_batch_that_is_done_again_under_its_old_token_is_found_applied_twice() {
    let story = async |stage: &Stage| {
        let proxy = Proxy::start(&stage.database().server().address(), Protocol::Mysql);
        let through = stage.bench.tenant().open_through(&proxy, Duration::from_secs(30)).await.unwrap();
        let mut link = Link::from(through.lane().await.unwrap());
        proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutAfter });
        let done = stage.bench.lane.decide(&mut link, vec![Stage::entry(&stage.bench.plain, "a", 1)], None).await;
        assert!(proxy.is_done() && done.len() == 1);
        Vec::new()
    };
    caught(Fault::TokenReusedAfterLostCommit, story, &["plain a: state 0, 2 entries"]);
}

#[test]
fn marks_that_a_second_failure_has_undone_are_found_missing() {
    let story = async |stage: &Stage| {
        let plain = &stage.bench.plain;
        let batch = [
            Stage::entry(plain, "a", TOO_MUCH),
            Stage::entry(plain, "b", 1),
            Stage::entry(plain, "c", TOO_MUCH),
            Stage::entry(plain, "d", 1),
        ];
        assert!(unit(stage, &batch).await);
        Vec::new()
    };
    caught(Fault::MarksLostBySecondFailure, story, &["plain a: state 0, 0 entries, 0 sent"]);
}

#[test]
fn two_keys_that_insert_ignore_has_cut_to_one_are_found() {
    let story = async |stage: &Stage| {
        // Longer than the column, and alike as far as it goes. Identify refuses such a key; the table is the last wall.
        let long = |end: &str| {
            let mut delivery = deliver(&stage.bench.plain, end, 1);
            let Identity { fingerprint, ordering_key, .. } = delivery.identity.clone().unwrap();
            let key = BusinessKey::new(format!("{}{end}", "k".repeat(512)));
            delivery.identity = Ok(Identity { key, fingerprint, ordering_key });
            [Stage::entered(delivery, end, 1)]
        };
        for batch in [long("a"), long("b")] {
            unit(stage, &batch).await;
        }
        Vec::new()
    };
    caught(Fault::InsertIgnore, story, &["no entry without an inbox row", "kkk: state 0, 0 entries"]);
}
