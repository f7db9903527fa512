//! `cargo services down`: ends what `up` started, and nothing else.

use super::{
    docker,
    folder::{Folder, Servers},
    is_alive,
    leftovers::{self, Whose},
    process::Process,
    server::Server,
    steps::{self, step},
};
use crate::run::{Repo, Result};

/// Ends servers; their roots and data stay.
pub(super) fn down(repo: &Repo, folder: &Folder, asked: &[Server]) -> Result {
    if !folder.path().is_dir() {
        println!("nothing was started: there is no {}", folder.path().display());
        return Ok(());
    }
    let _lock = folder.lock()?;
    leftovers::end(folder, Whose::Dead)?;
    let mut servers = folder.read()?;
    asked.iter().try_for_each(|server| end(repo, folder, &mut servers, *server))
}

/// Ends all servers and removes the folder with their roots and data.
pub(super) fn purge(repo: &Repo, folder: &Folder) -> Result {
    if !folder.path().is_dir() {
        println!("there is no {}", folder.path().display());
        return Ok(());
    }
    let _lock = folder.lock()?;
    leftovers::end(folder, Whose::All)?;
    let mut servers = folder.read()?;
    Server::ALL.iter().try_for_each(|server| end(repo, folder, &mut servers, *server))?;
    step("all", &format!("removes {}", folder.path().display()), || folder.purge())
}

fn end(repo: &Repo, folder: &Folder, servers: &mut Servers, server: Server) -> Result {
    let name = server.name();
    let Some(known) = servers.get(server) else {
        steps::line(name, "was not started here");
        return Ok(());
    };
    if known["how"] == "docker" {
        step(name, "ends its container", || docker::down(repo, folder, server))?;
    } else {
        let was = if is_alive(repo, folder, servers, server) { "ends" } else { "was not running; ends what is left" };
        step(name, was, || servers.processes(server).into_iter().try_for_each(Process::end))?;
    }
    servers.forget(server);
    folder.write(servers)
}
