//! A deployment over all hosts.

use std::thread;

use oncebox_tests::{
    feed::entry,
    host::{Ended, Host},
    patience::{PATIENCE, eventually},
    probe::{ledger_of_version, with_change},
};

use crate::stage::{LONG, Lines, Stage, applied_once, is_ready, settled, unready};

const FLEET: Lines = Lines {
    host: "heartbeat_ms = 100\nboot_timeout_ms = 2000",
    tenant: "",
    store: "",
    handler: "retry = { first_ms = 20, delay_ms_max = 50 }",
};
/// A ceiling that version 1 of the probe is below.
const NARROW: Lines = Lines { handler: "limits = { memory_bytes_max = 10_000_000 }", ..FLEET };

/// Version 2, which needs more memory than a host under [`NARROW`] gives.
fn large() -> Vec<u8> {
    with_change(&ledger_of_version(2), "memory_bytes_max = 8388608", "memory_bytes_max = 20000000")
}

/// The hosts that are ready for a deployment, in the order of their names.
fn ready_for(stage: &Stage, deployment: i64) -> Vec<String> {
    stage.database().lines(&format!(
        "SELECT CAST(host AS CHAR) FROM ob_ready JOIN ob_boot USING (boot_id)
         WHERE deployment_id = {deployment} AND ready = 1 ORDER BY host"
    ))
}

#[track_caller]
fn eventually_ready_for(stage: &Stage, deployment: i64, hosts: &[&str]) {
    eventually(&format!("{hosts:?} are ready"), LONG, || (ready_for(stage, deployment) == hosts).then_some(()));
}

fn state(stage: &Stage, deployment: i64) -> i64 {
    stage
        .database()
        .number(&format!("SELECT CAST(state AS SIGNED) FROM ob_deployment WHERE deployment_id = {deployment}"))
}

#[track_caller]
fn eventually_serves(host: &Host, deployment: i64) {
    let id = deployment.to_string();
    eventually(&format!("deployment {id} serves"), PATIENCE, || {
        let lines = host.logged("serves from now on");
        lines.iter().any(|line| line["deployment"] == id).then_some(())
    });
}

#[track_caller]
fn says(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}{}", ended.out, ended.err);
    for part in parts {
        assert!(ended.out.contains(part) || ended.err.contains(part), "{part}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn a_new_version_under_load_serves_on_all_hosts_and_loses_and_doubles_nothing() {
    let stage = Stage::new(FLEET);
    let hosts = ["a", "b"].map(|name| stage.start(name, FLEET).ready());
    stage.site.write("two.wasm", ledger_of_version(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = stage.site.sender("t/in");
            for n in 0..300 {
                sender.send(&[entry(&format!("e-{n}"), &format!("k-{n}"), 1)]);
                oncebox_tests::patience::pass(std::time::Duration::from_millis(20));
            }
            sender.finish();
        });
        let some = || stage.database().number("SELECT COUNT(*) FROM ledger") > 0;
        eventually("some are applied", LONG, || some().then_some(()));
        let deployed = stage.site.run(&["deploy", "two.wasm", "t/a"]);
        says(&deployed, 0, &["deployment 2 of 2.0.0", ": active (ready: a, b)"]);
        hosts.iter().for_each(|host| eventually_serves(host, 2));
    });
    settled(stage.database(), LONG);
    assert_eq!(stage.served_by("last"), 2);
    applied_once(stage.database(), 301);
    assert_eq!(stage.database().lines("SELECT DISTINCT CAST(version AS CHAR) FROM ledger ORDER BY 1"), ["1", "2"]);
    for host in hosts {
        host.stop();
    }
}

