//! `cargo services status`: one line a server.

use super::{
    folder::{Folder, Servers},
    is_alive, ready,
    server::Server,
    steps,
    up::recorded_ports,
};
use crate::run::{Failed, Repo, Result};

/// Says of each server whether it is up; one that is not is a failure.
pub(super) fn status(repo: &Repo, folder: &Folder, asked: &[Server]) -> Result {
    let servers = folder.read()?;
    let mut missing = Vec::new();
    for server in asked {
        let (is_up, text) = one(repo, folder, &servers, *server);
        steps::line(server.name(), &text);
        if !is_up {
            missing.push(server.name());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    Err(Failed::Step(format!("not up: {missing}; bring up with: cargo services up {missing}")))
}

fn one(repo: &Repo, folder: &Folder, servers: &Servers, server: Server) -> (bool, String) {
    let variable = server.variable().0;
    if let Some(url) = std::env::var(variable).ok().filter(|url| !url.is_empty()) {
        let answers = ready::answers(&url, server.usual_port());
        let state = if answers { "up" } else { "down" };
        return (answers, format!("{state:<5} the one of {variable}"));
    }
    let Some(known) = servers.get(server) else { return (false, "down  not started".to_owned()) };
    let version = ready::version(server, &recorded_ports(known));
    let is_up = version.is_some() && is_alive(repo, folder, servers, server);
    let state = if is_up { "up" } else { "down" };
    let text = |name: &str| known[name].as_str().unwrap_or_default();
    (is_up, format!("{state:<5} {} {} log: {}", text("version"), text("url"), text("log")))
}
