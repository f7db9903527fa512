mod servers;

use super::*;
use crate::{
    document::page,
    envelope::{EnvelopeFormat, EnvelopeRule, TimeFormat},
    template::{Template, TemplateUse},
    text::TextErrors,
};

/// Two tenants, one of them of the sketch's embedded kind, with every key.
const DEMO: &str = r#"
[host]
name = "node-1"
data_dir = "/var/lib/oncebox"
listen = "0.0.0.0:9000"
drain_time_ms = 10_000
lease_time_ms = 5_000
heartbeat_ms = 2_000
boot_timeout_ms = 9_000
log = "json"

[host.limits]
memory_bytes_max = 33_554_432
instances_max = 8
module_bytes_max = 1_000_000
payload_bytes_max = 100_000
key_bytes_max = 128
hops_max = 4
connections_max = 7

[tenants.shop]
slow_run_ms = 10
unit_time_ms_max = 50
batch_max = 16
batch_bytes_max = 1_000
ack_gap_ms = 50
tables = ["points_account", "member_level"]
triggers = ["points_account.audit"]

[tenants.shop.store]
kind = "sqlite"
path = "shop.db"
schema = "schema.sql"

[tenants.shop.sources.orders]
kind = "local"
prefetch = 2048
unrouted = "ignore"
envelope = { format = "raw", event_type = "{header:x-event-type}", id = "{amqp:message-id}", time = "{amqp:timestamp}", time_format = "unix-ms" }

[tenants.shop.sources.notices]
kind = "local"

[[tenants.shop.routes]]
source = "orders"
event_types = ["order.paid"]
handlers = ["points-award"]

[[tenants.shop.routes]]
source = "orders"
event_types = ["member.*"]
handlers = ["level-set"]

[[tenants.shop.routes]]
source = "notices"
handlers = ["level-set"]

[tenants.shop.handlers.points-award]
owner = "team-loyalty@example.com"
config = { points_per_yuan = "1" }
destinations = { points-awarded = "kept", told = "notify" }
key = "order:{/orderId}"
fingerprint = "payload"
ordering = "user:{/userId}"
[tenants.shop.handlers.points-award.limits]
run_time_ms_max = 500
memory_bytes_max = 16_777_216
staged_rows_max = 1
staged_bytes_max = 2
events_max = 3
host_calls_max = 4
log_lines_max = 5
result_bytes_max = 6
[tenants.shop.handlers.points-award.retry]
attempts_max = 7
first_ms = 2_000
factor = 2
delay_ms_max = 60_000
deadline_s = 600
short_attempts_max = 2
deaths_max = 3

[tenants.shop.handlers.level-set]

[tenants.shop.destinations.kept]
kind = "table"
[tenants.shop.destinations.notify]
kind = "local"
source = "notices"
"#;

fn demo() -> Config {
    let host = Host {
        name: Some("node-1".into()),
        data_dir: "/var/lib/oncebox".into(),
        listen: Some(([0, 0, 0, 0], 9000).into()),
        drain_time: Duration::from_secs(10),
        lease_time: Duration::from_secs(5),
        heartbeat: Duration::from_secs(2),
        boot_timeout: Duration::from_secs(9),
        log: LogFormat::Json,
        limits: HostLimits {
            memory_bytes_max: 33_554_432,
            instances_max: 8,
            module_bytes_max: 1_000_000,
            payload_bytes_max: 100_000,
            key_bytes_max: 128,
            hops_max: 4,
            connections_max: 7,
        },
    };
    Config { host, tenants: BTreeMap::from([("shop".into(), shop())]) }
}

