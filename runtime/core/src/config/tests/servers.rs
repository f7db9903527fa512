//! Stores and brokers on servers: their keys, what belongs together, what is never shown.

use super::*;

/// A tenant on MySQL with a queue of RabbitMQ and every key of both.
const SERVERS: &str = r#"
[host]
heartbeat_ms = 1_000
boot_timeout_ms = 3_000
limits.connections_max = 12

[tenants.t]
lanes = 3
slow_lanes = 5
defer_after = 7
ack_gap_ms = 250
routes = [{ source = "orders", handlers = ["h"] }, { source = "notices", handlers = ["h"] }]
handlers.h = { ordering = "user:{/userId}" }

[tenants.t.store]
kind = "mysql"
url = "mysql://oncebox@db.internal:3307/shop"
password = { file = "secrets/db" }
migrate_url = { env = "SHOP_MIGRATE_URL" }
tls = "verify-ca"
ca_file = "ca.pem"
cert_file = "cert.pem"
key_file = "/etc/key.pem"
lock_wait_s = 2
idle_timeout_s = 60
durability = "warn"

[tenants.t.connections.rabbit]
kind = "rabbitmq"
url = "amqps://oncebox@mq.internal/shop"
password = { env = "SHOP_MQ_PASSWORD" }
ca_file = "mq-ca.pem"
cert_file = "mq-cert.pem"
key_file = "mq-key.pem"
heartbeat_s = 20

[tenants.t.sources.orders]
kind = "rabbitmq"
connection = "rabbit"
queue = "shop.orders"
declare = "quorum"
cancel_after_ms = 5_000

[tenants.t.sources.notices]
kind = "local"
"#;

fn address(host: &str, port: u16, user: &str, space: &str) -> Address {
    Address { host: host.into(), port, user: user.into(), space: space.into() }
}

fn client(cert_file: &str, key_file: &str) -> Option<TlsClient> {
    Some(TlsClient { cert_file: cert_file.into(), key_file: key_file.into() })
}

/// A tenant on MySQL, in seven lines like [`tenant_with`]; the store's table is `{ kind, url, … }` in line 2.
fn mysql_with(store: &str, lines: &str) -> String {
    let table = format!("{{ kind = \"mysql\", {store} }}");
    tenant_with(lines).replace("{ kind = \"sqlite\", path = \"t.db\" }", &table)
}

/// The same with the url of a server of this machine.
fn local_mysql_with(store: &str) -> String {
    mysql_with(&format!("url = \"mysql://u@localhost/s\", {store}"), "")
}

/// A tenant with a queue, in seven lines; the connection's keys follow in line 9 and the queue's own in line 5.
fn rabbitmq_with(source: &str, connection: &str) -> String {
    let queue = format!("kind = \"rabbitmq\"\nconnection = \"c\"\n{source}");
    tenant_with(&format!("[tenants.t.connections.c]\nkind = \"rabbitmq\"\n{connection}\n"))
        .replace("kind = \"local\"", &queue)
}

fn mysql_of(text: &str) -> Mysql {
    match read_one(text).unwrap().0.tenants.remove("t").unwrap().store {
        Store::Mysql(own) => *own,
        other @ Store::Sqlite { .. } => panic!("{other:?}"),
    }
}

