//! Version 1 of the contract: what wit-bindgen makes of `wit/handler-v1`, and the way to and from the host's own words.

use oncebox_core::{message::Header, value::Value};

use super::attempt::{Event, Rows};

mod generated {
    wasmtime::component::bindgen!({
        path: "../wit/handler-v1",
        world: "handler",
        imports: {
            "oncebox:handler/db.query": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

pub(super) use generated::{
    Handler, HandlerPre,
    oncebox::handler::{config, context, db, events, log, types},
};

/// The export that makes a component a handler.
pub(super) const GUEST: &str = "oncebox:handler/guest@1.0.0";
/// The package of the contract, without its version.
pub(super) const PACKAGE: &str = "oncebox:handler/";

impl From<&Event> for types::Event {
    fn from(event: &Event) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.event_type.clone(),
            ce_source: event.ce_source.clone(),
            subject: event.subject.clone(),
            time: event.time.clone(),
            business_key: event.business_key.clone(),
            ordering_key: event.ordering_key.clone(),
            content_type: event.content_type.clone(),
            schema: event.schema.clone(),
            attributes: event.attributes.clone(),
            headers: event
                .headers
                .iter()
                .map(|header| types::Header { name: header.name.clone(), value: header.value.clone() })
                .collect(),
            payload: event.payload.to_vec(),
        }
    }
}

impl From<types::Header> for Header {
    fn from(header: types::Header) -> Self {
        Self { name: header.name, value: header.value }
    }
}

impl From<types::Value> for Value {
    fn from(value: types::Value) -> Self {
        match value {
            types::Value::Null => Self::Null,
            types::Value::Boolean(truth) => Self::Boolean(truth),
            types::Value::Signed(number) => Self::Signed(number),
            types::Value::Unsigned(number) => Self::Unsigned(number),
            types::Value::Float(number) => Self::Float(number),
            types::Value::Decimal(text) => Self::Decimal(text),
            types::Value::Text(text) => Self::Text(text),
            types::Value::Bytes(bytes) => Self::Bytes(bytes),
            types::Value::Date(text) => Self::Date(text),
            types::Value::Time(text) => Self::Time(text),
            types::Value::Datetime(text) => Self::Datetime(text),
            types::Value::Json(text) => Self::Json(text),
        }
    }
}

impl From<Value> for types::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(truth) => Self::Boolean(truth),
            Value::Signed(number) => Self::Signed(number),
            Value::Unsigned(number) => Self::Unsigned(number),
            Value::Float(number) => Self::Float(number),
            Value::Decimal(text) => Self::Decimal(text),
            Value::Text(text) => Self::Text(text),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Date(text) => Self::Date(text),
            Value::Time(text) => Self::Time(text),
            Value::Datetime(text) => Self::Datetime(text),
            Value::Json(text) => Self::Json(text),
        }
    }
}

impl From<Rows> for db::Rows {
    fn from(rows: Rows) -> Self {
        let row = |values: Vec<Value>| values.into_iter().map(types::Value::from).collect();
        Self { columns: rows.columns, data: rows.data.into_iter().map(row).collect() }
    }
}
