//! The stories of `examples/`, by the commands of their own pages: on servers they end as on the embedded store.

use std::{fs, path::Path};

use oncebox::clock;
use oncebox_tests::{
    patience::PATIENCE,
    script::{self, Shell, checkout},
};
use serde_json::{Value, json};

use crate::servers::Servers;

/// Puts a story's folder into the shell's, with the names of this test, and goes there.
fn story(servers: &Servers, shell: &mut Shell, name: &str, tenant: &str) {
    shell.run(&format!("mkdir {name} && cd {name}"));
    for folder in ["", "on-servers"] {
        for entry in fs::read_dir(checkout().join("examples").join(name).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let file = Path::new(folder).join(path.file_name().unwrap());
                shell.write(file.to_str().unwrap(), &servers.own(&fs::read_to_string(&path).unwrap(), tenant));
            }
        }
    }
}

/// The page of a story, and where its section on servers begins.
fn page(servers: &Servers, name: &str, tenant: &str) -> (String, String) {
    let plugins = format!("{}/plugins/", checkout().display());
    let text = script::page(&format!("examples/{name}/README.md")).replace("../../plugins/", &plugins);
    let own = servers.own(&text, tenant);
    let (embedded, on_servers) = own.split_once("\n## On MySQL and RabbitMQ\n").unwrap();
    (embedded.to_owned(), on_servers.to_owned())
}

/// The books of a tenant; its rows of `parked` are on the way to another verdict, and how many there were is chance.
fn verdicts(shell: &mut Shell, config: &str, tenant: &str) -> Value {
    let text = shell.look(&format!("oncebox --json --config {config} tally"));
    let mut books: Value = serde_json::from_str(&text).unwrap_or_default();
    let verdicts = books["tenants"][tenant]["verdicts"].take();
    let handlers = verdicts.as_object().cloned().unwrap_or_default();
    handlers
        .into_iter()
        .map(|(name, mut counts)| {
            counts.as_object_mut().unwrap().remove("parked");
            (name, counts)
        })
        .collect()
}

/// Waits until a tenant has these books.
#[track_caller]
fn has_books(shell: &mut Shell, config: &str, tenant: &str, expected: &Value) {
    let began = clock::monotonic();
    loop {
        let books = verdicts(shell, config, tenant);
        if books == *expected {
            return;
        }
        let is_late = began.elapsed() >= PATIENCE * 2;
        assert!(!is_late, "{config} ends with {books}, not {expected}, after\n{}", shell.errors());
    }
}

/// Runs a story on the embedded store and then on servers: both end with these books.
fn ends(name: &str, tenant: &str, expected: &Value) -> (Servers, Shell) {
    let servers = Servers::without_database();
    let mut shell = Shell::start("");
    story(&servers, &mut shell, name, tenant);
    let (embedded, on_servers) = page(&servers, name, tenant);
    let commands = &script::blocks(&embedded)[0];
    // What it looks at may not be there yet: the books tell when it is.
    shell.look(&commands.text.replace("oncebox run &", "oncebox run & echo $! > pid"));
    has_books(&mut shell, "oncebox.toml", tenant, expected);
    shell.run("kill $(cat pid); while kill -0 $(cat pid) 2> /dev/null; do sleep 0.1; done");
    let (before, after) = on_servers.split_once("Run `on-servers/schema.sql`").unwrap();
    servers.run(&mut shell, &script::blocks(before));
    servers.database.execute(&script::page(&format!("examples/{name}/on-servers/schema.sql")));
    servers.run(&mut shell, &script::blocks(after));
    (servers, shell)
}

#[test]
fn the_points_story_ends_on_servers_as_on_the_embedded_store() {
    let expected = json!({
        "points-award": { "applied": 2, "duplicate": 1, "conflict": 1, "dead": 2 },
        "points-level": { "applied": 1, "skipped": 1 },
    });
    let (servers, mut shell) = ends("points-award", "shop", &expected);
    assert_eq!(verdicts(&mut shell, "on-servers/oncebox.toml", "shop"), expected);
    let points = "SELECT CONCAT(user_id, ' ', points) FROM points_account ORDER BY user_id";
    assert_eq!(servers.database.lines(points), ["7 10", "9 5"]);
    assert_eq!(
        servers.database.lines("SELECT receipt_no FROM points_ledger ORDER BY receipt_no"),
        ["R-0001", "R-0003"]
    );
    assert_eq!(servers.database.number("SELECT level FROM member_level WHERE user_id = 7"), 2);
    assert_eq!(servers.database.number("SELECT COUNT(*) FROM ob_outbox"), 2);
}

#[test]
fn the_coupon_story_ends_on_servers_as_on_the_embedded_store() {
    let expected = json!({
        "coupon-grant": { "applied": 2, "duplicate": 2, "conflict": 1, "dead": 1 },
        "coupon-notice": { "applied": 2 },
    });
    let (servers, mut shell) = ends("coupon-grant", "campaign", &expected);
    let last = json!({
        "coupon-grant": { "applied": 3, "duplicate": 2, "conflict": 1, "dead": 1 },
        "coupon-notice": { "applied": 3 },
    });
    has_books(&mut shell, "on-servers/oncebox.toml", "campaign", &last);
    for table in ["coupon", "grant_record", "notice"] {
        assert_eq!(servers.database.number(&format!("SELECT COUNT(*) FROM {table}")), 3, "{table}");
    }
}