#[test]
fn every_key_of_servers_is_read_into_its_value_without_a_warning() {
    let (config, warnings) = read_one(SERVERS).unwrap();
    assert_eq!(warnings, []);
    assert_eq!((config.host.heartbeat, config.host.boot_timeout), (Duration::from_secs(1), Duration::from_secs(3)));
    assert_eq!(config.host.limits.connections_max, 12);
    let tenant = &config.tenants["t"];
    assert_eq!((tenant.lanes, tenant.slow_lanes, tenant.defer_after), (3, 5, 7));
    assert_eq!(tenant.ack_gap, Duration::from_millis(250));
    assert_eq!(tenant.handlers["h"].ordering.as_deref(), Some("user:{/userId}"));
    let store = Mysql {
        address: address("db.internal", 3307, "oncebox", "shop"),
        password: Some(Secret::File("secrets/db".into())),
        migrate_url: Some(Secret::Env("SHOP_MIGRATE_URL".into())),
        tls: Tls {
            mode: TlsMode::VerifyCa,
            ca_file: Some("ca.pem".into()),
            client: client("cert.pem", "/etc/key.pem"),
        },
        lock_wait: Duration::from_secs(2),
        idle_timeout: Duration::from_secs(60),
        durability: Durability::Warn,
    };
    assert_eq!(tenant.store, Store::Mysql(Box::new(store)));
    let rabbit = Rabbitmq {
        address: address("mq.internal", 5671, "oncebox", "shop"),
        password: Some(Secret::Env("SHOP_MQ_PASSWORD".into())),
        tls: Tls {
            mode: TlsMode::VerifyIdentity,
            ca_file: Some("mq-ca.pem".into()),
            client: client("mq-cert.pem", "mq-key.pem"),
        },
        heartbeat: Duration::from_secs(20),
    };
    assert_eq!(tenant.connections, BTreeMap::from([("rabbit".into(), Connection::Rabbitmq(Box::new(rabbit)))]));
    let queue = RabbitmqQueue {
        connection: "rabbit".into(),
        queue: "shop.orders".into(),
        declare: Declare::Quorum,
        cancel_after: Duration::from_secs(5),
    };
    assert_eq!(tenant.sources["orders"].kind, SourceKind::Rabbitmq(queue));
    // 2 × 256 × 3 lanes, for both kinds.
    assert_eq!((tenant.sources["orders"].prefetch, tenant.sources["notices"].prefetch), (1_536, 1_536));
}

#[test]
fn servers_get_the_defaults() {
    let text = mysql_with("url = \"mysql://u@db/s\"", "")
        .replace("kind = \"local\"", "kind = \"rabbitmq\"\nconnection = \"c\"\nqueue = \"q\"")
        + "[tenants.t.connections.c]\nkind = \"rabbitmq\"\nurl = \"amqp://u@mq\"\n";
    let (config, warnings) = read_one(&text).unwrap();
    assert_eq!(warnings, []);
    let tenant = &config.tenants["t"];
    assert_eq!((tenant.lanes, tenant.slow_lanes, tenant.defer_after), (4, 2, 3));
    assert_eq!(tenant.ack_gap, Duration::from_millis(100));
    let store = Mysql {
        address: address("db", 3306, "u", "s"),
        password: None,
        migrate_url: None,
        tls: Tls { mode: TlsMode::VerifyIdentity, ca_file: None, client: None },
        lock_wait: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(30),
        durability: Durability::Strict,
    };
    assert_eq!(tenant.store, Store::Mysql(Box::new(store)));
    let rabbit = Rabbitmq {
        address: address("mq", 5672, "u", "/"),
        password: None,
        tls: Tls { mode: TlsMode::Off, ca_file: None, client: None },
        heartbeat: Duration::from_secs(10),
    };
    assert_eq!(tenant.connections["c"], Connection::Rabbitmq(Box::new(rabbit)));
    let queue = RabbitmqQueue {
        connection: "c".into(),
        queue: "q".into(),
        declare: Declare::Passive,
        cancel_after: Duration::from_secs(60),
    };
    assert_eq!(tenant.sources["s"].kind, SourceKind::Rabbitmq(queue));
}

#[test]
fn the_default_of_tls_goes_by_the_host() {
    for (host, mode) in [
        ("localhost", TlsMode::Off),
        ("127.0.0.9", TlsMode::Off),
        ("[::1]", TlsMode::Off),
        ("10.0.0.1", TlsMode::VerifyIdentity),
        ("db.internal", TlsMode::VerifyIdentity),
    ] {
        let own = mysql_of(&mysql_with(&format!("url = \"mysql://u@{host}/s\""), ""));
        assert_eq!(own.tls.mode, mode, "{host}");
    }
    for (word, mode) in [
        ("off", TlsMode::Off),
        ("required", TlsMode::Required),
        ("verify-ca", TlsMode::VerifyCa),
        ("verify-identity", TlsMode::VerifyIdentity),
    ] {
        for host in ["localhost", "db"] {
            let own = mysql_of(&mysql_with(&format!("url = \"mysql://u@{host}/s\", tls = \"{word}\""), ""));
            assert_eq!(own.tls.mode, mode, "{word} {host}");
        }
    }
}

