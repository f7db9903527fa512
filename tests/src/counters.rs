//! What a load has cost a MySQL, by the server's own counters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::ops::Sub;

use crate::{database::Tables as _, services::Session};

/// Totals at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// fsync and the like of InnoDB and of the binary log.
    pub fsyncs: u64,
    /// Of them those of the redo log and the binary log, which transactions cause. The others are of data files, from time
    /// to time for each that has changed.
    pub log_fsyncs: u64,
    /// `Questions`: each is a round trip, but for those that came in one text.
    pub round_trips: u64,
    /// Bytes of redo log.
    pub redo_bytes: u64,
    /// Transactions that were committed; one that a statement makes by itself is not among them.
    pub commits: u64,
}

impl Counters {
    /// As the server counts now.
    ///
    /// # Panics
    /// It does not count one of these.
    #[must_use]
    #[track_caller]
    pub fn read(session: &Session) -> Self {
        let one = |sql: &str| -> u64 { session.lines(sql).first().unwrap_or_else(|| panic!("{sql}")).parse().unwrap() };
        let status = |name: &str| {
            one(&format!(
                "SELECT CAST(variable_value AS CHAR) FROM performance_schema.global_status WHERE variable_name = '{name}'"
            ))
        };
        // The server's `Com_commit`, which this table of variables does not have.
        let commits =
            "SELECT CAST(count_star AS CHAR) FROM performance_schema.events_statements_summary_global_by_event_name
            WHERE event_name = 'statement/sql/commit'";
        let binlog = "SELECT CAST(COALESCE(SUM(count_misc), 0) AS CHAR)
            FROM performance_schema.file_summary_by_event_name WHERE event_name = 'wait/io/file/sql/binlog'";
        let binlog = one(binlog);
        Self {
            fsyncs: status("Innodb_data_fsyncs") + binlog,
            log_fsyncs: status("Innodb_os_log_fsyncs") + binlog,
            round_trips: status("Questions"),
            redo_bytes: status("Innodb_os_log_written"),
            commits: one(commits),
        }
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            fsyncs: self.fsyncs - before.fsyncs,
            log_fsyncs: self.log_fsyncs - before.log_fsyncs,
            round_trips: self.round_trips - before.round_trips,
            redo_bytes: self.redo_bytes - before.redo_bytes,
            commits: self.commits - before.commits,
        }
    }
}
