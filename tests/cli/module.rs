//! `oncebox inspect`, `oncebox check module` and `oncebox build`: what is said of a file.

use oncebox_tests::wat::{source, wat_component, with_manifest};

use super::stage::{MANIFEST, json, module, shop, shop_with, with};

#[test]
fn a_file_that_is_no_module_is_refused_by_what_it_is_and_by_every_command_alike() {
    let folder = shop();
    let good = wat_component(&source("probes/skip"), MANIFEST);
    let without = wat_component(&source("probes/skip"), "");
    let files: [(&[u8], &str, &str); 6] = [
        (b"", "module-empty", "the file that `oncebox build` wrote"),
        (b"(module)", "module-is-text", "run `oncebox build`"),
        (b"\0asm\x01\0\0\0", "module-is-core", "run `oncebox build`"),
        (b"PK\x03\x04", "module-not-wasm", "the file begins with `PK"),
        (&good[..good.len() / 2], "module-malformed", "the component is"),
        (&without, "manifest-invalid", "missing"),
    ];
    for (bytes, code, says) in files {
        folder.write("wrong.wasm", bytes);
        for command in [
            &["inspect", "wrong.wasm"][..],
            &["check", "module", "wrong.wasm"],
            &["check", "module", "wrong.wasm", "shop/award"],
            &["deploy", "wrong.wasm", "shop/award"],
        ] {
            folder.oncebox_with(command, b"").fails(4, [&format!("error[{code}]"), says]);
        }
    }
}

#[test]
fn a_module_without_a_manifest_is_refused() {
    let folder = shop();
    let packed = with_manifest(Vec::new(), MANIFEST);
    let whole = wat_component(&source("probes/skip"), MANIFEST);
    folder.write("bare.wasm", whole.strip_suffix(packed.as_slice()).unwrap());
    for command in [["inspect", "bare.wasm"].as_slice(), &["check", "module", "bare.wasm"]] {
        folder.oncebox_with(command, b"").fails(4, ["error[manifest-missing]", "`oncebox build`"]);
    }
}

#[test]
fn a_module_for_another_contract_is_refused() {
    let folder = shop();
    let newer = oncebox_tests::wat::wat_component_of_version("2.0.0", &source("probes/skip"), MANIFEST);
    folder.write("newer.wasm", newer);
    let answer = folder.oncebox(["check", "module", "newer.wasm"]);
    answer.fails(4, ["error[export-missing]", "oncebox:handler/guest@2.0.0", "build it for world `handler`"]);
    folder.write("later.wasm", wat_component(&source("probes/skip"), &with(MANIFEST, "\"1.0\"", "\"1.9\"")));
    let later = folder.oncebox(["deploy", "later.wasm", "shop/award"]);
    later.fails(4, ["contract is \"1.9\", and this build of oncebox links 1.0", "error[manifest-invalid]"]);
}

#[test]
fn a_missing_file_is_not_found() {
    let folder = shop();
    for command in
        [["inspect", "nope.wasm"].as_slice(), &["check", "module", "nope.wasm"], &["deploy", "nope.wasm", "shop/award"]]
    {
        folder.oncebox_with(command, b"").fails(5, ["error[module-file]: cannot read nope.wasm: No such file"]);
    }
    folder.oncebox(["build", "nowhere"]).fails(5, ["error[plugin-file]: failed to read nowhere/handler.toml: No such"]);
    assert_eq!(folder.files(), ["oncebox.toml", "schema.sql"]);
}

#[test]
fn a_wrong_manifest_is_shown_where_it_is_wrong() {
    let folder = shop();
    folder.write("plugin/handler.toml", with(MANIFEST, "fingerprint", "fingerprnt"));
    let build = folder.oncebox(["build", "plugin"]);
    build.fails(
        4,
        [
            "error: unknown key \"fingerprnt\"",
            "--> plugin/handler.toml:7:1",
            "error[manifest-invalid]: the manifest has 2 errors; mend handler.toml and run `oncebox build`",
        ],
    );
    let error = &json(&folder.oncebox(["--json", "build", "plugin"]).stderr)["error"];
    assert_eq!(error["code"], "manifest-invalid");
    let lines: Vec<_> = error["errors"].as_array().unwrap().iter().map(|error| error["line"].as_u64()).collect();
    assert!(lines.contains(&Some(7)), "{error:#}");
}

#[test]
fn a_good_module_is_shown_and_accepted_and_nothing_is_left_behind() {
    let folder = shop();
    module(&folder, "probes/skip", MANIFEST);
    let shown = folder.oncebox(["inspect", "module.wasm"]).done();
    assert!(shown.contains("UPDATE points_account SET points = points + ? WHERE user_id = ?"), "{shown}");
    let seen = json(&folder.oncebox(["--json", "inspect", "module.wasm"]).done());
    assert_eq!((&seen["name"], &seen["key"]), (&"award".into(), &"order:{/orderId}".into()));
    let alone = folder.oncebox(["check", "module", "module.wasm"]).done();
    assert!(alone.starts_with("award 1.0.0: accepted by itself"), "{alone}");
    let placed = json(&folder.oncebox(["--json", "check", "module", "module.wasm", "shop/award"]).done());
    assert_eq!((&placed["accepted"], &placed["place"]), (&true.into(), &"shop/award".into()));
    assert_eq!(folder.files(), ["module.wasm", "oncebox.toml", "schema.sql"], "a check changes nothing");
}

#[test]
fn every_reason_against_a_module_is_listed_and_says_how_to_mend_it() {
    let config = with(
        super::stage::CONFIG,
        "owner =",
        "config = { color = \"red\" }\nlimits = { memory_bytes_max = 65536 }\nowner =",
    );
    let folder = shop_with(&with(&config, "\"points_account\"", ""));
    let manifest = format!(
        "{}\n[config.rate]\nrequired = true\ndescription = \"points for one yuan\"\n[destinations.out]\n[limits]\nmemory_bytes_max = 1048576\n",
        with(MANIFEST, "event_types = [\"order.paid\"]", "event_types = [\"order.sent\"]")
    );
    module(&folder, "probes/skip", &manifest);
    let answer = folder.oncebox(["--json", "check", "module", "module.wasm", "shop/award"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (4, ""));
    let error = &json(&answer.stderr)["error"];
    assert_eq!(error["message"], "the module may not serve shop/award, for 6 reasons; nothing was stored");
    let reasons: Vec<(&str, &str)> = error["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| (reason["code"].as_str().unwrap(), reason["message"].as_str().unwrap()))
        .collect();
    let expected = [
        ("event-types", "a route of source `orders` gives it order.paid, the module takes order.sent"),
        ("config-values", "[tenants.shop.handlers.award]: config.color is not declared by the module: remove it"),
        ("config-values", "[tenants.shop.handlers.award]: config.rate is missing: points for one yuan"),
        ("destinations", "destinations.out is missing: bind it to one of [tenants.shop.destinations]"),
        ("limits", "the module needs memory_bytes_max = 1048576, the ceiling is 65536"),
        ("table-unlisted", "[statements.award]"),
    ];
    assert_eq!(reasons.len(), expected.len(), "{reasons:#?}");
    for ((code, message), (expected_code, says)) in reasons.iter().zip(expected) {
        assert_eq!(*code, expected_code);
        assert!(message.contains(says), "{message}");
    }
}
