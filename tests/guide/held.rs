//! The SQL of `docs/operating.md` for dead events: what it says, on both stores, with order and without.

use oncebox_tests::{
    database::Database,
    host::{Host, Site},
    patience::{PATIENCE, eventually},
    script,
    services::Kind,
    tenant_database::TenantDatabase,
};
use serde_json::json;

use crate::servers::Servers;

const ORDERING: &str = ", ordering = \"{/customer}\"";

/// A tenant's tables, wherever they are.
enum Tables {
    Sqlite(Database),
    Mysql(Box<TenantDatabase>),
}

impl Tables {
    fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(database) => database.lines(&sql.replace("AS CHAR)", "AS TEXT)")),
            Self::Mysql(tenant) => tenant.database.lines(sql),
        }
    }

    fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(database) => database.execute(sql),
            Self::Mysql(tenant) => tenant.database.execute(sql),
        }
    }

    /// The page's SQL of this store for an action, on the held row 1, as the host's own user.
    fn do_as_the_page_says(&self, action: &str) {
        let begin = match self {
            Self::Sqlite(_) => "-- sqlite3",
            Self::Mysql(_) => "-- mysql",
        };
        let blocks = script::blocks(&script::page("docs/operating.md"));
        let block = blocks.iter().find(|block| {
            block.language == "sql" && block.text.starts_with(begin) && block.text.contains(&format!("'{action}'"))
        });
        let sql = &block.unwrap_or_else(|| panic!("docs/operating.md has no SQL for {action} {begin}")).text;
        match self {
            Self::Sqlite(database) => database.execute(sql),
            Self::Mysql(tenant) => tenant.database.execute_as(&tenant.database.runtime, sql),
        }
    }

    /// `KEY STATE` of each inbox row.
    fn inbox(&self) -> Vec<String> {
        self.rows("SELECT CAST(business_key AS CHAR) FROM ob_inbox ORDER BY business_key")
            .into_iter()
            .zip(self.rows("SELECT CAST(state AS CHAR) FROM ob_inbox ORDER BY business_key"))
            .map(|(key, state)| format!("{key} {state}"))
            .collect()
    }

    #[track_caller]
    fn wait_for(&self, inbox: &[&str]) {
        let mut last = Vec::new();
        let deadline = oncebox::clock::monotonic() + PATIENCE;
        eventually("the inbox", PATIENCE * 2, || {
            last = self.inbox();
            assert!(oncebox::clock::monotonic() < deadline, "the inbox has {last:?}, not {inbox:?}");
            (last == inbox).then_some(())
        });
    }
}

/// A shop whose one handler asks for order or not, with three events of one customer: the first is dead, because there
/// is no account.
struct Shop {
    // Ended before its tables and its queue are gone.
    _host: Host,
    tables: Tables,
    _site: Site,
    _servers: Option<Servers>,
}

fn config(store: &str, source: &str, ordering: &str) -> String {
    format!(
        "[host]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n\
         [tenants.shop]\ntables = [\"points_account\"]\nstore = {{ {store} }}\n\
         sources.orders = {{ {source}, envelope = {{ event_type = \"{{/type}}\", id = \"{{/id}}\" }} }}\n\
         routes = [{{ source = \"orders\", handlers = [\"award\"] }}]\n\
         destinations.kept = {{ kind = \"table\" }}\n\
         handlers.award = {{ destinations = {{ out = \"kept\" }}{ordering} }}\n"
    )
}