#[test]
fn numbers_of_servers_are_taken_at_their_limits_and_refused_past_them() {
    type With = fn(&str) -> String;
    let host: With = |line| format!("host.boot_timeout_ms = 3_600_000\nhost.{line}\n{}", tenant_with(""));
    let boot: With = |line| format!("host.heartbeat_ms = 100\nhost.{line}\n{}", tenant_with(""));
    let tenant: With = |line| local_mysql_with("").replace("[tenants.t]\n", &format!("[tenants.t]\n{line}\n"));
    let queue: With = |line| rabbitmq_with(&format!("queue = \"q\"\n{line}"), "url = \"amqp://u@mq\"");
    let broker: With = |line| rabbitmq_with("queue = \"q\"", &format!("url = \"amqp://u@mq\"\n{line}"));
    for (key, with, min, max) in [
        ("heartbeat_ms", host, 100_i64, 60_000_i64),
        ("boot_timeout_ms", boot, 300, 3_600_000),
        ("lanes", tenant, 1, 64),
        ("slow_lanes", tenant, 1, 64),
        ("defer_after", tenant, 1, 100),
        ("lock_wait_s", local_mysql_with, 1, 60),
        ("idle_timeout_s", local_mysql_with, 2, 3_600),
        ("cancel_after_ms", queue, 1_000, 3_600_000),
        ("prefetch", queue, 1, 65_535),
        ("heartbeat_s", broker, 1, 600),
    ] {
        let read = |number: i64| read_one(&with(&format!("{key} = {number}")));
        assert!(read(min).is_ok() && read(max).is_ok(), "{key} at its limits: {:?} {:?}", read(min), read(max));
        for (number, complaint) in [(min - 1, "below its least value"), (max + 1, "above its limit")] {
            let errors = read(number).unwrap_err();
            assert!(errors.errors()[0].message.contains(complaint), "{errors}");
        }
    }
}

#[test]
fn a_host_is_not_gone_before_its_third_heartbeat_is_due() {
    let host = |lines: &str| format!("[host]\n{lines}\n{}", tenant_with(""));
    assert!(read_one(&host("heartbeat_ms = 6_666")).is_ok());
    assert_error(
        &host("heartbeat_ms = 6_667"),
        2,
        16,
        "host.heartbeat_ms is 6_667, above a third of boot_timeout_ms 20_000",
    );
    assert_error(
        &host("boot_timeout_ms = 14_999"),
        2,
        19,
        "host.boot_timeout_ms is 14_999, below 3 × heartbeat_ms 5_000",
    );
    let both = host("heartbeat_ms = 1_000\nboot_timeout_ms = 2_999");
    assert_error(&both, 3, 19, "host.boot_timeout_ms is 2_999, below 3 × heartbeat_ms 1_000");
    let help = read_one(&both).unwrap_err().errors()[0].help.clone();
    assert_eq!(help.as_deref(), Some("raise boot_timeout_ms to 3_000, or lower heartbeat_ms to 999"));
}

#[test]
fn a_default_prefetch_is_at_most_what_amqp_can_say() {
    let text = local_mysql_with("").replace("[tenants.t]\n", "[tenants.t]\nlanes = 64\nbatch_max = 4_096\n");
    assert_eq!(read_one(&text).unwrap().0.tenants["t"].sources["s"].prefetch, 65_535);
}

