//! Tenants that share a host.

use std::fs;

use oncebox_tests::{
    checker::check_promise,
    feed::entry,
    patience::{PATIENCE, eventually},
};

use crate::support::{ONE, ledger, settled};

/// Tenant `u` in a file of its own.
const OTHER: &str = "
tables = [\"ledger\", \"counter\"]
store = { kind = \"sqlite\", path = \"u.db\", schema = \"schema.sql\" }
routes = [{ source = \"in\", handlers = [\"a\"] }]
sources.in = { kind = \"local\" }
handlers.a = { destinations = { out = \"kept\" } }
destinations.kept = { kind = \"table\" }
";

#[test]
fn two_tenants_in_one_host_keep_their_own_books() {
    let site = ONE.site();
    site.write("tenants.d/u.toml", OTHER);
    site.deploy(ledger(), "u/a");
    let host = site.start().ready();
    // One key, one event id: what is the same by name is not the same fact.
    site.send("t/in", &[entry("e-1", "k", 1)]);
    site.send("u/in", &[entry("e-1", "k", 2)]);
    for (file, total) in [("t.db", 1), ("u.db", 2)] {
        let database = site.database(file);
        eventually("applied", PATIENCE, || (database.number("SELECT count(*) FROM ledger") == 1).then_some(()));
        settled(&database, PATIENCE);
        check_promise(&database);
        assert_eq!(database.number("SELECT total FROM counter"), total, "{file}");
    }
    host.stop();
}

#[test]
fn one_tenants_broken_schema_does_not_stop_the_other() {
    let site = ONE.site();
    site.write("tenants.d/u.toml", OTHER.replace("schema.sql", "broken.sql"));
    site.write("broken.sql", "CREATE TABLE ledger (id INTEGER PRIMARY KEY");
    let host = site.start();
    site.send("t/in", &[entry("e-1", "k", 1)]);
    let database = site.database("t.db");
    eventually("the sound tenant's event is applied", PATIENCE, || {
        (database.number("SELECT count(*) FROM ledger") == 1).then_some(())
    });
    let (status, why) = host.get("/readyz");
    assert!(status == 503 && why.contains("tenant u") && why.contains("store.schema"), "{status} {why}");
    assert_eq!(host.get("/livez").0, 200);

    // Mended, it comes along without a restart.
    site.write("broken.sql", fs::read(site.path("schema.sql")).unwrap());
    site.deploy(ledger(), "u/a");
    site.send("u/in", &[entry("e-1", "k", 2)]);
    let other = site.database("u.db");
    eventually("the mended tenant's event is applied", PATIENCE, || {
        (other.number("SELECT count(*) FROM ledger") == 1).then_some(())
    });
    host.ready().stop();
}

#[test]
fn one_tenants_database_that_cannot_be_opened_does_not_stop_the_other() {
    let site = ONE.site();
    site.write("tenants.d/u.toml", OTHER);
    site.write("data/u.db", "this is no database, and it is long enough to be taken for a broken one".repeat(20));
    let host = site.start();
    site.send("t/in", &[entry("e-1", "k", 1)]);
    let database = site.database("t.db");
    eventually("the sound tenant's event is applied", PATIENCE, || {
        (database.number("SELECT count(*) FROM ledger") == 1).then_some(())
    });
    let (status, why) = host.get("/readyz");
    assert!(status == 503 && why.contains("tenant u"), "{status} {why}");
    host.stop();
}
