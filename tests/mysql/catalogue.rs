//! What the SQL gate is shown.

use oncebox_core::{
    failure::Class,
    sql::{ReferentialAction as Action, TableKind},
};

use crate::bench::Bench;

const PARENT: &str = "CREATE TABLE parent (id INT PRIMARY KEY, note VARCHAR(20)) ENGINE = InnoDB";

pub(crate) async fn tables_views_and_triggers_are_shown_to_a_user_without_rights(bench: Bench) {
    bench.ready().await;
    for sql in [
        PARENT,
        "CREATE TABLE other (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT id FROM parent",
        "CREATE TRIGGER b_second BEFORE INSERT ON parent FOR EACH ROW SET NEW.note = 'b'",
        "CREATE TRIGGER a_first AFTER UPDATE ON parent FOR EACH ROW SET @seen = 1",
    ] {
        bench.database.execute(sql);
    }
    let catalogue = bench.command().await.unwrap().catalogue().await.unwrap();
    assert!(catalogue.complete);
    let parent = &catalogue.tables["parent"];
    assert_eq!((parent.kind, parent.engine.as_deref()), (TableKind::Base, Some("InnoDB")));
    assert_eq!(parent.triggers, ["a_first", "b_second"]);
    assert_eq!(catalogue.tables["other"].engine.as_deref(), Some("MyISAM"));
    assert_eq!(catalogue.tables["seen"].kind, TableKind::View);
    assert_eq!(catalogue.tables["ob_inbox"].kind, TableKind::Base);
    assert!(!catalogue.tables.contains_key("Parent"), "names are compared with upper and lower case");
    if bench.is_mariadb() {
        bench.database.execute("CREATE SEQUENCE numbers");
        bench.database.execute("ALTER TABLE parent ADD SYSTEM VERSIONING");
        let catalogue = bench.command().await.unwrap().catalogue().await.unwrap();
        assert_eq!(catalogue.tables["numbers"].kind, TableKind::System);
        assert_eq!(catalogue.tables["parent"].kind, TableKind::Base);
    }
}

pub(crate) async fn foreign_keys_are_shown_with_their_actions_also_those_of_other_databases(bench: Bench) {
    bench.ready().await;
    bench.database.execute(PARENT);
    for (table, action) in [("c1", "ON DELETE CASCADE"), ("c2", "ON DELETE SET NULL ON UPDATE CASCADE"), ("c3", "")] {
        let key = format!("CONSTRAINT {table}_key FOREIGN KEY (id) REFERENCES parent (id) {action}");
        bench.database.execute(&format!("CREATE TABLE {table} (id INT, {key}) ENGINE = InnoDB"));
    }
    let own = "up INT, FOREIGN KEY (up) REFERENCES self (id) ON UPDATE CASCADE";
    bench.database.execute(&format!("CREATE TABLE self (id INT PRIMARY KEY, {own}) ENGINE = InnoDB"));
    // Another database, whose name is one that files are not named by, refers to this one.
    let (name, other) = (bench.database.name.clone(), format!("{}-x", bench.database.name));
    let _dropped = Dropped { bench: &bench, database: other.clone() };
    bench.database.execute(&format!("CREATE DATABASE `{other}`"));
    let key = format!("CONSTRAINT far FOREIGN KEY (id) REFERENCES {name}.parent (id) ON DELETE CASCADE");
    bench.database.execute(&format!("CREATE TABLE `{other}`.`ch ild` (id INT, {key}) ENGINE = InnoDB"));
    let catalogue = bench.command().await.unwrap().catalogue().await.unwrap();
    let keys = |table: &str| -> Vec<(String, Action, Action)> {
        let keys = &catalogue.tables[table].referenced_by;
        keys.iter().map(|key| (key.from_table.clone(), key.on_delete, key.on_update)).collect()
    };
    let expected = [
        ("c1".to_owned(), Action::Cascade, Action::Restrict),
        ("c2".to_owned(), Action::SetNull, Action::Cascade),
        ("c3".to_owned(), Action::Restrict, Action::Restrict),
        (format!("{other}.ch ild"), Action::Cascade, Action::Restrict),
    ];
    assert_eq!(keys("parent"), expected);
    assert_eq!(keys("self"), [("self".to_owned(), Action::Restrict, Action::Cascade)]);
    assert_eq!(keys("c1"), []);
}

struct Dropped<'a> {
    bench: &'a Bench,
    database: String,
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.bench.database.execute(&format!("DROP DATABASE IF EXISTS `{}`", self.database));
    }
}

