use proptest::prelude::*;

use super::*;
use crate::{document::page, text::TextError};

const SMALL: &str = r#"name = "points-award"
version = "1.4.0"
contract = "1.0"
key = "order:{/orderId}:paid"
fingerprint = ["/userId", "/amount"]
"#;

const FULL: &str = r#"
name = "points-award"
version = "1.4.0"
contract = "1.0"
description = "Adds points for a paid order"
event_types = ["order.paid"]
key = "order:{/orderId}:paid"
fingerprint = ["/userId", "/amount"]
ordering = "user:{/userId}"

[tables]
points_account = "write"
member_level = "read"

[queries.level]
sql = "SELECT level, balance FROM member_level WHERE user_id = ?"
params = [{ name = "user_id", type = "unsigned" }]
sqlite = ""
rows_max = 1
bytes_max = 65_536
lock = false
integers = "number"

[statements.award]
sql = "UPDATE points_account SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1
mismatch = { reject = "account-missing" }
sqlite = ""

[statements.award.errors]
1062 = { reject = "already-awarded" }
1452 = "retry"

[config.points_per_yuan]
required = true
description = "points for one yuan"

[destinations.points-awarded]
kinds = ["rabbitmq", "kafka", "local", "table"]
event_types = ["points.awarded"]
ordering = true

[limits]
memory_bytes_max = 8_388_608
run_time_ms_max = 200

[retry]
attempts_max = 12
deadline_s = 86_400

[build]
language = "rust"
"#;

fn full() -> Manifest {
    let param = |name: &str, kind| Param { name: name.into(), kind };
    Manifest {
        name: "points-award".into(),
        version: "1.4.0".into(),
        contract: "1.0".into(),
        description: "Adds points for a paid order".into(),
        event_types: vec!["order.paid".into()],
        key: "order:{/orderId}:paid".into(),
        fingerprint: FingerprintSpec::Pointers(vec!["/userId".into(), "/amount".into()]),
        ordering: Some("user:{/userId}".into()),
        tables: BTreeMap::from([("points_account".into(), Access::Write), ("member_level".into(), Access::Read)]),
        queries: BTreeMap::from([(
            "level".into(),
            Query {
                sql: "SELECT level, balance FROM member_level WHERE user_id = ?".into(),
                params: vec![param("user_id", ParamType::Unsigned)],
                sqlite: None,
                rows_max: 1,
                bytes_max: 65_536,
                lock: false,
                integers: Integers::Number,
            },
        )]),
        statements: BTreeMap::from([(
            "award".into(),
            Statement {
                sql: "UPDATE points_account SET points = points + ? WHERE user_id = ?".into(),
                params: vec![param("points", ParamType::Signed), param("user_id", ParamType::Unsigned)],
                sqlite: None,
                rows: RowExpectation::Between { min: 1, max: 1 },
                mismatch: Reaction::Reject("account-missing".into()),
                errors: BTreeMap::from([(1062, Reaction::Reject("already-awarded".into())), (1452, Reaction::Retry)]),
            },
        )]),
        config: BTreeMap::from([(
            "points_per_yuan".into(),
            ConfigEntry { required: true, default: None, description: "points for one yuan".into() },
        )]),
        destinations: BTreeMap::from([(
            "points-awarded".into(),
            Destination {
                kinds: ["rabbitmq", "kafka", "local", "table"].map(String::from).into(),
                event_types: vec!["points.awarded".into()],
                ordering: true,
            },
        )]),
        limits: Limits { memory_bytes_max: Some(8_388_608), run_time_ms_max: Some(200) },
        retry: Retry { attempts_max: Some(12), deadline_s: Some(86_400) },
        build: Build { language: Some("rust".into()), command: None, component: None },
    }
}

/// The errors of the small manifest with these lines after it; the first of them is line 6.
fn errors_of(lines: &str) -> Vec<TextError> {
    Manifest::parse(&format!("{SMALL}{lines}"), "handler.toml").unwrap_err().errors().to_vec()
}

/// Asserts that there is one error, where it stands and what it says.
#[track_caller]
fn assert_error(lines: &str, line: usize, column: usize, message: &str) {
    let errors = errors_of(lines);
    let found: Vec<_> = errors.iter().map(|e| (e.line, e.column, e.message.as_str())).collect();
    assert_eq!(found, [(line, column, message)]);
}

const STATEMENT: &str = "[tables]\nt = \"write\"\n[statements.award]\nsql = \"DELETE FROM t WHERE id = 1\"\n";

