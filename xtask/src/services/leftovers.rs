//! What a test that was killed has left: a server of its own (`tests/src/services/private.rs`), with a note of who
//! started it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{folder::Folder, process::Process, server::Server, steps::step};
use crate::run::Result;

/// What the names of their homes begin with.
const PREFIX: &str = "private-";

/// Whose servers are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of tests that have ended.
    Dead,
    /// All: their data are about to be removed.
    All,
}

/// Ends the servers that tests started for themselves, and removes their data.
pub(super) fn end(folder: &Folder, whose: Whose) -> Result {
    for server in Server::ALL {
        let base = folder.of(server);
        for home in [base.join("homes"), base.join("root/srv/oncebox")].iter().flat_map(|homes| private(homes)) {
            let Some(note) = read(&home) else { continue };
            let owner = Process::read(&note["owner"]);
            if whose == Whose::Dead && owner.is_some_and(Process::alive) {
                continue;
            }
            step(server.name(), &format!("ends what a test has left in {}", home.display()), || {
                let processes = note["processes"].as_array().into_iter().flatten().filter_map(Process::read);
                processes.into_iter().try_for_each(Process::kill)?;
                folder.remove(&home)
            })?;
        }
    }
    Ok(())
}

fn private(homes: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(homes).into_iter().flatten().filter_map(std::result::Result::ok);
    let is_private = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    entries.map(|entry| entry.path()).filter(is_private).collect()
}

/// The note; one that is not there yet belongs to a test that has just begun.
fn read(home: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(home.join("private.json")).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_an_ended_test_has_left_is_ended() {
        let base = std::env::temp_dir().join(format!("oncebox-leftovers-test-{}", std::process::id()));
        let folder = Folder::at(base.clone());
        let homes = base.join("mysql/homes");
        let log = base.join("log");
        let home = |name: &str, note: Option<Value>| {
            let home = homes.join(name);
            std::fs::create_dir_all(&home).unwrap();
            if let Some(note) = note {
                std::fs::write(home.join("private.json"), note.to_string()).unwrap();
            }
            home
        };
        let words = ["sleep".to_owned(), "600".to_owned()];
        std::fs::create_dir_all(&base).unwrap();
        let (server, mut child) = Process::start(&words, Path::new("/"), &log).unwrap();
        let (owner, mut owners) = Process::start(&words, Path::new("/"), &log).unwrap();
        let note = json!({ "owner": owner.value(), "processes": [server.value()] });
        let (left, main, begun) = (home("private-1", Some(note)), home("main", None), home("private-2", None));

        end(&folder, Whose::Dead).unwrap();
        assert!(server.alive() && left.is_dir());
        owner.kill().unwrap();
        end(&folder, Whose::Dead).unwrap();
        assert!(!server.alive() && !left.exists());
        assert!(main.is_dir() && begun.is_dir());
        child.wait().unwrap();
        owners.wait().unwrap();
        std::fs::remove_dir_all(base).unwrap();
    }
}
