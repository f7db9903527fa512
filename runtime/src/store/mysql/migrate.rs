//! The tables' migrations: numbered, forward only, run by `oncebox migrate` with a user of its own.
//!
//! DDL commits by itself, so that a migration may be killed between two statements: each of them does nothing the second
//! time, and the number is written when all of them are done. One process at a time migrates a database, by a lock of the
//! server (`GET_LOCK`), which ends with its session.

use std::{sync::Arc, time::Duration};

use oncebox_core::config::{self, Hidden, Secret, ServerUrl};
use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;

use super::{
    catalogue,
    checks::{self, Facts},
    columns::Columns,
    errors::MysqlError,
    server::{Flavour, Server},
    session::Session,
};
use crate::{
    access::secret,
    failpoint::{Place, reach},
    store::{Migrated, StoreError},
};

/// Migrations in order; the n-th brings the tables to number n (from 1), kept in `ob_meta` under `schema`.
const MIGRATIONS: [&str; 2] = [
    include_str!("../../../../migrations/mysql/0001_base.sql"),
    include_str!("../../../../migrations/mysql/0002_blame.sql"),
];

/// The number of the last one.
pub(super) const NEEDED: i64 = 2;

const PROCEDURE: &str = include_str!("../../../../migrations/mysql/ob_catalogue.sql");

/// InnoDB's list of foreign keys. MariaDB keeps names as its files are named.
const FOREIGN_KEYS_MYSQL: &str = "(SELECT SUBSTRING_INDEX(ID, '/', -1) AS name,
    SUBSTRING_INDEX(FOR_NAME, '/', 1) AS from_schema, SUBSTRING(FOR_NAME, INSTR(FOR_NAME, '/') + 1) AS from_table,
    SUBSTRING_INDEX(REF_NAME, '/', 1) AS to_schema, SUBSTRING(REF_NAME, INSTR(REF_NAME, '/') + 1) AS to_table,
    TYPE AS flags FROM information_schema.INNODB_FOREIGN)";
const FOREIGN_KEYS_MARIADB: &str = "(SELECT SUBSTRING_INDEX(ID, '/', -1) AS name,
    CONVERT(CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', 1) AS BINARY) USING filename) USING utf8mb4) AS from_schema,
    CONVERT(CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', -1) AS BINARY) USING filename) USING utf8mb4) AS from_table,
    CONVERT(CONVERT(CAST(SUBSTRING_INDEX(REF_NAME, '/', 1) AS BINARY) USING filename) USING utf8mb4) AS to_schema,
    CONVERT(CONVERT(CAST(SUBSTRING_INDEX(REF_NAME, '/', -1) AS BINARY) USING filename) USING utf8mb4) AS to_table,
    TYPE AS flags FROM information_schema.INNODB_SYS_FOREIGN)";

/// A number that moves with foreign keys of other databases, into a variable.
const ELSEWHERE_VERSION: &str = "SELECT COALESCE(BIT_XOR(CAST(CONV(LEFT(SHA2(
        CONCAT_WS(0x00, name, from_schema, from_table, to_table, flags), 256), 15), 16, 10) AS UNSIGNED)), 0)
    FROM {foreign_keys} AS keys_of_all WHERE to_schema = DATABASE() AND from_schema <> DATABASE() INTO @ob_elsewhere";
/// They themselves. Flags: 1 and 2 are CASCADE and SET NULL of a delete, 4 and 8 of an update.
const ELSEWHERE_KEYS: &str = "SELECT 'key', to_table, name, CONCAT(from_schema, '.', from_table),
      CASE WHEN flags & 1 THEN 'CASCADE' WHEN flags & 2 THEN 'SET NULL' ELSE 'RESTRICT' END,
      CASE WHEN flags & 4 THEN 'CASCADE' WHEN flags & 8 THEN 'SET NULL' ELSE 'RESTRICT' END
    FROM {foreign_keys} AS keys_of_all WHERE to_schema = DATABASE() AND from_schema <> DATABASE()";

/// A column of that name is there already.
const DUPLICATE_COLUMN: u16 = 1060;
/// Another `oncebox migrate` is waited for so long.
const LOCK_WAIT_S: i64 = 60;
/// The longest wait for whoever uses a table that is to be changed.
const TABLE_WAIT: Duration = Duration::from_secs(60);
/// One statement may rewrite a large table.
const STATEMENT_TIME: Duration = Duration::from_secs(24 * 3_600);