#[test]
fn a_full_manifest_is_read_into_its_values() {
    assert_eq!(Manifest::parse(FULL, "handler.toml"), Ok(full()));
}

#[test]
fn a_small_manifest_gets_the_defaults() {
    let manifest = Manifest::parse(
        &format!("{SMALL}{STATEMENT}rows = \"one-key\"\n[queries.q]\nsql = \"SELECT 1\""),
        "handler.toml",
    )
    .unwrap();
    let query = &manifest.queries["q"];
    assert_eq!((query.rows_max, query.bytes_max, query.lock), (100, 65_536, false));
    assert_eq!((query.integers, query.sqlite.as_deref(), query.params.len()), (Integers::Number, None, 0));
    let statement = &manifest.statements["award"];
    assert_eq!(statement.rows, RowExpectation::OneKey);
    assert_eq!(statement.mismatch, Reaction::Reject("rows-mismatch".into()));
    assert_eq!((manifest.description.as_str(), manifest.event_types.len(), manifest.ordering), ("", 0, None));
    assert_eq!((manifest.limits, manifest.retry, manifest.build), Default::default());
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_known_one() {
    let errors = Manifest::parse(&format!("{SMALL}{STATEMENT}rows = 1\nsqll = \"x\"\n"), "handler.toml").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "error: unknown key \"sqll\" in [statements.award]
  --> handler.toml:11:1
   |
11 | sqll = \"x\"
   | ^^^^
   = help: the nearest known key is \"sql\"; known keys: sql, params, sqlite, rows, mismatch, errors"
    );
}

#[test]
fn a_key_that_is_near_to_none_is_shown_with_the_known_ones_only() {
    let errors = errors_of("[retry]\nzzzzzzzzzzzzzzzzzzzzzzzz = 1\n");
    assert_eq!(errors[0].help.as_deref(), Some("known keys: attempts_max, deadline_s"));
}

#[test]
fn text_that_is_not_toml_is_complained_of_where_it_breaks() {
    let errors = Manifest::parse("name = \"a\"\nversion = \n", "handler.toml").unwrap_err();
    assert_eq!((errors.errors()[0].line, errors.errors().len()), (2, 1));
    assert!(errors.errors()[0].message.starts_with("not TOML: "), "{errors}");
}

#[test]
fn a_manifest_over_its_size_is_refused_unread() {
    let errors = Manifest::parse(&"#".repeat(MANIFEST_BYTES_MAX + 1), "handler.toml").unwrap_err();
    assert_eq!(errors.errors()[0].message, "has 1_048_577 bytes, above the limit of 1_048_576");
}

#[test]
fn all_errors_are_shown_at_once_in_the_order_of_the_lines() {
    let errors =
        Manifest::parse("version = \"x\"\nname = 1\ncontract = \"1.0\"\nkey = \"\"\n", "handler.toml").unwrap_err();
    let found: Vec<_> = errors.errors().iter().map(|e| (e.line, e.message.as_str())).collect();
    assert_eq!(
        found,
        [
            (1, "fingerprint is missing"),
            (1, "version is \"x\", which is no semantic version"),
            (2, "name is an integer, where a string is due"),
            (4, "key is empty"),
        ]
    );
}

#[test]
fn a_thousand_errors_are_kept_as_fifty_and_a_number() {
    let lines: String = (0..1_000).map(|n| format!("zz{n} = 1\n")).collect();
    let errors = Manifest::parse(&format!("{SMALL}{lines}"), "handler.toml").unwrap_err();
    assert_eq!((errors.errors().len(), errors.left_out()), (50, 950));
}

#[test]
fn a_hostile_manifest_is_refused_in_little_time_and_memory() {
    let long_key = format!("{} = 1\n", "a".repeat(500_000));
    let errors = errors_of(&long_key);
    assert_eq!(errors[0].message, format!("unknown key \"{}…\" at the top", "a".repeat(60)));
    let items: Vec<_> = (0..1_025).map(|n| format!("\"a{n}\"")).collect();
    let list = |items: &[String]| format!("event_types = [{}]\n", items.join(","));
    assert_error(&list(&items), 6, 15, "event_types has 1_025 entries, above the limit of 1_024");
    assert!(Manifest::parse(&format!("{SMALL}{}", list(&items[1..])), "handler.toml").is_ok());
}

