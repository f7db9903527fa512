//! MariaDB's instances.

use super::{
    choice::Program,
    mysql::PORTS,
    template::{Template, command},
};

/// Commands of MariaDB's server. It has no binary log unless told; its durability is made MySQL's.
pub(super) fn template(program: &Program, install: &str, homes: String, tls: &str, root: bool) -> Template {
    let defaults = "--no-defaults";
    let user: &[&str] = if root { &["--user=root"] } else { &[] };
    let data = "--datadir={home}/data";
    // Root without a password at 127.0.0.1, not by the socket's user.
    let install =
        [&[install, defaults], user, &[data, "--skip-test-db", "--auth-root-authentication-method=normal"]].concat();
    let (ca, cert, key) = (
        format!("--ssl-ca={tls}/ca.pem"),
        format!("--ssl-cert={tls}/server.pem"),
        format!("--ssl-key={tls}/server.key"),
    );
    let serve = [
        data,
        "--tmpdir={home}",
        "--port={port}",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--socket=mysql.sock",
        "--pid-file=mariadbd.pid",
        "--max-connections=500",
        "--log-bin=binlog",
        "--server-id=1",
        "--sync-binlog=1",
        "--innodb-flush-log-at-trx-commit=1",
        "--expire-logs-days=1",
        &ca,
        &cert,
        &key,
    ];
    let run = [&[program.path.as_str(), defaults], user, &serve].concat();
    Template {
        root: program.root.clone(),
        homes,
        ports: PORTS.into(),
        files: Vec::new(),
        prepare: vec![command(program, &[], &install)],
        helper: Vec::new(),
        run: command(program, &[], &run),
        ctl: Vec::new(),
    }
}
