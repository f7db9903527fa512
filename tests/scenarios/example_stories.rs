//! The folders of `examples/`, as far as they can be judged without a host: configuration, SQL, and what each event is
//! called.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use oncebox_core::{
    config::{self, Config, Tenant},
    envelope,
    identify::{self, Limits},
    manifest::Manifest,
    message::Message,
    rule::Rule,
    sql::{self, Declared, Dialect, Purpose},
};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn configuration(story: &str) -> Config {
    let file = format!("examples/{story}/oncebox.toml");
    let (config, warnings) = config::read(&[(file.clone(), read(&file))]).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(warnings.is_empty(), "{warnings:?}");
    config
}

fn manifest(name: &str) -> Manifest {
    let file = format!("plugins/{name}/handler.toml");
    Manifest::parse(&read(&file), &file).unwrap_or_else(|errors| panic!("{errors}"))
}

fn manifests(tenant: &Tenant) -> BTreeMap<String, Manifest> {
    tenant.handlers.keys().map(|name| (name.clone(), manifest(name))).collect()
}

/// Every text of a handler, with what it is and how many parameters it has.
fn texts(manifest: &Manifest) -> Vec<(&str, Option<&str>, Purpose, usize)> {
    let statements = manifest.statements.values().map(|statement| {
        let purpose = Purpose::Statement { rows: statement.rows };
        (statement.sql.as_str(), statement.sqlite.as_deref(), purpose, statement.params.len())
    });
    let queries = manifest.queries.values().map(|query| {
        (query.sql.as_str(), query.sqlite.as_deref(), Purpose::Query { lock: query.lock }, query.params.len())
    });
    statements.chain(queries).collect()
}

/// (event id, handler, business key) of each line of a story's `events.jsonl`.
fn identities(story: &str, tenant: &str, source: &str) -> Vec<(String, String, String)> {
    let config = configuration(story);
    let limits = Limits::from(&config.host.limits);
    let tenant = &config.tenants[tenant];
    let text = read(&format!("examples/{story}/events.jsonl"));
    let lines = text.lines().map(|line| {
        let message = Message { body: line.as_bytes().to_vec(), ..Message::default() };
        let event = envelope::open(&message, &tenant.sources[source].envelope, &limits).unwrap();
        let takes = |types: &[String]| types.contains(&event.event_type);
        let route = tenant.routes.iter().find(|route| route.source == source && takes(&route.event_types)).unwrap();
        let [handler] = route.handlers.as_slice() else { panic!("{:?}", route.handlers) };
        let manifest = manifest(handler);
        assert!(takes(&manifest.event_types), "{handler} does not take {}", event.event_type);
        let rule = Rule::of(&manifest, &tenant.handlers[handler]).unwrap();
        let identity = identify::identify(&event, &message, &rule, &limits).unwrap();
        (event.id.clone(), handler.clone(), identity.key.to_string())
    });
    lines.collect()
}

#[test]
fn each_event_of_the_points_story_has_the_key_that_the_story_tells() {
    let expected = [
        ("event-001", "points-award", "order:42:paid"),
        ("event-002", "points-award", "order:42:paid"),
        ("event-003", "points-award", "order:42:paid"),
        ("event-004", "points-award", "order:43:paid"),
        ("event-005", "points-award", "order:44:paid"),
        ("event-006", "points-level", "level:7:2"),
        ("event-007", "points-level", "level:7:1"),
        ("till-3-000017", "points-award", "order:45:paid"),
    ];
    let expected = expected.map(|(id, handler, key)| (id.to_owned(), handler.to_owned(), key.to_owned()));
    assert_eq!(identities("points-award", "shop", "orders"), expected);
}

#[test]
fn each_event_of_the_coupon_story_has_the_key_that_the_story_tells() {
    let expected = [
        ("E-1001-C9", "O-1001/C-9/gift"),
        ("E-1001-C9", "O-1001/C-9/gift"),
        ("E-1001-C9-again", "O-1001/C-9/gift"),
        ("E-1001-C9-wrong", "O-1001/C-9/gift"),
        ("E-1002-C10", "O-1002/C-10/gift"),
        ("E-1003-C9", "O-1003/C-9/gift"),
        ("legacy-88", "O-1004/C-9/gift"),
    ];
    let expected = expected.map(|(id, key)| (id.to_owned(), "coupon-grant".to_owned(), key.to_owned()));
    assert_eq!(identities("coupon-grant", "campaign", "paid"), expected);
}

#[test]
fn the_gate_takes_every_text_of_the_plugins_on_both_stores() {
    for (story, tenant) in [("points-award", "shop"), ("coupon-grant", "campaign")] {
        for (name, manifest) in manifests(&configuration(story).tenants[tenant]) {
            for (text, sqlite, purpose, params) in texts(&manifest) {
                let declared = Declared { tables: &manifest.tables, params, purpose };
                for (dialect, text) in [(Dialect::MySql, text), (Dialect::Sqlite, sqlite.unwrap_or(text))] {
                    let judged = sql::check_text(text, dialect, &declared);
                    assert!(judged.is_ok(), "{name} on {dialect}: {text}\n{judged:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_schema_of_a_story_holds_every_table_and_prepares_every_text_of_its_plugins() {
    for (story, tenant) in [("points-award", "shop"), ("coupon-grant", "campaign")] {
        let config = configuration(story);
        let tenant = &config.tenants[tenant];
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let schema = read(&format!("examples/{story}/schema.sql"));
        sqlx::raw_sql(AssertSqlSafe(schema)).execute(&mut connection).await.unwrap();
        for table in &tenant.tables {
            let text = format!("SELECT 1 FROM {table}");
            sqlx::raw_sql(AssertSqlSafe(text))
                .execute(&mut connection)
                .await
                .unwrap_or_else(|e| panic!("{table}: {e}"));
        }
        for (name, manifest) in manifests(tenant) {
            for (text, sqlite, ..) in texts(&manifest) {
                // EXPLAIN compiles the text and does nothing of it.
                let explain = format!("EXPLAIN {}", sqlite.unwrap_or(text));
                let prepared = sqlx::raw_sql(AssertSqlSafe(explain)).execute(&mut connection).await;
                assert!(prepared.is_ok(), "{name}: {text}\n{prepared:?}");
            }
        }
    }
}

#[test]
fn every_destination_of_the_plugins_is_bound_and_every_required_value_given() {
    for (story, tenant) in [("points-award", "shop"), ("coupon-grant", "campaign")] {
        let config = configuration(story);
        let tenant = &config.tenants[tenant];
        for (name, manifest) in manifests(tenant) {
            let handler = &tenant.handlers[&name];
            let bound: Vec<_> = handler.destinations.keys().collect();
            assert_eq!(bound, manifest.destinations.keys().collect::<Vec<_>>(), "{name}");
            let required = manifest.config.iter().filter(|(_, entry)| entry.required).map(|(key, _)| key);
            assert_eq!(handler.config.keys().collect::<Vec<_>>(), required.collect::<Vec<_>>(), "{name}");
        }
    }
}
