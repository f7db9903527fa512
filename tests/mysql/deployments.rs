//! Deployments of several hosts and people at once.

use oncebox::store::{DeploymentState, StoreError};

use crate::bench::{Bench, offer};

pub(crate) async fn one_of_two_hosts_activates(bench: Bench) {
    bench.ready().await;
    let (one, other) = (bench.host().await, bench.host().await);
    let handler = one.handler_ensure("points").await.unwrap();
    let mut last = None;
    for digest in 1..=8 {
        let offered = offer(one.as_ref(), handler, digest, b"module").await.unwrap();
        let (first, second) = tokio::join!(one.deployment_activate(&offered), other.deployment_activate(&offered));
        first.unwrap();
        second.unwrap();
        let serving = other.deployments().await.unwrap();
        assert_eq!(serving.len(), 1);
        assert_eq!((serving[0].id, serving[0].state), (offered.id, DeploymentState::Active));
        let replaces = format!("SELECT replaces FROM ob_deployment WHERE deployment_id = {}", offered.id);
        if let Some(last) = last {
            assert_eq!(bench.database.number(&format!("SELECT CAST(({replaces}) AS SIGNED)")), last);
        }
        last = Some(offered.id.0);
    }
}

pub(crate) async fn two_offers_at_once_leave_one_offered(bench: Bench) {
    bench.ready().await;
    let (one, other) = (bench.host().await, bench.host().await);
    let handler = one.handler_ensure("points").await.unwrap();
    for round in 0..8u8 {
        // The same module twice, and two different ones, in turns.
        let (a, b) = (2 * round + 1, if round % 2 == 0 { 2 * round + 1 } else { 2 * round + 2 });
        let (first, second) =
            tokio::join!(offer(one.as_ref(), handler, a, b"module"), offer(other.as_ref(), handler, b, b"module"));
        let newest = first.unwrap().id.max(second.unwrap().id);
        let offered = one.deployments().await.unwrap();
        assert_eq!(offered.len(), 1, "{offered:?}");
        assert_eq!((offered[0].id, offered[0].state), (newest, DeploymentState::Offered));
    }
    // The rule of all of them is kept once.
    assert_eq!(one.rules(handler).await.unwrap().len(), 1);
    assert_eq!(bench.database.number("SELECT COUNT(*) FROM ob_audit"), 16);
}

pub(crate) async fn a_large_module_comes_back_and_a_failed_offer_leaves_nothing(bench: Bench) {
    bench.ready().await;
    let store = bench.host().await;
    let handler = store.handler_ensure("points").await.unwrap();
    let module: Vec<u8> = (0..(5u32 << 20) + 1).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect();
    let user = &bench.database.runtime.name;
    let audit = format!("INSERT ON {}.ob_audit", bench.database.name);
    bench.database.execute(&format!("REVOKE {audit} FROM '{user}'@'%'"));
    let error = offer(store.as_ref(), handler, 1, &module).await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    for table in ["ob_module", "ob_module_chunk", "ob_rule", "ob_deployment", "ob_audit"] {
        assert_eq!(bench.database.number(&format!("SELECT COUNT(*) FROM {table}")), 0, "{table}");
    }
    bench.database.grant(&audit);
    let offered = offer(store.as_ref(), handler, 1, &module).await.unwrap();
    let read = store.module_read(offered.digest).await.unwrap().unwrap();
    assert!(read == module, "{} bytes of {}", read.len(), module.len());
    assert_eq!(bench.database.number("SELECT COUNT(*) FROM ob_module_chunk"), 6);
    assert_eq!(bench.database.lines("SELECT actor FROM ob_audit"), ["ann"]);
}
