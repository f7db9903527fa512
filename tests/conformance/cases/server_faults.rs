//! A server that goes away, at every moment.

use std::time::Duration;

use oncebox::store::{InboxMark, Lane, NewAttempt, Savepoint, Store, StoreError, UnitOfWork};
use oncebox_core::{
    failure::Class,
    ids::{BootId, BusinessKey},
    life::{InboxState, Verdict},
    value::Value,
};
use oncebox_tests::{
    proxy::{Message, Plan, Protocol, Proxy, Then},
    services::PrivateServer,
    tenant_database::TenantDatabase,
};

use crate::bench::{Bench, message, token_of};

const CALL_TIME: Duration = Duration::from_secs(30);

async fn unit_of<'a>(bench: &Bench, lane: &'a mut Box<dyn Lane>, token: u8) -> Box<dyn UnitOfWork + 'a> {
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(token), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 1)".into(), &[]).await.unwrap();
    unit.release(Savepoint::Marks).await.unwrap();
    unit
}

pub(crate) async fn a_commit_whose_answer_is_lost_is_seen_by_the_next_try(bench: Bench) {
    let proxy = Proxy::start(&bench.tenant().database.server().address(), Protocol::Mysql);
    let store = bench.tenant().open_through(&proxy, CALL_TIME).await.unwrap();
    let mut lane = store.lane().await.unwrap();
    let unit = unit_of(&bench, &mut lane, 1).await;
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutAfter });
    let error = unit.commit().await.unwrap_err();
    assert!(matches!(error, StoreError::Away { .. }) && proxy.is_done(), "{error}");
    // Again, with a new token: the key waits for the old transaction, if it still lives, and shows the truth.
    let mut unit = lane.begin().await.unwrap();
    let rows = unit.inbox_insert(token_of(2), &[bench.new_inbox("k")]).await.unwrap();
    assert_eq!((rows[0].token, rows[0].state), (token_of(1), InboxState::Applied));
    unit.commit().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM points").await, 1);
}

pub(crate) async fn a_commit_that_never_arrived_has_done_nothing(bench: Bench) {
    let proxy = Proxy::start(&bench.tenant().database.server().address(), Protocol::Mysql);
    let store = bench.tenant().open_through(&proxy, CALL_TIME).await.unwrap();
    let mut lane = store.lane().await.unwrap();
    let unit = unit_of(&bench, &mut lane, 1).await;
    proxy.plan(Plan { at: Message::Statement("COMMIT"), then: Then::CutBefore });
    let error = unit.commit().await.unwrap_err();
    assert!(matches!(error, StoreError::Away { .. }) && proxy.is_done(), "{error}");
    drop(unit_of(&bench, &mut lane, 2).await);
    let mut unit = lane.begin().await.unwrap();
    let rows = unit.inbox_insert(token_of(3), &[bench.new_inbox("k")]).await.unwrap();
    assert_eq!(rows[0].token, token_of(3));
    unit.rollback().await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM points").await, 0);
}

/// The old transaction is still open on the server while the batch is done again.
pub(crate) async fn a_batch_that_is_done_again_waits_for_its_old_transaction(bench: Bench) {
    for is_committed in [true, false] {
        let mut old_lane = bench.lane().await;
        let old = unit_of(&bench, &mut old_lane, 1).await;
        let (store, row) = (bench.tenant().open_patient().await.unwrap(), bench.new_inbox("k"));
        let again = tokio::spawn(async move {
            let mut lane = store.lane().await.unwrap();
            let mut unit = lane.begin().await.unwrap();
            let rows = unit.inbox_insert(token_of(2), &[row]).await.unwrap();
            unit.rollback().await.unwrap();
            rows[0].token
        });
        bench.tenant().waiting(1);
        if is_committed {
            old.commit().await.unwrap();
        } else {
            old.rollback().await.unwrap();
        }
        assert_eq!(again.await.unwrap(), token_of(if is_committed { 1 } else { 2 }));
        bench.run("DELETE FROM ob_inbox WHERE handler_id > 0").await;
        bench.run("DELETE FROM points WHERE user_id > 0").await;
    }
}

