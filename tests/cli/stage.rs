//! A shop with one source and one handler, and modules for it.

use std::path::Path;

use oncebox_tests::{
    command::Folder,
    wat::{source, wat_component},
};
use serde_json::Value as Json;
use sqlx::{ConnectOptions as _, Row as _, sqlite::SqliteConnectOptions};

pub(crate) const CONFIG: &str = r#"
[host]
data_dir = "data"
listen = ""

[tenants.shop]
tables = ["points_account"]

[tenants.shop.store]
kind = "sqlite"
path = "shop.db"
schema = "schema.sql"

[tenants.shop.sources.orders]
kind = "local"
envelope = { event_type = "{/type}", id = "{/id}" }

[[tenants.shop.routes]]
source = "orders"
event_types = ["order.paid"]
handlers = ["award"]

[tenants.shop.handlers.award]
owner = "ann@example.com"
"#;

pub(crate) const SCHEMA: &str =
    "CREATE TABLE points_account (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL) STRICT;
INSERT INTO points_account VALUES (42, 0);
";

/// The manifest of handlers that stage `award`.
pub(crate) const MANIFEST: &str = r#"
name = "award"
version = "1.0.0"
contract = "1.0"
event_types = ["order.paid"]
key = "order:{/orderId}"
fingerprint = ["/amount"]

[tables]
points_account = "write"

[statements.award]
sql = "UPDATE points_account SET points = points + ? WHERE user_id = ?"
params = [{ name = "points", type = "signed" }, { name = "user_id", type = "unsigned" }]
rows = 1
"#;

/// A shop without anything deployed; no store is made.
pub(crate) fn shop() -> Folder {
    shop_with(CONFIG)
}

/// The same with another configuration.
pub(crate) fn shop_with(config: &str) -> Folder {
    let folder = Folder::new(config);
    folder.write("schema.sql", SCHEMA);
    folder
}

/// A module of `plugins/`, with this manifest, as a file of the folder.
pub(crate) fn module(folder: &Folder, wat: &str, manifest: &str) {
    folder.write("module.wasm", wat_component(&source(wat), manifest));
}

/// A text with one part in place of another, which is there.
pub(crate) fn with(text: &str, part: &str, other: &str) -> String {
    assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    text.replace(part, other)
}

/// The rows of a table of the store.
pub(crate) fn count(folder: &Folder, table: &str) -> i64 {
    number(&folder.path("data/shop.db"), &format!("SELECT count(*) FROM {table}"))
}

/// The one number that a query of a store answers.
pub(crate) fn number(file: &Path, sql: &str) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0)
    })
}

/// An answer for programs.
pub(crate) fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}