#[test]
fn what_must_be_given_is_asked_for() {
    for key in ["name", "version", "contract", "key", "fingerprint"] {
        let text: String = SMALL.lines().filter(|line| !line.starts_with(key)).fold(String::new(), |t, l| t + l + "\n");
        let errors = Manifest::parse(&text, "handler.toml").unwrap_err();
        let messages: Vec<_> = errors.errors().iter().map(|e| e.message.clone()).collect();
        assert_eq!(messages, [format!("{key} is missing")]);
    }
}

#[test]
fn names_are_refused_with_the_character_that_may_not_stand_in_them() {
    assert_error(
        "[destinations.\"Points Awarded\"]\n",
        6,
        15,
        "the name \"Points Awarded\" in [destinations] is \"Points Awarded\", and only a-z, 0-9 and - may stand in it, not \"P\"",
    );
    assert_error(
        &format!("[config.{}]\n", "a".repeat(65)),
        6,
        9,
        &format!("the name \"{}…\" in [config] has 65 characters, above the limit of 64", "a".repeat(60)),
    );
    let longest = format!("[destinations.{}]\n", "a".repeat(64));
    assert!(Manifest::parse(&format!("{SMALL}{longest}"), "handler.toml").is_ok());
}

#[test]
fn parameters_are_named_once_by_small_letters_and_have_a_known_type() {
    let with = |params: &str| format!("{STATEMENT}rows = 1\nparams = [{params}]\n");
    assert_error(
        &with("{ name = \"1a\", type = \"text\" }"),
        11,
        20,
        "statements.award.params[0].name is \"1a\", which does not begin with a letter",
    );
    assert_error(
        &with("{ name = \"a\", type = \"text\" }, { name = \"a\", type = \"date\" }"),
        11,
        51,
        "statements.award.params[1] repeats the parameter \"a\"",
    );
    let errors = errors_of(&with("{ name = \"a\", type = \"unsinged\" }"));
    assert_eq!(errors[0].message, "statements.award.params[0].type is \"unsinged\", which is not known");
    assert!(errors[0].help.as_deref().unwrap().starts_with("the nearest known value is \"unsigned\"; known values: "));
    assert_error(&with("{ name = \"a\" }"), 11, 11, "statements.award.params[0].type is missing");
    assert_error(&with("1"), 11, 11, "statements.award.params[0] is an integer, where a table is due");
}

#[test]
fn event_types_may_end_in_a_star_and_nowhere_else() {
    let text = format!("event_types = [\"*\", \"order.*\", \"order.paid\"]\n{SMALL}");
    assert_eq!(Manifest::parse(&text, "f").unwrap().event_types, ["*", "order.*", "order.paid"]);
    assert_error("event_types = [\"a*b\"]", 6, 16, "event_types[0] is \"a*b\", with a * before the end");
    assert_error("event_types = [\"\"]", 6, 16, "event_types[0] is empty");
    assert_error("event_types = [\"a b\"]", 6, 16, "event_types[0] is \"a b\", which has a space or control character");
    assert_error("event_types = [\"a\", \"a\"]", 6, 21, "event_types[1] repeats \"a\", which would do nothing");
}

#[test]
fn versions_are_semantic_ones() {
    for (version, good) in [
        ("0.0.1", true),
        ("1.4.0-rc.1+b-2", true),
        ("1.4", false),
        ("1.4.0.0", false),
        ("1.4.x", false),
        ("1.4.0-", false),
        ("1.4.0 beta", false),
    ] {
        let text = SMALL.replace("1.4.0", version);
        assert_eq!(Manifest::parse(&text, "handler.toml").is_ok(), good, "{version}");
    }
}

#[test]
fn a_newer_contract_is_refused_with_the_known_ones() {
    let errors = Manifest::parse(&SMALL.replace("1.0", "1.1"), "handler.toml").unwrap_err();
    assert_eq!(errors.errors()[0].message, "contract is \"1.1\", and this build of oncebox links 1.0");
}

#[test]
fn templates_have_at_most_512_bytes() {
    assert_error(
        &format!("ordering = \"{{/a}}{}\"", "a".repeat(509)),
        6,
        12,
        "ordering has 513 bytes, above the limit of 512",
    );
    let text = format!("{SMALL}ordering = \"{{/a}}{}\"", "a".repeat(508));
    assert!(Manifest::parse(&text, "handler.toml").is_ok());
}

