//! What the SQL gate needs to know of the tenant's tables, through the procedure `ob_catalogue`, and the server's own
//! opinion of a text.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use oncebox_core::{
    failure::Class,
    sql::{Catalogue, ForeignKey, KeyColumn, ReferentialAction, TableFacts, TableKind},
};
use sqlx::mysql::MySqlRow;

use super::{admin::only, columns::Columns, errors::MysqlError, session::Session};
use crate::{
    clock,
    store::{StatementError, StoreError},
};

const NAME: &str = "ob_catalogue";

/// Foreign keys of other databases are looked for so often: the server goes through all that it has.
const ELSEWHERE_EVERY: Duration = Duration::from_secs(60);

/// What is known of foreign keys of other databases.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    looked: Option<(Instant, i64)>,
}

/// Moves whenever a business table, its columns, indexes, triggers or foreign keys change; within a minute also when a
/// table of another database refers to one of these. With 1,000 columns the server took 10 to 20 ms for it.
pub(super) async fn schema_version(session: &mut Session, elsewhere: &mut Elsewhere) -> Result<i64, StoreError> {
    let own = number(session, "CALL ob_catalogue('version')").await?;
    let other = match elsewhere.looked {
        Some((at, known)) if at.elapsed() < ELSEWHERE_EVERY => known,
        Some(_) | None => {
            let now = number(session, "CALL ob_catalogue('elsewhere')").await?;
            elsewhere.looked = Some((clock::monotonic(), now));
            now
        }
    };
    Ok(own ^ other)
}

async fn number(session: &mut Session, call: &'static str) -> Result<i64, StoreError> {
    let rows = called(session, call).await?;
    only(NAME, &rows)?.integer(0)
}

/// Calls the procedure; what keeps it from being called is said with how to mend it.
async fn called(session: &mut Session, call: &'static str) -> Result<Vec<MySqlRow>, StoreError> {
    let error = match session.rows("catalogue", call, args![]).await {
        Ok(rows) => return Ok(rows),
        Err(error) => error,
    };
    let mend = match error.number() {
        Some(1305) => "run `oncebox migrate`, which makes it".to_owned(),
        Some(1449) => "the user who made it is gone: run `oncebox migrate`, which makes it anew".to_owned(),
        Some(1370) => {
            let who = session.rows("catalogue", "SELECT DATABASE(), CURRENT_USER()", args![]).await?;
            let who = only(NAME, &who)?;
            let (database, account) = (who.text(0)?, quoted(&who.text(1)?));
            format!(
                "GRANT EXECUTE ON PROCEDURE `{database}`.ob_catalogue TO {account}; if the procedure is not there, run \
                 `oncebox migrate` first"
            )
        }
        Some(_) | None => return Err(error.into()),
    };
    Err(StoreError::Catalogue { message: format!("{error}; {mend}") })
}

/// `user@host` as GRANT takes it.
fn quoted(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("'{user}'@'{host}'")
}

/// Whether the gate will be told all that it must know.
///
/// # Errors
/// [`StoreError::Catalogue`] with what is missing.
pub(super) async fn usable(session: &mut Session) -> Result<(), StoreError> {
    catalogue(session).await.map(|_| ())
}

pub(super) async fn catalogue(session: &mut Session) -> Result<Catalogue, StoreError> {
    let rows = called(session, "CALL ob_catalogue('catalogue')").await?;
    let mut tables: BTreeMap<String, TableFacts> = BTreeMap::new();
    let mut seen = false;
    for row in &rows {
        let row = Columns::of(NAME, row);
        match row.text(0)?.as_str() {
            "seen" => {
                all_is_seen(&row)?;
                seen = true;
            }
            "table" => {
                let (kind, engine) = (kind(&row.text(2)?), row.text_or_null(3)?);
                let facts = TableFacts {
                    kind,
                    engine,
                    triggers: Vec::new(),
                    referenced_by: Vec::new(),
                    primary_key: Vec::new(),
                    unique: BTreeSet::new(),
                };
                tables.insert(row.text(1)?, facts);
            }
            // The tables come first.
            "trigger" => {
                if let Some(facts) = tables.get_mut(&row.text(1)?) {
                    facts.triggers.push(row.text(2)?);
                }
            }
            "key" => {
                let key = ForeignKey {
                    name: row.text(2)?,
                    from_table: row.text(3)?,
                    on_delete: action(&row.text(4)?),
                    on_update: action(&row.text(5)?),
                };
                if let Some(facts) = tables.get_mut(&row.text(1)?) {
                    facts.referenced_by.push(key);
                }
            }
            other => return Err(row.corrupt(format!("an answer of kind `{other}`; run `oncebox migrate`"))),
        }
    }
    if !seen {
        let message = "its answer does not say what it was shown; run `oncebox migrate`".to_owned();
        return Err(StoreError::Catalogue { message });
    }
    add_keys(session, &mut tables).await?;
    for facts in tables.values_mut() {
        facts.triggers.sort();
        facts.referenced_by.sort_by(|a, b| (&a.from_table, &a.name).cmp(&(&b.from_table, &b.name)));
    }
    Ok(Catalogue { tables, complete: true })
}

