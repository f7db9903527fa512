//! How an instance of a server is made and started: commands with placeholders, which tests use too (`servers.json`).

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::{choice::Program, folder::Folder, ports::Ports, process::Process, steps};
use crate::run::{Failed, Result};

/// The file in an instance's home that says that its data folder is complete.
const COMPLETE: &str = "complete";

/// Commands and files of one server's instances. `{home}` is the folder of an instance, seen from the root, `{port}`
/// and the like are its ports.
#[derive(Debug)]
pub(super) struct Template {
    /// The folder that is the root of its commands; empty: the machine's own.
    pub(super) root: PathBuf,
    /// Where homes are made, seen from the root.
    pub(super) homes: String,
    /// The ports that are to be chosen.
    pub(super) ports: Vec<&'static str>,
    /// Files in the home, written before each start.
    pub(super) files: Vec<(&'static str, String)>,
    /// What turns an empty home into one with data, once.
    pub(super) prepare: Vec<Vec<String>>,
    /// A process that must be there first; empty: none.
    pub(super) helper: Vec<String>,
    /// The server, in the foreground.
    pub(super) run: Vec<String>,
    /// What a command for the running server begins with; empty: there is none.
    pub(super) ctl: Vec<String>,
}

/// A command of a program: in its root, with nothing of our environment but what is said.
pub(super) fn command(program: &Program, environment: &[String], words: &[&str]) -> Vec<String> {
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let mut all: Vec<String> = ["env", "-i", path].map(str::to_owned).into();
    all.extend(environment.iter().cloned());
    if !program.root.as_os_str().is_empty() {
        all.extend(["chroot".to_owned(), program.root.display().to_string()]);
    }
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// A path of a root, seen from outside of it; an empty root is the machine's own.
pub(super) fn outside(root: &Path, path: &str) -> PathBuf {
    if root.as_os_str().is_empty() { path.into() } else { root.join(path.trim_start_matches('/')) }
}

impl Template {
    /// As it stands in `servers.json`.
    pub(super) fn value(&self) -> Value {
        json!({
            "root": self.root.display().to_string(),
            "homes": self.homes,
            "ports": self.ports,
            "files": self.files.iter().map(|(name, text)| json!([name, text])).collect::<Vec<_>>(),
            "prepare": self.prepare,
            "helper": self.helper,
            "run": self.run,
            "ctl": self.ctl,
        })
    }
}

/// An instance: a template with its own home and ports.
pub(super) struct Instance<'a> {
    template: &'a Template,
    home: String,
    ports: &'a Ports,
}

impl<'a> Instance<'a> {
    /// The instance of that name.
    pub(super) fn new(template: &'a Template, name: &str, ports: &'a Ports) -> Self {
        Self { template, home: format!("{}/{name}", template.homes), ports }
    }

    /// A text with the placeholders filled in.
    pub(super) fn fill(&self, text: &str) -> String {
        let filled = text.replace("{home}", &self.home);
        self.ports.iter().fold(filled, |text, (name, port)| text.replace(&format!("{{{name}}}"), &port.to_string()))
    }

    /// A command with the placeholders filled in.
    pub(super) fn words(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.fill(word)).collect()
    }

    /// Its home, seen from outside of the root.
    fn outside(&self) -> PathBuf {
        outside(&self.template.root, &self.home)
    }

    /// Whether it has no data yet.
    pub(super) fn is_new(&self) -> bool {
        !self.outside().join(COMPLETE).is_file()
    }

    /// Makes the home, anew where an earlier call was interrupted.
    pub(super) fn prepare(&self, folder: &Folder, log: &Path) -> Result {
        let home = self.outside();
        folder.remove(&home)?;
        folder.make(&home)?;
        self.write_files(&home)?;
        for words in &self.template.prepare {
            let words = self.words(words);
            let Some((program, args)) = words.split_first() else { continue };
            steps::run_logged(Command::new(program).args(args).current_dir(&home), log)?;
        }
        let complete = home.join(COMPLETE);
        std::fs::write(&complete, "").map_err(Failed::to(format!("write {}", complete.display())))
    }

    /// Starts it: the server first in the returned list, as it is the first to be ended.
    pub(super) fn start(&self, log: &Path) -> Result<Vec<Process>> {
        let home = self.outside();
        self.write_files(&home)?;
        let mut processes = Vec::new();
        for words in [&self.template.helper, &self.template.run] {
            if !words.is_empty() {
                // Nobody waits for it: it outlives this command.
                processes.insert(0, Process::start(&self.words(words), &home, log)?.0);
            }
        }
        Ok(processes)
    }

    fn write_files(&self, home: &Path) -> Result {
        for (name, text) in &self.template.files {
            let path = home.join(name);
            std::fs::write(&path, self.fill(text)).map_err(Failed::to(format!("write {}", path.display())))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(root: &str) -> Program {
        Program { root: root.into(), path: "/usr/sbin/mysqld".to_owned(), version: "9.7.4".to_owned() }
    }

    fn template(root: &str, run: Vec<String>) -> Template {
        Template {
            root: root.into(),
            homes: "/srv/oncebox".to_owned(),
            ports: vec!["port"],
            files: vec![("conf", "listen {port}".to_owned())],
            prepare: Vec::new(),
            helper: Vec::new(),
            run,
            ctl: Vec::new(),
        }
    }

    #[test]
    fn a_command_runs_in_its_root_where_it_has_one() {
        let words =
            command(&program("/cache/root"), &["HOME={home}".to_owned()], &["/usr/sbin/mysqld", "--port={port}"]);
        assert_eq!(words[3..], ["HOME={home}", "chroot", "/cache/root", "/usr/sbin/mysqld", "--port={port}"]);
        assert_eq!(command(&program(""), &[], &["mysqld"])[3..], ["mysqld"]);
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let ports = Ports::from([("port".to_owned(), 13306)]);
        let template = template("/cache/root", Vec::new());
        let instance = Instance::new(&template, "main", &ports);
        assert_eq!(
            instance.fill("{home}/x {port} {127,0,0,1} {other}"),
            "/srv/oncebox/main/x 13306 {127,0,0,1} {other}"
        );
        assert_eq!(instance.outside(), Path::new("/cache/root/srv/oncebox/main"));
    }

    #[test]
    fn a_home_without_a_root_is_where_it_says() {
        let ports = Ports::new();
        let template = template("", Vec::new());
        assert_eq!(Instance::new(&template, "main", &ports).outside(), Path::new("/srv/oncebox/main"));
    }
}