#[test]
fn a_key_of_another_kind_is_refused_because_it_would_do_nothing() {
    for key in ["lanes", "slow_lanes", "defer_after"] {
        let text = tenant_with("").replace("[tenants.t]\n", &format!("[tenants.t]\n{key} = 4\n"));
        let message = format!("tenants.t.{key} would do nothing with a store of kind \"sqlite\"");
        assert_error(&text, 2, key.len() + 4, &message);
    }
    for (key, value) in [
        ("url", "\"mysql://u@h/s\""),
        ("password", "\"x\""),
        ("migrate_url", "{ env = \"X\" }"),
        ("tls", "\"off\""),
        ("ca_file", "\"x\""),
        ("cert_file", "\"x\""),
        ("key_file", "\"x\""),
        ("lock_wait_s", "1"),
        ("idle_timeout_s", "30"),
        ("durability", "\"warn\""),
    ] {
        let text = tenant_with("").replace("t.db\" }", &format!("t.db\", {key} = {value} }}"));
        let message = format!("tenants.t.store.{key} would do nothing with kind \"sqlite\"");
        assert_error(&text, 2, 46 + key.len(), &message);
    }
    for key in ["path", "schema"] {
        let message = format!("tenants.t.store.{key} would do nothing with kind \"mysql\"");
        assert_error(&local_mysql_with(&format!("{key} = \"x\"")), 2, 61 + key.len(), &message);
    }
    for (key, value) in
        [("connection", "\"c\""), ("queue", "\"q\""), ("declare", "\"passive\""), ("cancel_after_ms", "1_000")]
    {
        let text = tenant_with("").replace("kind = \"local\"", &format!("kind = \"local\"\n{key} = {value}"));
        let message = format!("tenants.t.sources.s.{key} would do nothing with kind \"local\"");
        assert_error(&text, 6, key.len() + 4, &message);
    }
    for key in ["ca_file", "cert_file", "key_file"] {
        let text = rabbitmq_with("queue = \"q\"", &format!("url = \"amqp://u@mq\"\n{key} = \"x\""));
        let message = format!("tenants.t.connections.c.{key} would do nothing with an amqp:// url, which has no TLS");
        assert_error(&text, 13, key.len() + 4, &message);
    }
}

#[test]
fn files_of_tls_are_given_where_they_are_looked_at_and_belong_together() {
    for (store, column, message) in [
        ("tls = \"off\", ca_file = \"x\"", 81, "ca_file would do nothing with tls \"off\""),
        ("tls = \"off\", key_file = \"x\"", 82, "key_file would do nothing with tls \"off\""),
        (
            "cert_file = \"x\"",
            70,
            "cert_file would do nothing with tls \"off\", which is the default for this machine's own address",
        ),
        (
            "tls = \"required\", ca_file = \"x\"",
            86,
            "ca_file would do nothing with tls \"required\", which believes any certificate",
        ),
        ("tls = \"required\", cert_file = \"x\"", 88, "cert_file is given without key_file"),
        ("tls = \"verify-ca\", key_file = \"x\"", 88, "key_file is given without cert_file"),
        ("tls = \"verify-id\"", 64, "tls is \"verify-id\", which is not known"),
        ("durability = \"lax\"", 71, "durability is \"lax\", which is not known"),
    ] {
        assert_error(&local_mysql_with(store), 2, column, &format!("tenants.t.store.{message}"));
    }
    let own = mysql_of(&local_mysql_with("tls = \"required\", cert_file = \"c\", key_file = \"k\""));
    assert_eq!(own.tls, Tls { mode: TlsMode::Required, ca_file: None, client: client("c", "k") });
    let text = rabbitmq_with("queue = \"q\"", "url = \"amqps://u@mq\"\nkey_file = \"x\"");
    assert_error(&text, 13, 12, "tenants.t.connections.c.key_file is given without cert_file");
    let text = rabbitmq_with("queue = \"q\"", "url = \"amqps://u@mq\"\ntls = \"off\"");
    assert_error(&text, 13, 1, "unknown key \"tls\" in [tenants.t.connections.c]");
}

#[test]
fn what_a_server_needs_must_be_there() {
    assert_error(&mysql_with("tls = \"off\"", ""), 2, 9, "tenants.t.store.url is missing");
    assert_error(&mysql_with("url = 1", ""), 2, 33, "tenants.t.store.url is an integer, where a string is due");
    assert_error(&rabbitmq_with("queue = \"q\"", ""), 10, 1, "tenants.t.connections.c.url is missing");
    assert_error(&rabbitmq_with("", "url = \"amqp://u@mq\""), 4, 1, "tenants.t.sources.s.queue is missing");
    let text = rabbitmq_with("queue = \"q\"", "url = \"amqp://u@mq\"").replace("connection = \"c\"\n", "");
    let errors = read_one(&text).unwrap_err();
    assert_eq!(errors.errors()[0].message, "tenants.t.sources.s.connection is missing");
    let text = rabbitmq_with("queue = \"q\"", "url = \"amqp://u@mq\"")
        .replace("[tenants.t.connections.c]\nkind = \"rabbitmq\"", "[tenants.t.connections.c]");
    assert_error(&text, 10, 1, "tenants.t.connections.c.kind is missing");
}