/// One step of a unit, by number; `None`: there are no more.
async fn step(bench: &Bench, unit: &mut dyn UnitOfWork, at: usize) -> Option<Result<(), StoreError>> {
    let mark = InboxMark {
        handler: bench.handler,
        key: BusinessKey::new("k"),
        state: InboxState::Parked,
        deployment: None,
        attempts: 1,
        code: None,
        result: None,
    };
    let attempt = NewAttempt {
        held: oncebox::store::HeldId(1),
        generation: 0,
        boot: BootId([1; 16]),
        deployment: None,
        started_us: 1,
        ended_us: 2,
        class: Class::Trap,
        code: "c".into(),
        message: "m".into(),
        backtrace: None,
    };
    Some(match at {
        0 => unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.map(|_| ()),
        1 => unit.order_lock(&[(bench.handler, vec![1])]).await.map(|_| ()),
        2 => unit.savepoint(Savepoint::Marks).await,
        3 => {
            let write = unit.staged_write(&"INSERT INTO points (user_id, points) VALUES (1, 1)".into(), &[]).await;
            write.map(|_| ()).map_err(|error| error.store_error("write"))
        }
        4 => {
            let query = unit.query(&"SELECT points FROM points WHERE user_id = 1".into(), &[], 9).await;
            query.map(|_| ()).map_err(|error| error.store_error("query"))
        }
        5 => unit.savepoint(Savepoint::Event).await,
        6 => unit.rollback_to(Savepoint::Event).await,
        7 => unit.release(Savepoint::Event).await,
        8 => unit.inbox_mark(&[mark]).await,
        9 => unit.held_insert(&[bench.new_held(1)]).await.map(|_| ()),
        10 => unit.attempt_insert(&[attempt]).await,
        11 => unit.tally_add(BootId([1; 16]), 0, &[(bench.handler, Verdict::Parked, 1)]).await,
        12 => unit.now_us().await.map(|_| ()),
        13 => unit.inbox_delete(token_of(1), &[bench.key("k")]).await,
        14 => unit.release(Savepoint::Marks).await,
        _ => return None,
    })
}

pub(crate) async fn a_connection_that_is_cut_between_two_steps_leaves_nothing(bench: Bench) {
    let mut lane = bench.lane().await;
    for cut in 0..=15 {
        let mut unit = lane.begin().await.unwrap();
        let (own, mut at, mut failed) = (bench.session_of(unit.as_mut()).await, 0, false);
        loop {
            if at == cut {
                bench.tenant().database.execute(&format!("KILL {own}"));
            }
            match step(&bench, unit.as_mut(), at).await {
                None => break,
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    assert!(error.is_away() && at >= cut, "cut before {cut}, at {at}: {error}");
                    failed = true;
                }
            }
            at += 1;
        }
        assert!(failed || cut >= 14, "{cut}");
        assert!(matches!(unit.commit().await, Err(StoreError::Away { .. })), "{cut}");
        for table in ["ob_inbox", "ob_held", "ob_body", "ob_attempt", "ob_tally", "points"] {
            assert_eq!(bench.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{cut}: {table}");
        }
    }
}

/// Something has ended the transaction from inside (a DDL in a procedure): what follows would commit by itself.
pub(crate) async fn a_transaction_that_is_no_longer_the_one_begun_is_not_committed(bench: Bench) {
    let mut lane = bench.lane().await;
    let mut unit = lane.begin().await.unwrap();
    unit.inbox_insert(token_of(1), &[bench.new_inbox("k")]).await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    // The gate refuses such a text; here it stands for whatever ends a transaction behind our back.
    unit.staged_write(&"ROLLBACK".into(), &[]).await.unwrap();
    unit.release(Savepoint::Marks).await.unwrap();
    let error = unit.commit().await.unwrap_err();
    assert!(matches!(error, StoreError::Away { .. }), "{error}");
    let mut unit = lane.begin().await.unwrap();
    unit.savepoint(Savepoint::Marks).await.unwrap();
    unit.staged_write(&"COMMIT".into(), &[]).await.unwrap();
    unit.rollback_to(Savepoint::Marks).await.unwrap();
    let delete = "DELETE FROM points WHERE user_id = 1".into();
    let error = unit.staged_write(&delete, &[]).await.unwrap_err();
    assert_eq!(error.class, Class::Infrastructure, "{error}");
    assert!(unit.staged_write(&delete, &[]).await.is_err());
    drop(unit);
    assert_eq!(bench.number("SELECT count(*) FROM ob_inbox").await, 0);
}

