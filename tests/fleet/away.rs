//! A database server that is away: at the start, and later.

use std::time::Duration;

use oncebox_tests::{
    feed::{entry, event},
    patience::{PATIENCE, eventually},
    services::{MysqlDatabase, PrivateServer, Server},
};
use serde_json::json;

use crate::stage::{LONG, Lines, Stage, applied_once, is_ready, settled, unready};

#[test]
fn a_host_whose_database_is_away_at_the_start_waits_and_serves_when_it_comes() {
    let mut server = PrivateServer::mysql();
    let stage = Stage::of(vec![("t", MysqlDatabase::create(&server.server))], Lines::default());
    server.stop();
    let mut host = stage.start("a", Lines::default());
    let why = unready(&host, "tenant t: tenant `t`: failed to reach the tenant's database");
    assert!(why.contains("cannot connect to"), "{why}");
    assert_eq!(host.get("/livez"), (200, "ok\n".to_owned()));
    // Said once, however often it is tried.
    oncebox_tests::patience::pass(Duration::from_secs(5));
    assert_eq!(host.logged("is not served").len(), 1, "{:?}", host.log());
    // It ends at once while it waits.
    host.terminate();
    assert_eq!(host.ended_within(Duration::from_secs(5)), 0);

    let host = stage.start("a", Lines::default());
    let _ = unready(&host, "tenant t");
    server.start_again();
    let host = host.ready();
    assert_eq!(stage.served_by("at-last"), 1);
    applied_once(stage.database(), 1);
    host.stop();
}

#[test]
fn what_does_not_mend_itself_ends_the_start_of_a_host_that_serves_nobody() {
    let stage = Stage::new(Lines::default());
    let database = stage.database();
    stage.configure("a", Lines::default());
    let run = || stage.site.run(&["--config", "a.toml", "run"]);
    database.execute("UPDATE ob_meta SET value = '99' WHERE name = 'schema'");
    let ended = run();
    assert!(ended.code == Some(9) && ended.err.contains("migration-due"), "{ended:?}");
    assert!(!ended.err.contains("started"), "{}", ended.err);
    database.execute(&format!("ALTER USER '{}'@'%' IDENTIFIED BY 'another'", database.migrate.name));
    let ended = run();
    assert!(ended.code == Some(9) && ended.err.contains("store-denied"), "{ended:?}");
}

#[test]
fn one_tenants_database_that_is_away_does_not_stop_the_other_however_few_connections_there_are() {
    let lines = Lines { host: "limits = { connections_max = 2 }", ..Lines::default() };
    let mut server = PrivateServer::mysql();
    let own = MysqlDatabase::create(&server.server);
    let stage = Stage::of(vec![("t", MysqlDatabase::create(&Server::mysql())), ("u", own)], lines);
    let host = stage.start("a", lines).ready();
    // The other's lanes are in the midst of their batches when their database goes away.
    // Seconds of work, in batches that are short on a busy machine too; what is decided leaves the table.
    let slow = |n: u32| json!({ "key": format!("k-{n}"), "amount": 1, "do": "spin", "times": 2_000_000 });
    stage.site.send("u/in", &(0..1_000).map(|n| event(&format!("e-{n}"), &slow(n))).collect::<Vec<_>>());
    // Not before one batch is decided: the answer to the very first take might be lost with the server.
    let busy =
        "SELECT (SELECT COUNT(*) FROM ob_inbox) > 0 AND (SELECT COUNT(*) FROM ob_local WHERE deliveries > 0) > 0";
    eventually("in the midst", LONG, || (stage.tenants[1].1.number(busy) == 1).then_some(()));
    server.kill9();
    let _ = unready(&host, "tenant u: lane");
    stage.site.send("t/in", &(0..200).map(|n| entry(&format!("e-{n}"), &format!("k-{n}"), 1)).collect::<Vec<_>>());
    settled(stage.database(), LONG);
    applied_once(stage.database(), 200);
    assert_eq!(host.get("/livez").0, 200);
    server.start_again();
    settled(&stage.tenants[1].1, LONG);
    applied_once(&stage.tenants[1].1, 1_000);
    is_ready(&host);
    eventually("the database is back", PATIENCE, || (!host.logged("the database is back").is_empty()).then_some(()));
    host.stop();
}
