//! The life of a delivery.
