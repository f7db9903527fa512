//! A throw-away authority and certificates of the servers and of a client, by `openssl`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{folder::Folder, steps};
use crate::run::{Failed, Result};

/// How long the certificates hold.
const DAYS: &str = "3650";

/// Names for `openssl`, with nothing taken from the machine's own configuration.
const CONFIG: &str = "\
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectAltName = DNS:oncebox-tests
";

/// The files that a server reads.
pub(super) const SERVER_FILES: [&str; 3] = ["ca.pem", "server.pem", "server.key"];

/// The folder of the certificates; the keys are worth nothing, as they are for the loopback interface only.
pub(super) struct Tls {
    dir: PathBuf,
}

impl Tls {
    /// The certificates, made where they are missing or about to end.
    pub(super) fn ensure(folder: &Folder) -> Result<Self> {
        let tls = Self { dir: folder.tls() };
        if !tls.holds() {
            steps::step("tls", "makes a throw-away authority and certificates", || tls.make(folder))?;
        }
        Ok(tls)
    }

    /// Copies what a server needs into its root.
    pub(super) fn copy_to(&self, folder: &Folder, to: &Path) -> Result {
        folder.make(to)?;
        for name in SERVER_FILES {
            std::fs::copy(self.dir.join(name), to.join(name))
                .map_err(Failed::to(format!("copy {name} to {}", to.display())))?;
        }
        Ok(())
    }

    /// What tests need, as it stands in `servers.json`.
    pub(super) fn value(&self) -> Value {
        let path = |name: &str| self.dir.join(name).display().to_string();
        json!({
            "ca_file": path("ca.pem"),
            "other_ca_file": path("other-ca.pem"),
            "client_cert_file": path("client.pem"),
            "client_key_file": path("client.key"),
        })
    }

    /// Whether the last that is made is there and holds for another day.
    fn holds(&self) -> bool {
        let mut command = Command::new("openssl");
        command.args(["x509", "-noout", "-checkend", "86400", "-in"]).arg(self.dir.join("client.pem"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn make(&self, folder: &Folder) -> Result {
        folder.make(&self.dir)?;
        let config = self.dir.join("openssl.cnf");
        std::fs::write(&config, CONFIG).map_err(Failed::to(format!("write {}", config.display())))?;
        self.authority("ca", "/CN=Oncebox tests")?;
        // Signs nothing: for the test that a stranger's authority is not trusted.
        self.authority("other-ca", "/CN=Somebody else")?;
        self.signed("server", "/CN=localhost")?;
        self.signed("client", "/CN=oncebox-tests")
    }

    fn authority(&self, name: &str, subject: &str) -> Result {
        let (key, cert) = (format!("{name}.key"), format!("{name}.pem"));
        let request = ["req", "-config", "openssl.cnf", "-x509", "-extensions", "ca", "-days", DAYS, "-subj", subject];
        self.openssl(&[&request[..], &new_key(&key), &["-out", &cert]].concat())
    }

    fn signed(&self, name: &str, subject: &str) -> Result {
        let (key, request, cert) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let ask = ["req", "-config", "openssl.cnf", "-new", "-subj", subject];
        self.openssl(&[&ask[..], &new_key(&key), &["-out", &request]].concat())?;
        let sign = ["x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", DAYS];
        let extensions = ["-extfile", "openssl.cnf", "-extensions", name];
        self.openssl(&[&sign[..], &extensions, &["-in", &request, "-out", &cert]].concat())?;
        self.readable(&key)
    }

    /// Servers run as users of their own.
    fn readable(&self, key: &str) -> Result {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir.join(key);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))
            .map_err(Failed::to(format!("make {} readable", path.display())))
    }

    fn openssl(&self, args: &[&str]) -> Result {
        steps::run_logged(Command::new("openssl").args(args).current_dir(&self.dir), &self.dir.join("log"))
    }
}

fn new_key(file: &str) -> [&str; 7] {
    ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", file]
}