fn events() -> [String; 3] {
    [1, 2, 3].map(|n| format!(r#"{{"type":"order.paid","id":"e{n}","customer":7,"orderId":{n},"amount":5}}"#))
}

impl Shop {
    fn embedded(ordering: &str) -> Self {
        let store = "kind = \"sqlite\", path = \"shop.db\", schema = \"schema.sql\"";
        let site = Site::new(&config(store, "kind = \"local\"", ordering));
        let schema = "CREATE TABLE points_account (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL) STRICT;";
        site.write("schema.sql", schema);
        site.deploy(&crate::good_module(), "shop/award");
        let host = site.start().ready();
        for event in events() {
            site.send("shop/orders", &[event]);
        }
        Self { tables: Tables::Sqlite(site.database("shop.db")), _host: host, _site: site, _servers: None }
    }

    fn on_servers(ordering: &str) -> Self {
        let (servers, tenant) = (Servers::new(), TenantDatabase::create(Kind::Mysql));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tenant.ready(&[])).unwrap();
        let account = "CREATE TABLE points_account (user_id BIGINT UNSIGNED PRIMARY KEY, points BIGINT NOT NULL)";
        tenant.database.execute(account);
        tenant.database.grant(&format!("SELECT, UPDATE ON {}.points_account", tenant.database.name));
        let arguments = json!({ "x-queue-type": "quorum", "x-single-active-consumer": true });
        servers.vhost.declare_queue("orders", &arguments);
        let source = "kind = \"rabbitmq\", connection = \"broker\", queue = \"orders\"";
        let mut text =
            config(&format!("kind = \"mysql\", url = \"{}\"", tenant.database.runtime_url()), source, ordering);
        text += &format!("connections.broker = {{ kind = \"rabbitmq\", url = \"{}\" }}\n", servers.vhost.url());
        let site = Site::new(&text);
        site.deploy(&crate::good_module(), "shop/award");
        let host = site.start().ready();
        for event in events() {
            servers.vhost.publish("orders", &event, &json!({}));
        }
        let tables = Tables::Mysql(Box::new(tenant));
        Self { tables, _host: host, _site: site, _servers: Some(servers) }
    }
}

fn a_dead_head_is_replayed(shop: &Shop) {
    let tables = &shop.tables;
    tables.wait_for(&["order:1 3", "order:2 2", "order:3 2"]);
    tables.execute("INSERT INTO points_account VALUES (42, 0)");
    tables.do_as_the_page_says("replay");
    tables.wait_for(&["order:1 0", "order:2 0", "order:3 0"]);
    let order = tables.rows("SELECT CAST(business_key AS CHAR) FROM ob_outbox ORDER BY outbox_id");
    assert_eq!(order, ["order:1", "order:2", "order:3"]);
    assert_eq!(tables.rows("SELECT CAST(held AS CHAR) FROM ob_order"), ["0"]);
    assert_eq!(tables.rows("SELECT action FROM ob_audit WHERE action <> 'deploy'"), ["replay"]);
}

fn a_dead_head_is_discarded(shop: &Shop) {
    let tables = &shop.tables;
    tables.wait_for(&["order:1 3", "order:2 2", "order:3 2"]);
    tables.execute("INSERT INTO points_account VALUES (42, 0)");
    tables.do_as_the_page_says("discard");
    tables.wait_for(&["order:1 4", "order:2 0", "order:3 0"]);
    let order = tables.rows("SELECT CAST(business_key AS CHAR) FROM ob_outbox ORDER BY outbox_id");
    assert_eq!(order, ["order:2", "order:3"]);
    assert_eq!(tables.rows("SELECT CAST(held AS CHAR) FROM ob_order"), ["0"]);
    assert_eq!(tables.rows("SELECT action FROM ob_audit WHERE action <> 'deploy'"), ["discard"]);
}

fn without_order_one_is_replayed_alone(shop: &Shop) {
    let tables = &shop.tables;
    tables.wait_for(&["order:1 3", "order:2 3", "order:3 3"]);
    tables.execute("INSERT INTO points_account VALUES (42, 0)");
    let first = tables.rows("SELECT CAST(business_key AS CHAR) FROM ob_held WHERE held_id = 1");
    tables.do_as_the_page_says("replay");
    let state = |key: &str| if *key == first[0] { 0 } else { 3 };
    let inbox = ["order:1", "order:2", "order:3"].map(|key| format!("{key} {}", state(key)));
    tables.wait_for(&inbox.each_ref().map(String::as_str));
}

fn without_order_one_is_discarded_alone(shop: &Shop) {
    let tables = &shop.tables;
    tables.wait_for(&["order:1 3", "order:2 3", "order:3 3"]);
    let first = tables.rows("SELECT CAST(business_key AS CHAR) FROM ob_held WHERE held_id = 1");
    tables.do_as_the_page_says("discard");
    let state = |key: &str| if *key == first[0] { 4 } else { 3 };
    let inbox = ["order:1", "order:2", "order:3"].map(|key| format!("{key} {}", state(key)));
    tables.wait_for(&inbox.each_ref().map(String::as_str));
    assert_eq!(tables.rows("SELECT CAST(state AS CHAR) FROM ob_held ORDER BY held_id"), ["5", "1", "1"]);
}

#[test]
fn a_dead_event_is_replayed_by_the_pages_sql_on_the_embedded_store() {
    a_dead_head_is_replayed(&Shop::embedded(ORDERING));
    without_order_one_is_replayed_alone(&Shop::embedded(""));
}

#[test]
fn a_dead_event_is_replayed_by_the_pages_sql_on_a_server() {
    a_dead_head_is_replayed(&Shop::on_servers(ORDERING));
    without_order_one_is_replayed_alone(&Shop::on_servers(""));
}

#[test]
fn a_dead_event_is_discarded_by_the_pages_sql_on_the_embedded_store() {
    a_dead_head_is_discarded(&Shop::embedded(ORDERING));
    without_order_one_is_discarded_alone(&Shop::embedded(""));
}

#[test]
fn a_dead_event_is_discarded_by_the_pages_sql_on_a_server() {
    a_dead_head_is_discarded(&Shop::on_servers(ORDERING));
    without_order_one_is_discarded_alone(&Shop::on_servers(""));
}
