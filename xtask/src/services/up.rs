//! `cargo services up`: each server by the first way that is open.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::{
    choice::{Choice, Facts, Program, choose},
    debian, docker,
    folder::{Folder, Servers},
    is_alive,
    leftovers::{self, Whose},
    mariadb, mysql,
    ports::{self, Ports},
    process::Process,
    programs, rabbitmq, ready,
    server::Server,
    steps::{self, step},
    template::{Instance, Template},
    tls::Tls,
    wait_until,
};
use crate::run::{Failed, Repo, Result};

/// How long a server may take until it serves, on a machine that is busy with other things.
const START_TIME: Duration = Duration::from_secs(120);

/// Brings servers up; those that were not up before are added to `started`.
pub(super) fn up(repo: &Repo, folder: &Folder, asked: &[Server], started: &mut Vec<Server>) -> Result {
    let _lock = folder.lock()?;
    leftovers::end(folder, Whose::Dead)?;
    let mut servers = folder.read()?;
    let before = started.len();
    for server in asked {
        let was_alive = is_alive(repo, folder, &servers, *server);
        let outcome = Up { repo, folder, server: *server }.bring(&mut servers, was_alive);
        // Also where it did not come to serve: it may run.
        if !was_alive && is_alive(repo, folder, &servers, *server) {
            started.push(*server);
        }
        outcome?;
    }
    if started.len() > before {
        println!("tests read {}", folder.list().display());
    }
    Ok(())
}

/// One server on its way up.
struct Up<'a> {
    repo: &'a Repo,
    folder: &'a Folder,
    server: Server,
}