#[test]
fn a_queue_has_a_name_that_the_broker_takes() {
    let queue = |lines: &str| rabbitmq_with(lines, "url = \"amqp://u@mq\"");
    assert!(read_one(&queue(&format!("queue = \"{}\"", "q".repeat(255)))).is_ok());
    assert!(read_one(&queue("queue = \"amq.gen-1\"")).is_ok());
    let long = queue(&format!("queue = \"{}\"", "q".repeat(256)));
    assert_error(&long, 7, 9, "tenants.t.sources.s.queue has 256 bytes, above the limit of 255");
    assert_error(&queue("queue = \"\""), 7, 9, "tenants.t.sources.s.queue is empty");
    assert_error(&queue("queue = \"a\\nb\""), 7, 9, "tenants.t.sources.s.queue has a control character");
    assert_error(
        &queue("queue = \"amq.x\"\ndeclare = \"classic\""),
        7,
        9,
        "tenants.t.sources.s.queue is \"amq.x\", and the broker makes no queue whose name begins with amq.",
    );
    assert_error(
        &queue("queue = \"q\"\ndeclare = \"stream\""),
        8,
        11,
        "tenants.t.sources.s.declare is \"stream\", which is not known",
    );
}

#[test]
fn a_source_names_a_connection_that_is_there_and_an_unused_one_is_warned_of() {
    let text =
        rabbitmq_with("queue = \"q\"", "url = \"amqp://u@mq\"").replace("connection = \"c\"", "connection = \"d\"");
    assert_error(&text, 6, 14, "tenants.t.sources.s.connection is \"d\", and the tenant has no such connection");
    assert_eq!(read_one(&text).unwrap_err().errors()[0].help.as_deref(), Some("connections: c"));
    let text = tenant_with("[tenants.t.connections.c]\nkind = \"rabbitmq\"\nurl = \"amqp://u@mq\"\n");
    assert_eq!(warnings_of(&text), [(8, "connection \"c\" is used by no source".to_owned())]);
}

#[test]
fn a_local_destination_does_not_put_events_into_a_queue() {
    let bound = "destinations = { x = \"d\" }\n[tenants.t.destinations.d]\nkind = \"local\"\nsource = \"s\"\n";
    let broker = "[tenants.t.connections.c]\nkind = \"rabbitmq\"\nurl = \"amqp://u@mq\"\n";
    let text = tenant_with(&format!("{bound}{broker}")).replace(
        "kind = \"local\"\n[tenants.t.handlers",
        "kind = \"rabbitmq\"\nconnection = \"c\"\nqueue = \"q\"\n[tenants.t.handlers",
    );
    let message = "tenants.t.destinations.d.source is \"s\", a source of kind \"rabbitmq\": nothing can be put there";
    assert_error(&text, 13, 10, message);
    assert_eq!(read_one(&text).unwrap_err().errors()[0].help.as_deref(), Some("name a source of kind \"local\""));
}

#[test]
fn two_tenants_on_one_database_are_refused_however_it_is_written() {
    let main = mysql_with("url = \"mysql://u@localhost/shop\"", "");
    for url in ["mysql://v@LOCALHOST:3306/shop", "mysql://u:p@127.0.0.1/%73hop", "mysql://u@[::1]/shop"] {
        let other = format!("store = {{ kind = \"mysql\", url = \"{url}\" }}\n");
        let errors = read_files(&[("oncebox.toml", &main), ("tenants.d/u.toml", &other)]).unwrap_err();
        let found: Vec<_> =
            errors.errors().iter().map(|e| (e.file.as_str(), e.line, e.column, e.message.as_str())).collect();
        let message = "tenants.u.store.url is the database of tenant \"t\" too, at oncebox.toml:2";
        assert_eq!(found, [("tenants.d/u.toml", 1, 33, message)], "{url}");
    }
    for url in ["mysql://u@localhost/other", "mysql://u@localhost:3307/shop", "mysql://u@db/shop"] {
        let other = format!("store = {{ kind = \"mysql\", url = \"{url}\" }}\n");
        assert!(read_files(&[("oncebox.toml", &main), ("tenants.d/u.toml", &other)]).is_ok(), "{url}");
    }
}

