//! Accepted statements and what is known of them.

use super::super::{Mark, Verb};
use super::{ANY, Dialect, KEY, L, LITE, MY, Purpose, Q, S, World, marks};

/// (purpose, dialect, text, verb, written table, tables read, flags: u upsert, i last insert id, l locking)
type Row = (Purpose, Dialect, &'static str, Verb, Option<&'static str>, &'static [&'static str], &'static str);

const A: Option<&str> = Some("account");

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // the plain shapes, on both
    (S, MY, "INSERT INTO account (id, points) VALUES (?, ?)", Verb::Insert, A, &[], ""),
    (S, LITE, "INSERT INTO account (id, points) VALUES (?, ?)", Verb::Insert, A, &[], ""),
    (S, MY, "insert into account (id) values (?)", Verb::Insert, A, &[], ""),
    (ANY, MY, "INSERT INTO account (id) VALUES (?), (?), (?)", Verb::Insert, A, &[], ""),
    (S, MY, "UPDATE account SET points = points + ? WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE account SET points = points + ? WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "DELETE FROM account WHERE id = ?", Verb::Delete, A, &[], ""),
    (S, LITE, "DELETE FROM account WHERE id = ?", Verb::Delete, A, &[], ""),
    (Q, MY, "SELECT name, points FROM level WHERE id = ?", Verb::Select, None, &["level"], ""),
    (Q, LITE, "SELECT name, points FROM level WHERE id = ?", Verb::Select, None, &["level"], ""),
    // names and white space
    (S, MY, "UPDATE `account` SET `points` = ? WHERE `account`.`id` = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE `account` SET `points` = ? WHERE `id` = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account\n\tSET points = ?\r\n  WHERE id = ?\n", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account AS a SET a.points = ? WHERE a.id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET `order` = ?, `low_priority` = ? WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET note = 'é 漢字 -- /* ; @a \" OB_INBOX ob_held' WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, r"UPDATE account SET note = 'it''s \'so\' \\' WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, r"UPDATE account SET note = 'it''s a \' WHERE id = ?", Verb::Update, A, &[], ""),
    // upserts
    (KEY, MY, "INSERT INTO account (id, points) VALUES (?, ?) ON DUPLICATE KEY UPDATE points = points + VALUES(points)", Verb::Insert, A, &[], "u"),
    (KEY, MY, "INSERT INTO account (id, points) VALUES (?, ?) AS new ON DUPLICATE KEY UPDATE points = account.points + new.points", Verb::Insert, A, &[], "u"),
    (ANY, MY, "INSERT INTO account (id, points) VALUES (?, ?) AS new (i, p) ON DUPLICATE KEY UPDATE points = p", Verb::Insert, A, &[], "u"),
    (ANY, MY, "INSERT INTO account (id, points) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE points = VALUES(points)", Verb::Insert, A, &[], "u"),
    (KEY, LITE, "INSERT INTO account (id, points) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET points = points + excluded.points", Verb::Insert, A, &[], "u"),
    (ANY, LITE, "INSERT INTO account (id, points) VALUES (?, ?) ON CONFLICT (id, day) DO UPDATE SET points = ?", Verb::Insert, A, &[], "u"),
    // values
    (S, MY, "INSERT INTO account (id, a, b, c, d) VALUES (?, DEFAULT, NULL, TRUE, -1.5)", Verb::Insert, A, &[], ""),
    (S, MY, "UPDATE account SET points = DEFAULT, n = (n + 1) * 2 - n % 3 DIV 4 WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET points = IF(points > ?, GREATEST(points, 0), LEAST(points, 9)) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET s = CASE WHEN s = 'new' THEN 'paid' WHEN s IS NULL THEN ? ELSE s END WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE account SET s = CASE s WHEN 'new' THEN 'paid' ELSE s END WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET at = UTC_TIMESTAMP(6), b = CURRENT_TIMESTAMP, c = NOW(), d = UTC_DATE WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE account SET at = CURRENT_TIMESTAMP, b = DATETIME(?) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET ends = DATE_ADD(ends, INTERVAL ? DAY), b = NOW() + INTERVAL 1 MONTH WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET doc = JSON_SET(doc, '$.a', CAST(? AS JSON)), d = doc->>'$.b' WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE account SET doc = JSON_SET(doc, '$.a', CAST(? AS TEXT)), d = doc->>'$.b' || 'x' WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET a = CAST(? AS DECIMAL(20, 4)), b = CAST(? AS UNSIGNED), c = CAST(? AS CHAR(10)) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, LITE, "UPDATE account SET a = CAST(? AS INTEGER), b = CAST(? AS REAL), c = CAST(? AS BLOB) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET a = TRIM(BOTH 'x' FROM a), b = SUBSTRING(b, 1, 3), c = SUBSTRING(c FROM 2 FOR 3) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET a = FLOOR(a), b = CEIL(b), c = ROUND(c, 2), d = REPLACE(d, ?, ?), e = MOD(e, 7) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET y = EXTRACT(YEAR FROM at), z = YEAR(at), p = POSITION('a' IN b), d = TIMESTAMPDIFF(DAY, a, b) WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "UPDATE account SET flags = flags | 4 & ? << 1 WHERE id = ?", Verb::Update, A, &[], ""),
    (S, MY, "INSERT INTO account (id, order_id) VALUES (?, LAST_INSERT_ID())", Verb::Insert, A, &[], "i"),
    // conditions
    (S, MY, "UPDATE account SET points = points - ? WHERE id = ? AND points >= ? AND version <> 3", Verb::Update, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE (user_id, day) = (?, ?)", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE (user_id, day) IN ((?, ?), (?, ?))", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE id IN (?, ?, 3) OR user_id <=> ?", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE ends < DATE_SUB(NOW(), INTERVAL 30 DAY)", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE ends BETWEEN ? AND ? AND note LIKE '%x' AND NOT (b = 1)", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE ? = id", Verb::Delete, A, &[], ""),
    (ANY, LITE, "DELETE FROM account WHERE id IS NULL AND a IS NOT NULL", Verb::Delete, A, &[], ""),
    (ANY, MY, "DELETE FROM account WHERE user_id = ? ORDER BY id DESC LIMIT 10", Verb::Delete, A, &[], ""),
    (ANY, MY, "UPDATE account SET a = 1 WHERE user_id = ? ORDER BY id LIMIT ?", Verb::Update, A, &[], ""),
    // subqueries
    (S, MY, "UPDATE account SET rate = (SELECT rate FROM level WHERE level.id = account.level_id) WHERE id = ?", Verb::Update, A, &["level"], ""),
    (ANY, MY, "DELETE FROM account WHERE level_id IN (SELECT id FROM level WHERE name = ?)", Verb::Delete, A, &["level"], ""),
    (ANY, LITE, "DELETE FROM account WHERE id = ? AND EXISTS (SELECT 1 FROM level WHERE level.id = account.level_id)", Verb::Delete, A, &["level"], ""),
    (ANY, MY, "INSERT INTO account (id, rate) VALUES (?, (SELECT MAX(rate) FROM level WHERE name = ?))", Verb::Insert, A, &["level"], ""),
    (ANY, MY, "DELETE FROM account WHERE id NOT IN (SELECT id FROM stock WHERE sku = ?) AND day = ?", Verb::Delete, A, &["stock"], ""),
    // queries
    (Q, MY, "SELECT * FROM level WHERE id = ?", Verb::Select, None, &["level"], ""),
    (Q, MY, "SELECT l.*, a.points AS p FROM account a JOIN level l ON l.id = a.level_id WHERE a.id = ?", Verb::Select, None, &["account", "level"], ""),
    (Q, LITE, "SELECT a.id FROM account AS a LEFT JOIN level AS l USING (level_id) WHERE a.id = ? LIMIT 1", Verb::Select, None, &["account", "level"], ""),
    (Q, MY, "SELECT a.id FROM account a INNER JOIN stock s ON s.id = a.id RIGHT OUTER JOIN level l ON l.id = s.id WHERE l.id = ?", Verb::Select, None, &["account", "level", "stock"], ""),
    (Q, MY, "SELECT DISTINCT day, COUNT(*), COUNT(DISTINCT user_id), SUM(points) FROM account WHERE user_id = ? GROUP BY day HAVING SUM(points) > ? ORDER BY day DESC LIMIT ? OFFSET 10", Verb::Select, None, &["account"], ""),
    (Q, MY, "SELECT id FROM account WHERE user_id = ? ORDER BY id LIMIT 5, 10", Verb::Select, None, &["account"], ""),
    (Q, MY, "SELECT t.total FROM (SELECT user_id, SUM(points) AS total FROM account WHERE day = ? GROUP BY user_id) t WHERE t.user_id = ?", Verb::Select, None, &["account"], ""),
    (Q, MY, "SELECT id, LAST_INSERT_ID() FROM account WHERE id = ?", Verb::Select, None, &["account"], "i"),
    (L, MY, "SELECT points FROM account WHERE id = ? FOR UPDATE", Verb::Select, None, &["account"], "l"),
    (L, MY, "SELECT points FROM account WHERE id = ? LIMIT 1 for update", Verb::Select, None, &["account"], "l"),
    (L, LITE, "SELECT points FROM account WHERE id = ?", Verb::Select, None, &["account"], ""),
];

#[test]
fn plain_statements_are_accepted_with_their_facts() {
    let world = World::plain();
    let mut wrong = vec![];
    for (purpose, dialect, sql, verb, table, tables_read, flags) in ROWS {
        match world.check(*purpose, *dialect, sql, marks(sql)) {
            Err(refusal) => wrong.push(format!("{dialect}: {sql}\n    {refusal}")),
            Ok(accepted) => {
                let seen = (accepted.verb, accepted.table.as_deref(), accepted.tables_read.clone());
                let same = seen == (*verb, *table, tables_read.iter().map(|t| (*t).to_owned()).collect())
                    && accepted.on_duplicate_key == flags.contains('u')
                    && accepted.last_insert_id == flags.contains('i')
                    && accepted.locking == flags.contains('l')
                    && accepted.marks.len() == marks(sql)
                    && accepted.marks.iter().all(|mark| sql.as_bytes()[mark.at] == b'?');
                if !same {
                    wrong.push(format!("{dialect}: {sql}\n    {accepted:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_group_behind_values_of_one_row_is_found_in_the_authors_text() {
    let world = World::plain();
    let group = |purpose, sql: &'static str| {
        let accepted = world.check(purpose, MY, sql, marks(sql)).unwrap();
        accepted.values_group.map(|range| &sql[range])
    };
    let plain = "INSERT INTO account (id, a) VALUES (?, CONCAT('(', ?))";
    assert_eq!(group(S, plain), Some("(?, CONCAT('(', ?))"));
    let upsert = "INSERT INTO account (id, a) VALUES  (?,?) ON DUPLICATE KEY UPDATE a = VALUES(a)";
    assert_eq!(group(KEY, upsert), Some("(?,?)"));
    assert_eq!(group(ANY, "INSERT INTO account (id) VALUES (?), (?)"), None);
    assert_eq!(group(S, "DELETE FROM account WHERE id = ?"), None);
}

#[test]
fn a_question_mark_inside_of_a_literal_or_name_is_no_parameter() {
    let world = World::plain();
    let sql = "UPDATE account SET note = 'why?' WHERE id = ?";
    assert_eq!(world.check(S, MY, sql, 1).unwrap().marks, [Mark { at: sql.len() - 1, is_alone: true }]);
}

#[test]
fn a_verdict_points_into_the_authors_bytes_and_has_no_text_of_its_own() {
    let world = World::plain();
    let sql = "insert into  `account`\n(id, a)values(  ? ,'é' )";
    let accepted = world.check(S, MY, sql, 1).unwrap();
    // Counted by hand: 23 bytes to the line end, "(id, a)values" 13 more, then "(  ".
    assert_eq!(accepted.marks.iter().map(|mark| mark.at).collect::<Vec<_>>(), [39]);
    assert_eq!(accepted.values_group, Some(36..48));
    assert_eq!(&sql[36..48], "(  ? ,'é' )");
    // Names are all that it repeats: without backticks, otherwise as written.
    assert_eq!(accepted.table.as_deref(), Some("account"));
    assert_eq!(accepted.tables_read, Vec::<String>::new());
}
