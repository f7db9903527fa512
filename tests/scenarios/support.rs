//! The sites of these stories: the probe `ledger`, what it writes to, and configurations around it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use oncebox_tests::probe::{built, ledger, ledger_of_version, with_change};
use oncebox_tests::{database::Database, host::Site, patience::eventually};

/// Tables of the probe, with a counter for each handler. The ledger's index is not unique.
const SCHEMA: &str = "
CREATE TABLE ledger (id INTEGER PRIMARY KEY, handler TEXT NOT NULL, entry TEXT NOT NULL, amount INTEGER NOT NULL,
  event_id TEXT NOT NULL, version INTEGER NOT NULL) STRICT;
CREATE INDEX ledger_by_entry ON ledger (handler, entry);
CREATE TABLE counter (handler TEXT PRIMARY KEY, n INTEGER NOT NULL, total INTEGER NOT NULL CHECK (total < 1000000000)) STRICT;
CREATE TABLE points (user_id INTEGER PRIMARY KEY, points INTEGER NOT NULL, note BLOB) STRICT;
";

/// Tenant `t` with the source `in`, one route to the handlers `a` and `b` as given, and `in`'s events in `t.db`.
pub(crate) struct Plan {
    /// Lines of `[host]`.
    pub(crate) host: &'static str,
    /// Lines of the tenant, and of tables in it.
    pub(crate) tenant: &'static str,
    /// Handlers of the route, each with lines of its own.
    pub(crate) handlers: &'static [(&'static str, &'static str)],
}

/// One handler that tries again soon.
pub(crate) const ONE: Plan = Plan { host: "", tenant: "", handlers: &[("a", SOON)] };

/// Tries again soon, so that a test need not wait.
pub(crate) const SOON: &str =
    "destinations = { out = \"kept\" }\nretry = { first_ms = 20, delay_ms_max = 50, short_attempts_max = 2 }\n";

impl Plan {
    /// The configuration's text.
    pub(crate) fn config(&self) -> String {
        let names: Vec<String> = self.handlers.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let handlers: String =
            self.handlers.iter().map(|(name, lines)| format!("[tenants.t.handlers.{name}]\n{lines}")).collect();
        format!(
            "[host]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n{}
[tenants.t]
tables = [\"ledger\", \"counter\", \"points\"]
store = {{ kind = \"sqlite\", path = \"t.db\", schema = \"schema.sql\" }}
{}
[[tenants.t.routes]]
source = \"in\"
event_types = [\"entry\"]
handlers = [{}]
[tenants.t.sources.in]
kind = \"local\"
[tenants.t.destinations.kept]
kind = \"table\"
{handlers}",
            self.host,
            self.tenant,
            names.join(", ")
        )
    }

    /// A site with this configuration, without any module.
    pub(crate) fn bare_site(&self) -> Site {
        let site = Site::new(&self.config());
        let counters: String =
            self.handlers.iter().map(|(name, _)| format!("INSERT INTO counter VALUES ('{name}', 0, 0);\n")).collect();
        site.write("schema.sql", format!("{SCHEMA}{counters}"));
        site
    }

    /// A site where the probe is deployed for every handler.
    pub(crate) fn site(&self) -> Site {
        let site = self.bare_site();
        for (name, _) in self.handlers {
            site.deploy(ledger(), &format!("t/{name}"));
        }
        site
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Waits until nothing is left to do: no message undecided, nothing parked.
#[track_caller]
pub(crate) fn settled(database: &Database, deadline: Duration) {
    let left = "SELECT (SELECT count(*) FROM ob_local) + (SELECT count(*) FROM ob_held WHERE state = 0)";
    eventually("everything is decided", deadline, || (database.number(left) == 0).then_some(()));
}
