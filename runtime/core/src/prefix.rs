//! The contiguous decided prefix of a source's deliveries.