/// Brings the tables up to date, as the user of `migrate_url`, or else the store's own.
pub(super) async fn migrate(settings: &config::Mysql) -> Result<Migrated, StoreError> {
    let access = access(settings)?;
    let server = Arc::new(Server::new(&access).with_call_time(STATEMENT_TIME));
    let mut session = Session::open(&server).await?;
    let version = session.version().text.clone();
    let facts = Facts { variables: [("version".to_owned(), version)].into(), ..Facts::default() };
    checks::judge(checks::findings(&facts), settings.durability)?;
    lock(&mut session, &access.address.space).await?;
    let from = number(&mut session).await?;
    if from > NEEDED {
        return Err(too_new(from));
    }
    for (number, migration) in (1i64..).zip(MIGRATIONS).skip(usize::try_from(from).unwrap_or(0)) {
        for statement in statements(migration) {
            match session.script("migrate", statement).await {
                Ok(_) => {}
                // Its columns are there: it was done before a kill, and is done whole or not at all.
                Err(error) if error.number() == Some(DUPLICATE_COLUMN) => {}
                Err(error) => return Err(refused(error)),
            }
            reach(Place::MigrationStatement);
        }
        let sql = "INSERT INTO ob_meta (name, value) VALUES ('schema', ?) ON DUPLICATE KEY UPDATE value = ?";
        let number = number.to_string();
        session.execute("migrate", sql, args![number.as_bytes(), number.as_bytes()]).await?;
    }
    let tenant_secret: [u8; 32] = rand::random();
    let sql = "INSERT INTO ob_meta (name, value) VALUES ('tenant_secret', ?) ON DUPLICATE KEY UPDATE name = name";
    session.execute("migrate", sql, args![tenant_secret.as_slice()]).await?;
    let is_procedure_made = procedure(&mut session).await?;
    // The host's own user may come later than the tables: then nothing can be said of it.
    let missing = match Session::open(&Arc::new(Server::new(settings))).await {
        Ok(mut own) => catalogue::usable(&mut own).await.err().map(|error| error.to_string()),
        Err(_) => None,
    };
    Ok(Migrated { from, to: NEEDED, is_procedure_made, missing })
}

/// How the server is reached to migrate.
fn access(settings: &config::Mysql) -> Result<config::Mysql, StoreError> {
    let wait = config::Mysql { lock_wait: TABLE_WAIT, ..settings.clone() };
    let Some(migrate_url) = &settings.migrate_url else { return Ok(wait) };
    let unusable = |why: String| StoreError::Away { message: format!("cannot use migrate_url: {why}") };
    let Hidden(url) = secret(migrate_url).map_err(|error| unusable(error.to_string()))?;
    let url = ServerUrl::parse(&url, config::Server::Mysql)
        .map_err(|error| unusable(format!("it {error}; {}", error.help(config::Server::Mysql))))?;
    if url.address.space != settings.address.space {
        let (one, other) = (&url.address.space, &settings.address.space);
        return Err(unusable(format!("it names the database {one}, url names {other}")));
    }
    Ok(config::Mysql { address: url.address, password: url.password.map(Secret::Plain), ..wait })
}