#[test]
fn a_secret_is_one_of_three_things() {
    for (secret, column, message) in [
        (
            "password = 1",
            69,
            "password is an integer, where a string, { env = \"NAME\" } or { file = \"PATH\" } is due",
        ),
        ("password = \"\"", 69, "password is empty"),
        ("password = {}", 69, "password names neither env nor file"),
        ("password = { env = \"A\", file = \"b\" }", 69, "password names both env and file"),
        ("password = { env = \"\" }", 77, "password.env is empty"),
        ("password = { env = \"s3!\" }", 77, "password.env is no name of a variable of the environment"),
        ("password = { env = \"1A\" }", 77, "password.env is no name of a variable of the environment"),
        ("password = { file = \"\" }", 78, "password.file is empty"),
    ] {
        let errors = read_one(&local_mysql_with(secret)).unwrap_err();
        let found: Vec<_> = errors.errors().iter().map(|e| (e.line, e.column, e.message.as_str())).collect();
        assert_eq!(found, [(2, column, format!("tenants.t.store.{message}").as_str())], "{secret}");
    }
    let text = local_mysql_with("password = { text = \"s3\" }");
    let errors = read_one(&text).unwrap_err().to_string();
    assert!(errors.contains("unknown key \"text\" in [tenants.t.store.password]"), "{errors}");
    assert!(
        errors.contains("tenants.t.store.password names neither env nor file") && !errors.contains("s3"),
        "{errors}"
    );
}

