//! A shop on a server: the real commands, as the two documented users.

use std::time::Duration;

use oncebox_tests::{
    command::Folder,
    patience::eventually,
    wat::{source, wat_component},
};

use crate::bench::Bench;

const MANIFEST: &str = r#"
name = "award"
version = "1.0.0"
contract = "1.0"
event_types = ["order.paid"]
key = "order:{/orderId}"
fingerprint = ["/amount"]

[tables]
points_account = "write"

[statements.award]
sql = "UPDATE points_account SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1

[destinations.out]
kinds = ["table"]
"#;

fn shop(bench: &Bench) -> Folder {
    let database = &bench.database;
    let url = database.runtime_url().replace(&format!(":{}@", database.runtime.password), "@");
    let folder = Folder::new(&format!(
        r#"
[host]
data_dir = "data"
listen = ""

[tenants.shop]
tables = ["points_account"]

[tenants.shop.store]
kind = "mysql"
url = "{url}"
password = {{ file = "password" }}
migrate_url = {{ file = "migrate_url" }}

[tenants.shop.sources.orders]
kind = "local"
envelope = {{ event_type = "{{/type}}", id = "{{/id}}" }}

[[tenants.shop.routes]]
source = "orders"
handlers = ["award"]

[tenants.shop.destinations.kept]
kind = "table"

[tenants.shop.handlers.award]
owner = "ann@example.com"
destinations = {{ out = "kept" }}
"#
    ));
    folder.write("password", &database.runtime.password);
    folder.write("migrate_url", database.migrate_url() + "\n");
    folder.write("module.wasm", wat_component(&source("probes/good"), MANIFEST));
    folder
}

fn event(order: u32) -> String {
    format!("{{\"type\":\"order.paid\",\"id\":\"e-{order}\",\"orderId\":{order},\"amount\":5}}\n")
}

pub(crate) async fn a_shop_goes_from_an_empty_database_to_applied_events_as_the_documented_users(bench: Bench) {
    let folder = shop(&bench);
    bench.grant_migrate_rights();
    // Without any right there is not even a session.
    folder.oncebox(["tally"]).fails(9, ["error[store-denied]: tenant `shop`: ", "Access denied for user"]);
    let (name, user) = (&bench.database.name, &bench.database.runtime.name);
    bench.database.grant(&format!("SELECT ON {name}.*"));
    // Nothing works before the migration, and everything says why.
    for command in [["tally"].as_slice(), &["send", "shop/orders"], &["run"], &["trace", "shop/award", "order:1"]] {
        let answer = folder.oncebox_with(command, b"");
        assert_eq!(answer.code, 9, "{command:?}: {answer:?}");
        assert!(
            answer.stderr.contains("migration-due") && answer.stderr.contains("run `oncebox migrate`"),
            "{answer:?}"
        );
    }
    let said = folder.oncebox(["migrate"]).done();
    let begin = "shop: tables are at migration 2, they were at 0; the procedure ob_catalogue is new\n";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains("GRANT EXECUTE ON PROCEDURE"), "{said}");
    let answer = folder.oncebox(["check", "store"]);
    assert_eq!(answer.code, 9, "{answer:?}");
    assert!(
        answer.stdout.contains("shop: a host would not start on its database\n  error[store-catalogue]"),
        "{answer:?}"
    );
    // The rights, and the business tables.
    bench.database.execute(&format!("REVOKE SELECT ON {name}.* FROM '{user}'@'%'"));
    bench.documented("CREATE USER 'shop'@'%'");
    bench.database.execute(
        "CREATE TABLE points_account (user_id BIGINT UNSIGNED PRIMARY KEY, points INT NOT NULL) ENGINE = InnoDB",
    );
    bench.database.execute("INSERT INTO points_account VALUES (42, 0)");
    bench.database.grant(&format!("SELECT, UPDATE ON {}.points_account", bench.database.name));
    assert_eq!(folder.oncebox(["check", "store"]).done(), "shop: a host would start on its database\n");
    assert_eq!(folder.oncebox(["migrate"]).done(), "shop: tables are at migration 2\n");
    let said = folder.oncebox(["deploy", "module.wasm", "shop/award"]).done();
    assert!(said.contains("offered: the next `oncebox run` serves it"), "{said}");
    // Two hosts share the work.
    let mut hosts = [folder.run([], "started"), folder.run([], "started")];
    for host in &mut hosts {
        host.wait_for("\"ready\"");
    }
    let lines: String = (0..200).map(|n| event(n % 100)).collect();
    let sent = folder.oncebox_with(&["send", "shop/orders", "-"], lines.as_bytes()).done();
    assert!(sent.contains("200"), "{sent}");
    let settled = "SELECT COUNT(*) FROM ob_local";
    eventually("all is settled", Duration::from_secs(60), || (bench.database.number(settled) == 0).then_some(()));
    assert_eq!(bench.database.number("SELECT CAST(points AS SIGNED) FROM points_account"), 700);
    assert_eq!(bench.database.number("SELECT COUNT(*) FROM ob_inbox WHERE state = 0"), 100);
    assert_eq!(bench.database.number("SELECT COUNT(*) FROM ob_outbox"), 100);
    assert_eq!(bench.database.number("SELECT CAST(SUM(duplicates) AS SIGNED) FROM ob_inbox"), 100);
    let told = folder.oncebox(["trace", "shop/award", "order:7"]).done();
    assert!(told.contains("applied"), "{told}");
    // A table that is changed under it is seen.
    bench.database.execute("ALTER TABLE points_account RENAME COLUMN points TO score");
    for host in &mut hosts {
        host.wait_for("tables have changed under");
    }
    for host in hosts {
        let (code, log) = host.end();
        assert_eq!(code, 0, "{log}");
    }
    assert_eq!(bench.database.number("SELECT COUNT(*) FROM ob_boot WHERE ended_at IS NULL"), 0);
}
