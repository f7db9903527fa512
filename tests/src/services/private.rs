//! A server of one test's own, which it may kill.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use super::{Kind, Server, fresh_name, list::Template, process};
use crate::patience::{PATIENCE, eventually};

/// A server with its own data and ports, until it is dropped.
#[derive(Debug)]
pub struct PrivateServer {
    /// Where it is; the same after it was started again.
    pub server: Server,
    template: Template,
    home: String,
    ports: BTreeMap<String, u16>,
    helper: Option<Child>,
    child: Option<Child>,
}

impl PrivateServer {
    /// A MySQL with an empty data folder.
    ///
    /// # Panics
    /// There is no server of `cargo services up` to copy, or it does not start.
    #[must_use]
    #[track_caller]
    pub fn mysql() -> Self {
        Self::of(Kind::Mysql)
    }

    /// A MariaDB with an empty data folder.
    ///
    /// # Panics
    /// There is no server of `cargo services up` to copy, or it does not start.
    #[must_use]
    #[track_caller]
    pub fn mariadb() -> Self {
        Self::of(Kind::Mariadb)
    }

    /// A RabbitMQ node without queues.
    ///
    /// # Panics
    /// There is no server of `cargo services up` to copy, or it does not start.
    #[must_use]
    #[track_caller]
    pub fn rabbitmq() -> Self {
        Self::of(Kind::Rabbitmq)
    }

    /// A server of that kind.
    ///
    /// # Panics
    /// There is no server of `cargo services up` to copy, or it does not start.
    #[must_use]
    #[track_caller]
    pub fn of(kind: Kind) -> Self {
        let shared = Server::of(kind);
        let name = kind.name();
        let template = shared.private.clone().unwrap_or_else(|| {
            panic!(
                "this test kills its {name}, and so starts one of its own: that needs a server program, as \
                 `cargo services up {name}` finds or installs it, not a container or a server of an environment variable"
            )
        });
        let home = format!("{}/private-{}", template.homes, &fresh_name()[5..]);
        let ports = free_ports(&template.ports);
        let mut own = Self { server: shared, template, home, ports, helper: None, child: None };
        own.server = own.as_server();
        fs::create_dir_all(own.outside()).unwrap();
        own.note();
        own.write_files();
        for words in &own.template.prepare {
            process::output(&own.words(words), &[]);
        }
        own.start_again();
        own
    }

    /// Kills the server as `kill -9` does, and waits until it is gone.
    ///
    /// # Panics
    /// It does not run.
    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends the server in an orderly way, and waits until it is gone.
    ///
    /// # Panics
    /// It does not run, or does not end.
    pub fn stop(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        process::signal(child.id(), "TERM");
        child.wait().unwrap();
    }

    /// Lets the server hang: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// It does not run.
    pub fn freeze(&self) {
        process::signal(self.child.as_ref().expect("the server runs").id(), "STOP");
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// It does not run.
    pub fn thaw(&self) {
        process::signal(self.child.as_ref().expect("the server runs").id(), "CONT");
    }

    /// Starts the server on the same data and ports, and waits until it serves.
    ///
    /// # Panics
    /// It runs already, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "the server runs already");
        self.write_files();
        if self.helper.is_none() && !self.template.helper.is_empty() {
            self.helper = Some(self.spawn(&self.template.helper));
        }
        self.child = Some(self.spawn(&self.template.run));
        self.note();
        let log = self.outside().join("log.txt");
        eventually(&format!("a {} that serves, see {}", self.server.kind.name(), log.display()), PATIENCE * 10, || {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            if let Some(status) = ended {
                panic!("the server ended with {status}\n{}", fs::read_to_string(&log).unwrap_or_default());
            }
            self.serves().then_some(())
        });
    }

    /// Runs `rabbitmqctl` for this node and returns what it says.
    ///
    /// # Panics
    /// It fails.
    #[track_caller]
    pub fn ctl(&self, args: &[&str]) -> String {
        process::output(&self.server.ctl, args)
    }

    fn as_server(&self) -> Server {
        let port = |name: &str| self.ports.get(name).copied().unwrap_or_default();
        let shared = &self.server;
        let with = |scheme: &str, port: u16| format!("{scheme}://guest:guest@127.0.0.1:{port}");
        let (url, tls_url, api) = match shared.kind {
            Kind::Mysql | Kind::Mariadb => (format!("mysql://root@127.0.0.1:{}", port("port")), None, None),
            Kind::Rabbitmq => (
                with("amqp", port("port")),
                Some(with("amqps", port("tls_port"))),
                Some(with("http", port("api_port"))),
            ),
        };
        Server {
            kind: shared.kind,
            url,
            tls_url,
            api,
            tls: shared.tls.clone(),
            ctl: self.words(&self.template.ctl),
            private: None,
        }
    }

    fn serves(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.server.address()) else { return false };
        if self.server.kind == Kind::Rabbitmq {
            return self.server.api().try_ask("GET", "/overview", None).is_ok_and(|(status, _)| status == 200);
        }
        // The greeting: a header of four bytes, then the protocol's version 10. An error has 255 there.
        let mut packet = [0; 5];
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut packet).is_ok() && packet[4] == 10
    }

    fn spawn(&self, words: &[String]) -> Child {
        let words = self.words(words);
        let log = fs::File::options().create(true).append(true).open(self.outside().join("log.txt")).unwrap();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.outside()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap_or_else(|e| panic!("{}: {e}", words[0]))
    }

    /// For `cargo services`, which ends what a test that was killed has left.
    fn note(&self) {
        let known = |pid: u32| json!({ "pid": pid, "started": process::started(pid) });
        let processes: Vec<_> =
            [&self.child, &self.helper].into_iter().flatten().map(|child| known(child.id())).collect();
        let note = json!({ "owner": known(std::process::id()), "processes": processes });
        fs::write(self.outside().join("private.json"), note.to_string()).unwrap();
    }

    fn write_files(&self) {
        for (name, text) in &self.template.files {
            fs::write(self.outside().join(name), self.fill(text)).unwrap();
        }
    }

    fn words(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.fill(word)).collect()
    }

    fn fill(&self, text: &str) -> String {
        let filled = text.replace("{home}", &self.home);
        self.ports.iter().fold(filled, |text, (name, port)| text.replace(&format!("{{{name}}}"), &port.to_string()))
    }

    /// The home, seen from outside of the root.
    fn outside(&self) -> PathBuf {
        let root = PathBuf::from(&self.template.root);
        if self.template.root.is_empty() {
            PathBuf::from(&self.home)
        } else {
            root.join(self.home.trim_start_matches('/'))
        }
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        // Best effort: it may be gone, and its data are thrown away.
        for mut child in [self.child.take(), self.helper.take()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(self.outside());
    }
}

/// Ports that are free now; all are held until the last is known, so that they differ.
fn free_ports(names: &[String]) -> BTreeMap<String, u16> {
    let held: Vec<(String, TcpListener)> =
        names.iter().map(|name| (name.clone(), TcpListener::bind("127.0.0.1:0").unwrap())).collect();
    held.iter().map(|(name, listener)| (name.clone(), listener.local_addr().unwrap().port())).collect()
}