#[test]
fn a_password_in_clear_text_is_taken_warned_of_and_not_shown() {
    let plain = || Some(Secret::Plain(Hidden("s3".into())));
    let text = local_mysql_with("password = \"s3\"");
    assert_eq!(mysql_of(&text).password, plain());
    assert_eq!(
        read_one(&text).unwrap().1[0].to_string(),
        "warning: tenants.t.store.password stands here in clear text
 --> oncebox.toml:2:69
  |
2 | store = { kind = \"mysql\", url = \"mysql://u@localhost/s\", password = \"***\" }
  |                                                                     ^^^^^
  = help: write password = { env = \"NAME\" } or { file = \"PATH\" }"
    );
    let text = mysql_with("url = \"mysql://u:s3@localhost/s\"", "");
    assert_eq!(mysql_of(&text).password, plain());
    let warnings = read_one(&text).unwrap().1;
    assert_eq!(warnings[0].0.message, "tenants.t.store.url holds its password in clear text");
    assert_eq!(warnings[0].0.excerpt, "store = { kind = \"mysql\", url = \"mysql://u:***@localhost/s\" }");
    let text = local_mysql_with("migrate_url = \"mysql://root:s3@localhost/s\"");
    assert_eq!(mysql_of(&text).migrate_url, Some(Secret::Plain(Hidden("mysql://root:s3@localhost/s".into()))));
    assert_eq!(warnings_of(&text), [(2, "tenants.t.store.migrate_url stands here in clear text".to_owned())]);
    assert_eq!(warnings_of(&local_mysql_with("migrate_url = \"mysql://root@localhost/s\"")), []);
    assert!(!format!("{:?}", mysql_of(&text)).contains("s3"));
    let text = rabbitmq_with("queue = \"q\"", "url = \"amqp://u@mq\"\npassword = \"s3\"");
    assert_eq!(warnings_of(&text), [(13, "tenants.t.connections.c.password stands here in clear text".to_owned())]);
}

#[test]
fn a_password_stands_in_one_place() {
    let text = mysql_with("url = \"mysql://u:s3@localhost/s\", password = { env = \"X\" }", "");
    assert_error(&text, 2, 72, "tenants.t.store.password is given, and url has a password too");
}

#[test]
fn migrate_url_is_a_url_of_the_same_database() {
    let with = |url: &str| local_mysql_with(&format!("migrate_url = \"{url}\""));
    assert!(read_one(&with("mysql://root@127.0.0.1:3307/s")).is_ok());
    assert_error(
        &with("mysql://root@localhost/x"),
        2,
        72,
        "tenants.t.store.migrate_url names another database than url",
    );
    assert_error(&with("root@localhost/s"), 2, 72, "tenants.t.store.migrate_url does not begin with mysql://");
}

#[test]
fn no_error_shows_a_password_whatever_is_wrong() {
    for text in [
        // Urls that cannot be used, each for another reason.
        mysql_with("url = \"mysql://u:s3cret@localhost/s?x\"", ""),
        mysql_with("url = \"mysql://u:s3cret@/s\"", ""),
        mysql_with("url = \"mysql://u:s3cret@localhost:x/s\"", ""),
        mysql_with("url = \"mysql://u:s3cret@localhost\"", ""),
        mysql_with("url = \"mysql://u:s3cret/s\"", ""),
        mysql_with("url = \"mysql://u:s3c%ret@localhost/s\"", ""),
        mysql_with("url = \"u:s3cret@localhost/s\"", ""),
        rabbitmq_with("queue = \"q\"", "url = \"mysql://u:s3cret@mq\""),
        rabbitmq_with("queue = \"q\"", "url = \"amqp://u:s3cret@mq/\""),
        // Another error in the line of a password.
        local_mysql_with("password = \"s3cret\", tls = \"x\""),
        local_mysql_with("password = \"s3cret\", password_file = \"x\""),
        local_mysql_with("pasword = \"s3cret\""),
        local_mysql_with("passwd = 's3cret'"),
        local_mysql_with("password = [\"s3cret\"]"),
        local_mysql_with("password = { text = \"s3cret\" }"),
        local_mysql_with(&format!("password = \"s3cret{}\"", "x".repeat(1_024))),
        local_mysql_with("migrate_url = \"mysql://u:s3cret@localhost/x\""),
        local_mysql_with("uri = \"mysql://u:s3cret@localhost/x\""),
        // A file that is not even TOML.
        local_mysql_with("password = \"s3cret"),
        local_mysql_with("password = s3cret"),
        local_mysql_with("password = \"s3cret\" \"x\""),
        local_mysql_with("password = \"\"\"s3\\qcret\"\"\"").replace("s3\\qcret", "s3cret\\q"),
        "[tenants.t.store]\npassword = \"s3cret\"\npassword = \"s3cret\"\n".to_owned(),
        "[tenants.t.store]\nx = 1 password = \"s3cret\"\n".to_owned(),
    ] {
        let errors = read_one(&text).unwrap_err();
        let all = format!("{errors} {errors:?} {}", serde_json::to_string(&errors).unwrap());
        assert!(!all.contains("s3c"), "{text}\n{errors}");
        assert!(all.contains("***"), "the line is shown:\n{errors}");
    }
}

#[test]
fn paths_of_secrets_and_tls_start_at_a_folder_and_no_others() {
    let mut config = read_one(SERVERS).unwrap().0;
    config.start_access_paths_at("/etc/oncebox".as_ref());
    let tenant = &config.tenants["t"];
    let Store::Mysql(store) = &tenant.store else { panic!("{:?}", tenant.store) };
    assert_eq!(store.password, Some(Secret::File("/etc/oncebox/secrets/db".into())));
    assert_eq!(store.migrate_url, Some(Secret::Env("SHOP_MIGRATE_URL".into())));
    assert_eq!(store.tls.ca_file, Some("/etc/oncebox/ca.pem".into()));
    assert_eq!(store.tls.client, client("/etc/oncebox/cert.pem", "/etc/key.pem"));
    let Connection::Rabbitmq(rabbit) = &tenant.connections["rabbit"];
    assert_eq!(rabbit.tls.ca_file, Some("/etc/oncebox/mq-ca.pem".into()));
    assert_eq!(rabbit.tls.client, client("/etc/oncebox/mq-cert.pem", "/etc/oncebox/mq-key.pem"));
    assert_eq!(config.host.data_dir, std::path::Path::new("./data"));
}