/// Primary and unique keys of the tables that this user may see: of others no text is ever run. Of a table with a key over
/// something that is not a plain column nothing is told.
async fn add_keys(session: &mut Session, tables: &mut BTreeMap<String, TableFacts>) -> Result<(), StoreError> {
    let sql = "SELECT s.TABLE_NAME, s.INDEX_NAME, LOWER(s.COLUMN_NAME), c.DATA_TYPE, c.GENERATION_EXPRESSION <> ''
        FROM information_schema.STATISTICS AS s
        LEFT JOIN information_schema.COLUMNS AS c
          ON c.TABLE_SCHEMA = s.TABLE_SCHEMA AND c.TABLE_NAME = s.TABLE_NAME AND c.COLUMN_NAME = s.COLUMN_NAME
        WHERE s.TABLE_SCHEMA = DATABASE() AND s.NON_UNIQUE = 0 AND s.TABLE_NAME NOT LIKE 'ob|_%' ESCAPE '|'
        ORDER BY s.TABLE_NAME, s.INDEX_NAME, s.SEQ_IN_INDEX";
    let mut unclear = BTreeSet::new();
    for row in &session.rows("keys", sql, args![]).await? {
        let row = Columns::of("information_schema.STATISTICS", row);
        let Some(facts) = tables.get_mut(&row.text(0)?) else { continue };
        let (column, kind) = (row.text_or_null(2)?, row.text_or_null(3)?);
        let is_generated = row.integer_or_null::<i64>(4)?.is_some_and(|is| is != 0);
        let (Some(name), Some(kind), false) = (column, kind, is_generated) else {
            unclear.insert(row.text(0)?);
            continue;
        };
        if row.text(1)? == "PRIMARY" {
            facts.primary_key.push(KeyColumn { name: name.clone(), is_integer: is_integer(&kind) });
        }
        facts.unique.insert(name);
    }
    for table in unclear {
        if let Some(facts) = tables.get_mut(&table) {
            facts.primary_key.clear();
        }
    }
    Ok(())
}

fn is_integer(data_type: &str) -> bool {
    matches!(data_type, "tinyint" | "smallint" | "mediumint" | "int" | "bigint")
}

/// The procedure sees what the user who made it may see, and says so itself: a right that he has lost would hide rows
/// without an error.
fn all_is_seen(row: &Columns<'_>) -> Result<(), StoreError> {
    let (maker, database) = (row.text(1)?, row.text(4)?);
    let lacks = |hidden: &str, right: &str| {
        let message = format!(
            "the user who made it, {maker}, is not shown {hidden}; GRANT {right} TO {maker} (to himself, not through a role)"
        );
        Err(StoreError::Catalogue { message })
    };
    match (row.text(2)?.as_str(), row.text(3)?.as_str()) {
        ("yes", "yes") => Ok(()),
        ("yes", _) => lacks("the foreign keys of other databases", "PROCESS ON *.*"),
        (_, _) => lacks("triggers", &format!("TRIGGER ON `{database}`.*")),
    }
}

fn kind(text: &str) -> TableKind {
    match text {
        "BASE TABLE" | "SYSTEM VERSIONED" => TableKind::Base,
        "VIEW" => TableKind::View,
        "TEMPORARY" => TableKind::Temporary,
        _ => TableKind::System,
    }
}

fn action(text: &str) -> ReferentialAction {
    match text {
        "CASCADE" => ReferentialAction::Cascade,
        "SET NULL" => ReferentialAction::SetNull,
        "SET DEFAULT" => ReferentialAction::SetDefault,
        _ => ReferentialAction::Restrict,
    }
}

/// Lets the server prepare the text, as the lanes will: unknown tables, columns and functions are found here.
pub(super) async fn prepare(session: &mut Session, sql: &str) -> Result<(), StatementError> {
    match session.describe("prepare", sql).await {
        Ok(_) => Ok(()),
        // The driver ends the connection over a column that it cannot read (VECTOR): no lane must ever get there.
        Err(MysqlError::Answer { message, .. }) => Err(StatementError {
            class: Class::Blocked,
            number: None,
            code: "schema-changed",
            message: format!(
                "a column of its answer has a type that cannot be read ({message}): leave the column out, or convert it, \
                 as VECTOR_TO_STRING does"
            ),
        }),
        Err(error) => Err(error.of_statement()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_quoted_as_grant_takes_it() {
        assert_eq!(quoted("run@%"), "'run'@'%'");
        assert_eq!(quoted("a@b@10.0.0.1"), "'a@b'@'10.0.0.1'");
    }

    #[test]
    fn what_no_list_names_is_neither_a_base_table_nor_a_harmless_action() {
        assert_eq!(kind("BASE TABLE"), TableKind::Base);
        for text in ["SEQUENCE", "SYSTEM VIEW", "ANYTHING"] {
            assert_eq!(kind(text), TableKind::System, "{text}");
        }
        for (text, wanted) in [
            ("CASCADE", ReferentialAction::Cascade),
            ("SET NULL", ReferentialAction::SetNull),
            ("SET DEFAULT", ReferentialAction::SetDefault),
            ("NO ACTION", ReferentialAction::Restrict),
            ("RESTRICT", ReferentialAction::Restrict),
        ] {
            assert_eq!(action(text), wanted, "{text}");
        }
    }
}
