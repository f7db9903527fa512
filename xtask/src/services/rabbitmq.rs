//! RabbitMQ's instances: a node, and a port mapper of Erlang's that belongs to this node alone.

use super::{
    choice::Program,
    template::{Template, command},
};

/// For `Template::ports`.
pub(super) const PORTS: [&str; 5] = ["port", "tls_port", "api_port", "dist_port", "epmd_port"];

/// The user that the package makes.
const USER: &str = "rabbitmq";

/// Settings of every node. Statistics are gathered each second instead of every five, for tests that look at them.
const CONF: &str = "\
listeners.tcp.1 = 127.0.0.1:{port}
listeners.ssl.1 = 127.0.0.1:{tls_port}
management.tcp.ip = 127.0.0.1
management.tcp.port = {api_port}
collect_statistics_interval = 1000
disk_free_limit.absolute = 50MB
log.console = true
log.console.level = info
log.console.use_colors = off
log.file = false
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
";

/// A root of our own has no /proc: RabbitMQ is told what it would have read there.
const CONF_WITHOUT_PROC: &str = "\
vm_memory_calculation_strategy = allocated
total_memory_available_override_value = 4GB
";

/// Commands of a node. In a root of our own it runs as the package's user, else as whoever calls.
pub(super) fn template(program: &Program, homes: String, tls: &str) -> Template {
    let in_root = !program.root.as_os_str().is_empty();
    let bin = program.path.strip_suffix("/rabbitmq-server").unwrap_or(&program.path);
    let (server, ctl) = (format!("{bin}/rabbitmq-server"), format!("{bin}/rabbitmqctl"));
    let (reuid, regid) = (format!("--reuid={USER}"), format!("--regid={USER}"));
    let user: &[&str] = if in_root { &["setpriv", &reuid, &regid, "--clear-groups"] } else { &[] };
    let environment = environment();
    let words = |words: &[&str]| command(program, &environment, &[user, words].concat());
    let owner = command(program, &[], &["chown", "-R", "rabbitmq:rabbitmq", "{home}"]);
    Template {
        root: program.root.clone(),
        homes,
        ports: PORTS.into(),
        files: vec![
            ("rabbitmq.conf", conf(tls, in_root)),
            ("rabbitmq-env.conf", String::new()),
            ("enabled_plugins", "[rabbitmq_management].\n".to_owned()),
        ],
        prepare: if in_root { vec![owner] } else { Vec::new() },
        helper: words(&["epmd", "-address", "127.0.0.1", "-port", "{epmd_port}"]),
        run: words(&[&server]),
        ctl: words(&[&ctl]),
    }
}

fn conf(tls: &str, in_root: bool) -> String {
    let files = [("cacertfile", "ca.pem"), ("certfile", "server.pem"), ("keyfile", "server.key")];
    let mut conf = CONF.to_owned();
    for (key, file) in files {
        conf += &format!("ssl_options.{key} = {tls}/{file}\n");
    }
    if in_root {
        conf += CONF_WITHOUT_PROC;
    }
    conf
}

/// The same for the node and for the commands that talk to it.
fn environment() -> Vec<String> {
    [
        "HOME={home}",
        "LANG=C.UTF-8",
        // The script then becomes the node itself instead of waiting for it: one process, one pid.
        "RUNNING_UNDER_SYSTEMD=true",
        "ERL_EPMD_PORT={epmd_port}",
        "ERL_EPMD_ADDRESS=127.0.0.1",
        "RABBITMQ_NODENAME=oncebox@localhost",
        "RABBITMQ_DIST_PORT={dist_port}",
        "RABBITMQ_CONFIG_FILE={home}/rabbitmq.conf",
        "RABBITMQ_CONF_ENV_FILE={home}/rabbitmq-env.conf",
        "RABBITMQ_ENABLED_PLUGINS_FILE={home}/enabled_plugins",
        "RABBITMQ_LOG_BASE={home}/log",
        "RABBITMQ_MNESIA_BASE={home}/data",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
    ]
    .map(str::to_owned)
    .into()
}
