//! Migrations.

use oncebox::store::{StoreError, Use, mysql::MysqlStore};
use oncebox_tests::services::MysqlDatabase;
use sqlx::{Connection as _, Executor as _, MySqlConnection};

use crate::bench::{Bench, open};

const TABLES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name LIKE 'ob\\_%' ORDER BY table_name";

pub(crate) async fn an_empty_database_gets_its_tables_and_a_second_time_nothing_happens(bench: Bench) {
    let first = bench.migrate().await.unwrap();
    assert_eq!((first.from, first.to, first.is_procedure_made), (0, 2, true));
    let tables = bench.database.lines(TABLES);
    assert_eq!(tables.len(), 18, "{tables:?}");
    let secret = "SELECT HEX(value) FROM ob_meta WHERE name = 'tenant_secret'";
    let made = bench.database.lines(secret);
    assert_eq!(made[0].len(), 64);
    let second = bench.migrate().await.unwrap();
    assert_eq!((second.from, second.to, second.is_procedure_made), (2, 2, false));
    assert_eq!(bench.database.lines(secret), made);
    // Without a url of its own it is the store's user who migrates.
    let third = MysqlStore::migrated(&bench.root()).await.unwrap();
    assert_eq!((third.from, third.is_procedure_made, third.missing), (2, true, None), "another maker makes it anew");
}

pub(crate) async fn a_migration_that_was_killed_in_the_middle_is_run_again(bench: Bench) {
    let MysqlDatabase { name, migrate, .. } = &bench.database;
    // Somebody who has been making a table of that name for long: the migration waits for it with half its work done.
    let mut other = MySqlConnection::connect(&bench.database.root_url()).await.unwrap();
    let (id,): (u64,) = sqlx::query_as("SELECT CONNECTION_ID()").fetch_one(&mut other).await.unwrap();
    // Row by row: a sleep that is killed is over like any other, and only then the statement ends.
    let slow = "CREATE TABLE ob_tally AS SELECT SLEEP(1) AS slept FROM information_schema.columns LIMIT 600";
    let other = tokio::spawn(async move { other.execute(slow).await });
    let list = bench.database.server().kind.process_list();
    let running = format!("SELECT COUNT(*) FROM {list} WHERE id = {id} AND state = 'User sleep'");
    bench.becomes(&running).await;
    let settings = bench.settings();
    let migration = tokio::spawn(async move { MysqlStore::migrated(&settings).await });
    bench
        .becomes(&format!(
            "SELECT COUNT(*) FROM {list}
             WHERE user = '{}' AND db = '{name}' AND state LIKE 'Waiting for table metadata lock'",
            migrate.name
        ))
        .await;
    assert!(bench.database.kill_sessions_of(migrate) > 0);
    let error = migration.await.unwrap().unwrap_err();
    assert!(error.is_away(), "{error}");
    bench.database.execute_on_server(&format!("KILL {id}"));
    other.await.unwrap().unwrap_err();
    let made = |bench: &Bench| bench.database.lines(TABLES);
    let half = made(&bench);
    assert!((1..18).contains(&half.len()) && !half.iter().any(|table| table == "ob_tally"), "{half:?}");
    bench.database.execute("INSERT INTO ob_meta (name, value) VALUES ('kept', '1')");
    bench.migrate().await.unwrap();
    assert_eq!(made(&bench).len(), 18);
    let meta = "SELECT CAST(name AS CHAR) FROM ob_meta ORDER BY name";
    assert_eq!(bench.database.lines(meta), ["kept", "schema", "tenant_secret"]);
    // As it is when the process dies after the last table and before the number is written.
    bench.database.execute("DELETE FROM ob_meta WHERE name = 'schema'");
    let again = bench.migrate().await.unwrap();
    assert_eq!((again.from, again.to, again.is_procedure_made), (0, 2, false));
}

pub(crate) async fn two_who_migrate_at_once_do_it_once(bench: Bench) {
    let (one, other) = tokio::join!(bench.migrate(), bench.migrate());
    let (one, other) = (one.unwrap(), other.unwrap());
    let mut from = [one.from, other.from];
    from.sort_unstable();
    assert_eq!(from, [0, 2]);
    assert_ne!(one.is_procedure_made, other.is_procedure_made);
}

pub(crate) async fn a_host_and_a_command_refuse_a_database_that_is_not_migrated_or_newer(bench: Bench) {
    for usage in [Use::Host, Use::Command] {
        let error = open(&bench.root(), usage).await.err().unwrap();
        assert!(matches!(error, StoreError::Migration { found: 0, needed: 2, .. }), "{error}");
        assert!(error.to_string().contains("run `oncebox migrate`"), "{error}");
        assert_eq!(error.exit().number(), 9);
    }
    bench.grant_migrate_rights();
    bench.migrate().await.unwrap();
    open(&bench.root(), Use::Host).await.unwrap();
    bench.database.execute("UPDATE ob_meta SET value = '3' WHERE name = 'schema'");
    for usage in [Use::Host, Use::Command] {
        let error = open(&bench.root(), usage).await.err().unwrap();
        assert!(matches!(error, StoreError::Migration { found: 3, needed: 2, .. }), "{error}");
        assert!(error.to_string().contains("newer"), "{error}");
    }
    let error = bench.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::Migration { found: 3, .. }), "{error}");
    // No number at all is no reason to begin anew.
    bench.database.execute("UPDATE ob_meta SET value = 'x' WHERE name = 'schema'");
    assert!(matches!(bench.migrate().await, Err(StoreError::Corrupt { table: "ob_meta", .. })));
}

pub(crate) async fn without_a_right_the_migration_says_which(bench: Bench) {
    bench.grant_migrate_rights();
    let (name, user) = (&bench.database.name, &bench.database.migrate.name);
    bench.database.execute(&format!("REVOKE CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON {name}.* FROM '{user}'@'%'"));
    let error = bench.migrate().await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("docs/mysql.md"), "{error}");
    // The tables are there by then; with the right the rest follows.
    bench.documented("CREATE DATABASE");
    let again = bench.migrate().await.unwrap();
    assert_eq!((again.from, again.is_procedure_made), (2, true));
}
