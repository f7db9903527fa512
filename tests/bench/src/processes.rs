//! Processor time and memory of a drain, by the kernel's books.

use std::{fs, path::Path};

/// Processor time of Linux is told in hundredths of a second (`USER_HZ`), whatever the kernel's own clock.
const TICK_US: u64 = 10_000;

/// Processor time of all servers of MySQL on this machine: there is one, where nobody else tests.
#[must_use]
pub fn database_us() -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let is_server = |process: &Path| fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "mysqld");
    processes.flatten().map(|entry| entry.path()).filter(|path| is_server(path)).filter_map(|path| used_us(&path)).sum()
}

/// Processor time of a process, user and system, microseconds.
#[must_use]
pub fn cpu_us(process: u32) -> Option<u64> {
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
#[must_use]
pub fn peak_mib(process: u32) -> Option<u64> {
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
