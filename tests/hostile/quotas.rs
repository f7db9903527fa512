//! Quotas: what is staged, called, logged and handed back.

use std::sync::{Arc, Mutex};

use oncebox::plugin::Outcome;
use oncebox_core::failure::Class;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::sandbox::{attempt, dies, load};

#[tokio::test]
async fn a_flood_of_staged_rows_ends_at_its_quota() {
    let failure = dies("hostile/stage_flood", Class::Quota, "staged-rows").await;
    assert_eq!(failure.message, "db.stage `award` is one row over staged_rows_max, 100");
    assert!(failure.backtrace.is_some());
}

#[tokio::test]
async fn a_flood_of_staged_bytes_ends_at_its_quota() {
    let failure = dies("hostile/stage_flood_bytes", Class::Quota, "staged-bytes").await;
    // One write: name 4, value 10,000, overhead 32, so six are 60,216 and the seventh is over 65,536.
    assert_eq!(failure.message, "db.stage `note` would stage 70252 bytes in all, staged_bytes_max is 65536");
}

#[tokio::test]
async fn a_flood_of_events_ends_at_its_quota() {
    let failure = dies("hostile/emit_flood", Class::Quota, "events").await;
    assert_eq!(failure.message, "events.emit `out` is one event over events_max, 10");
}

#[tokio::test]
async fn a_flood_of_calls_ends_at_its_quota() {
    let failure = dies("hostile/call_flood", Class::Quota, "host-calls").await;
    assert_eq!(failure.message, "context.now-us is one call over host_calls_max, 1000");
}

#[tokio::test]
async fn a_result_over_its_limit_is_refused() {
    let failure = dies("hostile/big_result", Class::Quota, "result-bytes").await;
    assert_eq!(failure.message, "the result has 2000 bytes, result_bytes_max is 1024");
}

#[tokio::test]
async fn a_call_that_hands_over_too_much_at_once_is_refused_before_it_is_copied() {
    dies("hostile/big_call", Class::Quota, "transfer-bytes").await;
    dies("hostile/alias_flood", Class::Quota, "transfer-bytes").await;
}

#[tokio::test]
async fn a_call_for_too_many_random_bytes_is_refused() {
    dies("hostile/big_random", Class::Quota, "random-bytes").await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_log_lines_is_dropped_and_counted_and_costs_the_event_nothing() {
    let module = load("hostile/log_flood").await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let guard = tracing::subscriber::set_default(Ear(Arc::clone(&heard)));
    let outcome = module.run(attempt()).await;
    drop(guard);
    assert!(matches!(outcome, Outcome::Applied { .. }), "{outcome:#?}");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 21, "{heard:#?}");
    assert_eq!(heard[0], "tenant=acme handler=points key=order:42 attempt=1 all is well");
    assert_eq!(
        heard[20],
        "tenant=acme handler=points key=order:42 attempt=1 dropped=4980 log lines dropped, log_lines_max is 20"
    );
}

/// Keeps the events of target `plugin`.
struct Ear(Arc<Mutex<Vec<String>>>);

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "plugin"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        words.fields.push(words.message);
        self.0.lock().unwrap().push(words.fields.join(" "));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Words {
    fields: Vec<String>,
    message: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push(format!("{field}={value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.push(format!("{field}={value:?}"));
        }
    }
}
