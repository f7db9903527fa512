//! Servers from Debian: packages of this machine, and roots of their own where this machine's release has none or an
//! old one. Such a root needs no mount: what a server would read in /proc is told to it.

use std::{path::Path, process::Command};

use super::{folder::Folder, mirror, programs, server::Server, steps};
use crate::run::{Failed, Result, output};

/// The release whose packages are taken for a root.
const SUITE: &str = "sid";

/// What signs it.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Whether this is root, which alone can install.
pub(super) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Whether there is apt.
pub(super) fn has_apt() -> bool {
    programs::on_path("apt-get").is_some()
}

/// Installs the server.
pub(super) fn install(folder: &Folder, server: Server) -> Result {
    let log = folder.of(server).join("install.log");
    match server {
        Server::Mysql => {
            let packages = "mysql-server-core,mysql-client-core";
            root(folder, server, &["--variant=extract"], packages, &log)
        }
        Server::Rabbitmq => root(folder, server, &["--variant=minbase"], "rabbitmq-server", &log),
        Server::Mariadb => {
            let text = "installs mariadb-server-core and mariadb-client-core by apt-get";
            let packages = ["mariadb-server-core", "mariadb-client-core"];
            steps::step(server.name(), text, || apt_install(&packages, &log))
        }
    }
}

/// Installs packages of this machine's own release.
pub(super) fn apt_install(packages: &[&str], log: &Path) -> Result {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-o", "DPkg::Lock::Timeout=300", "-y", "-q"]).args(words);
        steps::run_logged(command.env("DEBIAN_FRONTEND", "noninteractive"), log)
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], packages].concat())
}

fn root(folder: &Folder, server: Server, how: &[&str], packages: &str, log: &Path) -> Result {
    let name = server.name();
    let wanted: Vec<&str> = [
        ("mmdebstrap", programs::on_path("mmdebstrap").is_none()),
        ("debian-archive-keyring", !Path::new(KEYRING).is_file()),
    ]
    .into_iter()
    .filter_map(|(package, missing)| missing.then_some(package))
    .collect();
    if !wanted.is_empty() {
        steps::step(name, &format!("installs {} by apt-get", wanted.join(" and ")), || apt_install(&wanted, log))?;
    }
    let mirror = mirror::mirror()?;
    let root = folder.of(server).join("root");
    let part = root.with_extension("part");
    folder.remove(&part)?;
    let text = format!("installs {} from Debian {SUITE} into {}", server.title(), root.display());
    steps::step(name, &text, || {
        let mut command = Command::new("mmdebstrap");
        // A mirror may lag behind by more than the release file allows.
        command.args(["--aptopt=Acquire::Check-Valid-Until \"false\""]).args(how).arg(format!("--include={packages}"));
        command.arg(SUITE).arg(&part).arg(format!("deb [signed-by={KEYRING}] {mirror} {SUITE} main"));
        steps::run_logged(&mut command, log)?;
        complete(folder, &part)?;
        std::fs::rename(&part, &root).map_err(Failed::to(format!("rename {}", part.display())))
    })
}

/// What packages of the base would have made.
fn complete(folder: &Folder, root: &Path) -> Result {
    for link in ["bin", "sbin", "lib", "lib64"] {
        let path = root.join(link);
        if path.symlink_metadata().is_err() && root.join("usr").join(link).is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(link), &path)
                .map_err(Failed::to(format!("link {}", path.display())))?;
        }
    }
    folder.make(&root.join("tmp"))?;
    let hosts = root.join("etc/hosts");
    // Without it `localhost` has no address there.
    std::fs::write(&hosts, "127.0.0.1 localhost\n").map_err(Failed::to(format!("write {}", hosts.display())))
}
