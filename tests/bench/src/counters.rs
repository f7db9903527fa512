//! What a drain costs, read before and after it: the server's own counters, and processor time by the kernel's books.

use std::{fs, ops::Sub, path::Path};

use anyhow::{Context as _, Result};
use oncebox_tests::{database::Tables as _, services::Session};

/// Processor time of Linux is told in hundredths of a second (`USER_HZ`), whatever the kernel's own clock.
const TICK_US: u64 = 10_000;

/// Totals at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    /// fsync and the like of InnoDB and of the binary log.
    pub(crate) fsyncs: u64,
    /// `Questions`: each is a round trip, but for those that came in one text.
    pub(crate) round_trips: u64,
    /// Bytes of redo log.
    pub(crate) redo_bytes: u64,
    /// Transactions that were committed; one that a statement makes by itself is not among them.
    pub(crate) commits: u64,
    /// Processor time of the database, microseconds.
    pub(crate) database_us: u64,
}

impl Counters {
    /// As the server counts now.
    pub(crate) fn read(session: &Session) -> Result<Self> {
        let status = |name: &str| -> Result<u64> {
            let sql = format!(
                "SELECT CAST(variable_value AS CHAR) FROM performance_schema.global_status WHERE variable_name = '{name}'"
            );
            session
                .lines(&sql)
                .first()
                .with_context(|| format!("the server has no {name}"))?
                .parse()
                .context(name.to_owned())
        };
        // The server's `Com_commit`, which this table of variables does not have.
        let commits =
            "SELECT CAST(count_star AS CHAR) FROM performance_schema.events_statements_summary_global_by_event_name
            WHERE event_name = 'statement/sql/commit'";
        let commits: u64 = session.lines(commits).first().context("no commits")?.parse()?;
        let binlog = "SELECT CAST(COALESCE(SUM(count_misc), 0) AS CHAR)
            FROM performance_schema.file_summary_by_event_name WHERE event_name = 'wait/io/file/sql/binlog'";
        let binlog: u64 = session.lines(binlog).first().context("no binary log")?.parse()?;
        Ok(Self {
            fsyncs: status("Innodb_data_fsyncs")? + binlog,
            round_trips: status("Questions")?,
            redo_bytes: status("Innodb_os_log_written")?,
            commits,
            database_us: database_us(),
        })
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            fsyncs: self.fsyncs - before.fsyncs,
            round_trips: self.round_trips - before.round_trips,
            redo_bytes: self.redo_bytes - before.redo_bytes,
            commits: self.commits - before.commits,
            database_us: self.database_us.saturating_sub(before.database_us),
        }
    }
}

/// Processor time of all servers of MySQL on this machine: there is one, where nobody else tests.
fn database_us() -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let is_server = |process: &Path| fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "mysqld");
    processes.flatten().map(|entry| entry.path()).filter(|path| is_server(path)).filter_map(|path| used_us(&path)).sum()
}

/// Processor time of a process, user and system, microseconds.
pub(crate) fn cpu_us(process: u32) -> Option<u64> {
    used_us(&Path::new("/proc").join(process.to_string()))
}

fn used_us(process: &Path) -> Option<u64> {
    ticks(&fs::read_to_string(process.join("stat")).ok()?).map(|ticks| ticks * TICK_US)
}

/// Fields 14 and 15 of `/proc/PID/stat`; the name before them may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The most memory that a process has had, mebibytes.
pub(crate) fn peak_mib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib / 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_a_process_with_an_odd_name_is_read() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 700 33 0 0 20 0 1 0 100 0 0";
        assert_eq!(ticks(stat), Some(733));
        assert_eq!(ticks("nothing"), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(peak_mib(std::process::id()).is_some_and(|mib| mib > 0));
        assert!(cpu_us(std::process::id()).is_some());
    }
}
