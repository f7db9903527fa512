//! `oncebox run`: starting, refusing to start, serving what is deployed beside it, ending.

use super::stage::{CONFIG, MANIFEST, json, module, shop, shop_with, with};

#[test]
fn a_host_serves_what_is_deployed_beside_it_and_ends_in_good_order() {
    let folder = shop();
    module(&folder, "probes/skip", MANIFEST);
    let mut host = folder.run([], "is not served");
    let unready = host.lines.concat();
    assert!(unready.contains("has no deployment: `oncebox deploy MODULE shop/award`"), "{unready}");
    let said = folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    assert!(said.ends_with(": active\n"), "{said}");
    host.wait_for("\"ready\"");
    let (code, log) = host.end();
    assert_eq!(code, 0, "{log}");
    assert!(log.lines().last().unwrap().contains("stopped; what is undecided is kept and taken again"), "{log}");
}

#[test]
fn a_second_host_of_the_same_store_is_told_so() {
    let folder = shop();
    let host = folder.run([], "started");
    let second = folder.oncebox(["run"]);
    second.fails(
        6,
        ["\"code\":\"store-taken\"", "tenant `shop`: failed to open data/shop.db: another `oncebox run` has it open"],
    );
    assert_eq!(host.end().0, 0);
}

#[test]
fn a_taken_address_is_named_with_its_setting() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = shop_with(&with(CONFIG, "listen = \"\"", &format!("listen = \"{address}\"\nlog = \"human\"")));
    let says = format!("error[listen]: failed to listen on {address} (host.listen): Address already in use");
    folder.oncebox(["run"]).fails(6, [&says]);
}

#[test]
fn every_line_of_a_log_for_programs_is_json_the_last_error_too() {
    let folder = shop_with(&with(CONFIG, "listen = \"\"", "listen = \"\"\nlog = \"human\""));
    folder.write("data/shop.db", "not a database at all, but long enough to look like one; ".repeat(20));
    let answer = folder.oncebox(["--json", "run"]);
    answer.fails(3, []);
    let lines: Vec<_> = answer.stderr.lines().map(json).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["code"]), (&"ERROR".into(), &"store-not-a-database".into()));
    assert_eq!(last["exit"], 3);
    folder.oncebox(["run"]).fails(3, ["error[store-not-a-database]: tenant `shop`: failed to open"]);
}
