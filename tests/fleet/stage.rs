//! Tenants on MySQL with the probe `ledger`, and hosts `a`, `b`, … that serve them.

use std::time::Duration;

use oncebox_tests::{
    feed::entry,
    host::{Host, Site},
    patience::{PATIENCE, eventually},
    services::{MysqlDatabase, Server},
};

/// How long what a busy machine has to do for several hosts may take.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Tables of the probe; no key of the ledger is unique.
const SCHEMA: [&str; 3] = [
    "CREATE TABLE ledger (id BIGINT PRIMARY KEY AUTO_INCREMENT, handler VARCHAR(64) NOT NULL, entry VARCHAR(255) NOT NULL,
       amount BIGINT NOT NULL, event_id VARCHAR(255) NOT NULL, version INT NOT NULL, KEY by_entry (handler, entry))
     ENGINE = InnoDB",
    "CREATE TABLE counter (handler VARCHAR(64) PRIMARY KEY, n BIGINT NOT NULL, total BIGINT NOT NULL) ENGINE = InnoDB",
    "INSERT INTO counter VALUES ('a', 0, 0)",
];

/// What a configuration says beside what all have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lines {
    /// Of `[host]`, and tables in it.
    pub(crate) host: &'static str,
    /// Of each tenant.
    pub(crate) tenant: &'static str,
    /// Of each tenant's store.
    pub(crate) store: &'static str,
    /// Of each tenant's handler `a`.
    pub(crate) handler: &'static str,
}

/// A folder, and a database for each tenant, by name.
pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) tenants: Vec<(&'static str, MysqlDatabase)>,
}

impl Stage {
    /// One tenant, `t`, on the server that all tests share.
    pub(crate) fn new(lines: Lines) -> Self {
        Self::of(vec![("t", MysqlDatabase::create(&Server::mysql()))], lines)
    }

    /// Makes the tables and deploys version 1 for all.
    pub(crate) fn of(tenants: Vec<(&'static str, MysqlDatabase)>, lines: Lines) -> Self {
        let stage = Self { site: Site::new(""), tenants };
        stage.configure("oncebox", lines);
        stage.site.ok(&["migrate"]);
        stage.site.write("one.wasm", oncebox_tests::probe::ledger());
        for (tenant, database) in &stage.tenants {
            SCHEMA.iter().for_each(|sql| database.execute(sql));
            stage.site.ok(&["deploy", "one.wasm", &format!("{tenant}/a")]);
        }
        stage
    }

    /// Writes the configuration `NAME.toml` of the host of that name.
    pub(crate) fn configure(&self, name: &str, lines: Lines) {
        // On a busy machine any run may take longer than the default of `slow_run_ms`; these stories are not about that.
        let tenant = |(tenant, database): &(&str, MysqlDatabase)| {
            format!(
                "[tenants.{tenant}]
tables = [\"ledger\", \"counter\"]
slow_run_ms = 1000
{}
[tenants.{tenant}.store]
kind = \"mysql\"
url = \"{}\"
{}
[[tenants.{tenant}.routes]]
source = \"in\"
handlers = [\"a\"]
[tenants.{tenant}.sources.in]
kind = \"local\"
[tenants.{tenant}.destinations.kept]
kind = \"table\"
[tenants.{tenant}.handlers.a]
destinations = {{ out = \"kept\" }}
{}
",
                lines.tenant,
                database.migrate_url(),
                lines.store,
                lines.handler
            )
        };
        let tenants: String = self.tenants.iter().map(tenant).collect();
        let host = format!(
            "[host]\nname = \"{name}\"\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n{}\n{tenants}",
            lines.host
        );
        self.site.write(&format!("{name}.toml"), host);
    }

    /// Starts the host of that name with a configuration of its own.
    pub(crate) fn start(&self, name: &str, lines: Lines) -> Host {
        self.configure(name, lines);
        self.site.start_with(&format!("{name}.toml"))
    }

    /// The first tenant's database.
    pub(crate) fn database(&self) -> &MysqlDatabase {
        &self.tenants[0].1
    }

    /// Sends one event to the first tenant and waits until it is applied; the answer is the version that has done it.
    #[track_caller]
    pub(crate) fn served_by(&self, key: &str) -> i64 {
        let tenant = self.tenants[0].0;
        self.site.send(&format!("{tenant}/in"), &[entry(&format!("e-{key}"), key, 1)]);
        settled(self.database(), LONG);
        self.database().number(&format!("SELECT version FROM ledger WHERE entry = '{key}'"))
    }
}

/// Waits until nothing is left to do: no message undecided, nothing parked.
#[track_caller]
pub(crate) fn settled(database: &MysqlDatabase, deadline: Duration) {
    let left = "SELECT (SELECT COUNT(*) FROM ob_local) + (SELECT COUNT(*) FROM ob_held WHERE state = 0)";
    eventually("everything is decided", deadline, || (database.number(left) == 0).then_some(()));
}

/// Each of so many keys was applied once, and the books say the same.
#[track_caller]
pub(crate) fn applied_once(database: &MysqlDatabase, keys: i64) {
    let counts = [
        "SELECT COUNT(*) FROM ledger",
        "SELECT COUNT(DISTINCT entry) FROM ledger",
        "SELECT n FROM counter",
        "SELECT COUNT(*) FROM ob_inbox WHERE state = 0",
        "SELECT COUNT(*) FROM ob_outbox",
        "SELECT CAST(SUM(n) AS SIGNED) FROM ob_tally WHERE verdict = 0",
    ];
    assert_eq!(counts.map(|sql| database.number(sql)), [keys; 6], "{counts:#?}");
}

/// Waits until `/readyz` says why the host is not ready.
#[track_caller]
pub(crate) fn unready(host: &Host, why: &str) -> String {
    let mut last = None;
    eventually(why, PATIENCE, || {
        let answer = host.get("/readyz");
        if last.as_ref() != Some(&answer) {
            eprintln!("/readyz: {answer:?}");
        }
        let (status, text) = last.insert(answer);
        (*status == 503 && text.contains(why)).then(|| text.clone())
    })
}

/// Waits until `/readyz` says that it is.
#[track_caller]
pub(crate) fn is_ready(host: &Host) {
    eventually("ready", LONG, || (host.get("/readyz").0 == 200).then_some(()));
}