impl Up<'_> {
    /// Takes the first way that is open.
    fn bring(&self, servers: &mut Servers, running: bool) -> Result {
        match choose(&self.facts(running)) {
            Choice::Given(url) => self.given(&url),
            Choice::Running => self.wait(servers),
            Choice::Program(program) => self.start(servers, &program),
            Choice::Debian => {
                let folder = self.folder;
                folder.make(&folder.of(self.server))?;
                debian::install(folder, self.server)?;
                let program = self.installed()?;
                self.start(servers, &program)
            }
            Choice::Docker => self.contain(servers),
            Choice::Nothing => Err(self.nothing()),
        }
    }

    /// What the choice depends on; what is dear to find out only where it matters.
    fn facts(&self, running: bool) -> Facts {
        let given = std::env::var(self.server.variable().0).ok().filter(|url| !url.is_empty());
        let mut facts = Facts { given, running, linux: cfg!(target_os = "linux"), ..Facts::default() };
        if facts.given.is_none() && !running {
            facts.program = programs::find(self.folder, self.server).0;
            facts.root = debian::is_root();
            facts.apt = debian::has_apt();
            let closed = facts.program.is_none() && !(facts.root && facts.apt);
            facts.docker = (closed || !facts.linux) && docker::works();
        }
        facts
    }

    fn given(&self, url: &str) -> Result {
        let variable = self.server.variable().0;
        if ready::answers(url, self.server.usual_port()) {
            // Without the URL, which may hold a password.
            steps::line(self.server.name(), &format!("is the one of {variable}, which answers"));
            return Ok(());
        }
        Err(Failed::Step(format!(
            "nothing answers at the host and port of {variable}; start that server, or unset the variable"
        )))
    }

    /// The program that was just installed.
    fn installed(&self) -> Result<Program> {
        let (fitting, old) = programs::find(self.folder, self.server);
        fitting.ok_or_else(|| {
            let found = old.iter().map(|program| program.version.as_str()).collect::<Vec<_>>().join(", ");
            let (title, oldest, variable) = (self.server.title(), self.server.oldest(), self.server.variable().0);
            Failed::Step(format!(
                "Debian gave {title} {found}, but the tests need {oldest} or newer; give one by {variable}, or put one \
                 on PATH",
            ))
        })
    }

    /// Starts an instance of our own, and waits until it serves.
    fn start(&self, servers: &mut Servers, program: &Program) -> Result {
        let (folder, name) = (self.folder, self.server.name());
        folder.make(&folder.of(self.server))?;
        self.end_rest(servers)?;
        self.need_openssl()?;
        let tls = Tls::ensure(folder)?;
        let template = self.template(program, &tls)?;
        let ports = self.choose_ports(servers)?;
        let instance = Instance::new(&template, "main", &ports);
        let log = folder.log(self.server);
        std::fs::write(&log, "").map_err(Failed::to(format!("empty {}", log.display())))?;
        if instance.is_new() {
            step(name, "makes its data folder", || instance.prepare(folder, &log))?;
        }
        let title = self.server.title();
        step(name, &format!("starts {title} {} of {}", program.version, place(program)), || {
            let processes = instance.start(&log)?;
            // Before it serves, so that an interrupted `up` leaves nothing that is not known.
            servers.set(self.server, self.known(&template, &instance, &ports, &processes, &tls));
            folder.write(servers)?;
            self.serves(servers, &ports)
        })?;
        self.wait(servers)
    }

    /// Waits for a server that was started, now or by an earlier call, and says where it is.
    fn wait(&self, servers: &mut Servers) -> Result {
        let known = servers.get(self.server).cloned().unwrap_or_default();
        let ports = recorded_ports(&known);
        self.serves(servers, &ports)?;
        let url = known["url"].as_str().unwrap_or_default();
        let version = servers.get(self.server).map_or(&Value::Null, |known| &known["version"]);
        steps::line(self.server.name(), &format!("{} is up: {url}", version.as_str().unwrap_or_default()));
        Ok(())
    }

    fn serves(&self, servers: &mut Servers, ports: &Ports) -> Result {
        let mut version = None;
        let is_up = wait_until(
            START_TIME,
            || {
                version = ready::version(self.server, ports);
                version.is_some()
            },
            || is_alive(self.repo, self.folder, servers, self.server),
        );
        let Some(version) = version.filter(|_| is_up) else {
            let log = steps::tail(&self.folder.log(self.server));
            let title = self.server.title();
            return Err(Failed::Step(format!(
                "{title} ended or did not serve within {} s\n{log}",
                START_TIME.as_secs()
            )));
        };
        let mut known = servers.get(self.server).cloned().unwrap_or_default();
        if known["version"] != version.as_str() {
            known["version"] = json!(version);
            servers.set(self.server, known);
            self.folder.write(servers)?;
        }
        Ok(())
    }

    /// Ends what is left of one that died: RabbitMQ's port mapper outlives its node.
    fn end_rest(&self, servers: &Servers) -> Result {
        servers.processes(self.server).into_iter().try_for_each(Process::end)
    }

    fn need_openssl(&self) -> Result {
        if programs::on_path("openssl").is_some() {
            return Ok(());
        }
        if debian::is_root() && debian::has_apt() {
            let log = self.folder.of(self.server).join("install.log");
            return step("tls", "installs openssl by apt-get", || debian::apt_install(&["openssl"], &log));
        }
        Err(Failed::Step("the servers' certificates need `openssl`, which is not on PATH; install it".to_owned()))
    }

    fn template(&self, program: &Program, tls: &Tls) -> Result<Template> {
        let own_root = !program.root.as_os_str().is_empty();
        let (homes, certificates) = if own_root {
            tls.copy_to(self.folder, &program.root.join("srv/oncebox/tls"))?;
            ("/srv/oncebox".to_owned(), "/srv/oncebox/tls".to_owned())
        } else {
            let homes = self.folder.of(self.server).join("homes");
            (homes.display().to_string(), self.folder.tls().display().to_string())
        };
        let root = debian::is_root();
        Ok(match self.server {
            Server::Mysql => mysql::template(program, homes, &certificates, root),
            Server::Rabbitmq => rabbitmq::template(program, homes, &certificates),
            Server::Mariadb => {
                let install = ["mariadb-install-db", "mysql_install_db"].into_iter().find_map(programs::on_path);
                let install = install.ok_or_else(|| {
                    Failed::Step(format!("{} has no mariadb-install-db beside it on PATH; install it", program.path))
                })?;
                mariadb::template(program, &install.display().to_string(), homes, &certificates, root)
            }
        })
    }

    /// The ports of the last time where they are free, so that a URL stays what it was.
    fn choose_ports(&self, servers: &Servers) -> Result<Ports> {
        let last = servers.get(self.server).map(recorded_ports).unwrap_or_default();
        let wanted: Vec<(&str, u16)> =
            self.server.ports().iter().map(|(name, port)| (*name, last.get(*name).copied().unwrap_or(*port))).collect();
        ports::choose(&wanted, ports::is_free)
    }

    fn contain(&self, servers: &mut Servers) -> Result {
        let folder = self.folder;
        folder.make(&folder.of(self.server))?;
        self.need_openssl()?;
        let tls = Tls::ensure(folder)?;
        let ports = self.choose_ports(servers)?;
        docker::up(self.repo, folder, self.server, &ports)?;
        let mut known = self.addresses(&ports, &tls);
        known["how"] = json!("docker");
        known["log"] = json!(docker::log(self.server));
        if self.server == Server::Rabbitmq {
            known["ctl"] = json!(docker::rabbitmqctl(self.repo, folder));
        }
        servers.set(self.server, known);
        folder.write(servers)?;
        self.wait(servers)
    }

    /// What `servers.json` says of an instance of our own.
    fn known(
        &self,
        template: &Template,
        instance: &Instance<'_>,
        ports: &Ports,
        processes: &[Process],
        tls: &Tls,
    ) -> Value {
        let mut known = self.addresses(ports, tls);
        known["how"] = json!("process");
        known["log"] = json!(self.folder.log(self.server).display().to_string());
        known["processes"] = processes.iter().map(|process| process.value()).collect();
        known["pid"] = known["processes"][0]["pid"].clone();
        known["private"] = template.value();
        if !template.ctl.is_empty() {
            known["ctl"] = json!(instance.words(&template.ctl));
        }
        known
    }

    fn addresses(&self, ports: &Ports, tls: &Tls) -> Value {
        let port = |name: &str| ports.get(name).copied().unwrap_or_default();
        let mut known = match self.server {
            Server::Mysql | Server::Mariadb => json!({ "url": format!("mysql://root@127.0.0.1:{}", port("port")) }),
            Server::Rabbitmq => json!({
                "url": format!("amqp://guest:guest@127.0.0.1:{}", port("port")),
                "tls_url": format!("amqps://guest:guest@127.0.0.1:{}", port("tls_port")),
                "api": format!("http://guest:guest@127.0.0.1:{}", port("api_port")),
            }),
        };
        known["ports"] = json!(ports);
        known["tls"] = tls.value();
        known
    }

    fn nothing(&self) -> Failed {
        let (variable, example) = self.server.variable();
        let (title, oldest) = (self.server.title(), self.server.oldest());
        let old = programs::find(self.folder, self.server).1;
        let found = match old.first() {
            Some(program) => format!("{} on PATH is {}, which is too old", program.path, program.version),
            None => "there is none on PATH".to_owned(),
        };
        Failed::Step(format!(
            "the tests need {title} {oldest} or newer; {found}, and it cannot be installed here. One of these helps:\n\
             - root on Debian or Ubuntu: it is installed into {}\n\
             - Docker with compose, and a daemon that answers `docker info`\n\
             - a server of your own: {variable}={example}",
            self.folder.of(self.server).display()
        ))
    }
}

fn place(program: &Program) -> String {
    let own = Path::new(&program.path);
    if program.root.as_os_str().is_empty() { own.display().to_string() } else { program.root.display().to_string() }
}

/// The ports that `servers.json` holds.
pub(super) fn recorded_ports(known: &Value) -> Ports {
    let ports = known["ports"].as_object().into_iter().flatten();
    ports.filter_map(|(name, port)| Some((name.clone(), u16::try_from(port.as_u64()?).ok()?))).collect()
}
