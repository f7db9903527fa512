//! The tenant's store: made, missing, taken for something else, newer.

use std::thread;

use super::stage::{CONFIG, SCHEMA, count, json, number, shop, shop_with, with};

#[test]
fn migrate_makes_the_tables_once_and_tells_their_number() {
    let folder = shop();
    assert_eq!(folder.oncebox(["migrate"]).done(), "shop: tables are at migration 3\n");
    assert_eq!(json(&folder.oncebox(["--json", "migrate", "shop"]).done())["tenants"]["shop"], 3);
    assert_eq!(count(&folder, "points_account"), 1, "the schema file is run once");
    folder.oncebox(["migrate", "shp"]).fails(5, ["there is no tenant `shp`; the configuration has: shop"]);
}

#[test]
fn commands_that_make_one_store_at_once_all_find_it_made() {
    for _ in 0..20 {
        let folder = shop();
        thread::scope(|scope| {
            let made: Vec<_> = (0..6).map(|_| scope.spawn(|| folder.oncebox(["migrate"]))).collect();
            for answer in made {
                assert_eq!(answer.join().unwrap().done(), "shop: tables are at migration 3\n");
            }
        });
        assert_eq!(count(&folder, "points_account"), 1, "the schema file is run once");
    }
}

#[test]
fn a_command_that_asks_makes_no_store_and_says_what_makes_it() {
    let folder = shop();
    for command in [
        ["tally"].as_slice(),
        &["tally", "shop"],
        &["dead", "list"],
        &["dead", "show", "shop", "1"],
        &["trace", "shop/award", "order:1"],
    ] {
        let answer = folder.oncebox_with(command, b"");
        answer.fails(
            5,
            [
                "error[store-missing]: tenant `shop` has no store yet: data/shop.db",
                "host.data_dir",
                "`oncebox migrate`",
            ],
        );
    }
    assert_eq!(folder.files(), ["oncebox.toml", "schema.sql"]);
}

#[test]
fn a_file_that_is_no_database_is_named_and_not_touched() {
    let folder = shop();
    let text = "not a database at all, but long enough to look like one; ".repeat(20);
    folder.write("data/shop.db", &text);
    for command in [["tally"].as_slice(), &["migrate"], &["send", "shop/orders"]] {
        let answer = folder.oncebox_with(command, b"");
        answer.fails(
            3,
            [
                "error[store-not-a-database]: tenant `shop`: failed to open data/shop.db: it is no SQLite database",
                "store.path",
            ],
        );
    }
    assert_eq!(std::fs::read_to_string(folder.path("data/shop.db")).unwrap(), text);
}

#[test]
fn tables_of_a_newer_oncebox_are_refused() {
    let folder = shop();
    folder.oncebox(["migrate"]).done();
    // The number beyond is all that an older binary can know of a newer one.
    number(&folder.path("data/shop.db"), "PRAGMA user_version = 7; SELECT 1");
    for command in [["tally"].as_slice(), &["migrate"], &["--json", "tally"]] {
        let answer = folder.oncebox_with(command, b"");
        answer.fails(9, ["tenant `shop`: ", "they are at migration 7, this oncebox needs 3", "use that one"]);
    }
}

#[test]
fn a_schema_file_that_does_not_run_leaves_no_table_behind() {
    let folder = shop();
    folder.write("schema.sql", format!("{SCHEMA}CREATE TABLE ("));
    folder.oncebox(["migrate"]).fails(3, ["error[schema-file]", "(store.schema): near \"(\": syntax error"]);
    folder.write("schema.sql", SCHEMA);
    folder.oncebox(["migrate"]).done();
    assert_eq!(count(&folder, "points_account"), 1);
}

#[test]
fn a_data_dir_that_cannot_be_made_is_named() {
    let folder = shop_with(&with(CONFIG, "\"data\"", "\"schema.sql\""));
    folder.oncebox(["migrate"]).fails(3, ["error[data-dir]: cannot make the folder schema.sql (host.data_dir)"]);
}
