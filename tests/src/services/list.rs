//! `servers.json`, which `cargo services up` writes.

use std::path::PathBuf;

use serde_json::Value;

use super::{Kind, Server, Tls};

/// How an instance of a server is made: commands with `{home}`, `{port}` and the like to be filled in.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// The folder that is the root of its commands; empty: the machine's own.
    pub(super) root: String,
    /// Where homes are made, seen from the root.
    pub(super) homes: String,
    /// The ports that are to be chosen.
    pub(super) ports: Vec<String>,
    /// Files in the home, written before each start.
    pub(super) files: Vec<(String, String)>,
    /// What turns an empty home into one with data, once.
    pub(super) prepare: Vec<Vec<String>>,
    /// A process that must be there first; empty: none.
    pub(super) helper: Vec<String>,
    /// The server, in the foreground.
    pub(super) run: Vec<String>,
    /// What a command for the running server begins with; empty: there is none.
    pub(super) ctl: Vec<String>,
}

/// The server of that kind, where `cargo services up` started one.
pub(super) fn read(kind: Kind) -> Option<Server> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    let text = std::fs::read_to_string(cache.join("oncebox/services/servers.json")).ok()?;
    let list: Value = serde_json::from_str(&text).ok()?;
    server(kind, list.get(kind.name())?)
}

fn server(kind: Kind, known: &Value) -> Option<Server> {
    let text = |name: &str| known[name].as_str().map(str::to_owned);
    let file = |name: &str| known["tls"][name].as_str().map(PathBuf::from);
    let tls = || {
        Some(Tls {
            ca_file: file("ca_file")?,
            other_ca_file: file("other_ca_file")?,
            client_cert_file: file("client_cert_file")?,
            client_key_file: file("client_key_file")?,
        })
    };
    Some(Server {
        kind,
        url: text("url")?,
        tls_url: text("tls_url"),
        tls: tls(),
        api: text("api"),
        ctl: words(&known["ctl"]),
        private: known.get("private").and_then(template),
    })
}

fn template(value: &Value) -> Option<Template> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let files = value["files"].as_array().into_iter().flatten();
    let prepare = value["prepare"].as_array().into_iter().flatten();
    Some(Template {
        root: text("root")?,
        homes: text("homes")?,
        ports: words(&value["ports"]),
        files: files.filter_map(|file| Some((file[0].as_str()?.to_owned(), file[1].as_str()?.to_owned()))).collect(),
        prepare: prepare.map(words).collect(),
        helper: words(&value["helper"]),
        run: words(&value["run"]),
        ctl: words(&value["ctl"]),
    })
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}
