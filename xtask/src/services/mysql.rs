//! MySQL's instances.

use super::{
    choice::Program,
    template::{Template, command},
};

/// For `Template::ports`.
pub(super) const PORTS: [&str; 1] = ["port"];

/// Root without a password, by its address: names are not looked up.
const INIT: &str = "\
CREATE USER IF NOT EXISTS root@'127.0.0.1' IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
";

/// Commands of MySQL's own server. Durability is as it is by default: binary log, `sync_binlog` and
/// `innodb_flush_log_at_trx_commit` are not touched.
pub(super) fn template(program: &Program, homes: String, tls: &str, root: bool) -> Template {
    let defaults = "--no-defaults";
    let user: &[&str] = if root { &["--user=root"] } else { &[] };
    let data = ["--datadir={home}/data", "--secure-file-priv=NULL", "--tmpdir={home}"];
    let initialize = [&[&program.path, defaults], user, &data, &["--initialize-insecure"]].concat();
    let (ca, cert, key) = (
        format!("--ssl-ca={tls}/ca.pem"),
        format!("--ssl-cert={tls}/server.pem"),
        format!("--ssl-key={tls}/server.key"),
    );
    let serve = [
        "--port={port}",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--mysqlx=OFF",
        // Seen from the data folder: a path to a socket may have 107 bytes only.
        "--socket=mysql.sock",
        "--pid-file=mysqld.pid",
        "--init-file={home}/init.sql",
        "--max-connections=500",
        "--binlog-expire-logs-seconds=21600",
        // By default 128 MiB, of which a tenth may be dirty: each second pages would be flushed, and all commits wait.
        "--innodb-buffer-pool-size=1G",
        "--innodb-redo-log-capacity=1G",
        &ca,
        &cert,
        &key,
    ];
    let run = [&[&program.path, defaults], user, &data, &serve].concat();
    Template {
        root: program.root.clone(),
        homes,
        ports: PORTS.into(),
        files: vec![("init.sql", INIT.to_owned())],
        prepare: vec![command(program, &[], &initialize)],
        helper: Vec::new(),
        run: command(program, &[], &run),
        ctl: Vec::new(),
    }
}
