//! A killer that takes all memory, where the kernel lets a test bound a process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use oncebox_tests::{
    fleet::{Fleet, Plan, TENANT},
    host::Host,
};
use serde_json::json;

use crate::stage::{SIGKILL, Watched, is_blamed, keys, typed};

/// Enough for a host in a test build, and little for a killer.
const BYTES_MAX: u64 = 768 << 20;

/// A control group for processes that get no more memory than that; gone when it is dropped and they are.
struct Bounded(PathBuf);

impl Bounded {
    /// `Err`: why there is none.
    fn make() -> Result<Self, String> {
        let name = format!("oncebox-test-{}", std::process::id());
        let (root, limit) = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            ("/sys/fs/cgroup", "memory.max")
        } else {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        };
        let folder = Path::new(root).join(name);
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let group = Self(folder);
        group.write(limit, &BYTES_MAX.to_string())?;
        // Where memory is swapped out the killer would take long; not every kernel counts that.
        let _ = group.write("memory.swap.max", "0");
        Ok(group)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn take(&self, host: &Host) {
        self.write("cgroup.procs", &host.id().to_string()).unwrap();
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_killer_that_takes_all_memory_is_dead_after_two_deaths_alone() {
    let group = match Bounded::make() {
        Ok(group) => group,
        Err(why) => return println!("skipped: no control group can be made here: {why}"),
    };
    let fleet = Fleet::shared(Plan { host: "", tenants: &[TENANT] });
    let tenant = &fleet.tenants[0];
    fleet.start("a").ready().stop();
    let mut events: Vec<String> = (0..20).map(|n| typed("entry", &format!("k-{n:02}"), &json!({}))).collect();
    events.insert(10, typed("entry", "the-killer", &json!({ "do": "hoard" })));
    tenant.publisher().publish(&events);
    let mut watched = Watched::start_and(&fleet, &["a"], SIGKILL, |host| group.take(host));
    let deaths = watched.until_drained(tenant, 21);
    println!("{deaths} lives ended");
    assert!((3..=4).contains(&deaths), "{deaths}");
    assert_eq!(keys(tenant, 0).len(), 20);
    is_blamed(tenant, "the-killer", 2);
    tenant.check();
    drop(watched);
}
