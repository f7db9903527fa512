//! A plugin's lines in the log, and what no log may hold.

use oncebox::store::{Store as _, Use, sqlite::SqliteStore};
use oncebox_tests::wat::wat_component;

use super::stage::{CONFIG, MANIFEST, json, shop, shop_with, with};

/// Writes a line at `info` and one at `error`, and applies: 8192 is in a memory of zeros, `ok(applied(none))`.
const SPEAKS: &str = r#"(module
  (import "oncebox:handler/log@1.0.0" "write" (func $log (param i32 i32 i32 i32 i32)))
  ;; @prelude
  (data (i32.const 0) "red \1b[31m and a \22quote\22")
  (func (export "oncebox:handler/guest@1.0.0#handle") (param i32) (result i32)
    (call $log (i32.const 2) (i32.const 0) (i32.const 23) (i32.const 0) (i32.const 0))
    (call $log (i32.const 4) (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 0))
    (i32.const 8192)))"#;

/// The log of a host that runs [`SPEAKS`] once.
fn log_of(config: &str) -> String {
    let folder = shop_with(config);
    folder.write("module.wasm", wat_component(SPEAKS, MANIFEST));
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    folder
        .oncebox_with(&["send", "shop/orders"], br#"{"type":"order.paid","id":"e1","orderId":"\u001b1","amount":5}"#)
        .done();
    let mut host = folder.run([], "red ");
    host.wait_for("red");
    let (code, log) = host.end();
    assert_eq!(code, 0, "{log}");
    log
}

#[test]
fn a_plugins_line_names_tenant_handler_key_and_attempt_in_a_log_for_programs() {
    let log = log_of(CONFIG);
    let lines: Vec<_> = log.lines().map(json).collect();
    let own: Vec<_> = lines.iter().filter(|line| line["target"] == "plugin").collect();
    assert_eq!(own.len(), 2, "{log}");
    assert_eq!((&own[0]["level"], &own[1]["level"]), (&"INFO".into(), &"ERROR".into()));
    assert_eq!(own[0]["message"], "red \\x1b[31m and a \"quote\"");
    assert_eq!((&own[0]["tenant"], &own[0]["handler"]), (&"shop".into(), &"award".into()));
    assert_eq!((&own[0]["key"], &own[0]["attempt"]), (&"order:\\x1b1".into(), &1.into()));
}

#[test]
fn a_log_for_people_holds_no_control_character_of_a_plugin() {
    let log = log_of(&with(CONFIG, "listen = \"\"", "listen = \"\"\nlog = \"human\""));
    assert!(log.chars().all(|c| c == '\n' || !c.is_control()), "{log:?}");
    assert!(log.contains("red \\x1b[31m and a \"quote\""), "{log}");
    assert!(log.contains("order:\\x1b1"), "{log}");
}

#[tokio::test]
async fn no_output_of_a_command_or_a_host_holds_the_tenants_secret() {
    let folder = shop();
    folder.write("module.wasm", wat_component(SPEAKS, MANIFEST));
    let deployed = folder.oncebox(["--json", "deploy", "module.wasm", "shop/award"]).done();
    folder.oncebox_with(&["send", "shop/orders"], br#"{"type":"order.paid","id":"e1","orderId":1,"amount":5}"#).done();
    let store = SqliteStore::open(&folder.path("data/shop.db"), None, Use::Command).await.unwrap();
    let secret = store.tenant_secret().await.unwrap();
    assert_ne!(secret, [0; 32]);
    let host = folder.run([], "\"plugin\"");
    let (code, log) = host.end();
    assert_eq!(code, 0, "{log}");
    let traced = folder.oncebox(["--json", "trace", "shop/award", "order:1"]);
    let tally = folder.oncebox(["--json", "tally"]).done();
    hides(&[deployed, log, traced.stdout, traced.stderr, tally].concat(), &secret);
    store.close().await;
}

/// A broker with a password in the file, and something wrong or questionable in the same lines.
fn with_password(more: &str) -> String {
    format!(
        "{CONFIG}\n[tenants.shop.connections.mq]\nkind = \"rabbitmq\"\nurl = \"amqp://shop@mq\"\n{more}password = \"hunter2\"\n"
    )
}

#[test]
fn no_output_of_a_command_holds_a_password_of_the_configuration() {
    for (more, code) in [("", 8), ("ca_file = \"x\"; ", 3), ("tls = \"off\"\nx.", 3), ("url = ", 3)] {
        let folder = shop_with(&with_password(more));
        for arguments in [["check", "config"].as_slice(), &["--json", "check", "config"]] {
            let answer = folder.oncebox_with(arguments, b"");
            assert_eq!(answer.code, code, "{}{}", answer.stdout, answer.stderr);
            let shown = answer.stdout + &answer.stderr;
            assert!(shown.contains("***") && !shown.contains("hunter"), "{shown}");
        }
    }
}

#[test]
fn a_host_warns_in_its_log_of_a_password_in_the_file_and_does_not_show_it() {
    let log = shop_with(&with_password("")).run([], "\"started\"").end().1;
    assert!(log.contains("password stands here in clear text") && !log.contains("hunter"), "{log}");
}

/// Neither as numbers, nor in hexadecimal, nor as bytes.
fn hides(shown: &str, secret: &[u8; 32]) {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let numbers: Vec<String> = secret.iter().map(ToString::to_string).collect();
    for form in [&hex[..8], &hex[..8].to_uppercase(), &numbers[..4].join(", "), &numbers[..4].join(",")] {
        assert!(!shown.contains(form), "`{form}` is shown in:\n{shown}");
    }
    assert!(!shown.as_bytes().windows(4).any(|window| window == &secret[..4]));
}
