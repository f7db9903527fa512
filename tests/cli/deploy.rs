//! `oncebox deploy`: what is stored, and that a refusal stores nothing.

use oncebox_tests::command::Folder;

use super::stage::{CONFIG, MANIFEST, count, json, module, shop, shop_with, with};

/// No deployment, no module, no rule.
fn nothing_is_stored(folder: &Folder) {
    for table in ["ob_deployment", "ob_module", "ob_rule", "ob_audit"] {
        assert_eq!(count(folder, table), 0, "{table}");
    }
}

#[test]
fn a_good_module_is_offered_and_says_what_serves_it() {
    let folder = shop();
    module(&folder, "probes/skip", MANIFEST);
    let said = folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    assert!(said.starts_with("shop/award: deployment 1 of 1.0.0, sha256:"), "{said}");
    assert!(said.ends_with(": offered: the next `oncebox run` serves it\n"), "{said}");
    let again = json(&folder.oncebox(["--json", "deploy", "module.wasm", "shop/award"]).done());
    assert_eq!((&again["deployment"], &again["state"]), (&2.into(), &"offered".into()));
    assert_eq!((count(&folder, "ob_deployment"), count(&folder, "ob_module"), count(&folder, "ob_rule")), (2, 1, 1));
}

#[test]
fn a_place_that_is_not_configured_is_not_found_and_the_known_ones_are_listed() {
    let folder = shop();
    module(&folder, "probes/skip", MANIFEST);
    let tenant = folder.oncebox(["deploy", "module.wasm", "shp/award"]);
    tenant.fails(5, ["error[tenant]: there is no tenant `shp`; the configuration has: shop"]);
    let handler = folder.oncebox(["deploy", "module.wasm", "shop/awrd"]);
    handler.fails(5, ["error[handler]: tenant `shop` has no handler `awrd`; it has: award"]);
    assert!(!folder.path("data").exists(), "no store is made for a place that is not there");
}

#[test]
fn a_refused_module_leaves_no_trace_in_the_store() {
    let folder = shop();
    let manifest = with(MANIFEST, "event_types = [\"order.paid\"]", "event_types = [\"order.sent\"]");
    module(&folder, "probes/skip", &manifest);
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).fails(
        4,
        [
            "error[module-refused]: the module may not serve shop/award, for one reason; nothing was stored\n",
            "  [event-types] a route of source `orders` gives it order.paid, the module takes order.sent",
        ],
    );
    nothing_is_stored(&folder);
}

#[test]
fn a_need_beyond_the_ceiling_is_refused_and_names_the_setting() {
    let folder = shop_with(&format!("{CONFIG}limits = {{ memory_bytes_max = 65536 }}\n"));
    module(&folder, "probes/skip", &format!("{MANIFEST}\n[limits]\nmemory_bytes_max = 131072\n"));
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).fails(
        4,
        [
            "[limits] the module needs memory_bytes_max = 131072, the ceiling is 65536",
            "memory_bytes_max in [tenants.shop.handlers.award] or [host.limits]",
        ],
    );
    nothing_is_stored(&folder);
}

#[test]
fn another_rule_is_refused_with_both_rules_and_taken_when_it_is_meant() {
    let folder = shop();
    module(&folder, "probes/skip", MANIFEST);
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    module(&folder, "probes/skip", &with(MANIFEST, "order:{/orderId}", "paid:{/orderId}"));
    folder.oncebox(["deploy", "module.wasm", "shop/award"]).fails(
        4,
        [
            "error[rule-changed]: shop/award is bound to another rule:\n",
            "  now: key `order:{/orderId}`, fingerprint [\"/amount\"], ordering none\n",
            "  new: key `paid:{/orderId}`, fingerprint [\"/amount\"], ordering none\n",
            "is not recognised as a duplicate of one applied under the old rule. If that is meant: --new-rule",
        ],
    );
    assert_eq!((count(&folder, "ob_deployment"), count(&folder, "ob_rule")), (1, 1));
    folder.oncebox(["deploy", "--new-rule", "module.wasm", "shop/award"]).done();
    assert_eq!((count(&folder, "ob_deployment"), count(&folder, "ob_rule")), (2, 2));
}

#[test]
fn a_statement_that_the_database_does_not_prepare_is_refused_in_its_words() {
    let folder = shop();
    module(&folder, "probes/skip", &with(MANIFEST, "SET points = points", "SET pints = points"));
    folder
        .oncebox(["deploy", "module.wasm", "shop/award"])
        .fails(4, ["[not-prepared] [statements.award]: the database does not prepare it: no such column: pints"]);
    nothing_is_stored(&folder);
}
