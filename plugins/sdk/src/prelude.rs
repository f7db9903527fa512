//! What a handler's file needs: `use oncebox_sdk::prelude::*;`.

pub use crate::{
    Date, Datetime, Decimal, Done, Event, Failure, Handler, Json, Null, Outgoing, Row, Rows, Time, Value, context, log,
};