/// The driver is out of step with the server after a call that was dropped: nobody may use that connection again.
pub(crate) async fn a_call_that_is_dropped_in_the_middle_does_not_disturb_the_next_one(bench: Bench) {
    let secret = bench.store.tenant_secret().await.unwrap();
    let messages: Vec<_> = (0..50u8).map(|n| message(&[n])).collect();
    for micros in [1, 50, 200, 500, 1_000, 2_000, 4_000, 8_000] {
        for _ in 0..4 {
            let offer = bench.store.local_offer("orders", &messages);
            let _ = tokio::time::timeout(Duration::from_micros(micros), offer).await;
            assert_eq!(bench.store.tenant_secret().await.unwrap(), secret);
        }
    }
    // All of an offer or nothing of it.
    assert_eq!(bench.number("SELECT count(*) % 50 FROM ob_local").await, 0);
}

pub(crate) async fn few_prepared_statements_and_small_packets_are_lived_with(bench: Bench) {
    let server = PrivateServer::of(bench.tenant().database.server().kind);
    let tenant = TenantDatabase::on(&server.server);
    tenant.database.execute("CREATE TABLE points (user_id BIGINT PRIMARY KEY, note LONGTEXT) ENGINE=InnoDB");
    tenant.ready(&["points"]).await.unwrap();
    tenant.database.execute("SET GLOBAL max_allowed_packet = 4194304");
    tenant.database.execute("SET GLOBAL max_prepared_stmt_count = 20");
    let store = tenant.open(oncebox::store::Use::Command).await.unwrap();
    let handler = store.handler_ensure("points").await.unwrap();
    // Two lanes and the store's own session share 20 statements; each lane alone would keep 128.
    let mut lanes = [store.lane().await.unwrap(), store.lane().await.unwrap()];
    for round in 0..3 {
        for (lane, number) in lanes.iter_mut().zip([0, 1]) {
            let mut unit = lane.begin().await.unwrap();
            for n in 0..25 {
                let sql = format!("INSERT INTO points (user_id, note) VALUES ({}, ?)", round * 100 + number * 50 + n);
                assert_eq!(unit.staged_write(&sql.into(), &[Value::Text("x".into())]).await, Ok(1));
            }
            unit.commit().await.unwrap();
        }
    }
    assert_eq!(tenant.database.number("SELECT COUNT(*) FROM points"), 150);
    let held = |byte: u8, bytes: usize| oncebox::store::NewHeld {
        handler,
        body: std::sync::Arc::new(message(&vec![byte; bytes])),
        ..bench.new_held(byte)
    };
    // Together far over what a packet holds, each under it.
    let mut unit = lanes[0].begin().await.unwrap();
    let rows: Vec<_> = (0..9).map(|n| held(n, 1_500_000)).collect();
    unit.held_insert(&rows).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(tenant.database.number("SELECT CAST(SUM(LENGTH(payload)) AS SIGNED) FROM ob_body"), 9 * 1_500_000);
    // One alone is over it: an error of its own, and the connection stays.
    let mut unit = lanes[0].begin().await.unwrap();
    let error = unit.held_insert(&[held(20, 4_200_000)]).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Statement { message, .. } if message.contains("max_allowed_packet")),
        "{error}"
    );
    let long = [Value::Text("x".repeat(4_200_000))];
    let error = unit.staged_write(&"INSERT INTO points (user_id, note) VALUES (1000, ?)".into(), &long).await;
    let error = error.unwrap_err();
    assert_eq!((error.class, error.number, error.code), (Class::Data, Some(1406), "too-long"), "{error}");
    assert_eq!(unit.staged_write(&"DELETE FROM points WHERE user_id = 0".into(), &[]).await, Ok(1));
    unit.commit().await.unwrap();
}
