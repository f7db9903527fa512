//! Exact decimals in canonical form.
