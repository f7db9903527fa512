//! Whether a server's settings keep what a committed unit of work promises: facts in, findings out.
//!
//! Sources: MySQL 8.4 and 9 Reference Manual, "InnoDB Startup Options and System Variables", "Binary Logging Options and
//! Variables"; MariaDB Knowledge Base, pages of the same variables. What a session can set for itself is not looked at
//! here: `session.rs` sets it.

use std::{collections::BTreeMap, fmt};

use oncebox_core::config::Durability;
use sqlx::AssertSqlSafe;

use super::{
    columns::Columns,
    server::{Flavour, Version},
    session::Session,
};
use crate::store::StoreError;

/// The least that a packet of the server must hold: a chunk of a module, or a message with its headers, and room beside it.
const PACKET_BYTES_MIN: u64 = 4 << 20;

/// System variables that are looked at; one that a server does not have is not missed.
const VARIABLES: [&str; 13] = [
    "binlog_format",
    "group_replication_single_primary_mode",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_read_only",
    "innodb_rollback_on_timeout",
    "log_bin",
    "max_allowed_packet",
    "read_only",
    "super_read_only",
    "sync_binlog",
    "version",
    "wsrep_on",
];

/// A status variable of MySQL: OFF after `ALTER INSTANCE DISABLE INNODB REDO_LOG`.
const REDO_LOG: &str = "innodb_redo_log_enabled";

/// What was read of a server, names in small letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// System variables, and [`REDO_LOG`].
    pub(super) variables: BTreeMap<String, String>,
    /// Tables of ours that are not InnoDB's, each with its engine.
    pub(super) other_engines: Vec<(String, String)>,
}

/// What a finding does to a host that wants to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The server does not take writes now: again later.
    Away,
    /// No promise holds.
    Refused,
    /// A committed unit of work may be lost in a crash; `durability` decides.
    Durability,
    /// Worth knowing.
    Warning,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) weight: Weight,
    pub(super) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Reads what [`findings`] judges.
pub(super) async fn facts(session: &mut Session) -> Result<Facts, StoreError> {
    let names = VARIABLES.map(|name| format!("'{name}'")).join(", ");
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
    let mut rows = session.rows("settings", AssertSqlSafe(sql), args![]).await?;
    let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name = '{REDO_LOG}'");
    rows.extend(session.rows("settings", AssertSqlSafe(sql), args![]).await?);
    let pair = |row, what| {
        let row = Columns::of(what, row);
        Ok::<_, StoreError>((row.text(0)?, row.text(1)?))
    };
    let variables = rows.iter().map(|row| {
        let (name, value) = pair(row, "settings")?;
        Ok::<_, StoreError>((name.to_ascii_lowercase(), value))
    });
    let variables = variables.collect::<Result<_, _>>()?;
    let sql = "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME LIKE 'ob|_%' ESCAPE '|'
                 AND ENGINE <> 'InnoDB' ORDER BY TABLE_NAME";
    let rows = session.rows("engines", sql, args![]).await?;
    let other_engines = rows.iter().map(|row| pair(row, "engines")).collect::<Result<_, _>>()?;
    Ok(Facts { variables, other_engines })
}

/// Everything that is not as it should be, the heaviest first.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |weight, message: String| findings.push(Finding { weight, message });
    version(facts, &mut find);
    writable(facts, &mut find);
    transactions(facts, &mut find);
    durability(facts, &mut find);
    clusters(facts, &mut find);
    findings.sort_by_key(|finding| finding.weight);
    findings
}

/// The variable, if the server has it and it is not one of these.
fn other_than<'f>(facts: &'f Facts, name: &str, good: &[&str]) -> Option<&'f str> {
    let value = facts.variables.get(name)?;
    (!good.iter().any(|good| good.eq_ignore_ascii_case(value))).then_some(value)
}

