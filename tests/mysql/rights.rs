//! The documented rights, and what is said when one is missing.

use std::time::Duration;

use oncebox::store::{HeldFilter, StartEnd, StoreError, Use};
use oncebox_core::{
    blame::Start,
    ids::{BootId, BusinessKey, LeaseToken, MessageHash},
};

use crate::bench::{Bench, message, offer, open};

/// Everything of the seam outside units of work, once. The suite does the same with lanes.
pub(crate) async fn the_documented_rights_are_enough_and_none_is_missing_for_the_admin_side(bench: Bench) {
    bench.ready().await;
    let migrated = bench.migrate().await.unwrap();
    assert_eq!((migrated.is_procedure_made, migrated.missing), (false, None));
    let store = bench.host().await;
    assert_eq!(store.migrate().await.unwrap(), 2);
    let boot = BootId([1; 16]);
    assert!(!store.host_is_live().await.unwrap());
    store.boot_insert(boot, "here").await.unwrap();
    store.boot_beat(boot, "here", false).await.unwrap();
    assert!(store.host_is_live().await.unwrap());
    assert_eq!(store.boots_live(Duration::from_secs(60)).await.unwrap().len(), 1);
    assert!(store.now_us().await.unwrap() > 1_767_225_600_000_000);
    assert_ne!(store.tenant_secret().await.unwrap(), [0; 32]);
    let handler = store.handler_ensure("points").await.unwrap();
    assert_eq!(store.handler_ensure("points").await.unwrap(), handler);
    store.handler_block(handler, Some("why")).await.unwrap();
    assert_eq!(store.handlers_blocked().await.unwrap()[0].reason, "why");
    store.handler_block(handler, None).await.unwrap();
    assert_eq!(store.handlers().await.unwrap().len(), 1);
    let deployment = offer(store.as_ref(), handler, 1, b"module").await.unwrap();
    store.deployment_answer(deployment.id, boot, Err("not yet")).await.unwrap();
    store.deployment_answer(deployment.id, boot, Ok(())).await.unwrap();
    assert_eq!(store.deployment_answers(deployment.id).await.unwrap()[0].answer, Ok(()));
    store.deployment_activate(&deployment).await.unwrap();
    let other = offer(store.as_ref(), handler, 2, b"other").await.unwrap();
    store.deployment_refuse(&other, "no").await.unwrap();
    assert_eq!(store.deployments().await.unwrap().len(), 1);
    assert_eq!(store.module_read(deployment.digest).await.unwrap().unwrap(), b"module");
    assert_eq!(store.rules(handler).await.unwrap().len(), 1);
    assert!(store.rule_current(handler).await.unwrap().is_some());
    let (token, lease) = (LeaseToken([1; 16]), Duration::from_secs(60));
    assert_eq!(store.local_offer("orders", &[message(b"1"), message(b"2")]).await.unwrap(), 2);
    let taken = store.local_claim("orders", 9, token, lease).await.unwrap();
    assert_eq!(taken.len(), 2);
    store.local_renew(&[token], lease).await.unwrap();
    store.local_settle(&[(taken[0].id, token), (taken[1].id, LeaseToken([2; 16]))]).await.unwrap();
    assert_eq!(store.gauges().await.unwrap().local, [("orders".to_owned(), 1)]);
    let start = Start { boot, at_us: 1 };
    let hashes = [MessageHash([1; 32]), MessageHash([2; 32])];
    assert_eq!(store.start_insert("orders", &hashes, start).await.unwrap(), []);
    assert_eq!(store.start_insert("orders", &hashes, start).await.unwrap().len(), 2);
    assert_eq!(store.boot_lives(&[boot]).await.unwrap().len(), 1);
    store.start_end(&[StartEnd { message: ("orders".into(), hashes[0]), handler: None }]).await.unwrap();
    assert_eq!(store.held_due().await.unwrap(), []);
    assert_eq!(store.held_claim(handler, 9, token, lease, start).await.unwrap(), []);
    assert_eq!(store.held_list(&HeldFilter { limit: 9, ..HeldFilter::default() }).await.unwrap(), []);
    assert_eq!(store.tallies().await.unwrap(), []);
    assert_eq!(store.trace(handler, &BusinessKey::new("k")).await.unwrap().inbox, None);
    assert!(store.catalogue().await.unwrap().complete);
    store.schema_version().await.unwrap();
    assert_eq!(store.unfit_tables(&["points"]).await.unwrap(), []);
    store.boot_end(boot).await.unwrap();
    assert!(!store.host_is_live().await.unwrap());
    // The second wall: the user may not define anything, nor touch a table that was not granted.
    for sql in ["CREATE TABLE x (n INT)", "DROP TABLE ob_meta", "SELECT * FROM secret"] {
        bench.database.execute("CREATE TABLE IF NOT EXISTS secret (n INT PRIMARY KEY)");
        let error = bench.as_runtime(sql).await.unwrap_err();
        assert!(error.contains("denied"), "{sql}: {error}");
    }
    store.close().await;
}

