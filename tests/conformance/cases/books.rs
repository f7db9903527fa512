//! The books and the outbox.

use oncebox::store::{HandlerId, OutboxRow, OutboxState, StoreError};
use oncebox_core::{
    ids::{BootId, BusinessKey},
    life::Verdict,
    message::Header,
    value::Value,
};

use crate::bench::Bench;

pub(crate) async fn tallies_add_up_over_units_and_lanes(bench: Bench) {
    let mine = bench.handler;
    let mut lane = bench.lane().await;
    for (boot, number, counts) in [
        (1, 0, vec![(mine, Verdict::Applied, 3), (mine, Verdict::Duplicate, 1)]),
        (1, 0, vec![(mine, Verdict::Applied, 2)]),
        (1, 1, vec![(mine, Verdict::Applied, 10), (HandlerId::NONE, Verdict::Dead, 1)]),
        (2, 0, vec![(mine, Verdict::Applied, 100)]),
    ] {
        let mut unit = lane.begin().await.unwrap();
        unit.tally_add(BootId([boot; 16]), number, &counts).await.unwrap();
        unit.commit().await.unwrap();
    }
    let tallies = bench.store.tallies().await.unwrap();
    let expected = [(HandlerId::NONE, Verdict::Dead, 1), (mine, Verdict::Applied, 115), (mine, Verdict::Duplicate, 1)];
    assert_eq!(tallies, expected);
    // One row for each boot, lane, handler and verdict: lanes never wait for each other.
    assert_eq!(bench.number("SELECT count(*) FROM ob_tally").await, 5);
}

pub(crate) async fn tallies_of_a_unit_that_is_rolled_back_do_not_count(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.tally_add(BootId([1; 16]), 0, &[(bench.handler, Verdict::Applied, 3)]).await.unwrap();
    unit.rollback().await.unwrap();
    assert_eq!(bench.store.tallies().await.unwrap(), []);
}

pub(crate) async fn an_outgoing_event_is_written_once(bench: Bench) {
    let row = OutboxRow {
        event_id: "ob-1".into(),
        destination: "cdc".into(),
        state: OutboxState::Kept,
        handler: bench.handler,
        key: BusinessKey::new([0, 255]),
        generation: 1,
        position: 2,
        ordering_key: Some(vec![7]),
        event_type: "points.awarded".into(),
        subject: Some("s".into()),
        content_type: Some("text/plain".into()),
        schema: Some("urn:x".into()),
        attributes: vec![("amqp.priority".into(), "5".into())],
        headers: vec![Header::new("h", vec![0xff])],
        payload: vec![0, 1, 2],
        traceparent: Some("00-a-b-01".into()),
        due_us: 77,
    };
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.outbox_insert(std::slice::from_ref(&row)).await.unwrap();
    unit.commit().await.unwrap();
    let columns = format!(
        "SELECT CAST(event_id AS CHAR), destination, state, handler_id, business_key, generation, position, ordering_key,
           event_type, subject, content_type, data_schema, payload, traceparent, {} FROM ob_outbox",
        bench.micros("due_at")
    );
    let text = |text: &str| Value::Text(text.into());
    let expected = [
        text("ob-1"),
        text("cdc"),
        Value::Signed(0),
        Value::Signed(bench.handler.0),
        Value::Bytes(vec![0, 255]),
        Value::Signed(1),
        Value::Signed(2),
        Value::Bytes(vec![7]),
        text("points.awarded"),
        text("s"),
        text("text/plain"),
        text("urn:x"),
        Value::Bytes(vec![0, 1, 2]),
        text("00-a-b-01"),
        Value::Signed(77),
    ];
    assert_eq!(bench.rows(&columns).await, [expected]);
    let mut unit = lane.begin().await.unwrap();
    // What has no answer may go with the next call, COMMIT at the latest.
    let error = match unit.outbox_insert(&[row]).await {
        Ok(()) => unit.commit().await.unwrap_err(),
        Err(error) => {
            unit.rollback().await.unwrap();
            error
        }
    };
    assert!(matches!(error, StoreError::Statement { what: "outbox insert", .. }), "{error}");
    assert_eq!(bench.number("SELECT count(*) FROM ob_outbox").await, 1);
}
