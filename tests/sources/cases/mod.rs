pub(crate) mod acks;
pub(crate) mod at_risk;
pub(crate) mod common;
pub(crate) mod faults;
pub(crate) mod message;
pub(crate) mod order;
pub(crate) mod tls;
