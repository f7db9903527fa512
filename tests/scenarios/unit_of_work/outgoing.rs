//! Events that a plugin emits.

use std::{sync::Arc, time::Duration};

use oncebox::{
    host::Delivery,
    plugin::{Outcome, StagedEvent},
};
use oncebox_core::{failure::Class, message::Header, value::Value};

use crate::{
    bench::{Bench, HOPS_MAX, deliver, delivery, failed, message, outgoing, over, text, write},
    fates,
};

fn emits(events: &[StagedEvent]) -> Outcome {
    Outcome::Applied { result: None, writes: vec![write("effect", &[text("e")])], events: events.to_vec() }
}

async fn count(bench: &Bench, table: &str) -> String {
    bench.texts(&format!("SELECT count(*) FROM {table}")).await.remove(0)
}

on_every_store!(events_go_to_a_local_source_and_to_the_outbox_in_the_same_transaction);
async fn events_go_to_a_local_source_and_to_the_outbox_in_the_same_transaction() {
    let bench = Bench::new().await;
    let mut message = message("a", 1);
    message.headers.push(Header::new("traceparent", "00-a-b-01"));
    let delivery = delivery(&bench.plain, Arc::new(message), None, 1);
    let delayed = StagedEvent { delay_ms: Some(3_600_000), ..outgoing("plain", "a", "next", 2) };
    let events = [outgoing("plain", "a", "next", 0), outgoing("plain", "a", "cdc", 1), delayed];
    assert_eq!(bench.verdicts(&[over(delivery, emits(&events))]).await, fates![Applied]);
    let rows = bench.texts("SELECT concat(destination, state, position) FROM ob_outbox ORDER BY outbox_id").await;
    assert_eq!(rows, ["to-next30", "to-cdc01", "to-next32"]);
    let ids = bench.texts("SELECT event_id FROM ob_outbox ORDER BY outbox_id").await;
    assert_eq!(ids, events.iter().map(|event| event.event_id.clone()).collect::<Vec<_>>());
    let token = oncebox_core::ids::LeaseToken([9; 16]);
    let taken = bench.store.local_claim("next", 9, token, Duration::from_secs(60)).await.unwrap();
    let [local] = taken.as_slice() else { panic!("{taken:?}") };
    assert_eq!((local.hops, local.message.body.as_slice()), (2, b"hello".as_slice()));
    let header = |name: &str| local.message.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    assert_eq!(header("ce-id").as_ref(), Some(&events[0].event_id));
    assert_eq!(header("ce-source").as_deref(), Some("/oncebox/acme/plain"));
    assert_eq!(header("ce-type").as_deref(), Some("points.awarded"));
    assert_eq!(header("ce-subject").as_deref(), Some("user%201"));
    assert_eq!((header("h").as_deref(), header("traceparent").as_deref()), (Some("1"), Some("00-a-b-01")));
    assert_eq!(local.message.content_type.as_deref(), Some("text/plain"));
    // The delayed one waits for its time.
    assert_eq!(count(&bench, "ob_local").await, "2");
}

on_every_store!(an_event_that_is_not_applied_sends_nothing);
async fn an_event_that_is_not_applied_sends_nothing() {
    let bench = Bench::new().await;
    let event = || [outgoing("plain", "a", "next", 0), outgoing("plain", "a", "cdc", 1)];
    let Outcome::Applied { mut writes, events, .. } = emits(&event()) else { panic!() };
    writes.push(write("effect", &[Value::Null]));
    let breaks = Outcome::Applied { result: None, writes, events };
    let batch = [
        over(deliver(&bench.plain, "a", 1), breaks),
        over(deliver(&bench.plain, "b", 1), failed(Class::GuestReject, "no")),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Dead Dead]);
    let again: Delivery = deliver(&bench.plain, "a", 1);
    assert_eq!(bench.verdicts(&[over(again, emits(&event()))]).await, fates![Duplicate]);
    assert_eq!((count(&bench, "ob_outbox").await, count(&bench, "ob_local").await), ("0".into(), "0".into()));
}

on_every_store!(an_event_that_goes_round_in_circles_is_stopped_at_the_hop_limit);
async fn an_event_that_goes_round_in_circles_is_stopped_at_the_hop_limit() {
    let bench = Bench::new().await;
    let at = |key: &str, hops| delivery(&bench.plain, Arc::new(message(key, 1)), None, hops);
    let emit = |key: &str, destination: &str| emits(&[outgoing("plain", key, destination, 0)]);
    let batch = [
        over(at("last", HOPS_MAX - 1), emit("last", "next")),
        over(at("beyond", HOPS_MAX), emit("beyond", "next")),
        over(at("elsewhere", HOPS_MAX), emit("elsewhere", "cdc")),
    ];
    assert_eq!(bench.verdicts(&batch).await, fates![Applied Dead Applied]);
    let whys = bench.texts("SELECT concat(code, ': ', message) FROM ob_held").await;
    let id = outgoing("plain", "beyond", "next", 0).event_id;
    let expected = format!(
        "hop-limit: event {id} for destination `next` would be hop 4 over `local`, the limit is 3 (host.limits.hops_max)"
    );
    assert_eq!(whys, [expected]);
    assert_eq!(bench.texts("SELECT hops FROM ob_local").await, ["3"]);
    // The writes of the one that was stopped are undone.
    assert_eq!(bench.effects().await, ["e", "e"]);
}
