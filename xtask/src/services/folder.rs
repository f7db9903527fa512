//! The folder outside the checkout that holds the servers' roots, data and logs, and the list of what runs.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Map, Value};

use super::{process::Process, server::Server};
use crate::run::{Failed, Result, run};

/// `oncebox/services` in the user's cache.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of this user; it need not be there.
    pub(super) fn find() -> Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let cache = cache.ok_or_else(|| Failed::Step("neither XDG_CACHE_HOME nor HOME is set".to_owned()))?;
        Ok(Self { path: cache.join("oncebox").join("services") })
    }

    /// A folder anywhere.
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Keeps others from changing anything here until the returned file is dropped.
    pub(super) fn lock(&self) -> Result<File> {
        self.make(&self.path)?;
        let path = self.path.join("lock");
        let locking = || Failed::to(format!("lock {}", path.display()));
        let file = File::options().create(true).append(true).open(&path).map_err(locking())?;
        file.lock().map_err(locking())?;
        Ok(file)
    }

    /// A server's part of the folder.
    pub(super) fn of(&self, server: Server) -> PathBuf {
        self.path.join(server.name())
    }

    /// Where a server's output goes.
    pub(super) fn log(&self, server: Server) -> PathBuf {
        self.of(server).join("log")
    }

    /// The certificates.
    pub(super) fn tls(&self) -> PathBuf {
        self.path.join("tls")
    }

    /// Makes a folder and all above it.
    pub(super) fn make(&self, path: &Path) -> Result {
        std::fs::create_dir_all(path).map_err(Failed::to(format!("make the folder {}", path.display())))
    }

    /// What tests read: `servers.json`.
    pub(super) fn list(&self) -> PathBuf {
        self.path.join("servers.json")
    }

    /// Reads the list of what was started.
    pub(super) fn read(&self) -> Result<Servers> {
        let path = self.list();
        if !path.is_file() {
            return Ok(Servers(Map::new()));
        }
        let text = std::fs::read_to_string(&path).map_err(Failed::to(format!("read {}", path.display())))?;
        serde_json::from_str(&text).map(Servers).map_err(|why| {
            Failed::Step(format!("failed to read {}: {why}; end the servers by hand and remove it", path.display()))
        })
    }

    /// Writes it, whole or not at all.
    pub(super) fn write(&self, servers: &Servers) -> Result {
        let path = self.list();
        let new = path.with_extension("new");
        let text = serde_json::to_string_pretty(&servers.0).map_err(Failed::to("write servers.json"))?;
        std::fs::write(&new, text + "\n").map_err(Failed::to(format!("write {}", new.display())))?;
        std::fs::rename(&new, &path).map_err(Failed::to(format!("replace {}", path.display())))
    }

    /// Removes a folder of ours, unless something is mounted below it: that would be emptied too.
    pub(super) fn remove(&self, path: &Path) -> Result {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if let Some(mount) = mount_below(&mounts, path) {
            return Err(Failed::Step(format!(
                "failed to remove {}: {mount} is mounted; unmount it first",
                path.display()
            )));
        }
        run(Command::new("rm").args(["-rf", "--"]).arg(path))
    }

    /// Removes all of it.
    pub(super) fn purge(&self) -> Result {
        self.remove(&self.path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The list of what was started, by server.
pub(super) struct Servers(Map<String, Value>);

impl Servers {
    /// What is known of a server.
    pub(super) fn get(&self, server: Server) -> Option<&Value> {
        self.0.get(server.name())
    }

    /// Its processes, in the order in which they are ended.
    pub(super) fn processes(&self, server: Server) -> Vec<Process> {
        let listed = self.get(server).and_then(|known| known["processes"].as_array());
        listed.into_iter().flatten().filter_map(Process::read).collect()
    }

    /// Notes a server.
    pub(super) fn set(&mut self, server: Server, known: Value) {
        self.0.insert(server.name().to_owned(), known);
    }

    /// Forgets one.
    pub(super) fn forget(&mut self, server: Server) {
        self.0.remove(server.name());
    }
}

/// The first mount at or below a path; the fifth field of a line of proc(5)'s `mountinfo` is where.
fn mount_below<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).find(|mount| Path::new(mount).starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_below_a_folder_is_seen_and_one_beside_it_is_not() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /cache/services/rabbitmq/root/dev rw - devtmpfs x rw\n\
                      31 22 0:6 / /cache/services2 rw - tmpfs x rw\n";
        let below = |path| mount_below(mounts, Path::new(path));
        assert_eq!(below("/cache/services"), Some("/cache/services/rabbitmq/root/dev"));
        assert_eq!(below("/cache/services/mysql"), None);
        assert_eq!(below("/cache/serv"), None);
    }
}
