//! The SQL gate.