#[test]
fn a_template_that_cannot_be_used_is_refused_where_it_stands() {
    assert_error("ordering = \"{/a\"", 6, 12, "ordering cannot be used: a `{` or `}` without its partner at byte 0");
}

#[test]
fn a_fingerprint_is_the_payload_or_well_formed_pointers() {
    let with = |fingerprint: &str| {
        let text = SMALL.replace("[\"/userId\", \"/amount\"]", fingerprint);
        Manifest::parse(&text, "handler.toml").map_err(|errors| errors.errors()[0].message.clone())
    };
    assert_eq!(with("\"payload\"").unwrap().fingerprint, FingerprintSpec::Payload);
    for (fingerprint, message) in [
        ("\"body\"", "fingerprint is \"body\", which is neither \"payload\" nor a list"),
        ("[]", "fingerprint has 0 pointers, where 1 to 64 may be"),
        ("[\"userId\"]", "fingerprint[0] is \"userId\", which does not begin with /"),
        ("[\"/a~2\"]", "fingerprint[0] is \"/a~2\", where ~ is not followed by 0 or 1"),
        ("[\"/a~\"]", "fingerprint[0] is \"/a~\", where ~ is not followed by 0 or 1"),
        ("[\"/a\", \"/a\"]", "fingerprint[1] repeats \"/a\", which would do nothing"),
        ("[1]", "fingerprint[0] is an integer, where a string is due"),
        ("1", "fingerprint is an integer, where \"payload\" or a list of JSON pointers is due"),
    ] {
        assert_eq!(with(fingerprint), Err(message.to_owned()));
    }
    assert!(with("[\"/a~0b~1\"]").is_ok());
    // 5 × 502 bytes with their quotes, 4 commas, 2 brackets.
    let long: Vec<_> = (0..5).map(|n| format!("\"/{n}{}\"", "a".repeat(498))).collect();
    let message = "fingerprint cannot be used: the fingerprint has 2516 bytes as text, more than 2048";
    assert_eq!(with(&format!("[{}]", long.join(","))), Err(message.to_owned()));
}

#[test]
fn row_expectations_have_four_forms() {
    let rows = |rows: &str| {
        let text = format!("{SMALL}{STATEMENT}rows = {rows}\n");
        Manifest::parse(&text, "handler.toml")
            .map(|manifest| manifest.statements["award"].rows)
            .map_err(|errors| errors.errors()[0].message.clone())
    };
    assert_eq!(rows("3"), Ok(RowExpectation::Between { min: 3, max: 3 }));
    assert_eq!(rows("{ min = 0, max = 5 }"), Ok(RowExpectation::Between { min: 0, max: 5 }));
    assert_eq!(rows("\"any\""), Ok(RowExpectation::Any));
    assert_eq!(rows("\"one-key\""), Ok(RowExpectation::OneKey));
    assert_eq!(rows("1_000_000"), Ok(RowExpectation::Between { min: 1_000_000, max: 1_000_000 }));
    for (wrong, message) in [
        ("1_000_001", "statements.award.rows is 1_000_001, above its limit 1_000_000"),
        ("-1", "statements.award.rows is -1, out of its range"),
        (
            "99999999999999999999999999999999999999999",
            "statements.award.rows is 99999999999999999999999999999999999999999, out of its range",
        ),
        ("\"some\"", "statements.award.rows is \"some\", which is not known"),
        ("true", "statements.award.rows is a boolean, where a count, a range, \"any\" or \"one-key\" is due"),
        ("{ min = 2, max = 1 }", "statements.award.rows has min 2 above max 1"),
        ("{ min = 2 }", "statements.award.rows does not give both min and max"),
        ("{ min = 2, max = 3, x = 1 }", "unknown key \"x\" in [statements.award.rows]"),
    ] {
        assert_eq!(rows(wrong), Err(message.to_owned()));
    }
    assert_error(STATEMENT, 8, 1, "statements.award.rows is missing");
}

#[test]
fn a_mismatch_is_refused_where_no_count_mismatches() {
    assert_error(
        &format!("{STATEMENT}rows = \"any\"\nmismatch = \"retry\"\n"),
        11,
        12,
        "statements.award.mismatch would do nothing: rows = \"any\" takes every count",
    );
}

