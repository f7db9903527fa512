//! The pages of the docs that are scripts, run as they stand on real servers (`cargo services up`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod examples;
mod first_queue;
mod held;
mod rabbitmq;
mod servers;

use oncebox_tests::wat::{source, wat_component};

/// A handler that adds points, without any toolchain.
fn good_module() -> Vec<u8> {
    wat_component(&source("probes/good"), MANIFEST)
}

const MANIFEST: &str = r#"
name = "award"
version = "1.0.0"
contract = "1.0"
event_types = ["order.paid"]
key = "order:{/orderId}"
fingerprint = ["/amount"]

[tables]
points_account = "write"

[statements.award]
sql = "UPDATE points_account SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1
mismatch = { reject = "no-account" }

[destinations.out]
"#;
