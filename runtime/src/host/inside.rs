//! The run of an event whose handler has queries: inside the open unit of work, so that it sees what earlier events of
//! the batch have written.

use std::pin::pin;

use oncebox_core::{
    failure::{Class, Failure},
    manifest::Integers,
    value::Value,
};
use tokio::sync::mpsc;

use super::{
    delivery::{Delivery, Target},
    handler::{Deployed, Handler, ReadyQuery},
    lane::LaneContext,
    run::{Attempted, attempt},
};
use crate::{
    clock,
    plugin::{Outcome, QueryFault, QueryPort, QueryRequest, Rows},
    store::{StoreError, UnitOfWork},
};

/// Runs the event; its queries are answered from the unit.
///
/// # Errors
/// The database is away: the whole unit is done again, nothing is counted.
pub(super) async fn run(
    lane: &LaneContext,
    unit: &mut dyn UnitOfWork,
    delivery: &Delivery,
) -> Result<Attempted, StoreError> {
    let Target::Handler(handler, deployed) = &delivery.target else {
        let failure = Failure::new(Class::NoRoute, "no-route", "no route takes it");
        return Ok(Attempted { outcome: Outcome::Failed(failure), started_us: 0, ended_us: 0 });
    };
    let (began, started_us) = (clock::monotonic(), clock::now_us());
    if deployed.asks_last_insert_id() {
        unit.last_insert_id_reset().await?;
    }
    let outcome = answering(lane, unit, delivery, handler, deployed).await?;
    if began.elapsed() < lane.tenant.settings.slow_run {
        handler.was_quick();
    } else {
        handler.was_slow();
    }
    Ok(Attempted { outcome, started_us, ended_us: clock::now_us() })
}

async fn answering(
    lane: &LaneContext,
    unit: &mut dyn UnitOfWork,
    delivery: &Delivery,
    handler: &Handler,
    deployed: &Deployed,
) -> Result<Outcome, StoreError> {
    let (port, mut asked) = mpsc::channel(1);
    let mut run = pin!(deployed.module.run(attempt(lane, handler, deployed, delivery, Some(QueryPort(port)))));
    loop {
        tokio::select! {
            biased;
            Some(request) = asked.recv() => {
                if let Some(waited) = answer(unit, deployed, request).await? {
                    return Ok(Outcome::Failed(waited));
                }
            }
            outcome = &mut run => return Ok(outcome),
        }
    }
}

/// Answers a query; a failure ends the run, which would wait for its answer: a lock was not to be had in time.
async fn answer(
    unit: &mut dyn UnitOfWork,
    deployed: &Deployed,
    request: QueryRequest,
) -> Result<Option<Failure>, StoreError> {
    let QueryRequest { name, params, reply } = request;
    let result = match deployed.queries.get(&name) {
        None => Err(Failure::new(Class::Abi, "unknown-query", format!("query `{name}` is unknown"))),
        Some(query) => match unit.query(&query.sql, &params, query.rows_max).await {
            Ok(found) => rows(&name, query, found.columns, found.rows),
            Err(error) if error.class == Class::Infrastructure => {
                let what = format!("query `{name}`");
                return error.lock_wait(&what).map(Some).ok_or_else(|| error.store_error(&what));
            }
            Err(error) => Err(error.failure(&name)),
        },
    };
    // A run that is over its time does not hear the answer any more.
    let _ = reply.send(result.map_err(QueryFault::Failed));
    Ok(None)
}

fn rows(name: &str, query: &ReadyQuery, columns: Vec<String>, data: Vec<Vec<Value>>) -> Result<Rows, Failure> {
    if data.len() > query.rows_max as usize {
        let message = format!("query `{name}` has more than {} rows (its rows_max in the manifest)", query.rows_max);
        return Err(Failure::new(Class::Quota, "query-rows", message));
    }
    let bytes: u64 = data.iter().flatten().map(|value| value.bytes() as u64).sum();
    if bytes > query.bytes_max {
        let message = format!(
            "query `{name}` has {bytes} bytes, the limit is {} (its bytes_max in the manifest)",
            query.bytes_max
        );
        return Err(Failure::new(Class::Quota, "query-bytes", message));
    }
    let data = match query.integers {
        Integers::Number => data,
        Integers::Text => data.into_iter().map(|row| row.into_iter().map(as_text).collect()).collect(),
    };
    Ok(Rows { columns, data })
}

fn as_text(value: Value) -> Value {
    match value {
        Value::Signed(number) => Value::Text(number.to_string()),
        Value::Unsigned(number) => Value::Text(number.to_string()),
        Value::Null
        | Value::Boolean(_)
        | Value::Float(_)
        | Value::Decimal(_)
        | Value::Text(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::Datetime(_)
        | Value::Json(_) => value,
    }
}
