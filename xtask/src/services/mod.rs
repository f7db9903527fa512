//! `cargo services up | down | status`: the real servers of the tests, on this machine's loopback interface, with their
//! roots, data and logs in one folder outside of the checkout. `up.rs` has the way to a server.

mod choice;
mod debian;
mod docker;
mod down;
mod folder;
mod leftovers;
mod mariadb;
mod mirror;
mod mysql;
mod ports;
mod process;
mod programs;
mod rabbitmq;
mod ready;
mod server;
mod status;
mod steps;
mod template;
mod tls;
mod up;
mod version;

use std::{thread::sleep, time::Duration};

use folder::{Folder, Servers};
pub(crate) use server::Server;

use crate::run::{Failed, Repo, Result, Stopwatch};

/// Does what the command line says.
pub(crate) fn services(repo: &Repo, args: &[&str]) -> Result {
    let Some((verb, rest)) = args.split_first() else {
        return Err(Failed::Usage("services: up, down or status?".to_owned()));
    };
    match *verb {
        "up" => up(repo, &asked(rest)?, &mut Vec::new()),
        "status" => status::status(repo, &Folder::find()?, &asked(rest)?),
        "down" => {
            let (options, names): (Vec<&str>, Vec<&str>) = rest.iter().partition(|arg| arg.starts_with('-'));
            match *options {
                [] => down::down(repo, &Folder::find()?, &asked(&names)?),
                ["--purge"] if names.is_empty() => down::purge(repo, &Folder::find()?),
                ["--purge"] => Err(Failed::Usage("`down --purge` removes all servers: name none".to_owned())),
                _ => Err(Failed::Usage(format!("`services down` does not know {}", options.join(" ")))),
            }
        }
        _ => Err(Failed::Usage(format!("there is no `services {verb}`; there are up, down and status"))),
    }
}

/// Does something while servers are up; those that were not up before are ended again.
pub(crate) fn beside(repo: &Repo, servers: &[Server], work: impl FnOnce() -> Result) -> Result {
    let mut started = Vec::new();
    let worked = up(repo, servers, &mut started).and_then(|()| work());
    if started.is_empty() { worked } else { worked.and(down(repo, &started)) }
}

/// Brings servers up; those that were not up before are added to `started`, also where a later one fails.
pub(crate) fn up(repo: &Repo, servers: &[Server], started: &mut Vec<Server>) -> Result {
    up::up(repo, &Folder::find()?, servers, started)
}

/// Ends servers, those of ours alone.
pub(crate) fn down(repo: &Repo, servers: &[Server]) -> Result {
    down::down(repo, &Folder::find()?, servers)
}

/// The servers that are named; all of them where none is.
fn asked(names: &[&str]) -> Result<Vec<Server>> {
    if names.is_empty() {
        return Ok(Server::ALL.into());
    }
    let unknown = names.iter().find(|name| Server::named(name).is_none());
    if let Some(unknown) = unknown {
        let known = Server::ALL.map(Server::name).join(", ");
        return Err(Failed::Usage(format!("there is no server `{unknown}`; the servers are {known}")));
    }
    Ok(Server::ALL.into_iter().filter(|server| names.contains(&server.name())).collect())
}

/// Whether a server that we started is alive.
fn is_alive(repo: &Repo, folder: &Folder, servers: &Servers, server: Server) -> bool {
    match servers.get(server) {
        Some(known) if known["how"] == "docker" => docker::runs(repo, folder, server),
        // The server is the first; without its helper it serves on.
        Some(_) => servers.processes(server).first().is_some_and(|process| process.alive()),
        None => false,
    }
}

/// Waits until something is so; `false`: it was not within that time, or cannot be any more.
fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool, mut can_be: impl FnMut() -> bool) -> bool {
    let watch = Stopwatch::start();
    loop {
        if is_so() {
            return true;
        }
        if watch.elapsed() > limit || !can_be() {
            return false;
        }
        sleep(process::PACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_all_servers_are_meant_and_an_unknown_one_is_refused() {
        assert_eq!(asked(&[]).unwrap(), Server::ALL);
        assert_eq!(asked(&["mariadb", "mysql"]).unwrap(), [Server::Mysql, Server::Mariadb]);
        assert!(matches!(asked(&["postgres"]), Err(Failed::Usage(message)) if message.contains("`postgres`")));
    }
}
