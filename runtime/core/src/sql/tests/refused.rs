//! Refused statements, each by its own rule.

use std::collections::BTreeSet;

use super::super::Rule;
use super::{ANY, Dialect, KEY, L, LITE, MY, Purpose, Q, S, World, marks};

type Row = (Rule, Purpose, Dialect, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // what PREPARE would accept and execute
    (Rule::Verb, S, MY, "COMMIT"),
    (Rule::Verb, S, MY, "ROLLBACK"),
    (Rule::Verb, S, MY, "BEGIN"),
    (Rule::Verb, S, MY, "START TRANSACTION"),
    (Rule::Verb, S, MY, "SAVEPOINT a"),
    (Rule::Verb, S, MY, "SET autocommit = 1"),
    (Rule::Verb, S, MY, "SET PASSWORD = 'x'"),
    (Rule::Verb, S, MY, "KILL 5"),
    (Rule::Verb, S, MY, "FLUSH TABLES"),
    (Rule::Verb, S, MY, "CREATE TABLE x (id INT)"),
    (Rule::Verb, S, MY, "DROP TABLE account"),
    (Rule::Verb, S, MY, "ALTER TABLE account ADD x INT"),
    (Rule::Verb, S, MY, "TRUNCATE account"),
    (Rule::Verb, S, MY, "GRANT ALL ON account TO u"),
    (Rule::Verb, S, MY, "CALL p()"),
    (Rule::Verb, S, MY, "DO SLEEP(5)"),
    (Rule::Verb, S, MY, "LOAD DATA INFILE 'x' INTO TABLE account"),
    (Rule::Verb, S, MY, "LOCK TABLES account WRITE"),
    (Rule::Verb, S, MY, "XA START 'x'"),
    (Rule::Verb, S, MY, "HANDLER account OPEN"),
    (Rule::Verb, S, MY, "PREPARE s FROM 'COMMIT'"),
    (Rule::Verb, S, MY, "REPLACE INTO account (id) VALUES (?)"),
    (Rule::Verb, S, LITE, "REPLACE INTO account (id) VALUES (?)"),
    (Rule::Verb, S, LITE, "PRAGMA foreign_keys = 0"),
    (Rule::Verb, S, LITE, "ATTACH 'x' AS y"),
    (Rule::Verb, S, LITE, "VACUUM"),
    (Rule::Verb, S, MY, "WITH x AS (SELECT 1) DELETE FROM account WHERE id = 1"),
    (Rule::Verb, S, MY, "SELECT id FROM account WHERE id = ?"),
    (Rule::Verb, Q, MY, "DELETE FROM account WHERE id = ?"),
    (Rule::Verb, Q, MY, "TABLE t"),
    (Rule::HostName, Q, MY, "TABLE ob_inbox"),
    (Rule::Verb, Q, MY, "VALUES ROW(1, 2)"),
    (Rule::Verb, Q, MY, "EXPLAIN ANALYZE SELECT id FROM account WHERE id = ?"),
    (Rule::Verb, Q, MY, "SHOW TABLES"),
    (Rule::Verb, Q, MY, "(SELECT id FROM account WHERE id = ?)"),
    (Rule::Verb, Q, MY, ""),
    (Rule::Verb, Q, MY, " \n"),
    (Rule::Verb, S, MY, "`DELETE` FROM account WHERE id = ?"),
    // comments
    (Rule::Comment, S, MY, "/*! COMMIT */"),
    (Rule::Comment, S, MY, "/*!90704 COMMIT */"),
    (Rule::Comment, S, MY, "/*M! COMMIT */"),
    (Rule::Comment, S, MY, "DELETE FROM account /*!90704 WHERE id = ? */"),
    (Rule::Comment, S, MY, "DELETE /*+ MAX_EXECUTION_TIME(1) */ FROM account WHERE id = ?"),
    (Rule::Comment, S, MY, "DELETE FROM account WHERE id = ? -- all of it"),
    (Rule::Comment, S, MY, "DELETE FROM account WHERE id = 5--1"),
    (Rule::Comment, S, MY, "DELETE FROM account WHERE id = ? # or not"),
    (Rule::Comment, S, LITE, "DELETE FROM account WHERE id = ? /* open"),
    (Rule::Comment, S, MY, "DELETE FROM account WHERE id = ? */"),
    (Rule::Comment, S, MY, r"UPDATE account SET a = 'x\\' /* ' */ WHERE id = ?"),
    (Rule::Comment, S, LITE, r"UPDATE account SET a = 'x\' -- ' WHERE id = ?"),
    // the letters of the text
    (Rule::ControlCharacter, S, MY, "DELETE FROM account\0 WHERE id = ?"),
    (Rule::ControlCharacter, S, MY, "DELETE FROM account\u{b}WHERE id = ?"),
    (Rule::ControlCharacter, S, MY, "DELETE FROM account\rWHERE id = ?"),
    (Rule::ControlCharacter, S, MY, "DELETE FROM account WHERE id = '\0'"),
    (Rule::ControlCharacter, S, MY, "DELETE FROM account WHERE id = '\\\0'"),
    (Rule::ControlCharacter, S, MY, "DELETE FROM account WHERE id = '\u{85}'"),
    (Rule::NonAscii, S, MY, "DELETE FROM account\u{a0}WHERE id = ?"),
    (Rule::NonAscii, S, MY, "DELETE FROM `accöunt` WHERE id = ?"),
    (Rule::NonAscii, S, MY, "DELETE FROM account WHERE id = ’x’"),
    (Rule::NonAscii, S, MY, "DELETE FROM account WHERE id = ？"),
    (Rule::DoubleQuote, S, MY, "DELETE FROM account WHERE id = \"x\""),
    (Rule::DoubleQuote, S, LITE, "DELETE FROM \"account\" WHERE id = ?"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = 'x"),
    (Rule::StringLiteral, S, MY, r"DELETE FROM account WHERE id = 'x\'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = 'x' 'y'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = X'4142'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = N'a'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = _utf8mb4'a'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE id = _latin1 'a'"),
    (Rule::StringLiteral, S, MY, "DELETE FROM account WHERE day = DATE '2026-01-01'"),
    (Rule::Number, S, MY, "DELETE FROM account WHERE id = 0x41"),
    (Rule::Number, S, MY, "DELETE FROM account WHERE id = 1e3"),
    (Rule::Number, S, MY, "DELETE FROM account WHERE id = 1x"),
    (Rule::Number, S, LITE, "DELETE FROM account WHERE id = 1_000"),
    (Rule::Semicolon, S, MY, "DELETE FROM account WHERE id = ?;"),
    (Rule::Semicolon, S, MY, "DELETE FROM account WHERE id = ?; COMMIT"),
    (Rule::Placeholder, S, LITE, "DELETE FROM account WHERE id = ?1"),
    (Rule::Placeholder, S, LITE, "DELETE FROM account WHERE id = :id"),
    (Rule::Placeholder, S, LITE, "DELETE FROM account WHERE id = $1"),
    (Rule::Placeholder, S, MY, "DELETE FROM account WHERE id = ??"),
    (Rule::Placeholder, Q, MY, "SELECT id FROM account WHERE id = ? ORDER BY ?"),
    (Rule::Placeholder, Q, MY, "SELECT COUNT(*) FROM account WHERE id = ? GROUP BY ?"),
    (Rule::Syntax, S, MY, "DELETE FROM ? WHERE id = ?"),
    (Rule::Variable, Q, MY, "SELECT @a:=1"),
    (Rule::Variable, Q, MY, "SELECT @@version FROM account WHERE id = ?"),
    (Rule::Variable, S, LITE, "DELETE FROM account WHERE id = @p"),
    (Rule::Variable, Q, MY, "SELECT a := 1 FROM account WHERE id = ?"),
    (Rule::Symbol, S, MY, "DELETE FROM account WHERE id = ~5"),
    (Rule::Symbol, S, MY, "DELETE FROM account WHERE id = !5"),
    (Rule::Symbol, S, MY, "DELETE FROM account WHERE id = {d '2026-01-01'}"),
    (Rule::Symbol, S, LITE, "DELETE FROM [account] WHERE id = ?"),
    (Rule::Symbol, S, MY, r"DELETE FROM account WHERE id = \N"),
    (Rule::Number, S, MY, "DELETE FROM account WHERE id = .5"),
    // names
    (Rule::Identifier, S, MY, "DELETE FROM `acc ount` WHERE id = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM `account``x` WHERE id = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM `ob_inbox WHERE id = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM `` WHERE id = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM acc$ount WHERE id = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM account WHERE `1` = ?"),
    (Rule::Identifier, S, MY, "DELETE FROM aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg WHERE id = ?"),
    (Rule::Identifier, Q, MY, "SELECT id AS 'x' FROM account WHERE id = ?"),
    (Rule::Identifier, S, LITE, "DELETE FROM 'account' WHERE id = ?"),
    (Rule::Identifier, S, LITE, "UPDATE account SET 'a' = 1 WHERE id = ?"),
    (Rule::ReservedWord, Q, MY, "SELECT id FROM dual WHERE id = ?"),
    (Rule::ReservedWord, S, MY, "UPDATE account SET rank = ? WHERE id = ?"),
    (Rule::ReservedWord, S, MY, "UPDATE account SET a = read WHERE id = ?"),
    (Rule::ReservedWord, S, MY, "UPDATE account external SET a = ? WHERE id = ?"),
    (Rule::HostName, S, MY, "DELETE FROM ob_inbox WHERE id = ?"),
    (Rule::HostName, S, MY, "DELETE FROM OB_Inbox WHERE id = ?"),
    (Rule::HostName, S, MY, "DELETE FROM `oB_inbox` WHERE id = ?"),
    (Rule::HostName, Q, MY, "SELECT id FROM account WHERE id IN (SELECT id FROM ob_held WHERE id = ?)"),
    (Rule::HostName, Q, MY, "SELECT id FROM account WHERE id = (TABLE ob_inbox)"),
    (Rule::HostName, Q, LITE, "SELECT name FROM sqlite_master WHERE name = ?"),
    (Rule::QualifiedName, S, MY, "DELETE FROM other.account WHERE id = ?"),
    (Rule::QualifiedName, Q, MY, "SELECT id FROM information_schema.tables WHERE id = ?"),
    (Rule::QualifiedName, Q, LITE, "SELECT id FROM main.account WHERE id = ?"),
    (Rule::QualifiedName, Q, MY, "SELECT other.account.id FROM account WHERE id = ?"),
    (Rule::QualifiedName, Q, MY, "SELECT other.account.* FROM account WHERE id = ?"),
    (Rule::QualifiedName, S, MY, "UPDATE account SET x.account.a = 1 WHERE id = ?"),
    // what the parser swallows or makes of it
    (Rule::Disagreement, S, MY, "INSERT INTO LOCAL account (id) VALUES (?)"),
    (Rule::Disagreement, S, LITE, "DELETE FROM account WHERE a NOTNULL AND id = ?"),
    (Rule::Syntax, S, MY, "DELETE account"),
    (Rule::Syntax, S, MY, "DELETE FROM account WHERE id = ? DELETE FROM account WHERE id = 1"),
    (Rule::Syntax, S, MY, "UPDATE account SET"),
    (Rule::Syntax, S, MY, "INSERT account (id) VALUES (?)"),
    // one table, plainly
    (Rule::ManyTables, S, MY, "UPDATE account, stock SET a = 1 WHERE id = ?"),
    (Rule::ManyTables, S, MY, "UPDATE account a JOIN stock s ON a.id = s.id SET a.x = 1 WHERE a.id = ?"),
    (Rule::ManyTables, S, LITE, "UPDATE account SET a = 1 FROM stock WHERE id = ?"),
    (Rule::ManyTables, S, MY, "DELETE account FROM account JOIN stock ON a = b WHERE id = ?"),
    (Rule::ManyTables, S, MY, "DELETE a, s FROM account a JOIN stock s ON a.id = s.id WHERE a.id = ?"),
    (Rule::ManyTables, S, MY, "DELETE FROM account USING account JOIN stock ON a = b WHERE id = ?"),
    (Rule::ManyTables, S, MY, "DELETE FROM account, stock WHERE id = ?"),
    (Rule::Ignore, S, MY, "INSERT IGNORE INTO account (id) VALUES (?)"),
    (Rule::Ignore, S, MY, "UPDATE IGNORE account SET a = 1 WHERE id = ?"),
    (Rule::Ignore, S, MY, "DELETE IGNORE FROM account WHERE id = ?"),
    (Rule::Ignore, S, LITE, "INSERT OR IGNORE INTO account (id) VALUES (?)"),
    (Rule::Ignore, S, LITE, "INSERT OR REPLACE INTO account (id) VALUES (?)"),
    (Rule::Ignore, S, LITE, "INSERT OR ROLLBACK INTO account (id) VALUES (?)"),
    (Rule::Ignore, S, LITE, "UPDATE OR FAIL account SET a = 1 WHERE id = ?"),
    (Rule::Modifier, S, MY, "UPDATE LOW_PRIORITY account SET a = 1 WHERE id = ?"),
    (Rule::Modifier, S, MY, "DELETE QUICK FROM account WHERE id = ?"),
    (Rule::Modifier, S, MY, "INSERT DELAYED INTO account (id) VALUES (?)"),
    (Rule::Modifier, Q, MY, "SELECT HIGH_PRIORITY id FROM account WHERE id = ?"),
    (Rule::Modifier, Q, MY, "SELECT SQL_CALC_FOUND_ROWS id FROM account WHERE id = ?"),
    (Rule::Modifier, Q, MY, "SELECT id FROM account STRAIGHT_JOIN level WHERE id = ?"),
    (Rule::Into, Q, MY, "SELECT id FROM account WHERE id = ? INTO OUTFILE 'x'"),
    (Rule::Into, Q, MY, "SELECT id INTO DUMPFILE 'x' FROM account WHERE id = ?"),
    (Rule::Into, Q, MY, "SELECT id INTO x FROM account WHERE id = ?"),
    (Rule::Into, Q, MY, "SELECT id FROM account WHERE id = ? FOR UPDATE INTO x"),
    (Rule::Returning, S, LITE, "DELETE FROM account WHERE id = ? RETURNING id"),
    (Rule::Returning, S, MY, "INSERT INTO account (id) VALUES (?) RETURNING id"),
    (Rule::TableStatement, Q, MY, "SELECT id FROM account WHERE id IN (TABLE level)"),
    (Rule::TableStatement, S, MY, "INSERT INTO account (id) TABLE level"),
    (Rule::Cte, Q, MY, "SELECT id FROM (WITH x AS (SELECT 1) SELECT id FROM account WHERE id = ?) t WHERE t.id = ?"),
    (Rule::Cte, Q, LITE, "SELECT id FROM account WHERE id IN (WITH RECURSIVE x AS (SELECT 1) SELECT 1)"),
    (Rule::InsertSource, S, MY, "INSERT INTO account (id) WITH x AS (SELECT 1) SELECT * FROM x"),
    (Rule::Union, Q, MY, "SELECT id FROM account WHERE id = ? UNION SELECT id FROM level WHERE id = 1"),
    (Rule::Union, Q, LITE, "SELECT id FROM account WHERE id = ? EXCEPT SELECT id FROM level WHERE id = 1"),
    (Rule::Window, Q, MY, "SELECT SUM(a) OVER (PARTITION BY b) FROM account WHERE id = ?"),
    (Rule::Window, Q, MY, "SELECT id FROM account WHERE id = ? WINDOW w AS (ORDER BY id)"),
    (Rule::Partition, S, MY, "DELETE FROM account PARTITION (p0) WHERE id = ?"),
    (Rule::Partition, S, MY, "INSERT INTO account PARTITION (p0) (id) VALUES (?)"),
    (Rule::IndexHint, Q, MY, "SELECT id FROM account USE INDEX (x) WHERE id = ?"),
    (Rule::IndexHint, Q, MY, "SELECT id FROM account FORCE INDEX (x) WHERE id = ?"),
    (Rule::IndexHint, Q, LITE, "SELECT id FROM account INDEXED BY x WHERE id = ?"),
    (Rule::Collate, S, MY, "DELETE FROM account WHERE name = ? COLLATE utf8mb4_bin"),
    (Rule::Join, Q, MY, "SELECT id FROM account, level WHERE id = ?"),
    (Rule::Join, Q, MY, "SELECT id FROM account NATURAL JOIN level WHERE id = ?"),
    (Rule::Join, Q, MY, "SELECT id FROM account JOIN level WHERE id = ?"),
    (Rule::Join, Q, MY, "SELECT id FROM account CROSS JOIN level WHERE id = ?"),
    (Rule::FromMissing, Q, MY, "SELECT 1"),
    (Rule::FromMissing, Q, MY, "SELECT 1 WHERE 1 = 1"),
    // functions, operators, casts
    (Rule::Function, Q, MY, "SELECT SLEEP(5) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT BENCHMARK(1, 1) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT LOAD_FILE('x') FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT GET_LOCK('x', 1) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT RAND() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT UUID() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT SYSDATE() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT CONNECTION_ID() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT CURRENT_USER FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT current_user() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT DATABASE() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT VERSION() FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT MASTER_POS_WAIT('a', 1) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT mine(id) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT other.mine(id) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT `COUNT`(id) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT COUNT (id) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT SUBSTRING (id, 1) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT CAST (id AS JSON) FROM account WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT SUM(id) FILTER (WHERE id = 1) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT GROUP_CONCAT(id SEPARATOR ',') FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT ABS(*) FROM account WHERE id = ?"),
    (Rule::Function, Q, MY, "SELECT TIMESTAMPDIFF(id, a, b) FROM account WHERE id = ?"),
    (Rule::Function, S, MY, "UPDATE account SET a = VALUES(a) WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT load_extension('x') FROM account WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT random() FROM account WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT randomblob(9) FROM account WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT changes() FROM account WHERE id = ?"),
    (Rule::Function, Q, LITE, "SELECT NOW() FROM account WHERE id = ?"),
    (Rule::LastInsertId, S, MY, "UPDATE account SET id = LAST_INSERT_ID(id + 1) WHERE id = ?"),
    (Rule::LastInsertId, S, LITE, "UPDATE account SET a = last_insert_rowid() WHERE id = ?"),
    (Rule::LastInsertId, S, LITE, "UPDATE account SET a = LAST_INSERT_ID() WHERE id = ?"),
    (Rule::CastType, S, MY, "UPDATE account SET a = CAST(? AS DOUBLE PRECISION) WHERE id = ?"),
    (Rule::CastType, S, LITE, "UPDATE account SET a = CAST(? AS SIGNED) WHERE id = ?"),
    (Rule::CastType, S, MY, "UPDATE account SET a = CAST(? AS INTEGER) WHERE id = ?"),
    (Rule::Operator, S, MY, "UPDATE account SET a = b || c WHERE id = ?"),
    (Rule::Operator, S, MY, "DELETE FROM account WHERE id = ? AND a REGEXP 'x'"),
    (Rule::Operator, S, MY, "DELETE FROM account WHERE id = ? AND a RLIKE 'x'"),
    (Rule::Operator, S, LITE, "DELETE FROM account WHERE id = ? AND a GLOB 'x'"),
    (Rule::Operator, S, MY, "DELETE FROM account WHERE id = ? XOR a = 1"),
    (Rule::Operator, S, LITE, "DELETE FROM account WHERE id <=> ?"),
    (Rule::Operator, S, MY, "DELETE FROM account WHERE id = ? && a = 1"),
    (Rule::Construct, S, MY, "DELETE FROM account WHERE id = ANY (SELECT id FROM level WHERE id = ?)"),
    (Rule::Construct, Q, MY, "SELECT ALL id FROM account WHERE id = ?"),
    (Rule::Construct, Q, MY, "SELECT CONVERT(id, CHAR) FROM account WHERE id = ?"),
    (Rule::Construct, Q, MY, "SELECT id FROM account WHERE id = ? ORDER BY 1"),
    (Rule::Construct, Q, MY, "SELECT id FROM account WHERE id = ? GROUP BY id WITH ROLLUP"),
    (Rule::Construct, Q, MY, "SELECT id FROM JSON_TABLE('[]', '$[*]' COLUMNS (id INT PATH '$')) t WHERE id = ?"),
    (Rule::Construct, Q, LITE, "SELECT value FROM json_each(?) WHERE value = ?"),
    (Rule::Construct, Q, MY, "SELECT id FROM account, LATERAL (SELECT 1) x WHERE id = ?"),
    (Rule::Construct, Q, LITE, "SELECT EXTRACT(YEAR FROM a) FROM account WHERE id = ?"),
    // conditions
    (Rule::WhereMissing, S, MY, "DELETE FROM account"),
    (Rule::WhereMissing, S, MY, "UPDATE account SET a = 1"),
    (Rule::WhereMissing, Q, MY, "SELECT id FROM account"),
    (Rule::WhereMissing, S, MY, "DELETE FROM account WHERE id IN (SELECT id FROM level)"),
    (Rule::WhereMissing, S, MY, "DELETE FROM account LIMIT 1"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE 1 = 1"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE ? = ?"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE TRUE"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id = id"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id = other"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id = ? OR 1 = 1"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id = COALESCE(?, id)"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id IN (?, id)"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id <> ?"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE NOT (id = ?)"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id NOT IN (?)"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE CURRENT_DATE = ?"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE EXISTS (SELECT 1 FROM level WHERE level.id = account.id)"),
    (Rule::WhereColumn, S, MY, "DELETE FROM account WHERE id IN (SELECT id FROM level WHERE level.id = ID)"),
    (Rule::WhereColumn, Q, MY, "SELECT id FROM account a JOIN level l ON l.id = ? WHERE a.id = l.id"),
    (Rule::Limit, S, MY, "DELETE FROM account WHERE id = ? LIMIT 1"),
    (Rule::Limit, S, MY, "UPDATE account SET a = 1 WHERE id = ? LIMIT 1"),
    (Rule::Limit, S, LITE, "DELETE FROM account WHERE id = ? ORDER BY id LIMIT 1"),
    (Rule::Limit, Q, MY, "SELECT id FROM account WHERE id = ? LIMIT 1.5"),
    (Rule::Limit, Q, MY, "SELECT id FROM account WHERE id = ? LIMIT 1 + 1"),
    (Rule::Limit, Q, MY, "SELECT id FROM account WHERE id = ? LIMIT (SELECT 1)"),
    // inserts
    (Rule::InsertColumns, S, MY, "INSERT INTO account VALUES (?, ?)"),
    (Rule::InsertSource, S, MY, "INSERT INTO account (id) SELECT id FROM level WHERE id = ?"),
    (Rule::InsertSource, S, MY, "INSERT INTO account (id) VALUES ROW(?)"),
    (Rule::InsertSource, S, MY, "INSERT INTO account (id) VALUE (?)"),
    (Rule::InsertSource, S, MY, "INSERT INTO account SET id = ?"),
    (Rule::InsertSource, S, LITE, "INSERT INTO account (id) VALUES (?) ORDER BY id"),
    (Rule::ConflictClause, ANY, LITE, "INSERT INTO account (id) VALUES (?) ON CONFLICT (id) DO NOTHING"),
    (Rule::ConflictClause, ANY, LITE, "INSERT INTO account (id) VALUES (?) ON CONFLICT DO NOTHING"),
    (Rule::ConflictClause, ANY, LITE, "INSERT INTO account (id) VALUES (?) ON CONFLICT (id) WHERE id > 1 DO UPDATE SET a = 1"),
    (Rule::ConflictClause, ANY, LITE, "INSERT INTO account (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET a = 1 WHERE b = 2"),
    (Rule::ConflictClause, ANY, LITE, "INSERT INTO account (id) VALUES (?) ON DUPLICATE KEY UPDATE a = 1"),
    (Rule::ConflictClause, ANY, MY, "INSERT INTO account (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET a = 1"),
    // locks
    (Rule::LockMissing, L, MY, "SELECT id FROM account WHERE id = ?"),
    (Rule::LockMissing, L, MY, "SELECT 'x FOR UPDATE' FROM account WHERE id = ?"),
    (Rule::LockUndeclared, Q, MY, "SELECT id FROM account WHERE id = ? FOR UPDATE"),
    (Rule::LockOption, L, MY, "SELECT id FROM account WHERE id = ? FOR UPDATE SKIP LOCKED"),
    (Rule::LockOption, L, MY, "SELECT id FROM account WHERE id = ? FOR UPDATE NOWAIT"),
    (Rule::LockOption, L, MY, "SELECT id FROM account WHERE id = ? FOR UPDATE OF account"),
    (Rule::LockOption, L, MY, "SELECT id FROM account WHERE id = ? FOR SHARE"),
    (Rule::LockOption, L, MY, "SELECT id FROM account WHERE id = ? LOCK IN SHARE MODE"),
    (Rule::LockOption, S, MY, "DELETE FROM account WHERE id IN (SELECT id FROM level WHERE id = ? FOR UPDATE)"),
    (Rule::LockSqlite, L, LITE, "SELECT id FROM account WHERE id = ? FOR UPDATE"),
    // the manifest and the database
    (Rule::RowsExpectation, S, MY, "INSERT INTO account (id) VALUES (?) ON DUPLICATE KEY UPDATE a = 1"),
    (Rule::RowsExpectation, KEY, MY, "INSERT INTO account (id) VALUES (?), (?) ON DUPLICATE KEY UPDATE a = 1"),
    (Rule::RowsExpectation, KEY, MY, "UPDATE account SET a = 1 WHERE id = ?"),
    (Rule::TableUndeclared, S, MY, "DELETE FROM elsewhere WHERE id = ?"),
    (Rule::TableUndeclared, S, MY, "DELETE FROM Account WHERE id = ?"),
    (Rule::TableUndeclared, S, MY, "DELETE FROM account WHERE id IN (SELECT id FROM elsewhere WHERE id = ?)"),
    (Rule::TableUndeclared, Q, MY, "SELECT id FROM account a JOIN elsewhere e ON a.id = e.id WHERE a.id = ?"),
    (Rule::TableUndeclared, Q, MY, "SELECT id FROM (SELECT id FROM elsewhere WHERE id = ?) t WHERE t.id = ?"),
    (Rule::TableUndeclared, Q, MY, "SELECT CASE WHEN (SELECT 1 FROM elsewhere WHERE id = ?) = 1 THEN 1 END FROM account WHERE id = ?"),
    (Rule::TableReadOnly, S, MY, "DELETE FROM level WHERE id = ?"),
];

#[test]
fn each_trap_is_refused_by_its_own_rule() {
    let world = World::plain();
    let mut wrong = vec![];
    for (rule, purpose, dialect, sql) in ROWS {
        match world.check(*purpose, *dialect, sql, marks(sql)) {
            Ok(_) => wrong.push(format!("{dialect}: {sql}\n    accepted, not {}", rule.code())),
            Err(refusal) if refusal.rule != *rule => {
                wrong.push(format!("{dialect}: {sql}\n    not {}: {refusal}", rule.code()));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn a_text_out_of_bounds_is_refused_as_too_large() {
    let world = World::plain();
    let too_large = |sql: &str| {
        let refusal = world.check(ANY, MY, sql, 0).unwrap_err();
        assert_eq!(refusal.rule, Rule::TooLarge, "{refusal}");
    };
    too_large(&format!("DELETE FROM account WHERE id = '{}'", "x".repeat(65_536)));
    too_large(&format!("DELETE FROM account WHERE id IN (1{})", ", 1".repeat(2_048)));
    too_large(&format!("DELETE FROM account WHERE id = {}1{}", "(".repeat(17), ")".repeat(17)));
    too_large(&format!("DELETE FROM account WHERE id = 1{}", " OR id = 1".repeat(128)));
    too_large(&format!("DELETE FROM account WHERE id = {}1", "+ ".repeat(60)));
    too_large(&format!("DELETE FROM account WHERE id = 1{}", " + 1".repeat(250)));
    too_large(&format!("DELETE FROM account WHERE id = 1{}", " + 1".repeat(2_000)));
    for link in
        [" + 1", " IS NULL", " IN (1)", " NOTNULL", " AT TIME ZONE 1", " SIMILAR TO 1", " ->> 'x'", " OVERLAPS 1"]
    {
        too_large(&format!("DELETE FROM account WHERE id = 1{}", link.repeat(700)));
    }
    let joins = " JOIN level ON a = b".repeat(17);
    let refusal = world.check(Q, MY, &format!("SELECT id FROM account{joins} WHERE id = 1"), 0).unwrap_err();
    assert_eq!(refusal.rule, Rule::TooLarge, "{refusal}");
    // and just within
    let chain = format!("DELETE FROM account WHERE id = 1{}", " OR id = 1".repeat(100));
    assert_eq!(world.check(ANY, MY, &chain, 0).map(|accepted| accepted.marks), Ok(vec![]));
}

#[test]
fn the_numbers_of_parameters_are_both_told() {
    let world = World::plain();
    let refusal = world.check(S, MY, "DELETE FROM account WHERE id = ? AND a = '?'", 2).unwrap_err();
    assert_eq!(refusal.rule, Rule::ParameterCount);
    assert!(refusal.message.starts_with("the text has 1 ?, the manifest 2 params"), "{}", refusal.message);
}

#[test]
fn a_refusal_names_the_place() {
    let world = World::plain();
    let refusal = world.check(S, MY, "DELETE FROM account\n  WHERE id = RAND()", 0).unwrap_err();
    let at = refusal.at.unwrap();
    assert_eq!((refusal.rule, at.line, at.column), (Rule::Function, 2, 14));
    let text = refusal.to_string();
    assert!(text.starts_with("the function RAND on MySQL: use a function of the list"), "{text}");
    assert!(text.ends_with("at line 2, column 14 (function)"), "{text}");
}

#[test]
fn every_rule_of_the_gate_is_shown_to_refuse() {
    let elsewhere = [
        Rule::TooLarge,
        Rule::ParameterCount,
        // the database: reached.rs
        Rule::TableUnlisted,
        Rule::CatalogueIncomplete,
        Rule::TableUnknown,
        Rule::TableKind,
        Rule::TableEngine,
        Rule::Trigger,
        Rule::Cascade,
    ];
    let shown: BTreeSet<Rule> = ROWS.iter().map(|row| row.0).chain(elsewhere).collect();
    let missing: Vec<_> = Rule::ALL.iter().filter(|rule| !shown.contains(rule)).collect();
    assert!(missing.is_empty(), "no statement is refused by {missing:?}");
}