fn version(facts: &Facts, find: &mut impl FnMut(Weight, String)) {
    let version = facts.variables.get("version").map_or("", String::as_str);
    let Version { flavour, number, .. } = Version::read(version);
    let (name, (major, minor)) = match flavour {
        Flavour::Mysql => ("MySQL", (8, 4)),
        Flavour::Mariadb => ("MariaDB", (10, 11)),
    };
    if number < (major, minor, 0) {
        find(
            Weight::Refused,
            format!("the server says it is version `{version}`, of {name} {major}.{minor} or later is needed"),
        );
    }
    // It answers to MySQL's protocol and parses SKIP LOCKED, but locks nothing (pingcap/tidb#69720).
    if version.to_ascii_lowercase().contains("tidb") {
        find(
            Weight::Refused,
            format!("the server is TiDB (`{version}`), whose SKIP LOCKED locks nothing; use MySQL or MariaDB"),
        );
    }
}

fn writable(facts: &Facts, find: &mut impl FnMut(Weight, String)) {
    for name in ["read_only", "super_read_only", "innodb_read_only"] {
        if let Some(value) = other_than(facts, name, &["OFF", "0"]) {
            find(Weight::Away, format!("{name} is {value}: the server takes no writes; is it a replica?"));
        }
    }
}

fn transactions(facts: &Facts, find: &mut impl FnMut(Weight, String)) {
    let rollback = "innodb_rollback_on_timeout";
    if let Some(value) = other_than(facts, rollback, &["OFF", "0"]) {
        find(
            Weight::Refused,
            format!(
                "{rollback} is {value}: a wait for a lock would undo a whole unit of work unasked; set it to OFF and restart the server"
            ),
        );
    }
    let is_logging =
        facts.variables.get("log_bin").is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1");
    if is_logging && let Some(value) = other_than(facts, "binlog_format", &["ROW", "MIXED"]) {
        find(
            Weight::Refused,
            format!("binlog_format is {value}, which refuses writes at READ COMMITTED (error 1665); set it to ROW"),
        );
    }
    let packet = facts.variables.get("max_allowed_packet").and_then(|value| value.parse::<u64>().ok());
    if let Some(bytes) = packet.filter(|bytes| *bytes < PACKET_BYTES_MIN) {
        find(
            Weight::Refused,
            format!(
                "max_allowed_packet is {bytes} bytes, at least {PACKET_BYTES_MIN} are needed for a module's chunks"
            ),
        );
    }
    for (table, engine) in &facts.other_engines {
        find(
            Weight::Refused,
            format!(
                "the engine of {table} is {engine}, which does not roll back; `ALTER TABLE {table} ENGINE = InnoDB`"
            ),
        );
    }
}

fn durability(facts: &Facts, find: &mut impl FnMut(Weight, String)) {
    let flush = "innodb_flush_log_at_trx_commit";
    // 3 of MariaDB syncs as 1 does.
    if let Some(value) = other_than(facts, flush, &["1", "3"]) {
        find(
            Weight::Durability,
            format!(
                "{flush} is {value}: a crash loses commits of the last second, whose messages are acknowledged; set it to 1"
            ),
        );
    }
    let is_logging =
        facts.variables.get("log_bin").is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1");
    if is_logging && let Some(value) = other_than(facts, "sync_binlog", &["1"]) {
        find(
            Weight::Durability,
            format!(
                "sync_binlog is {value}: a crash loses commits out of the binary log, and with it at a replica; set it to 1"
            ),
        );
    }
    if let Some(value) = other_than(facts, "innodb_doublewrite", &["ON", "1", "DETECT_AND_RECOVER", "FAST"]) {
        find(
            Weight::Durability,
            format!("innodb_doublewrite is {value}: a crash in the middle of a page's write destroys it; set it to ON"),
        );
    }
    if let Some(value) = other_than(facts, REDO_LOG, &["ON", "1"]) {
        find(
            Weight::Durability,
            format!("the redo log is {value}: a crash loses the database; `ALTER INSTANCE ENABLE INNODB REDO_LOG`"),
        );
    }
}

