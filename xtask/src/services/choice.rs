//! Which server the tests get: decided from facts, so that the order can be read and tested in one place.

use std::path::PathBuf;

/// A server program of this machine that is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The folder that is its root; empty: the machine's own.
    pub(super) root: PathBuf,
    /// Where it is, seen from its root.
    pub(super) path: String,
    /// Its version, as it says it.
    pub(super) version: String,
}

/// What is known of this machine when a server is asked for.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The URL of the environment variable.
    pub(super) given: Option<String>,
    /// One that an earlier `up` started is alive.
    pub(super) running: bool,
    /// Own instances can be started and found again (`/proc`).
    pub(super) linux: bool,
    /// A program on PATH that fits.
    pub(super) program: Option<Program>,
    /// This is root.
    pub(super) root: bool,
    /// There is apt.
    pub(super) apt: bool,
    /// A Docker daemon answers.
    pub(super) docker: bool,
}

/// Where the server comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Somebody else's, at that URL: nothing is started.
    Given(String),
    /// Ours, already.
    Running,
    /// An instance of our own of a program that is installed.
    Program(Program),
    /// Installed from Debian first.
    Debian,
    /// A container.
    Docker,
    /// There is no way.
    Nothing,
}

/// The order: what a person says, what is there, what can be fetched.
pub(super) fn choose(facts: &Facts) -> Choice {
    if let Some(url) = &facts.given {
        return Choice::Given(url.clone());
    }
    if facts.running {
        return Choice::Running;
    }
    if facts.linux {
        if let Some(program) = &facts.program {
            return Choice::Program(program.clone());
        }
        if facts.root && facts.apt {
            return Choice::Debian;
        }
    }
    if facts.docker { Choice::Docker } else { Choice::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Facts {
        let program =
            Program { root: PathBuf::new(), path: "/usr/sbin/mysqld".to_owned(), version: "9.7.4".to_owned() };
        Facts {
            given: Some("mysql://root@db:3306".to_owned()),
            running: true,
            linux: true,
            program: Some(program),
            root: true,
            apt: true,
            docker: true,
        }
    }

    #[test]
    fn each_way_is_taken_when_those_before_it_are_closed() {
        let mut facts = all();
        assert_eq!(choose(&facts), Choice::Given("mysql://root@db:3306".to_owned()));
        facts.given = None;
        assert_eq!(choose(&facts), Choice::Running);
        facts.running = false;
        assert!(matches!(choose(&facts), Choice::Program(program) if program.path == "/usr/sbin/mysqld"));
        facts.program = None;
        assert_eq!(choose(&facts), Choice::Debian);
        facts.root = false;
        assert_eq!(choose(&facts), Choice::Docker);
        facts.docker = false;
        assert_eq!(choose(&facts), Choice::Nothing);
    }

    #[test]
    fn root_without_apt_takes_docker() {
        let facts = Facts { given: None, running: false, program: None, apt: false, ..all() };
        assert_eq!(choose(&facts), Choice::Docker);
    }

    #[test]
    fn elsewhere_than_on_linux_only_containers_are_started() {
        let facts = Facts { given: None, running: false, linux: false, ..all() };
        assert_eq!(choose(&facts), Choice::Docker);
    }
}