pub(crate) async fn without_the_right_to_execute_the_host_is_refused_with_the_statement_to_grant_it(bench: Bench) {
    bench.ready().await;
    let (name, user) = (bench.database.name.clone(), bench.database.runtime.name.clone());
    bench.database.execute(&format!("REVOKE EXECUTE ON PROCEDURE {name}.ob_catalogue FROM '{user}'@'%'"));
    let grant = format!("GRANT EXECUTE ON PROCEDURE `{name}`.ob_catalogue TO '{user}'@'%'");
    let error = open(&bench.settings(), Use::Host).await.err().unwrap();
    assert!(matches!(error, StoreError::Catalogue { .. }), "{error}");
    assert!(error.to_string().contains(&grant), "{error}");
    assert_eq!(error.exit().number(), 9);
    // A command that asks nothing of the gate works; one that does is told the same.
    let command = bench.command().await.unwrap();
    assert_eq!(command.handlers().await.unwrap().len(), 0);
    assert_eq!(command.catalogue().await.unwrap_err().to_string(), error.to_string());
    assert_eq!(command.schema_version().await.unwrap_err().to_string(), error.to_string());
    // And whoever migrates.
    assert_eq!(bench.migrate().await.unwrap().missing, Some(error.to_string()));
    // What it says is enough, for the same store too.
    bench.database.execute(&grant);
    assert!(command.catalogue().await.unwrap().complete);
    bench.host().await;
}

pub(crate) async fn a_procedure_that_is_gone_or_whose_maker_is_gone_is_refused_and_made_again(bench: Bench) {
    bench.ready().await;
    bench.database.execute("DROP PROCEDURE ob_catalogue");
    // To one who has no right on it the server says no more than that; this one has it on all procedures.
    let error = bench.command().await.unwrap().catalogue().await.unwrap_err();
    assert!(error.to_string().contains("run `oncebox migrate` first"), "{error}");
    bench.database.grant(&format!("EXECUTE ON {}.*", bench.database.name));
    let command = bench.command().await.unwrap();
    let error = command.catalogue().await.unwrap_err();
    assert!(matches!(error, StoreError::Catalogue { .. }), "{error}");
    assert!(error.to_string().contains("run `oncebox migrate`"), "{error}");
    assert!(bench.migrate().await.unwrap().is_procedure_made);
    assert!(command.catalogue().await.unwrap().complete);
    // The maker goes.
    let maker = &bench.database.migrate;
    bench.database.execute(&format!("DROP USER '{}'@'%'", maker.name));
    let error = command.catalogue().await.unwrap_err();
    assert!(matches!(error, StoreError::Catalogue { .. }), "{error}");
    assert!(error.to_string().contains("is gone: run `oncebox migrate`"), "{error}");
    bench.database.execute(&format!("CREATE USER '{}'@'%' IDENTIFIED BY '{}'", maker.name, maker.password));
    bench.documented("CREATE DATABASE");
    // The same name again is the same maker.
    assert!(!bench.migrate().await.unwrap().is_procedure_made);
    assert!(command.catalogue().await.unwrap().complete);
}

pub(crate) async fn what_the_maker_of_the_procedure_may_not_see_is_refused(bench: Bench) {
    bench.ready().await;
    let (name, maker) = (bench.database.name.clone(), bench.database.migrate.name.clone());
    let command = bench.command().await.unwrap();
    let own = format!("TRIGGER ON `{name}`.*");
    for (right, place, shown) in [("PROCESS", "*.*", "PROCESS ON *.*"), ("TRIGGER", &format!("{name}.*"), own.as_str())]
    {
        bench.database.execute(&format!("REVOKE {right} ON {place} FROM '{maker}'@'%'"));
        let error = command.catalogue().await.unwrap_err();
        assert!(matches!(error, StoreError::Catalogue { .. }), "{error}");
        assert!(error.to_string().contains(&format!("GRANT {shown}")), "{error}");
        assert!(error.to_string().contains(&format!("'{maker}'@'%'")), "{error}");
        bench.database.execute(&format!("GRANT {right} ON {place} TO '{maker}'@'%'"));
        command.catalogue().await.unwrap();
    }
}

pub(crate) async fn a_table_that_the_user_may_not_use_is_named(bench: Bench) {
    bench.ready().await;
    let (name, user) = (bench.database.name.clone(), bench.database.runtime.name.clone());
    bench.database.execute(&format!("REVOKE SELECT, INSERT, UPDATE ON {name}.ob_boot FROM '{user}'@'%'"));
    let store = bench.command().await.unwrap();
    let error = store.host_is_live().await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("ob_boot") && error.to_string().contains("docs/mysql.md"), "{error}");
    assert_eq!((error.exit().number(), error.is_away()), (9, false));
}