#[test]
fn reactions_have_three_forms() {
    let mismatch = |reaction: &str| {
        let text = format!("{SMALL}{STATEMENT}rows = 1\nmismatch = {reaction}\n");
        Manifest::parse(&text, "handler.toml")
            .map(|manifest| manifest.statements["award"].mismatch.clone())
            .map_err(|errors| errors.errors()[0].message.clone())
    };
    assert_eq!(mismatch("\"retry\""), Ok(Reaction::Retry));
    assert_eq!(mismatch("\"obsolete\""), Ok(Reaction::Obsolete));
    assert_eq!(mismatch("{ reject = \"gone\" }"), Ok(Reaction::Reject("gone".into())));
    for (wrong, message) in [
        ("\"ignore\"", "statements.award.mismatch is \"ignore\", which is not known"),
        (
            "{ reject = \"Gone\" }",
            "statements.award.mismatch.reject is \"Gone\", and only a-z, 0-9 and - may stand in it, not \"G\"",
        ),
        ("{}", "statements.award.mismatch.reject is missing"),
        ("1", "statements.award.mismatch is an integer, where { reject = \"CODE\" }, \"retry\" or \"obsolete\" is due"),
    ] {
        assert_eq!(mismatch(wrong), Err(message.to_owned()));
    }
}

#[test]
fn errors_are_keyed_by_server_error_number() {
    for key in ["0", "01062", "duplicate", "65536"] {
        assert_error(
            &format!("{STATEMENT}rows = 1\n[statements.award.errors]\n{key} = \"retry\"\n"),
            12,
            1,
            &format!("the key \"{key}\" in [statements.award.errors] is no server error number"),
        );
    }
}

#[test]
fn sql_is_neither_blank_nor_over_64_kib() {
    let sql = |sql: &str| {
        let text = format!("{SMALL}[queries.q]\nsql = \"{sql}\"\n");
        Manifest::parse(&text, "handler.toml").map(|_| ()).map_err(|errors| errors.errors()[0].message.clone())
    };
    assert_eq!(sql(&"a".repeat(65_536)), Ok(()));
    assert_eq!(sql(&"a".repeat(65_537)), Err("queries.q.sql has 65_537 bytes, above the limit of 65_536".to_owned()));
    assert_eq!(sql(""), Err("queries.q.sql is empty".to_owned()));
    assert_eq!(sql(" "), Err("queries.q.sql is blank".to_owned()));
}

#[test]
fn numbers_are_taken_at_their_limits_and_refused_past_them() {
    for (section, key, min, max) in [
        ("queries.q", "rows_max", 1_u64, 10_000_u64),
        ("queries.q", "bytes_max", 1, 16_777_216),
        ("limits", "memory_bytes_max", 65_536, 4_294_967_296),
        ("limits", "run_time_ms_max", 1, 60_000),
        ("retry", "attempts_max", 1, 1_000),
        ("retry", "deadline_s", 1, 2_592_000),
    ] {
        let sql = if section == "queries.q" { "sql = \"SELECT 1\"\n" } else { "" };
        let accepts = |number: u64| {
            Manifest::parse(&format!("{SMALL}[{section}]\n{sql}{key} = {number}\n"), "handler.toml").is_ok()
        };
        assert!(accepts(min) && accepts(max), "{section}.{key}");
        assert!(!accepts(min - 1) && !accepts(max + 1), "{section}.{key}");
    }
}

#[test]
fn one_name_is_not_both_a_query_and_a_statement() {
    assert_error(
        &format!("{STATEMENT}rows = 1\n[queries.award]\nsql = \"SELECT 1\"\n"),
        11,
        1,
        "queries.award has the name of a statement",
    );
}

#[test]
fn statements_without_tables_are_refused() {
    let statement = "[statements.award]\nsql = \"DELETE FROM t WHERE id = 1\"\nrows = 1\n";
    for tables in ["", "[tables]\n"] {
        let errors = errors_of(&format!("{statement}{tables}"));
        assert_eq!(errors[0].message, "statements are declared, and tables names no table");
    }
}

#[test]
fn tables_of_oncebox_are_refused_in_any_case_of_letters() {
    assert_error(
        "[tables]\nOb_inbox = \"read\"\n",
        7,
        1,
        "the name \"Ob_inbox\" in [tables] is \"Ob_inbox\", and tables ob_* belong to oncebox",
    );
    assert_error("[tables]\nt = \"drop\"\n", 7, 5, "tables.t is \"drop\", which is not known");
}

#[test]
fn an_unknown_kind_of_destination_is_refused() {
    assert_error(
        "[destinations.d]\nkinds = [\"rabbit\"]\n",
        7,
        10,
        "destinations.d.kinds[0] is \"rabbit\", and the kinds are rabbitmq, kafka, http, local, table",
    );
}