#[test]
fn a_host_that_hangs_and_is_killed_holds_an_offer_back_only_for_a_while_and_one_that_joins_takes_part() {
    let patient = Lines { host: "heartbeat_ms = 100\nboot_timeout_ms = 15000", ..FLEET };
    let stage = Stage::new(patient);
    let [a, b] = ["a", "b"].map(|name| stage.start(name, patient).ready());
    stage.site.write("two.wasm", ledger_of_version(2));
    b.freeze();
    thread::scope(|scope| {
        let deploy = scope.spawn(|| stage.site.run(&["deploy", "two.wasm", "t/a"]));
        eventually_ready_for(&stage, 2, &["a"]);
        // One that joins serves what is active, and answers what is offered.
        let c = stage.start("c", patient).ready();
        eventually_serves(&c, 1);
        eventually_ready_for(&stage, 2, &["a", "c"]);
        assert_eq!(state(&stage, 2), 0, "b is still taken for alive");
        b.kill();
        says(&deploy.join().unwrap(), 0, &["awaited: b", ": active (ready: a, c)"]);
        [&a, &c].into_iter().for_each(|host| eventually_serves(host, 2));
        c.stop();
    });
    assert_eq!(stage.served_by("after"), 2);
    applied_once(stage.database(), 1);
    a.stop();
}

#[test]
fn a_split_keeps_the_old_version_until_the_host_that_refuses_is_mended() {
    let stage = Stage::new(FLEET);
    let a = stage.start("a", FLEET).ready();
    let b = stage.start("b", NARROW).ready();
    stage.site.write("two.wasm", large());
    let split = stage.site.run(&["deploy", "two.wasm", "t/a"]);
    says(&split, 4, &["error[refused-by-some]", "ready on a and refused by b", "b: [limits]", "10000000", "--force"]);
    assert_eq!((stage.served_by("split"), state(&stage, 2)), (1, 0));
    is_ready(&a);
    is_ready(&b);
    b.stop();
    // It has ended in good order, and the only host that lives is ready.
    eventually("active", PATIENCE, || (state(&stage, 2) == 1).then_some(()));
    eventually_serves(&a, 2);
    let b = stage.start("b", FLEET).ready();
    eventually_serves(&b, 2);
    assert_eq!(stage.served_by("mended"), 2);
    a.stop();
    b.stop();
}

#[test]
fn a_forced_deployment_is_served_by_those_who_can_and_the_others_take_nothing() {
    let stage = Stage::new(FLEET);
    let a = stage.start("a", FLEET).ready();
    let b = stage.start("b", NARROW).ready();
    stage.site.write("two.wasm", large());
    let forced = stage.site.run(&["deploy", "two.wasm", "t/a", "--force"]);
    says(&forced, 0, &[": active (ready: a; refused by: b)"]);
    let why = unready(&b, "deployment 2 cannot be served");
    assert!(why.contains("tenant t: handler a") && why.contains("memory_bytes_max"), "{why}");
    eventually_serves(&a, 2);
    assert_eq!(stage.served_by("forced"), 2);
    is_ready(&a);
    a.stop();
    stage.site.send("t/in", &[entry("e-waits", "waits", 1)]);
    let beaten = "SELECT COUNT(*) FROM ob_boot WHERE host = 'b' AND seen_at > DATE_ADD(started_at, INTERVAL ";
    let age =
        stage.database().number("SELECT TIMESTAMPDIFF(SECOND, started_at, seen_at) FROM ob_boot WHERE host = 'b'");
    let later = format!("{beaten}{} SECOND)", age + 3);
    eventually("some looks later", PATIENCE, || (stage.database().number(&later) == 1).then_some(()));
    assert_eq!(stage.database().number("SELECT CAST(SUM(deliveries) AS SIGNED) FROM ob_local"), 0, "b takes nothing");

    stage.site.write("three.wasm", ledger_of_version(3));
    says(&stage.site.run(&["deploy", "three.wasm", "t/a"]), 0, &[": active"]);
    settled(stage.database(), LONG);
    assert_eq!(stage.database().number("SELECT version FROM ledger WHERE entry = 'waits'"), 3);
    is_ready(&b);
    b.stop();
}