fn points_award() -> Handler {
    Handler {
        owner: Some("team-loyalty@example.com".into()),
        config: BTreeMap::from([("points_per_yuan".into(), "1".into())]),
        destinations: BTreeMap::from([("points-awarded".into(), "kept".into()), ("told".into(), "notify".into())]),
        key: Some("order:{/orderId}".into()),
        fingerprint: Some(FingerprintSpec::Payload),
        ordering: Some("user:{/userId}".into()),
        limits: HandlerLimits {
            run_time_max: Some(Duration::from_millis(500)),
            memory_bytes_max: Some(16_777_216),
            staged_rows_max: 1,
            staged_bytes_max: 2,
            events_max: 3,
            host_calls_max: 4,
            log_lines_max: 5,
            result_bytes_max: 6,
        },
        retry: HandlerRetry {
            attempts_max: Some(7),
            first: Some(Duration::from_secs(2)),
            factor: Some(2.0),
            delay_max: Some(Duration::from_secs(60)),
            deadline: Some(Duration::from_secs(600)),
            short_attempts_max: Some(2),
            deaths_max: Some(3),
        },
    }
}

fn shop() -> Tenant {
    let source = |prefetch, unrouted, envelope| Source { kind: SourceKind::Local, prefetch, unrouted, envelope };
    let template = |text| Some(Template::parse(text, TemplateUse::Envelope).unwrap());
    let raw = EnvelopeRule {
        format: EnvelopeFormat::Raw,
        event_type: template("{header:x-event-type}"),
        id: template("{amqp:message-id}"),
        time: template("{amqp:timestamp}"),
        time_format: TimeFormat::UnixMs,
    };
    let route = |source: &str, event_types: &[&str], handler: &str| Route {
        source: source.into(),
        event_types: event_types.iter().copied().map(String::from).collect(),
        handlers: vec![handler.into()],
    };
    Tenant {
        lanes: 4,
        slow_lanes: 2,
        slow_run: Duration::from_millis(10),
        unit_time_max: Duration::from_millis(50),
        batch_max: 16,
        batch_bytes_max: 1_000,
        defer_after: 3,
        ack_gap: Duration::from_millis(50),
        tables: vec!["points_account".into(), "member_level".into()],
        triggers: vec!["points_account.audit".into()],
        store: Store::Sqlite { path: "shop.db".into(), schema: Some("schema.sql".into()) },
        connections: BTreeMap::new(),
        sources: BTreeMap::from([
            ("orders".into(), source(2_048, Unrouted::Ignore, raw)),
            // 2 × 16 × 4 lanes.
            ("notices".into(), source(128, Unrouted::Dead, EnvelopeRule::default())),
        ]),
        routes: vec![
            route("orders", &["order.paid"], "points-award"),
            route("orders", &["member.*"], "level-set"),
            route("notices", &[], "level-set"),
        ],
        handlers: BTreeMap::from([("points-award".into(), points_award()), ("level-set".into(), default_handler())]),
        destinations: BTreeMap::from([
            ("kept".into(), Destination::Table),
            ("notify".into(), Destination::Local { source: "notices".into() }),
        ]),
    }
}

fn default_handler() -> Handler {
    Handler {
        owner: None,
        config: BTreeMap::new(),
        destinations: BTreeMap::new(),
        key: None,
        fingerprint: None,
        ordering: None,
        limits: HandlerLimits {
            run_time_max: None,
            memory_bytes_max: None,
            staged_rows_max: 64,
            staged_bytes_max: 1_048_576,
            events_max: 16,
            host_calls_max: 10_000,
            log_lines_max: 100,
            result_bytes_max: 1_024,
        },
        retry: HandlerRetry {
            attempts_max: None,
            first: None,
            factor: None,
            delay_max: None,
            deadline: None,
            short_attempts_max: None,
            deaths_max: None,
        },
    }
}

fn read_files(files: &[(&str, &str)]) -> Result<(Config, Vec<Warning>), TextErrors> {
    let files: Vec<_> = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    read(&files)
}

fn read_one(text: &str) -> Result<(Config, Vec<Warning>), TextErrors> {
    read_files(&[("oncebox.toml", text)])
}