#[test]
fn a_default_of_a_required_value_is_refused() {
    assert_error(
        "[config.rate]\nrequired = true\ndefault = \"1\"\n",
        8,
        11,
        "config.rate.default would do nothing: the value is required",
    );
}

#[test]
fn a_build_is_rust_or_has_command_and_component() {
    let build = |lines: &str| {
        let text = format!("{SMALL}[build]\n{lines}");
        Manifest::parse(&text, "handler.toml").map(|_| ()).map_err(|errors| errors.errors()[0].message.clone())
    };
    assert_eq!(build(""), Ok(()));
    assert_eq!(build("language = \"js\"\ncommand = \"make\"\ncomponent = \"a.wasm\"\n"), Ok(()));
    assert_eq!(build("command = \"make\"\ncomponent = \"a.wasm\"\n"), Ok(()));
    for (lines, message) in [
        ("language = \"js\"\n", "build has no command and component"),
        ("command = \"make\"\n", "build gives only one of command and component"),
        (
            "language = \"rust\"\ncommand = \"make\"\n",
            "build.command would do nothing: language is \"rust\", which cargo builds",
        ),
    ] {
        assert_eq!(build(lines), Err(message.to_owned()));
    }
}

#[test]
fn the_packed_text_is_the_manifest_without_build() {
    let packed = full().packed_text();
    assert!(!packed.contains("build"), "{packed}");
    assert_eq!(Manifest::parse(&packed, "oncebox:manifest"), Ok(Manifest { build: Build::default(), ..full() }));
}

#[test]
fn the_reference_page_of_the_manifest_is_up_to_date() {
    page::assert_up_to_date("manifest.md", &reference());
}

fn reaction() -> impl Strategy<Value = Reaction> {
    prop_oneof!["[a-z0-9-]{1,64}".prop_map(Reaction::Reject), Just(Reaction::Retry), Just(Reaction::Obsolete)]
}

fn statement() -> impl Strategy<Value = Statement> {
    let rows = prop_oneof![
        Just(RowExpectation::Any),
        Just(RowExpectation::OneKey),
        (0..1_000_u64, 0..1_000_u64).prop_map(|(min, more)| RowExpectation::Between { min, max: min + more }),
    ];
    let errors = prop::collection::btree_map(1..65_536_u32, reaction(), 0..3);
    ("\\PC{1,40}x", prop::option::of("\\PC{1,40}x"), rows, reaction(), errors).prop_map(
        |(sql, sqlite, rows, mismatch, errors)| {
            let mismatch =
                if rows == RowExpectation::Any { Reaction::Reject("rows-mismatch".into()) } else { mismatch };
            let params = vec![Param { name: "a".into(), kind: ParamType::Json }];
            Statement { sql, params, sqlite, rows, mismatch, errors }
        },
    )
}

fn query() -> impl Strategy<Value = Query> {
    ("[^\\x00]{0,40}x", any::<bool>(), 1..=10_000_u32, 1..=16_777_216_u64).prop_map(
        |(sql, flag, rows_max, bytes_max)| {
            let integers = if flag { Integers::Text } else { Integers::Number };
            Query { sql, params: Vec::new(), sqlite: None, rows_max, bytes_max, lock: flag, integers }
        },
    )
}

proptest! {
    #[test]
    fn any_manifest_reads_back_from_its_packed_text(
        statements in prop::collection::btree_map("s[a-z0-9-]{1,9}", statement(), 0..3),
        queries in prop::collection::btree_map("q[a-z0-9-]{1,9}", query(), 0..3),
        key in "[a-z日]{1,40}:[{]/[a-z~]{0}[a-z]{1,40}[}]",
        default in prop::option::of("[^\\x00]{0,40}"),
        description in "[^\\x00]{0,40}",
    ) {
        let manifest = Manifest {
            statements,
            queries,
            key,
            config: BTreeMap::from([("c_1".into(), ConfigEntry { required: false, default, description })]),
            build: Build::default(),
            ..full()
        };
        prop_assert_eq!(Manifest::parse(&manifest.packed_text(), "oncebox:manifest"), Ok(manifest));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "([a-z]{1,4}|[\\[\\]{}=\"'.,#\n]|[0-9]){0,60}") {
        let _ = Manifest::parse(&text, "handler.toml").map_err(|errors| errors.to_string());
    }
}