fn clusters(facts: &Facts, find: &mut impl FnMut(Weight, String)) {
    let one_writer = "all hosts of this tenant must write to one node: a lock of another node is not seen";
    if let Some(value) = other_than(facts, "wsrep_on", &["OFF", "0"]) {
        find(Weight::Warning, format!("wsrep_on is {value} (Galera): {one_writer}"));
    }
    let single = "group_replication_single_primary_mode";
    if let Some(value) = other_than(facts, single, &["ON", "1"]) {
        find(Weight::Warning, format!("{single} is {value}: {one_writer}"));
    }
}

/// What a host does about the findings: the warnings to log, or why it does not start.
///
/// # Errors
/// [`StoreError::Away`] for a server that takes no writes now; [`StoreError::Unsafe`] with every finding that is refused.
pub(super) fn judge(findings: Vec<Finding>, durability: Durability) -> Result<Vec<Finding>, StoreError> {
    if let Some(away) = findings.iter().find(|finding| finding.weight == Weight::Away) {
        return Err(StoreError::Away { message: away.message.clone() });
    }
    let is_refused = |finding: &Finding| match finding.weight {
        Weight::Away | Weight::Refused => true,
        Weight::Durability => durability == Durability::Strict,
        Weight::Warning => false,
    };
    let (refused, warned): (Vec<Finding>, Vec<Finding>) = findings.into_iter().partition(is_refused);
    if refused.is_empty() {
        return Ok(warned);
    }
    let settings = refused.iter().map(Finding::to_string).collect::<Vec<_>>().join("; ");
    let may_warn = refused.iter().all(|finding| finding.weight == Weight::Durability);
    let mend = if may_warn { "; `durability = \"warn\"` in [store] accepts that loss" } else { "" };
    Err(StoreError::Unsafe { message: format!("{settings}{mend}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str, others: &[(&str, &str)]) -> Facts {
        let safe = [
            ("innodb_doublewrite", "ON"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_rollback_on_timeout", "OFF"),
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("max_allowed_packet", "67108864"),
            ("read_only", "OFF"),
            ("sync_binlog", "1"),
            ("version", version),
        ];
        let variables = safe.iter().chain(others).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Facts { variables: variables.collect(), other_engines: Vec::new() }
    }

    /// The weight and the first word of each finding.
    fn found(facts: &Facts) -> Vec<(Weight, String)> {
        let word = |message: &str| message.split(' ').next().unwrap_or_default().to_owned();
        findings(facts).into_iter().map(|finding| (finding.weight, word(&finding.message))).collect()
    }

    #[test]
    fn a_server_as_it_is_installed_has_no_findings() {
        for version in
            ["8.4.0", "9.7.4", "8.4.6-0ubuntu1", "10.11.19-MariaDB-0+deb12u1", "11.8.2-MariaDB", "12.1.1-mariadb"]
        {
            assert_eq!(found(&server(version, &[])), [], "{version}");
        }
    }

    #[test]
    fn a_version_that_is_too_old_or_not_understood_is_refused() {
        for version in ["8.3.99", "8.0.39", "5.7.44", "10.10.7-MariaDB", "5.5.68-MariaDB", "", "nonsense"] {
            assert_eq!(found(&server(version, &[])), [(Weight::Refused, "the".to_owned())], "{version}");
        }
        let tidb = findings(&server("8.4.11-TiDB-v8.5.0", &[]));
        assert_eq!(tidb.len(), 1);
        assert!(tidb[0].message.contains("SKIP LOCKED locks nothing"), "{}", tidb[0]);
    }

    #[test]
    fn every_setting_has_its_weight() {
        let cases = [
            ("read_only", "ON", Weight::Away),
            ("super_read_only", "ON", Weight::Away),
            ("innodb_read_only", "1", Weight::Away),
            ("innodb_rollback_on_timeout", "ON", Weight::Refused),
            ("binlog_format", "STATEMENT", Weight::Refused),
            ("max_allowed_packet", "4194303", Weight::Refused),
            ("innodb_flush_log_at_trx_commit", "2", Weight::Durability),
            ("innodb_flush_log_at_trx_commit", "0", Weight::Durability),
            ("sync_binlog", "0", Weight::Durability),
            ("sync_binlog", "1000", Weight::Durability),
            ("innodb_doublewrite", "OFF", Weight::Durability),
            ("innodb_doublewrite", "DETECT_ONLY", Weight::Durability),
            ("wsrep_on", "ON", Weight::Warning),
            ("group_replication_single_primary_mode", "OFF", Weight::Warning),
        ];
        for (name, value, weight) in cases {
            assert_eq!(found(&server("9.7.4", &[(name, value)])), [(weight, name.to_owned())], "{name} = {value}");
        }
        assert_eq!(found(&server("9.7.4", &[(REDO_LOG, "OFF")])), [(Weight::Durability, "the".to_owned())]);
    }

    #[test]
    fn other_spellings_of_what_is_safe_are_safe() {
        let cases = [
            ("read_only", "0"),
            ("binlog_format", "MIXED"),
            ("max_allowed_packet", "4194304"),
            ("innodb_flush_log_at_trx_commit", "3"),
            ("innodb_doublewrite", "DETECT_AND_RECOVER"),
            ("innodb_doublewrite", "fast"),
            ("wsrep_on", "OFF"),
            (REDO_LOG, "ON"),
        ];
        for (name, value) in cases {
            assert_eq!(found(&server("9.7.4", &[(name, value)])), [], "{name} = {value}");
        }
    }

    #[test]
    fn without_a_binary_log_its_settings_do_not_count() {
        let off = [("log_bin", "OFF"), ("sync_binlog", "0"), ("binlog_format", "STATEMENT")];
        assert_eq!(found(&server("10.11.19-MariaDB", &off)), []);
    }

    #[test]
    fn a_table_of_another_engine_is_refused_with_its_mending() {
        let facts = Facts { other_engines: vec![("ob_inbox".into(), "MyISAM".into())], ..server("9.7.4", &[]) };
        let error = judge(findings(&facts), Durability::Warn).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to trust the database server: the engine of ob_inbox is MyISAM, which does not roll back; \
             `ALTER TABLE ob_inbox ENGINE = InnoDB`"
        );
    }

    #[test]
    fn only_a_loss_of_durability_may_be_accepted() {
        let loss = [("sync_binlog", "0"), ("innodb_flush_log_at_trx_commit", "2")];
        let warned = judge(findings(&server("9.7.4", &loss)), Durability::Warn).unwrap();
        assert_eq!(warned.len(), 2);
        let refused = judge(findings(&server("9.7.4", &loss)), Durability::Strict).unwrap_err();
        assert_eq!((refused.code(), refused.exit()), ("store-unsafe", crate::code::Exit::Unsafe));
        assert!(refused.to_string().ends_with("; `durability = \"warn\"` in [store] accepts that loss"), "{refused}");
        let packet = [("max_allowed_packet", "1048576"), ("sync_binlog", "0")];
        for durability in [Durability::Strict, Durability::Warn] {
            let refused = judge(findings(&server("9.7.4", &packet)), durability).unwrap_err();
            assert!(!refused.to_string().contains("accepts"), "{refused}");
            assert_eq!(refused.to_string().contains("sync_binlog"), durability == Durability::Strict);
        }
    }

    #[test]
    fn a_server_that_takes_no_writes_is_away_whatever_else_is_wrong() {
        let facts = server("9.7.4", &[("read_only", "ON"), ("sync_binlog", "0")]);
        assert!(judge(findings(&facts), Durability::Strict).unwrap_err().is_away());
    }

    #[test]
    fn a_warning_stops_nobody() {
        let warned = judge(findings(&server("9.7.4", &[("wsrep_on", "ON")])), Durability::Strict).unwrap();
        assert_eq!(warned.len(), 1);
    }
}
