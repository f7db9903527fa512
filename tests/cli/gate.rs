//! The SQL gate as a handler's author meets it: a refusal names the statement, the rule, the place in the text and the
//! mending; what is accepted is what runs, byte for byte.

use oncebox_core::{config, manifest::Manifest};
use oncebox_tests::wat::{source, wat_component};

use oncebox::{
    host::admission::{Place, admit},
    store::{Store as _, Use, sqlite::SqliteStore},
};

use super::stage::{CONFIG, MANIFEST, SCHEMA, count, module, shop, with};

const GOOD: &str = "UPDATE points_account SET points = points + ? WHERE user_id = ?";

/// A refused text: the rule, where the text goes wrong (the first bytes from there on), and words of the mending.
const REFUSED: [(&str, &str, &str, &str); 12] = [
    ("UPDATE points_account SET points = points + ? /* x */ WHERE user_id = ?", "comment", "/*", "remove the comment"),
    (
        "UPDATE points_account SET points = ?; DELETE FROM points_account WHERE user_id = ?",
        "semicolon",
        ";",
        "write one statement",
    ),
    ("UPDATE points_account SET points = points + ?", "where-missing", "", "add a WHERE"),
    ("DROP TABLE points_account", "verb", "DROP", "write one INSERT, UPDATE or DELETE"),
    ("UPDATE ob_inbox SET state = ? WHERE handler_id = ?", "host-name", "ob_inbox", "choose another name"),
    (
        "UPDATE other_table SET points = ? WHERE user_id = ?",
        "table-undeclared",
        "other_table",
        "[tables] in the manifest",
    ),
    ("UPDATE shop.points_account SET points = ? WHERE user_id = ?", "qualified-name", "shop", "name the table alone"),
    ("UPDATE points_account SET points = sleep(?) WHERE user_id = ?", "function", "sleep", "docs/sql-gate.md"),
    ("INSERT IGNORE INTO points_account (points, user_id) VALUES (?, ?)", "ignore", "IGNORE", "leave IGNORE"),
    ("UPDATE points_account SET points = @x + ? WHERE user_id = ?", "variable", "@x", "pass the value as a parameter"),
    ("UPDATE points_account SET points = points + 1 WHERE user_id = ?", "parameter-count", "", "equal in number"),
    ("UPDATE points_account SET points = \"5\" + ? WHERE user_id = ?", "double-quote", "\"5\"", "single quotes"),
];

#[test]
fn a_refused_statement_is_named_with_its_rule_its_place_and_its_mending() {
    let folder = shop();
    for (sql, rule, place, mending) in REFUSED {
        module(&folder, "probes/skip", &with(MANIFEST, &format!("\"{GOOD}\""), &format!("'{sql}'")));
        let answer = folder.oncebox(["deploy", "module.wasm", "shop/award"]);
        answer.fails(4, ["may not serve shop/award, for one reason", &format!("[{rule}] [statements.award]"), mending]);
        let offset = if place.is_empty() { None } else { Some(sql.find(place).unwrap()) };
        if let Some(offset) = offset {
            let at = format!("column {}", offset + 1);
            assert!(answer.stderr.contains(&at), "`{at}` is missing in:\n{}", answer.stderr);
        }
        assert_eq!((count(&folder, "ob_deployment"), count(&folder, "ob_module")), (0, 0), "{sql}");
    }
}

#[tokio::test]
async fn what_the_gate_accepts_is_what_runs_byte_for_byte() {
    let odd = "uPdAtE  `points_account`\n\tSET points = points   +?\n  WHERE\tuser_id=?  ";
    let query = "select POINTS  from points_account\nwhere user_id =  ?";
    let text = with(MANIFEST, &format!("\"{GOOD}\""), &format!("'''{odd}'''"));
    let text = format!(
        "{text}\n[queries.account]\nsql = '''{query}'''\nparams = [{{ name = \"user_id\", type = \"unsigned\" }}]\n"
    );
    // From handler.toml through the packed section, as `oncebox build` does.
    let component = wat_component(&source("probes/skip"), MANIFEST);
    let packed = oncebox::module::pack(&component, &Manifest::parse(&text, "handler.toml").unwrap()).unwrap();
    let manifest = oncebox::module::manifest(&packed).unwrap();

    let (config, _) = config::read(&[("oncebox.toml".to_owned(), CONFIG.to_owned())]).unwrap();
    let tenant = &config.tenants["shop"];
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("shop.db"), Some(SCHEMA), Use::Command).await.unwrap();
    let place = Place {
        host_limits: &config.host.limits,
        tenant_name: "shop",
        tenant,
        name: "award",
        handler: &tenant.handlers["award"],
    };
    let admitted = admit(place, &manifest, store.as_ref(), &store.catalogue().await.unwrap()).await.unwrap();
    assert_eq!(&*admitted.statements["award"].sql, odd);
    assert_eq!(&*admitted.queries["account"].sql, query);
    store.close().await;
}
