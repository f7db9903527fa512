//! How an inspection reads on a terminal.

use std::{collections::BTreeMap, fmt};

use oncebox_core::{ids::shown, manifest::Access};

use super::{InspectedParam, Inspection};

/// A page for people. The texts are a stranger's, so control characters are shown and never sent.
impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}  {}", self.name, clean(&self.version), clean(&self.description))?;
        self.identity(f)?;
        self.writes(f)?;
        self.reads(f)?;
        self.sends(f)?;
        functions(f, "calls of the host", &self.imports)?;
        functions(f, "calls by the host", &self.exports)
    }
}

impl Inspection {
    fn identity(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = || "the operator's default".to_owned();
        let equal = self.fingerprint.as_ref().map_or("the whole payload".to_owned(), |parts| parts.join(", "));
        line(f, "digest", &format!("sha256:{}", self.digest))?;
        line(f, "size", &format!("{} bytes", self.bytes))?;
        line(f, "contract", &format!("oncebox:handler {}", self.contract))?;
        line(f, "takes", &any(&self.event_types))?;
        line(f, "key", &self.key)?;
        line(f, "equal by", &equal)?;
        line(f, "in order of", self.ordering.as_deref().unwrap_or("nothing"))?;
        line(f, "memory", &self.memory_bytes_max.map_or_else(default, |bytes| format!("{bytes} bytes")))?;
        line(f, "run time", &self.run_time_ms_max.map_or_else(default, |ms| format!("{ms} ms")))?;
        line(f, "attempts", &self.attempts_max.map_or_else(default, |attempts| attempts.to_string()))?;
        line(f, "deadline", &self.deadline_s.map_or_else(default, |seconds| format!("{seconds} s")))
    }

    fn writes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        heading(f, "tables", self.tables.len())?;
        for (name, access) in &self.tables {
            let access = match access {
                Access::Read => "read",
                Access::Write => "write",
            };
            line(f, name, access)?;
        }
        heading(f, "statements", self.statements.len())?;
        for (name, statement) in &self.statements {
            writeln!(f, "  {name}({})", arguments(&statement.params))?;
            sql(f, &statement.sql, statement.sqlite.as_deref())?;
            match statement.rows.as_str() {
                "any" => writeln!(f, "    rows: any")?,
                rows => writeln!(f, "    rows: {rows}, else {}", statement.mismatch)?,
            }
            for (number, meaning) in &statement.errors {
                writeln!(f, "    error {number}: {meaning}")?;
            }
        }
        Ok(())
    }

    fn reads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        heading(f, "queries", self.queries.len())?;
        for (name, query) in &self.queries {
            writeln!(f, "  {name}({})", arguments(&query.params))?;
            sql(f, &query.sql, query.sqlite.as_deref())?;
            let lock = if query.lock { ", locked" } else { "" };
            writeln!(f, "    at most {} rows, {} bytes{lock}", query.rows_max, query.bytes_max)?;
        }
        heading(f, "config", self.config.len())?;
        for (name, entry) in &self.config {
            let given = match &entry.default {
                Some(default) => format!("default {default}"),
                None if entry.required => "required".to_owned(),
                None => "optional".to_owned(),
            };
            line(f, name, &format!("{given}  {}", entry.description))?;
        }
        Ok(())
    }

    fn sends(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        heading(f, "destinations", self.destinations.len())?;
        for (name, destination) in &self.destinations {
            let ordering = if destination.ordering { ", in order" } else { "" };
            line(f, name, &format!("{} to {}{ordering}", any(&destination.event_types), any(&destination.kinds)))?;
        }
        Ok(())
    }
}

fn functions(f: &mut fmt::Formatter<'_>, title: &str, interfaces: &BTreeMap<String, Vec<String>>) -> fmt::Result {
    let used = interfaces.iter().filter(|(_, functions)| !functions.is_empty());
    heading(f, title, used.clone().count())?;
    used.into_iter().try_for_each(|(interface, functions)| writeln!(f, "  {interface}: {}", functions.join(", ")))
}

fn heading(f: &mut fmt::Formatter<'_>, title: &str, entries: usize) -> fmt::Result {
    if entries == 0 { writeln!(f, "{title}: none") } else { writeln!(f, "{title}") }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(f, "  {name:<16}  {}", clean(value).trim_end())
}

fn sql(f: &mut fmt::Formatter<'_>, text: &str, sqlite: Option<&str>) -> fmt::Result {
    text.trim().lines().try_for_each(|line| writeln!(f, "    {}", clean(line)))?;
    sqlite
        .into_iter()
        .flat_map(|text| text.trim().lines())
        .try_for_each(|line| writeln!(f, "    sqlite: {}", clean(line)))
}

fn arguments(params: &[InspectedParam]) -> String {
    params.iter().map(|param| format!("{} {}", param.name, param.kind)).collect::<Vec<_>>().join(", ")
}

fn any(list: &[String]) -> String {
    if list.is_empty() { "any".to_owned() } else { list.join(", ") }
}

fn clean(text: &str) -> String {
    shown(text.as_bytes())
}
