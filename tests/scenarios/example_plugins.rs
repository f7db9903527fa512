//! The example plugins, built as their authors build them.

use std::{collections::BTreeMap, fs, path::PathBuf};

use oncebox::module::{Inspection, build, inspect};

/// Bytes that a small Rust handler may come to.
const BYTES_MAX: usize = 150_000;

async fn built(name: &str) -> Inspection {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(name);
    let out = tempfile::tempdir().unwrap();
    let built = build(&dir, Some(&out.path().join("module.wasm"))).await.unwrap_or_else(|error| panic!("{error}"));
    inspect(&fs::read(&built.path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

fn functions(interfaces: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let each = interfaces.iter().flat_map(|(name, functions)| functions.iter().map(move |f| format!("{name}.{f}")));
    each.collect()
}

#[tokio::test]
async fn a_built_plugin_is_small_and_reaches_nothing_but_what_it_uses_of_the_contract() {
    let common = "oncebox:handler/log@1.0.0.write";
    let used = [
        (
            "points-award",
            vec![
                "oncebox:handler/config@1.0.0.get",
                "oncebox:handler/db@1.0.0.stage",
                "oncebox:handler/events@1.0.0.emit",
                common,
            ],
        ),
        ("points-level", vec!["oncebox:handler/db@1.0.0.stage", common]),
        (
            "coupon-grant",
            vec![
                "oncebox:handler/context@1.0.0.random",
                "oncebox:handler/db@1.0.0.stage",
                "oncebox:handler/db@1.0.0.query",
                "oncebox:handler/events@1.0.0.emit",
                common,
            ],
        ),
        ("coupon-notice", vec!["oncebox:handler/db@1.0.0.stage", common]),
    ];
    for (name, imports) in used {
        let inspection = built(name).await;
        assert_eq!(functions(&inspection.imports), imports, "{name}");
        assert_eq!(functions(&inspection.exports), ["oncebox:handler/guest@1.0.0.handle"], "{name}");
        assert!(inspection.bytes < BYTES_MAX, "{name} has {} bytes", inspection.bytes);
    }
}

#[tokio::test]
async fn an_inspection_shows_all_that_a_module_may_do() {
    let inspection = built("points-award").await;
    let page = inspection.to_string();
    let shown = [
        "points-award 1.0.0  Adds points for a paid order\n",
        "  key               order:{/orderId}:paid\n",
        "  equal by          /userId, /amount\n",
        "  points_account    write\n",
        "  award(points signed, user_id unsigned)\n    UPDATE points_account SET points = points + ? WHERE user_id = ?\n    rows: 1, else reject account-missing\n",
        "  points_per_yuan   required  points for one yuan, a whole number\n",
        "  points-awarded    points.awarded to any\n",
        "queries: none\n",
        "  oncebox:handler/db@1.0.0: stage\n",
    ];
    for text in shown {
        assert!(page.contains(text), "no {text:?} in\n{page}");
    }
    let json = serde_json::to_value(&inspection).unwrap();
    assert_eq!(json["statements"]["award"]["params"][1]["type"], "unsigned");
    assert_eq!(json["tables"]["points_ledger"], "write");
    assert_eq!(json["digest"].as_str().map(str::len), Some(64));
}