/// Only one process at a time migrates this database; the lock ends with the session.
async fn lock(session: &mut Session, database: &str) -> Result<(), StoreError> {
    let hash = Sha256::digest(database.as_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let args = args![format!("oncebox-migrate-{hash}"), LOCK_WAIT_S];
    let rows = session.rows("migrate lock", "SELECT GET_LOCK(?, ?)", args).await?;
    match rows.first().map(|row| Columns::of("ob_meta", row).integer_or_null(0)).transpose()? {
        Some(Some(1i64)) => Ok(()),
        Some(Some(_) | None) | None => {
            let message = format!("another `oncebox migrate` has had this database for {LOCK_WAIT_S} s");
            Err(StoreError::Busy { message })
        }
    }
}

/// The number that the tables are at; 0: they are not there.
async fn number(session: &mut Session) -> Result<i64, StoreError> {
    let rows = match session.rows("migration", "SELECT value FROM ob_meta WHERE name = 'schema'", args![]).await {
        Ok(rows) => rows,
        // No such table.
        Err(error) if error.number() == Some(1146) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let Some(row) = rows.first().map(|row| Columns::of("ob_meta", row)) else { return Ok(0) };
    let text = row.text(0)?;
    text.parse().map_err(|_| row.corrupt(format!("schema is `{text}`, which is no number")))
}

/// The number that the tables are at, if this binary can use them.
///
/// # Errors
/// [`StoreError::Migration`] when one is due, or the tables are newer.
pub(super) async fn up_to_date(session: &mut Session) -> Result<i64, StoreError> {
    match number(session).await? {
        NEEDED => Ok(NEEDED),
        found if found > NEEDED => Err(too_new(found)),
        found => Err(StoreError::Migration { found, needed: NEEDED, mend: "run `oncebox migrate`" }),
    }
}

fn too_new(found: i64) -> StoreError {
    let mend = "a newer oncebox has migrated this database: use that one";
    StoreError::Migration { found, needed: NEEDED, mend }
}

/// What the user of the migration may not do is said with how to let him.
fn refused(error: MysqlError) -> StoreError {
    match error.number() {
        Some(1044 | 1142 | 1227 | 1370) => StoreError::Denied {
            message: format!("{error}; docs/mysql.md lists what the user of migrate_url must be granted"),
        },
        Some(_) | None => error.into(),
    }
}

/// Each ends with a semicolon at the end of a line.
fn statements(migration: &'static str) -> Vec<&'static str> {
    migration.split_inclusive(";\n").map(str::trim).filter(|statement| statement.ends_with(';')).collect()
}

/// Makes `ob_catalogue`, if it is not there in this very text and by this very user. It is not made for nothing: of
/// MySQL, dropping it takes the right to execute it away from everybody.
async fn procedure(session: &mut Session) -> Result<bool, StoreError> {
    let (foreign_keys, replace) = match session.flavour() {
        Flavour::Mysql => (FOREIGN_KEYS_MYSQL, "CREATE PROCEDURE"),
        Flavour::Mariadb => (FOREIGN_KEYS_MARIADB, "CREATE OR REPLACE PROCEDURE"),
    };
    let quoted = |query: &str| query.replace("{foreign_keys}", foreign_keys).replace('\'', "''");
    let text = PROCEDURE
        .replace("{elsewhere_version}", &quoted(ELSEWHERE_VERSION))
        .replace("{elsewhere_keys}", &quoted(ELSEWHERE_KEYS))
        .replace("CREATE PROCEDURE", replace);
    let hash = Sha256::digest(text.as_bytes());
    let mark = hash.iter().take(16).fold("oncebox ".to_owned(), |mark, byte| mark + &format!("{byte:02x}"));
    let known = "SELECT COUNT(*) FROM information_schema.ROUTINES
                 WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'ob_catalogue' AND ROUTINE_TYPE = 'PROCEDURE'
                   AND ROUTINE_COMMENT = ? AND DEFINER = CURRENT_USER()";
    let rows = session.rows("migrate procedure", known, args![mark.as_str()]).await?;
    if super::admin::only("migrate procedure", &rows)?.integer::<i64>(0)? > 0 {
        return Ok(false);
    }
    if session.flavour() == Flavour::Mysql {
        session.script("migrate procedure", "DROP PROCEDURE IF EXISTS ob_catalogue").await.map_err(refused)?;
    }
    let text = text.replace("{mark}", &mark);
    session.script("migrate procedure", AssertSqlSafe(text)).await.map_err(refused)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_needed_is_that_of_the_last_migration() {
        assert_eq!(NEEDED, i64::try_from(MIGRATIONS.len()).unwrap());
    }

    /// A migration that is killed in the middle is run again from its first statement.
    #[test]
    fn every_statement_does_nothing_the_second_time() {
        for migration in MIGRATIONS {
            let statements = statements(migration);
            let begins = |words: &str| migration.matches(&format!("\n{words} ")).count();
            assert_eq!(statements.len(), begins("CREATE TABLE") + begins("ALTER TABLE"));
            for statement in statements {
                let words = statement.lines().find(|line| !line.is_empty() && !line.starts_with("--")).unwrap();
                if words.starts_with("ALTER TABLE ob_") {
                    let does_more = |line: &&str| !line.trim().starts_with("ADD COLUMN ");
                    let more: Vec<_> =
                        statement.lines().skip_while(|line| *line != words).skip(1).filter(does_more).collect();
                    assert!(more.is_empty(), "only a column that is there makes an error that is none: {more:?}");
                    continue;
                }
                assert!(words.starts_with("CREATE TABLE IF NOT EXISTS ob_"), "{words}");
                assert!(statement.contains(") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;"), "{words}");
            }
        }
    }

    #[test]
    fn the_url_to_migrate_with_is_of_the_same_database() {
        let own = |migrate_url: Option<&str>| config::Mysql {
            address: config::Address { host: "db".into(), port: 3306, user: "run".into(), space: "shop".into() },
            password: Some(Secret::Plain(Hidden("r".into()))),
            migrate_url: migrate_url.map(|url| Secret::Plain(Hidden(url.into()))),
            tls: config::Tls { mode: config::TlsMode::Off, ca_file: None, client: None },
            lock_wait: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(30),
            durability: config::Durability::Strict,
        };
        let alone = access(&own(None)).unwrap();
        assert_eq!((alone.address.user.as_str(), alone.lock_wait), ("run", TABLE_WAIT));
        let other = access(&own(Some("mysql://mig:m@db2:3307/shop"))).unwrap();
        assert_eq!(other.address.to_string(), "mig@db2:3307/shop");
        assert_eq!(other.password, Some(Secret::Plain(Hidden("m".into()))));
        for (url, why) in [("mysql://mig:secret@db/blog", "names the database blog"), ("secret", "does not begin with")]
        {
            let error = access(&own(Some(url))).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }
}
