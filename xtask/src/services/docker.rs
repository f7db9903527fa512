//! Servers in containers, by `xtask/compose.yaml`.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use super::{folder::Folder, ports::Ports, programs, server::Server, steps};
use crate::run::{Failed, Repo, Result};

/// What the containers of this project are called.
const PROJECT: &str = "oncebox-services";

/// RabbitMQ's settings in a container: all interfaces there, of which only the loopback one is published.
const RABBITMQ_CONF: &str = "\
listeners.tcp.1 = 5672
listeners.ssl.1 = 5671
loopback_users.guest = false
collect_statistics_interval = 1000
disk_free_limit.absolute = 50MB
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_options.cacertfile = /tls/ca.pem
ssl_options.certfile = /tls/server.pem
ssl_options.keyfile = /tls/server.key
";

/// Whether a Docker daemon answers and compose is there.
pub(super) fn works() -> bool {
    let quiet = |args: &[&str]| {
        let mut command = Command::new("docker");
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    programs::on_path("docker").is_some() && quiet(&["info"]) && quiet(&["compose", "version"])
}

/// Brings the server's container up; it serves when this returns.
pub(super) fn up(repo: &Repo, folder: &Folder, server: Server, ports: &Ports) -> Result {
    if server == Server::Rabbitmq {
        let conf = folder.of(server).join("rabbitmq.conf");
        std::fs::write(&conf, RABBITMQ_CONF).map_err(Failed::to(format!("write {}", conf.display())))?;
    }
    let log = folder.of(server).join("install.log");
    let text = format!("starts a container of {}, fetching its image where it is missing", server.title());
    steps::step(server.name(), &text, || {
        let mut command = compose(repo, folder);
        command.args(["up", "--detach", "--wait", server.name()]).envs(variables(server, ports));
        steps::run_logged(&mut command, &log)
    })
}

/// Whether the server's container runs.
pub(super) fn runs(repo: &Repo, folder: &Folder, server: Server) -> bool {
    let mut command = compose(repo, folder);
    command.args(["ps", "--status", "running", "--quiet", server.name()]).stdin(Stdio::null()).stderr(Stdio::null());
    command.output().is_ok_and(|output| output.status.success() && !output.stdout.trim_ascii().is_empty())
}

/// Ends the server's container and forgets its data.
pub(super) fn down(repo: &Repo, folder: &Folder, server: Server) -> Result {
    let mut command = compose(repo, folder);
    command.args(["rm", "--stop", "--force", "--volumes", server.name()]);
    steps::run_logged(&mut command, &folder.of(server).join("install.log"))
}

/// The beginning of a command of RabbitMQ's in its container.
pub(super) fn rabbitmqctl(repo: &Repo, folder: &Folder) -> Vec<String> {
    let mut command = compose(repo, folder);
    command.args(["exec", "-T", "rabbitmq", "rabbitmqctl"]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let services = format!("ONCEBOX_SERVICES={}", folder.path().display());
    let environment = ["env".to_owned(), services].into_iter();
    environment.chain(words.map(|word| word.to_string_lossy().into_owned())).collect()
}

/// Where the output of the container is, for people.
pub(super) fn log(server: Server) -> String {
    format!("docker compose --project-name {PROJECT} logs {}", server.name())
}

fn compose(repo: &Repo, folder: &Folder) -> Command {
    let file = repo.path(Path::new("xtask").join("compose.yaml"));
    let mut command = Command::new("docker");
    command.args(["compose", "--project-name", PROJECT, "--file"]).arg(file).env("ONCEBOX_SERVICES", folder.path());
    command
}

/// `ONCEBOX_MYSQL_PORT` and the like, which the compose file reads.
fn variables(server: Server, ports: &Ports) -> Vec<(String, String)> {
    let variable = |purpose: &str| format!("ONCEBOX_{}_{}", server.name(), purpose).to_uppercase();
    ports.iter().map(|(purpose, port)| (variable(purpose), port.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_that_is_given_is_one_that_the_compose_file_reads() {
        let compose = include_str!("../../compose.yaml");
        for server in Server::ALL {
            let ports: Ports = server.ports().iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
            for (variable, port) in variables(server, &ports) {
                // A container has its own network: these two stay inside.
                if variable.ends_with("_DIST_PORT") || variable.ends_with("_EPMD_PORT") {
                    continue;
                }
                assert!(compose.contains(&format!("127.0.0.1:${{{variable}:-{port}}}:")), "{variable} {port}");
            }
        }
    }
}
