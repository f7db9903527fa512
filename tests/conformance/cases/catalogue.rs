//! What the SQL gate is told of the tenant's tables.

use oncebox_core::{
    failure::Class,
    sql::{ReferentialAction as Action, TableKind},
};

use crate::bench::Bench;

pub(crate) async fn the_catalogue_names_tables_views_and_triggers(bench: Bench) {
    bench.run("CREATE VIEW rich AS SELECT user_id FROM points WHERE points > 100").await;
    bench.run("CREATE TRIGGER b_second AFTER INSERT ON points BEGIN SELECT 1; END").await;
    // Named in another case than the table was made with: it is the same table.
    bench.run("CREATE TRIGGER a_first AFTER UPDATE ON POINTS BEGIN SELECT 1; END").await;
    let catalogue = bench.store.catalogue().await.unwrap();
    assert!(catalogue.complete);
    let points = &catalogue.tables["points"];
    assert_eq!(
        (points.kind, points.triggers.as_slice()),
        (TableKind::Base, &["a_first".into(), "b_second".into()][..])
    );
    assert_eq!(catalogue.tables["award"].triggers, Vec::<String>::new());
    assert_eq!(catalogue.tables["rich"].kind, TableKind::View);
    assert_eq!(catalogue.tables["ob_inbox"].kind, TableKind::Base);
    assert!(!catalogue.tables.contains_key("absent"));
}

pub(crate) async fn the_catalogue_knows_what_refers_to_a_table_and_how(bench: Bench) {
    for (table, action) in [("c1", "CASCADE"), ("c2", "SET NULL"), ("c3", "SET DEFAULT"), ("c4", "RESTRICT")] {
        let sql = format!(
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES POINTS (user_id)
               ON DELETE {action} ON UPDATE NO ACTION)"
        );
        bench.run(&sql).await;
    }
    bench.run("CREATE TABLE self (id INTEGER PRIMARY KEY, up INTEGER REFERENCES self ON UPDATE CASCADE)").await;
    let catalogue = bench.store.catalogue().await.unwrap();
    let keys = |table: &str| -> Vec<(String, Action, Action)> {
        let keys = &catalogue.tables[table].referenced_by;
        keys.iter().map(|key| (key.from_table.clone(), key.on_delete, key.on_update)).collect()
    };
    let expected = [
        ("award".into(), Action::Restrict, Action::Restrict),
        ("c1".into(), Action::Cascade, Action::Restrict),
        ("c2".into(), Action::SetNull, Action::Restrict),
        ("c3".into(), Action::SetDefault, Action::Restrict),
        ("c4".into(), Action::Restrict, Action::Restrict),
    ];
    assert_eq!(keys("points"), expected);
    assert_eq!(keys("self"), [("self".into(), Action::Restrict, Action::Cascade)]);
    assert_eq!(keys("anything"), []);
}

pub(crate) async fn a_text_that_names_what_is_not_there_does_not_prepare(bench: Bench) {
    assert_eq!(bench.store.prepare("UPDATE points SET points = points + ? WHERE user_id = ?").await, Ok(()));
    for (sql, named) in [
        ("UPDATE absent SET points = 1 WHERE user_id = 1", "absent"),
        ("UPDATE points SET absent = 1 WHERE user_id = 1", "absent"),
        ("INSERT INTO points (user_id, absent) VALUES (1, 2)", "absent"),
        ("SELECT absent_function(points) FROM points WHERE user_id = 1", "absent_function"),
        ("UPDATE points SET WHERE", "WHERE"),
    ] {
        let error = bench.store.prepare(sql).await.unwrap_err();
        assert_eq!(error.class, Class::Blocked, "{sql}");
        assert!(error.message.contains(named), "{sql}: {error}");
    }
    // Nothing has run.
    assert_eq!(bench.number("SELECT count(*) FROM points").await, 0);
}

pub(crate) async fn a_changed_table_moves_the_schema_version(bench: Bench) {
    let before = bench.store.schema_version().await.unwrap();
    bench.run("INSERT INTO points (user_id, points) VALUES (1, 1)").await;
    assert_eq!(bench.store.schema_version().await.unwrap(), before);
    bench.alter("ALTER TABLE points ADD COLUMN level TEXT").await;
    assert_ne!(bench.store.schema_version().await.unwrap(), before);
}
