//! Modules, deployments and rules.

use oncebox::store::{Deployment, DeploymentOffer, DeploymentState};
use oncebox_core::{
    ids::ModuleDigest,
    manifest::{FingerprintSpec, Manifest},
    rule::Rule,
    value::Value,
};

use crate::bench::Bench;

const MANIFEST: &str = r#"
name = "points"
version = "1.2.3"
contract = "1.0"
description = "Awards points"
event_types = []
key = "order:{/orderId}"
fingerprint = "payload"
"#;

fn rule(key: &str) -> Rule {
    Rule::parse(key, &FingerprintSpec::Payload, None).unwrap()
}

async fn offer(bench: &Bench, digest: u8, module: &[u8], rule: &Rule) -> Deployment {
    let manifest = Manifest::parse(MANIFEST, "handler.toml").unwrap();
    let offer = DeploymentOffer {
        handler: bench.handler,
        module,
        digest: ModuleDigest([digest; 32]),
        manifest: &manifest,
        manifest_text: MANIFEST,
        rule,
        actor: "ann",
        action: "deploy",
    };
    bench.store.deployment_offer(offer).await.unwrap()
}

async fn states(bench: &Bench) -> Vec<(i64, DeploymentState)> {
    let deployments = bench.store.deployments().await.unwrap();
    deployments.iter().map(|deployment| (deployment.id.0, deployment.state)).collect()
}

pub(crate) async fn a_module_comes_back_byte_for_byte(bench: Bench) {
    // Two whole chunks of 1 MiB, one of them ending in NUL, and a rest of one byte.
    let module: Vec<u8> = (0..(2u32 << 20) + 1).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect();
    offer(&bench, 1, &module, &rule("{/id}")).await;
    // The same module again is kept once.
    offer(&bench, 1, &module, &rule("{/id}")).await;
    let read = bench.store.module_read(ModuleDigest([1; 32])).await.unwrap().unwrap();
    assert!(read == module, "{} bytes of {}", read.len(), module.len());
    assert_eq!(bench.number("SELECT count(*) FROM ob_module_chunk").await, 3);
    assert_eq!(bench.store.module_read(ModuleDigest([2; 32])).await.unwrap(), None);
}

pub(crate) async fn a_deployment_is_offered_then_active_then_replaced(bench: Bench) {
    let first = offer(&bench, 1, b"one", &rule("{/id}")).await;
    assert_eq!((first.state, first.version.as_str(), first.active_from_us), (DeploymentState::Offered, "1.2.3", None));
    assert_eq!(bench.store.deployments().await.unwrap(), std::slice::from_ref(&first));
    bench.store.deployment_activate(&first).await.unwrap();
    let active = &bench.store.deployments().await.unwrap()[0];
    assert_eq!((active.state, active.digest), (DeploymentState::Active, first.digest));
    assert!(active.active_from_us >= Some(first.created_us));
    let second = offer(&bench, 2, b"two", &rule("{/id}")).await;
    let both = [(first.id.0, DeploymentState::Active), (second.id.0, DeploymentState::Offered)];
    assert_eq!(states(&bench).await, both);
    bench.store.deployment_activate(&second).await.unwrap();
    assert_eq!(states(&bench).await, [(second.id.0, DeploymentState::Active)]);
    // Activated twice: nothing changes.
    bench.store.deployment_activate(&second).await.unwrap();
    assert_eq!(states(&bench).await, [(second.id.0, DeploymentState::Active)]);
    let all = bench.rows("SELECT deployment_id, state, replaces FROM ob_deployment ORDER BY deployment_id").await;
    let number = Value::Signed;
    let expected = [[number(first.id.0), number(4), Value::Null], [number(second.id.0), number(1), number(first.id.0)]];
    assert_eq!(all, expected);
    let audit = bench.rows("SELECT actor, action, handler_id FROM ob_audit").await;
    let expected = [Value::Text("ann".into()), Value::Text("deploy".into()), number(bench.handler.0)];
    assert_eq!(audit, [expected.clone(), expected]);
}

pub(crate) async fn an_offer_that_nobody_served_is_overtaken(bench: Bench) {
    let first = offer(&bench, 1, b"one", &rule("{/id}")).await;
    let second = offer(&bench, 2, b"two", &rule("{/id}")).await;
    assert_eq!(states(&bench).await, [(second.id.0, DeploymentState::Offered)]);
    // A host that had begun to load the first one comes too late.
    bench.store.deployment_activate(&first).await.unwrap();
    bench.store.deployment_refuse(&first, "too late").await.unwrap();
    assert_eq!(states(&bench).await, [(second.id.0, DeploymentState::Offered)]);
    assert_eq!(bench.number("SELECT count(*) FROM ob_deployment WHERE reason IS NOT NULL").await, 0);
}

pub(crate) async fn a_refused_deployment_keeps_its_reason_and_does_not_bind_the_rule(bench: Bench) {
    let (good, bad) = (rule("{/id}"), rule("{/other}"));
    assert_eq!(bench.store.rule_current(bench.handler).await.unwrap(), None);
    let first = offer(&bench, 1, b"one", &good).await;
    bench.store.deployment_activate(&first).await.unwrap();
    let second = offer(&bench, 2, b"two", &bad).await;
    assert_eq!(bench.store.rule_current(bench.handler).await.unwrap(), Some((second.rule, bad)));
    bench.store.deployment_refuse(&second, "no such table: points").await.unwrap();
    assert_eq!(states(&bench).await, [(first.id.0, DeploymentState::Active)]);
    assert_eq!(bench.store.rule_current(bench.handler).await.unwrap(), Some((first.rule, good)));
    let reasons = bench.rows("SELECT reason FROM ob_deployment WHERE state = 5").await;
    assert_eq!(reasons, [[Value::Text("no such table: points".into())]]);
}

pub(crate) async fn an_equal_rule_is_kept_once_and_every_rule_is_kept(bench: Bench) {
    let pointers = FingerprintSpec::Pointers(vec!["/a".into(), "/b".into()]);
    let ordered = Rule::parse("{/id}", &pointers, Some("{/user}")).unwrap();
    let first = offer(&bench, 1, b"one", &rule("{/id}")).await;
    let second = offer(&bench, 2, b"two", &ordered).await;
    let third = offer(&bench, 3, b"three", &rule("{/id}")).await;
    assert_eq!(first.rule, third.rule);
    let rules = bench.store.rules(bench.handler).await.unwrap();
    assert_eq!(rules, [(first.rule, rule("{/id}")), (second.rule, ordered)]);
    // Another handler with the same rule has a row of its own.
    let other = bench.store.handler_ensure("other").await.unwrap();
    assert_eq!(bench.store.rules(other).await.unwrap(), []);
}