pub(crate) async fn nothing_of_other_databases_is_shown(bench: Bench) {
    bench.ready().await;
    let other = format!("{}_o", bench.database.name);
    let _dropped = Dropped { bench: &bench, database: other.clone() };
    for sql in [
        format!("CREATE DATABASE {other}"),
        format!("CREATE TABLE {other}.alpha (id INT PRIMARY KEY) ENGINE = InnoDB"),
        format!("CREATE TABLE {other}.beta (id INT, FOREIGN KEY (id) REFERENCES alpha (id)) ENGINE = InnoDB"),
        format!("CREATE TRIGGER {other}.gamma AFTER INSERT ON {other}.alpha FOR EACH ROW SET @seen = 1"),
    ] {
        bench.database.execute(&sql);
    }
    for what in ["catalogue", "version", "elsewhere", "'", ""] {
        let call = format!("CALL ob_catalogue('{}')", what.replace('\'', "''"));
        let shown = bench.as_runtime(&call).await.unwrap().join("\n");
        assert!(!["alpha", "beta", "gamma", &other].iter().any(|name| shown.contains(name)), "{what}: {shown}");
    }
}

pub(crate) async fn every_change_of_a_business_table_moves_the_version_and_its_rows_do_not(bench: Bench) {
    bench.ready().await;
    let store = bench.command().await.unwrap();
    let mut last = store.schema_version().await.unwrap();
    for sql in [
        PARENT,
        "ALTER TABLE parent ADD COLUMN level INT",
        "ALTER TABLE parent MODIFY level INT NOT NULL DEFAULT 3",
        "ALTER TABLE parent ADD UNIQUE KEY by_level (level)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES parent (id)) ENGINE = InnoDB",
        "ALTER TABLE child DROP FOREIGN KEY k",
        "ALTER TABLE child ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE",
        "CREATE TRIGGER t AFTER INSERT ON parent FOR EACH ROW SET @seen = 1",
        "DROP TRIGGER t",
        "CREATE VIEW v AS SELECT 1 AS one",
        "DROP VIEW v",
        "DROP TABLE child",
    ] {
        bench.database.execute(sql);
        let now = store.schema_version().await.unwrap();
        assert_ne!(now, last, "{sql}");
        last = now;
    }
    for sql in ["INSERT INTO parent (id) VALUES (1)", "ANALYZE TABLE parent", "DELETE FROM parent"] {
        bench.database.execute(sql);
        assert_eq!(store.schema_version().await.unwrap(), last, "{sql}");
    }
    assert_eq!(bench.command().await.unwrap().schema_version().await.unwrap(), last, "the same for every host");
}

pub(crate) async fn a_text_that_does_not_fit_does_not_prepare(bench: Bench) {
    bench.ready().await;
    bench.database.execute(PARENT);
    bench.database.execute("CREATE TABLE hidden (id INT PRIMARY KEY) ENGINE = InnoDB");
    bench.database.grant(&format!("SELECT, INSERT, UPDATE ON {}.parent", bench.database.name));
    let store = bench.command().await.unwrap();
    assert_eq!(store.prepare("UPDATE parent SET note = ? WHERE id = ?").await, Ok(()));
    assert_eq!(store.prepare("SELECT id, note FROM parent WHERE id = ? FOR UPDATE").await, Ok(()));
    for (sql, named) in [
        ("UPDATE absent SET note = 1 WHERE id = 1", "absent"),
        ("UPDATE parent SET absent = 1 WHERE id = 1", "absent"),
        ("SELECT absent_function(note) FROM parent WHERE id = 1", "absent_function"),
        ("UPDATE parent SET WHERE", "WHERE"),
        ("DELETE FROM parent WHERE id = 1", "DELETE command denied"),
        ("SELECT id FROM hidden WHERE id = 1", "SELECT command denied"),
    ] {
        let error = store.prepare(sql).await.unwrap_err();
        assert_eq!(error.class, Class::Blocked, "{sql}: {error}");
        assert!(error.message.contains(named), "{sql}: {error}");
    }
    // As the table is now, not as it was.
    bench.database.execute("ALTER TABLE parent DROP COLUMN note");
    let error = store.prepare("UPDATE parent SET note = ? WHERE id = ?").await.unwrap_err();
    assert!(error.message.contains("note"), "{error}");
    if !bench.is_mariadb() {
        // Let go 32 at a time, see the conformance case `prepared_statements_are_let_go_all_at_once`; nine were tried above.
        for _ in 0..50 {
            assert_eq!(store.prepare("SELECT id FROM parent WHERE id = ?").await, Ok(()));
        }
        let kept = "SELECT COUNT(*) FROM performance_schema.prepared_statements_instances AS s
            JOIN performance_schema.threads AS t ON t.THREAD_ID = s.OWNER_THREAD_ID
            WHERE t.PROCESSLIST_DB = DATABASE() AND s.SQL_TEXT LIKE '%SELECT id FROM parent WHERE id = ?'";
        assert_eq!(bench.database.number(kept), (9 + 50) % 32);
        bench.database.execute("ALTER TABLE parent ADD COLUMN v VECTOR(3)");
        let error = store.prepare("SELECT v FROM parent WHERE id = ?").await.unwrap_err();
        assert_eq!(error.class, Class::Blocked, "{error}");
        assert!(error.message.contains("VECTOR_TO_STRING"), "{error}");
        assert_eq!(store.prepare("SELECT VECTOR_TO_STRING(v) FROM parent WHERE id = ?").await, Ok(()));
    }
}
