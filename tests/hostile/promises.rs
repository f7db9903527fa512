//! What every plugin may rely on: the same input gives the same answer, and nothing is left of a run.

use std::{sync::Arc, time::Duration};

use oncebox::plugin::{Outcome, StagedWrite};
use oncebox_core::{failure::Class, identify::outgoing_event_id, ids::BusinessKey, value::Value};

use crate::sandbox::{attempt, failed, load, result, with_payload};

#[tokio::test]
async fn the_same_attempt_twice_has_the_same_outcome() {
    let module = load("probes/good").await;
    let first = module.run(attempt()).await;
    let mut again = attempt();
    again.context.attempt = 2;
    assert_eq!(module.run(again).await, first);
    let Outcome::Applied { writes, events, .. } = &first else { panic!("{first:#?}") };
    let params = vec![Value::Signed(7), Value::Unsigned(42)];
    assert_eq!(writes, &[StagedWrite { statement: "award".into(), params }]);
    assert_eq!((events[0].destination.as_str(), events[0].position), ("out", 0));
    assert_eq!((events[0].event_type.as_str(), events[0].payload.as_slice()), ("points.awarded", b"award".as_slice()));

    let event_id = outgoing_event_id("acme", "points", &BusinessKey::new(b"order:42".as_slice()), 0, 0);
    assert_eq!(events[0].event_id, event_id);

    let mut other = attempt();
    other.context.generation = 1;
    let other = module.run(other).await;
    assert_ne!(result(other.clone()), result(first.clone()));
    let Outcome::Applied { events: others, .. } = other else { panic!("{other:#?}") };
    assert_ne!(others[0].event_id, events[0].event_id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_static_is_as_new_for_every_event() {
    let module = load("probes/good").await;
    let runs: Vec<_> = (0..200).map(|_| tokio::spawn(module.run(attempt()))).collect();
    for run in runs {
        assert_eq!(result(run.await.unwrap())[0], 1);
    }
}

#[tokio::test]
async fn a_trap_ends_its_own_event_only() {
    let module = load("probes/echo").await;
    let before = module.run(with_payload(b"before")).await;
    let trap = module.run(with_payload(b"!")).await;
    let after = module.run(with_payload(b"after")).await;
    assert_eq!(failed(trap).class, Class::Trap);
    assert_eq!((result(before), result(after)), (b"before".to_vec(), b"after".to_vec()));
}

#[tokio::test]
async fn a_skipped_event_has_a_reason_and_nothing_staged() {
    let outcome = load("probes/skip").await.run(attempt()).await;
    assert_eq!(outcome, Outcome::Skipped { reason: "not for us".into() });
}

#[tokio::test]
async fn a_retry_and_a_reject_carry_the_plugins_words() {
    let retry = failed(load("probes/retry").await.run(attempt()).await);
    assert_eq!((retry.class, retry.message.as_str()), (Class::GuestRetry, "rates not loaded"));
    assert_eq!(retry.after, Some(Duration::from_millis(1500)));
    let reject = failed(load("probes/reject").await.run(attempt()).await);
    assert_eq!((reject.class, reject.code.as_str()), (Class::GuestReject, "no-such-user"));
    assert_eq!(reject.message, "user 7 is not known");
}

#[tokio::test]
async fn config_is_the_operators_value_or_the_manifests_default() {
    let module = load("probes/config").await;
    assert_eq!(result(module.run(attempt()).await), b"3");
    let mut configured = attempt();
    configured.config = Arc::new([("rate".to_owned(), "5".to_owned())].into());
    assert_eq!(result(module.run(configured).await), b"5");
}