/// The least tenant, in seven lines, and these lines after it; the first of them is line 8.
fn tenant_with(lines: &str) -> String {
    format!(
        "[tenants.t]
store = {{ kind = \"sqlite\", path = \"t.db\" }}
routes = [{{ source = \"s\", handlers = [\"h\"] }}]
[tenants.t.sources.s]
kind = \"local\"
[tenants.t.handlers.h]

{lines}"
    )
}

/// Asserts that the text has one error, where it stands and what it says.
#[track_caller]
fn assert_error(text: &str, line: usize, column: usize, message: &str) {
    let errors = read_one(text).unwrap_err();
    let found: Vec<_> = errors.errors().iter().map(|e| (e.line, e.column, e.message.as_str())).collect();
    assert_eq!(found, [(line, column, message)]);
}

#[track_caller]
fn warnings_of(text: &str) -> Vec<(usize, String)> {
    read_one(text).unwrap().1.into_iter().map(|warning| (warning.0.line, warning.0.message)).collect()
}

#[test]
fn a_full_configuration_is_read_into_its_values_without_a_warning() {
    assert_eq!(read_one(DEMO), Ok((demo(), Vec::new())));
}

#[test]
fn a_small_configuration_gets_the_defaults() {
    let (config, warnings) = read_one(&tenant_with("")).unwrap();
    assert_eq!(warnings, []);
    let host = Host {
        name: None,
        data_dir: "./data".into(),
        listen: Some(([127, 0, 0, 1], 8420).into()),
        drain_time: Duration::from_secs(25),
        lease_time: Duration::from_secs(30),
        heartbeat: Duration::from_secs(5),
        boot_timeout: Duration::from_secs(20),
        log: LogFormat::Auto,
        limits: HostLimits {
            memory_bytes_max: 64 * 1024 * 1024,
            instances_max: 64,
            module_bytes_max: 32 * 1024 * 1024,
            payload_bytes_max: 4 * 1024 * 1024,
            key_bytes_max: 512,
            hops_max: 16,
            connections_max: 64,
        },
    };
    assert_eq!(config.host, host);
    let tenant = &config.tenants["t"];
    assert_eq!((tenant.slow_run, tenant.unit_time_max), (Duration::from_millis(20), Duration::from_millis(100)));
    assert_eq!((tenant.batch_max, tenant.batch_bytes_max), (256, 4 * 1024 * 1024));
    assert_eq!(tenant.slow_batch_max(), 6);
    assert_eq!(tenant.ack_gap, Duration::from_millis(100));
    assert_eq!(tenant.sources["s"].prefetch, 2_048);
    assert_eq!(tenant.handlers["h"], default_handler());
}

#[test]
fn an_empty_listen_serves_nothing() {
    let text = format!("host.listen = \"\"\n{}", tenant_with(""));
    assert_eq!(read_one(&text).unwrap().0.host.listen, None);
    assert_error("host.listen = \"8420\"", 1, 15, "host.listen is \"8420\", which is no address and port");
}

#[test]
fn a_tenant_in_a_file_of_its_own_is_the_same_tenant() {
    let own = "store = { kind = \"sqlite\", path = \"t.db\" }
routes = [{ source = \"s\", handlers = [\"h\"] }]
[sources.s]
kind = \"local\"
[handlers.h]
";
    let both = read_files(&[("oncebox.toml", ""), ("/etc/oncebox/tenants.d/t.toml", own)]);
    assert_eq!(both, read_one(&tenant_with("")));
}

#[test]
fn an_error_in_a_tenants_file_names_the_file_and_the_tenant() {
    let errors = read_files(&[("oncebox.toml", ""), ("tenants.d/t.toml", "batch_max = 4_097\n")]).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "error: tenants.t.store is missing
 --> tenants.d/t.toml:1:1
  |
1 | batch_max = 4_097
  | ^
  = help: add [store] with kind = \"sqlite\" and path, or with kind = \"mysql\" and url

error: tenants.t.batch_max is 4_097, above its limit 4_096
 --> tenants.d/t.toml:1:13
  |
1 | batch_max = 4_097
  |             ^^^^^
  = help: give 1 to 4_096"
    );
}

#[test]
fn a_tenant_stands_in_one_place() {
    let errors = read_files(&[("oncebox.toml", &tenant_with("")), ("tenants.d/t.toml", "")]).unwrap_err();
    assert_eq!(errors.errors()[0].message, "tenant \"t\" stands in oncebox.toml:1 too");
    assert_eq!(errors.errors()[0].file, "tenants.d/t.toml");
}

#[test]
fn a_tenants_file_is_named_after_the_tenant() {
    for (file, message) in [
        (
            "tenants.d/T.toml",
            "the tenant's name by the file's name is \"T\", and only a-z, 0-9 and - may stand in it, not \"T\"",
        ),
        ("tenants.d/t.conf", "the file name \"t.conf\" does not end in .toml"),
    ] {
        let errors = read_files(&[("oncebox.toml", ""), (file, "")]).unwrap_err();
        assert_eq!(errors.errors()[0].message, message);
    }
}

#[test]
fn files_that_are_not_toml_are_all_complained_of() {
    let errors = read_files(&[("oncebox.toml", "a ="), ("tenants.d/t.toml", "[b")]).unwrap_err();
    let files: Vec<_> = errors.errors().iter().map(|e| e.file.as_str()).collect();
    assert_eq!(files, ["oncebox.toml", "tenants.d/t.toml"]);
}

#[test]
fn no_file_and_no_tenant_are_both_said() {
    assert_eq!(read(&[]).unwrap_err().errors()[0].message, "no configuration file is given");
    assert_eq!(warnings_of(""), [(1, "no tenant is configured".to_owned())]);
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_known_one() {
    let errors = read_one(&tenant_with("[host]\ndata_dri = \"x\"\n")).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "error: unknown key \"data_dri\" in [host]
 --> oncebox.toml:9:1
  |
9 | data_dri = \"x\"
  | ^^^^^^^^
  = help: the nearest known key is \"data_dir\"; known keys: name, data_dir, listen, drain_time_ms, lease_time_ms, heartbeat_ms, boot_timeout_ms, log, limits"
    );
}

#[test]
fn keys_of_other_versions_are_unknown_and_not_silently_taken() {
    for (section, key) in [
        ("tenants.t.handlers.h", "age_target_s"),
        ("tenants.t.handlers.h", "ordering_policy"),
        ("tenants.t.handlers.h", "retention"),
        ("tenants.t.handlers.h.limits", "parked_rows_max"),
        ("tenants.t.sources.s", "topic"),
    ] {
        let text =
            tenant_with("").replace("[tenants.t.sources.s]", &format!("sources.s.{key} = 1\n[tenants.t.sources.s]"));
        let (text, line) = match section {
            "tenants.t.sources.s" => (text.replace("[tenants.t.sources.s]\nkind", "sources.s.kind"), 4),
            "tenants.t.handlers.h" => (tenant_with(&format!("{key} = 1\n")), 8),
            _ => (tenant_with(&format!("[{section}]\n{key} = 1\n")), 9),
        };
        let errors = read_one(&text).unwrap_err();
        let found: Vec<_> = errors.errors().iter().map(|e| (e.line, e.message.clone())).collect();
        assert_eq!(found, [(line, format!("unknown key \"{key}\" in [{section}]"))]);
    }
    for key in ["weight", "outbox_rows_max"] {
        let text = tenant_with("").replace("[tenants.t]\n", &format!("[tenants.t]\n{key} = 4\n"));
        assert_error(&text, 2, 1, &format!("unknown key \"{key}\" in [tenants.t]"));
    }
}

#[test]
fn a_kind_of_another_build_is_refused_by_the_feature_it_needs_and_nothing_else_of_it_is() {
    let has = "which this build of oncebox does not have (it has: embedded, mysql, rabbitmq)";
    for kind in ["kafka", "http"] {
        let message = format!("kind \"{kind}\" needs the feature \"{kind}\", {has}");
        let text = tenant_with("").replace("kind = \"local\"", &format!("kind = \"{kind}\"\ntopic = \"q\""));
        assert_error(&text, 5, 8, &message);
        let text =
            tenant_with(&format!("destinations = {{ x = \"d\" }}\n[tenants.t.destinations.d]\nkind = \"{kind}\"\n"));
        assert_error(&text, 10, 8, &message);
    }
    let message = format!("kind \"kafka\" needs the feature \"kafka\", {has}");
    assert_error(&tenant_with("[tenants.t.connections.c]\nkind = \"kafka\"\ntopic = 1\n"), 9, 8, &message);
}

#[test]
fn a_kind_that_is_only_elsewhere_in_this_version_is_not_said_to_need_a_build() {
    let text =
        tenant_with("destinations = { x = \"d\" }\n[tenants.t.destinations.d]\nkind = \"rabbitmq\"\nexchange = 1\n");
    let message =
        "tenants.t.destinations.d.kind is \"rabbitmq\", which is not possible here in this version of oncebox";
    assert_error(&text, 10, 8, message);
}

#[test]
fn an_unknown_kind_is_shown_with_the_nearest_known_one() {
    let text = tenant_with("").replace("\"sqlite\"", "\"sqlight\"");
    let errors = read_one(&text).unwrap_err();
    assert_eq!(errors.errors()[0].message, "tenants.t.store.kind is \"sqlight\", which is not known");
    assert_eq!(
        errors.errors()[0].help.as_deref(),
        Some("the nearest known kind is \"sqlite\"; known kinds: sqlite, mysql")
    );
}

#[test]
fn a_store_names_a_file() {
    assert_error("[tenants.t]\n", 1, 1, "tenants.t.store is missing");
    for path in [":memory:", "file:x?mode=memory"] {
        let text = tenant_with("").replace("t.db", path);
        assert_error(&text, 2, 35, &format!("tenants.t.store.path is \"{path}\", which names no file"));
    }
    assert_error(&tenant_with("").replace(", path = \"t.db\"", ""), 2, 9, "tenants.t.store.path is missing");
}

#[test]
fn two_tenants_on_one_file_are_refused_however_it_is_written() {
    for path in ["t.db", "./t.db", "a/../t.db", "/data/t.db"] {
        let other = format!("store = {{ kind = \"sqlite\", path = \"{path}\" }}\n");
        let main = format!("host.data_dir = \"/data\"\n{}", tenant_with(""));
        let errors = read_files(&[("oncebox.toml", &main), ("tenants.d/u.toml", &other)]).unwrap_err();
        let found: Vec<_> =
            errors.errors().iter().map(|e| (e.file.as_str(), e.line, e.column, e.message.as_str())).collect();
        let message = "tenants.u.store.path is the file of tenant \"t\" too, at oncebox.toml:3";
        assert_eq!(found, [("tenants.d/u.toml", 1, 35, message)], "{path}");
    }
    let other = "store = { kind = \"sqlite\", path = \"b/t.db\" }\n";
    assert!(read_files(&[("oncebox.toml", &tenant_with("")), ("tenants.d/u.toml", other)]).is_ok());
}

#[test]
fn a_route_names_a_source_and_handlers_that_are_there() {
    assert_error(
        &tenant_with("").replace("source = \"s\"", "source = \"x\""),
        3,
        22,
        "the route names source \"x\", which the tenant does not have",
    );
    let text = tenant_with("").replace("handlers = [\"h\"]", "handlers = [\"h\", \"g\"]");
    assert_error(&text, 3, 44, "the route names handler \"g\", which the tenant does not have");
    assert_eq!(read_one(&text).unwrap_err().errors()[0].help.as_deref(), Some("handlers: h"));
    let text = tenant_with("").replace("handlers = [\"h\"]", "handlers = []");
    assert_error(&text, 3, 38, "tenants.t.routes[0].handlers has 0 entries, below its least number 1");
}

#[test]
fn a_handler_stands_in_a_route_once() {
    assert_error(
        &tenant_with("").replace("handlers = [\"h\"]", "handlers = [\"h\", \"h\"]"),
        3,
        44,
        "tenants.t.routes[0].handlers[1] repeats \"h\", which would do nothing",
    );
}

#[test]
fn an_event_that_a_handler_would_get_twice_is_refused_with_both_lines() {
    let routes = |one: &str, other: &str| {
        tenant_with("").replace("routes = [{ source = \"s\", handlers = [\"h\"] }]\n", "")
            + &format!(
                "[[tenants.t.routes]]\nsource = \"s\"\nevent_types = {one}\nhandlers = [\"h\"]\n\
                 [[tenants.t.routes]]\nsource = \"s\"\nevent_types = {other}\nhandlers = [\"h\"]\n"
            )
    };
    for (one, other, common) in [
        ("[\"order.paid\"]", "[\"member.*\", \"order.paid\"]", "order.paid"),
        ("[\"order.*\"]", "[\"order.paid\"]", "order.paid"),
        ("[]", "[\"order.*\"]", "order.*"),
    ] {
        let message = format!(
            "handler \"h\" gets event type \"{common}\" of source \"s\" by the route at oncebox.toml:7 already"
        );
        assert_error(&routes(one, other), 14, 13, &message);
    }
    assert!(read_one(&routes("[\"order.paid\"]", "[\"order.sent\", \"member.*\"]")).is_ok());
}

#[test]
fn what_no_route_and_no_handler_uses_is_warned_of() {
    let text = tenant_with(
        "[tenants.t.handlers.g]\n[tenants.t.sources.r]\nkind = \"local\"\n[tenants.t.destinations.d]\nkind = \"table\"\n",
    );
    assert_eq!(
        warnings_of(&text),
        [
            (8, "handler \"g\" stands in no route: it gets no event".to_owned()),
            (9, "source \"r\" stands in no route: its events have no handler".to_owned()),
            (11, "destination \"d\" is bound to no handler".to_owned()),
        ]
    );
    let warning = &read_one(&text).unwrap().1[0];
    assert_eq!(
        warning.to_string(),
        "warning: handler \"g\" stands in no route: it gets no event
 --> oncebox.toml:8:1
  |
8 | [tenants.t.handlers.g]
  | ^^^^^^^^^^^^^^^^^^^^^^
  = help: add it to a route, or leave it out"
    );
}

#[test]
fn destinations_name_sources_and_bindings_name_destinations_that_are_there() {
    let bound = "destinations = { x = \"d\" }\n[tenants.t.destinations.d]\n";
    assert_error(&tenant_with(bound), 9, 1, "tenants.t.destinations.d.kind is missing");
    assert_error(
        &tenant_with(&format!("{bound}kind = \"local\"\nsource = \"x\"\n")),
        11,
        10,
        "tenants.t.destinations.d.source is \"x\", and the tenant has no such source",
    );
    assert_error(
        &tenant_with(&format!("{bound}kind = \"local\"\n")),
        9,
        1,
        "tenants.t.destinations.d.source is missing",
    );
    assert_error(
        &tenant_with(&format!("{bound}kind = \"table\"\nsource = \"s\"\n")),
        11,
        10,
        "tenants.t.destinations.d.source would do nothing with kind \"table\"",
    );
    assert_error(
        &tenant_with("destinations = { x = \"d\" }\n"),
        8,
        22,
        "tenants.t.handlers.h.destinations.x is \"d\", and the tenant has no such destination",
    );
}

#[test]
fn tables_and_triggers_are_business_ones() {
    let with = |line: &str| tenant_with("").replace("[tenants.t]\n", &format!("[tenants.t]\n{line}\n"));
    assert_error(
        &with("tables = [\"ob_inbox\"]"),
        2,
        11,
        "tenants.t.tables[0] is \"ob_inbox\", and tables ob_* belong to oncebox",
    );
    assert_error(
        &with("tables = [\"a.b\"]"),
        2,
        11,
        "tenants.t.tables[0] is \"a.b\", and only A-Z, a-z, 0-9, _ and $ may stand in it, not \".\"",
    );
    assert_error(
        &with("tables = [\"a\"]\ntriggers = [\"b.t\"]"),
        3,
        13,
        "the trigger \"b.t\" is on table \"b\", which is not in tables",
    );
    assert_error(&with("triggers = [\"b\"]"), 2, 13, "tenants.t.triggers[0] is \"b\", which names no table");
}

#[test]
fn names_of_tenants_sources_handlers_and_destinations_have_one_form() {
    for section in ["tenants", "tenants.t.sources", "tenants.t.handlers", "tenants.t.destinations"] {
        let errors = read_one(&tenant_with(&format!("[{section}.A_b]\n"))).unwrap_err();
        let message =
            format!("the name \"A_b\" in [{section}] is \"A_b\", and only a-z, 0-9 and - may stand in it, not \"A\"");
        assert_eq!(errors.errors()[0].message, message);
    }
}

#[test]
fn values_of_a_handlers_config_are_texts() {
    assert_error(
        &tenant_with("config = { a_b = 1 }\n"),
        8,
        18,
        "tenants.t.handlers.h.config.a_b is an integer, where a string is due",
    );
}

#[test]
fn a_handler_may_not_have_more_memory_than_the_host_gives() {
    let limits = |bytes: u64| {
        tenant_with(&format!("limits.memory_bytes_max = {bytes}\n[host.limits]\nmemory_bytes_max = 1_000_000\n"))
    };
    assert!(read_one(&limits(1_000_000)).is_ok());
    assert_error(
        &limits(1_000_001),
        8,
        27,
        "tenants.t.handlers.h.limits.memory_bytes_max is 1_000_001, above host.limits.memory_bytes_max 1_000_000",
    );
}

#[test]
fn the_first_delay_is_not_above_the_longest() {
    assert_error(
        &tenant_with("retry = { first_ms = 2_000, delay_ms_max = 1_999 }\n"),
        8,
        22,
        "tenants.t.handlers.h.retry.first_ms is 2_000, above delay_ms_max 1_999",
    );
}

#[test]
fn numbers_are_taken_at_their_limits_and_refused_past_them() {
    for (section, key, min, max) in [
        ("host", "drain_time_ms", 1_u64, 600_000_u64),
        ("host", "lease_time_ms", 100, 3_600_000),
        ("host.limits", "connections_max", 1, 10_000),
        ("host.limits", "memory_bytes_max", 65_536, 4_294_967_296),
        ("host.limits", "instances_max", 1, 10_000),
        ("host.limits", "module_bytes_max", 1, 268_435_456),
        ("host.limits", "payload_bytes_max", 1, 67_108_864),
        ("host.limits", "key_bytes_max", 1, 512),
        ("host.limits", "hops_max", 1, 255),
        ("tenants.t", "slow_run_ms", 1, 60_000),
        ("tenants.t", "unit_time_ms_max", 1, 60_000),
        ("tenants.t", "batch_max", 1, 4_096),
        ("tenants.t", "batch_bytes_max", 1, 67_108_864),
        ("tenants.t", "ack_gap_ms", 1, 60_000),
        ("tenants.t.sources.s", "prefetch", 1, 65_535),
        ("tenants.t.handlers.h.limits", "run_time_ms_max", 1, 60_000),
        ("tenants.t.handlers.h.limits", "memory_bytes_max", 65_536, 67_108_864),
        ("tenants.t.handlers.h.limits", "staged_rows_max", 1, 10_000),
        ("tenants.t.handlers.h.limits", "staged_bytes_max", 1, 67_108_864),
        ("tenants.t.handlers.h.limits", "events_max", 0, 10_000),
        ("tenants.t.handlers.h.limits", "host_calls_max", 1, 10_000_000),
        ("tenants.t.handlers.h.limits", "log_lines_max", 0, 10_000),
        ("tenants.t.handlers.h.limits", "result_bytes_max", 0, 1_024),
        ("tenants.t.handlers.h.retry", "attempts_max", 1, 1_000),
        ("tenants.t.handlers.h.retry", "first_ms", 1, 86_400_000),
        ("tenants.t.handlers.h.retry", "delay_ms_max", 1, 604_800_000),
        ("tenants.t.handlers.h.retry", "deadline_s", 1, 2_592_000),
        ("tenants.t.handlers.h.retry", "short_attempts_max", 1, 1_000),
        ("tenants.t.handlers.h.retry", "deaths_max", 1, 10),
    ] {
        let accepts = |number: i128| {
            let header = format!("[{section}]\n");
            let text = tenant_with("");
            let line = format!("{header}{key} = {number}\n");
            let text = if text.contains(&header) { text.replace(&header, &line) } else { text + &line };
            read_one(&text).is_ok()
        };
        let (min, max) = (i128::from(min), i128::from(max));
        assert!(accepts(min) && accepts(max), "{section}.{key} at its limits");
        assert!(!accepts(min - 1) && !accepts(max + 1), "{section}.{key} past its limits");
    }
}

#[test]
fn a_factor_is_a_number_from_1_to_100() {
    let factor = |factor: &str| read_one(&tenant_with(&format!("retry.factor = {factor}\n"))).is_ok();
    for good in ["1", "1.0", "1.5", "100", "1e2"] {
        assert!(factor(good), "{good}");
    }
    for wrong in ["0.99", "100.1", "nan", "inf", "-2.0", "\"2\"", "0x2"] {
        assert!(!factor(wrong), "{wrong}");
    }
}

#[test]
fn a_setting_of_an_envelope_that_would_do_nothing_is_refused() {
    let with = |envelope: &str| {
        tenant_with("").replace("kind = \"local\"", &format!("kind = \"local\"\nenvelope = {envelope}"))
    };
    assert_error(
        &with("{ time_format = \"unix-s\" }"),
        6,
        28,
        "tenants.t.sources.s.envelope.time_format would do nothing: time is not given",
    );
    for (key, column) in [("id", 42), ("event_type", 50)] {
        assert_error(
            &with(&format!("{{ format = \"structured\", {key} = \"{{header:x}}\" }}")),
            6,
            column,
            &format!("tenants.t.sources.s.envelope.{key} would do nothing: by format, all messages are CloudEvents"),
        );
    }
}

#[test]
fn a_template_that_cannot_be_used_is_refused_where_it_stands() {
    let with = |envelope: &str| {
        tenant_with("").replace("kind = \"local\"", &format!("kind = \"local\"\nenvelope = {envelope}"))
    };
    assert_error(
        &with("{ id = \"{ce:id}\" }"),
        6,
        19,
        &format!(
            "tenants.t.sources.s.envelope.id cannot be used: {}",
            Template::parse("{ce:id}", TemplateUse::Envelope).unwrap_err()
        ),
    );
    assert_error(
        &tenant_with("key = \"order\"\n"),
        8,
        7,
        "tenants.t.handlers.h.key cannot be used: the key has no placeholder, so that every event would have the same key",
    );
    assert_error(
        &tenant_with("ordering = \"order\"\n"),
        8,
        12,
        "tenants.t.handlers.h.ordering cannot be used: the key has no placeholder, so that every event would have the same key",
    );
}

#[test]
fn the_reference_page_of_the_configuration_is_up_to_date() {
    page::assert_up_to_date("config.md", &reference());
}
