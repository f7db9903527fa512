//! Server programs of this machine, and of the roots that were installed before.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    choice::Program,
    folder::Folder,
    server::Server,
    template::{command, outside},
    version::{Maker, Version, program_version},
};

/// Folders of servers that a person's PATH may lack.
const MORE: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Debian's `rabbitmq-server` on PATH changes the user; this one, beside the other scripts, does not.
const PLAIN_RABBITMQ: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// A program by its name.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(MORE.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The first program that is new enough: on PATH, then in the root that was installed; and those that are not.
pub(super) fn find(folder: &Folder, server: Server) -> (Option<Program>, Vec<Program>) {
    let (fitting, old): (Vec<_>, Vec<_>) = candidates(folder, server)
        .into_iter()
        .filter_map(|(root, path)| with_version(server, root, path))
        .partition(|program| Version::read(&program.version).is_some_and(|version| version >= server.oldest()));
    (fitting.into_iter().next(), old)
}

fn candidates(folder: &Folder, server: Server) -> Vec<(PathBuf, String)> {
    let names: &[&str] = match server {
        Server::Mysql => &["mysqld"],
        Server::Mariadb => &["mariadbd", "mysqld"],
        Server::Rabbitmq => &["rabbitmq-server"],
    };
    let found = names.iter().filter_map(|name| on_path(name)).map(|path| (PathBuf::new(), plain(server, &path)));
    let root = folder.of(server).join("root");
    let installed = match server {
        Server::Mysql => Some("/usr/sbin/mysqld"),
        Server::Rabbitmq => Some(PLAIN_RABBITMQ),
        Server::Mariadb => None,
    };
    let installed = installed.filter(|_| root.is_dir()).map(|path| (root, path.to_owned()));
    found.chain(installed).collect()
}

fn plain(server: Server, path: &Path) -> String {
    let wrapped = server == Server::Rabbitmq && path.starts_with("/usr/sbin") && Path::new(PLAIN_RABBITMQ).is_file();
    if wrapped { PLAIN_RABBITMQ.to_owned() } else { path.display().to_string() }
}

fn with_version(server: Server, root: PathBuf, path: String) -> Option<Program> {
    let mut program = Program { root, path, version: String::new() };
    program.version = match server {
        Server::Mysql | Server::Mariadb => {
            let (maker, version) = program_version(&said(&command(&program, &[], &[&program.path, "--version"]))?)?;
            let ours = if server == Server::Mysql { Maker::Mysql } else { Maker::Mariadb };
            (maker == ours).then_some(version)?
        }
        Server::Rabbitmq => rabbitmq_version(&outside(&program.root, &program.path))?,
    };
    Some(program)
}

/// RabbitMQ's version by the name of its folder: around the scripts in the archive of its makers, beside them in a
/// package. To ask `rabbitmqctl` would start a port mapper of Erlang's that stays, on all interfaces.
fn rabbitmq_version(script: &Path) -> Option<String> {
    let script = script.canonicalize().ok()?;
    let version = |name: &std::ffi::OsStr| Some(name.to_str()?.strip_prefix("rabbitmq_server-")?.to_owned());
    let around = script.ancestors().filter_map(Path::file_name).find_map(version);
    around.or_else(|| {
        let beside = std::fs::read_dir(script.parent()?.parent()?.join("lib")).ok()?;
        beside.filter_map(|entry| version(&entry.ok()?.file_name())).next()
    })
}

fn said(words: &[String]) -> Option<String> {
    let (program, args) = words.split_first()?;
    let output = Command::new(program).args(args).current_dir("/").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rabbitmqs_version_is_read_from_both_layouts() {
        let base = std::env::temp_dir().join(format!("oncebox-programs-test-{}", std::process::id()));
        let script = |path: &str| {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let archive = script("rabbitmq_server-4.1.2/sbin/rabbitmq-server");
        assert_eq!(rabbitmq_version(&archive).as_deref(), Some("4.1.2"));
        let package = script("usr/lib/rabbitmq/bin/rabbitmq-server");
        assert_eq!(rabbitmq_version(&package), None);
        script("usr/lib/rabbitmq/lib/rabbitmq_server-4.3.6/plugins/README");
        assert_eq!(rabbitmq_version(&package).as_deref(), Some("4.3.6"));
        std::fs::remove_dir_all(base).unwrap();
    }
}
