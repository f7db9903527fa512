//! Queries: asked of the lane, answered, refused, or never answered.

use oncebox::plugin::{QueryFault, QueryPort, QueryRequest, Rows};
use oncebox_core::{
    failure::{Class, Failure},
    value::Value,
};
use tokio::sync::mpsc;

use crate::sandbox::{attempt, failed, lives, load, result, with_queries};

fn port() -> (QueryPort, mpsc::Receiver<QueryRequest>) {
    let (sender, receiver) = mpsc::channel(1);
    (QueryPort(sender), receiver)
}

#[tokio::test]
async fn a_query_is_answered_by_the_lane() {
    let module = load("probes/query").await;
    let (port, mut lane) = port();
    let run = tokio::spawn(module.run(with_queries(port)));
    let request = lane.recv().await.unwrap();
    assert_eq!((request.name.as_str(), request.params), ("level", vec![Value::Unsigned(7)]));
    let rows = Rows { columns: vec!["level".into()], data: vec![vec![Value::Text("gold".into())]] };
    request.reply.send(Ok(rows)).unwrap();
    assert_eq!(result(run.await.unwrap()), b"gold");
}

#[tokio::test]
async fn a_query_that_fails_ends_the_attempt_with_its_class() {
    let module = load("probes/query").await;
    let (port, mut lane) = port();
    let run = tokio::spawn(module.run(with_queries(port)));
    let request = lane.recv().await.unwrap();
    let fault = Failure::new(Class::Blocked, "table-missing", "points: no such table");
    request.reply.send(Err(QueryFault::Failed(fault.clone()))).unwrap();
    let failure = failed(run.await.unwrap());
    assert_eq!((failure.class, failure.code, failure.message), (fault.class, fault.code, fault.message));
}

#[tokio::test]
async fn waiting_for_a_query_counts_into_the_time_of_the_run() {
    let module = load("probes/query").await;
    let (port, mut lane) = port();
    let run = tokio::spawn(module.run(with_queries(port)));
    let request = lane.recv().await.unwrap();
    let failure = failed(run.await.unwrap());
    assert_eq!((failure.class, failure.code.as_str()), (Class::TimeLimit, "run-time"));
    assert!(request.reply.is_closed());
    lives().await;
}

#[tokio::test]
async fn a_query_without_an_open_unit_of_work_is_no_fault_of_the_plugin() {
    let module = load("probes/query").await;
    assert_eq!(failed(module.run(attempt()).await).class, Class::Infrastructure);
    let (port, lane) = port();
    drop(lane);
    assert_eq!(failed(module.run(with_queries(port)).await).class, Class::Infrastructure);
}
