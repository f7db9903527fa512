//! Licences and duplicates of the crates that are linked in, by the lists of `deny.toml`.
//!
//! What is read here is read by cargo-deny in the same way, so that both give one answer: `licenses.allow`,
//! `licenses.exceptions`, `bans.skip` and `bans.deny`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Table;

use crate::run::{Failed, Repo, Result};

/// Checks every crate of `Cargo.lock`.
pub(crate) fn check(repo: &Repo) -> Result {
    let path = repo.path("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(Failed::to(format!("read {}", path.display())))?;
    let rules = Rules::parse(&text)?;
    let crates = crates(&repo.metadata(&[])?);
    let findings = rules.findings(&crates);
    if findings.is_empty() {
        println!("{} crates, {} of them there twice for a stated reason", crates.len(), rules.skip.len());
        return Ok(());
    }
    for finding in &findings {
        eprintln!("  {finding}");
    }
    Err(Failed::Step(format!(
        "{} findings in the crates that are linked in; the lists are in deny.toml",
        findings.len()
    )))
}

/// A crate of the lock file that comes from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Crate {
    name: String,
    version: String,
    licence: Option<String>,
}

/// A crate by name, and by the beginning of its version.
#[derive(Debug, PartialEq, Eq)]
struct Spec {
    name: String,
    version: Option<String>,
}

/// The lists of `deny.toml`.
#[derive(Debug, Default)]
struct Rules {
    allow: BTreeSet<String>,
    exceptions: BTreeMap<String, BTreeSet<String>>,
    skip: Vec<Spec>,
    deny: Vec<Spec>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let table: Table = text.parse().map_err(Failed::to("read deny.toml"))?;
        let list = |section: &str, key: &str| {
            let values = table.get(section).and_then(|s| s.get(key)).and_then(toml::Value::as_array);
            values.cloned().ok_or_else(|| Failed::Step(format!("deny.toml has no list `{section}.{key}`")))
        };
        let mut rules = Self { allow: texts(&list("licenses", "allow")?), ..Self::default() };
        for exception in list("licenses", "exceptions")? {
            let spec = Spec::parse(&exception)?;
            let allow = exception.get("allow").and_then(toml::Value::as_array);
            rules.exceptions.insert(spec.name, texts(allow.unwrap_or(&Vec::new())));
        }
        rules.skip = list("bans", "skip")?.iter().map(Spec::parse).collect::<Result<_>>()?;
        rules.deny = list("bans", "deny")?.iter().map(Spec::parse).collect::<Result<_>>()?;
        Ok(rules)
    }

    fn findings(&self, crates: &[Crate]) -> Vec<String> {
        let mut findings = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&Crate>> = BTreeMap::new();
        for one in crates {
            versions.entry(&one.name).or_default().push(one);
            findings.extend(self.licence_finding(one));
            if self.deny.iter().any(|spec| spec.takes(one)) {
                findings.push(format!("{} {} is on the list bans.deny", one.name, one.version));
            }
        }
        for (name, all) in versions.iter().filter(|(_, all)| all.len() > 1) {
            let kept: Vec<&str> =
                all.iter().filter(|one| !self.skip.iter().any(|s| s.takes(one))).map(|one| &*one.version).collect();
            if kept.len() > 1 {
                let kept = kept.join(" and ");
                findings
                    .push(format!("{name} is there in versions {kept}; make them one, or add the reason to bans.skip"));
            }
        }
        for spec in &self.skip {
            let taken = versions.get(&*spec.name).is_some_and(|all| all.len() > 1 && all.iter().any(|o| spec.takes(o)));
            if !taken {
                findings.push(format!("{} on the list bans.skip is not there twice any more; take it off", spec.name));
            }
        }
        findings
    }

    fn licence_finding(&self, one: &Crate) -> Option<String> {
        let Crate { name, version, licence } = one;
        let Some(licence) = licence else { return Some(format!("{name} {version} states no licence")) };
        let own = self.exceptions.get(name);
        let allowed = |id: &str| self.allow.contains(id) || own.is_some_and(|ids| ids.contains(id));
        match satisfied(licence, &allowed) {
            Some(true) => None,
            Some(false) => {
                Some(format!("{name} {version} is under `{licence}`, which is not on the list licenses.allow"))
            }
            None => Some(format!("{name} {version} states a licence that cannot be read: `{licence}`")),
        }
    }
}

impl Spec {
    /// Reads `{ crate = "NAME" }` or `{ crate = "NAME:^VERSION" }`.
    fn parse(value: &toml::Value) -> Result<Self> {
        let text = value.get("crate").and_then(toml::Value::as_str);
        let text = text.ok_or_else(|| Failed::Step(format!("deny.toml: an entry has no `crate`: {value}")))?;
        match text.split_once(":^") {
            Some((name, version)) => Ok(Self { name: name.to_owned(), version: Some(version.to_owned()) }),
            None if text.contains([':', '@']) => {
                Err(Failed::Step(format!("deny.toml: `{text}` is neither `NAME` nor `NAME:^VERSION`")))
            }
            None => Ok(Self { name: text.to_owned(), version: None }),
        }
    }

    fn takes(&self, one: &Crate) -> bool {
        let version =
            |v: &String| one.version.strip_prefix(&**v).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.name == one.name && self.version.as_ref().is_none_or(version)
    }
}

fn texts(values: &[toml::Value]) -> BTreeSet<String> {
    values.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// The crates that are not the workspace's own.
fn crates(metadata: &Value) -> Vec<Crate> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    packages
        .iter()
        .filter(|package| !package["source"].is_null())
        .map(|package| Crate {
            name: text(&package["name"]).unwrap_or_default(),
            version: text(&package["version"]).unwrap_or_default(),
            licence: text(&package["license"]),
        })
        .collect()
}

/// Whether an SPDX expression can be met by licences that are allowed; `None` if it is not one.
///
/// Grammar: <https://spdx.github.io/spdx-spec/v3.0.1/annexes/spdx-license-expressions/>; AND binds closer than OR. An
/// old `/` is an OR, as crates.io read it.
fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = either(&mut rest, allowed)?;
    rest.is_empty().then_some(met)
}

fn either(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = both(words, allowed)?;
    while let [first, rest @ ..] = *words
        && *first == "OR"
    {
        *words = rest;
        met |= both(words, allowed)?;
    }
    Some(met)
}

fn both(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while let [first, rest @ ..] = *words
        && *first == "AND"
    {
        *words = rest;
        met &= one(words, allowed)?;
    }
    Some(met)
}

fn one(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    match **words {
        ["(", ref rest @ ..] => {
            *words = rest;
            let met = either(words, allowed)?;
            let [")", rest @ ..] = *words else { return None };
            *words = rest;
            Some(met)
        }
        [id, "WITH", exception, ref rest @ ..] => {
            *words = rest;
            Some(allowed(&format!("{id} WITH {exception}")))
        }
        [id, ref rest @ ..] if !matches!(id, "OR" | "AND" | "WITH" | ")") => {
            *words = rest;
            Some(allowed(id))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        exceptions = [{ crate = "only-tests", allow = ["MPL-2.0"] }]
        [bans]
        skip = [{ crate = "sha2:^0.10", reason = "a" }]
        deny = [{ crate = "openssl-sys", reason = "b" }]
    "#;

    fn a(name: &str, version: &str, licence: &str) -> Crate {
        Crate { name: name.to_owned(), version: version.to_owned(), licence: Some(licence.to_owned()) }
    }

    fn findings(crates: &[Crate]) -> Vec<String> {
        let mut all = vec![a("sha2", "0.10.9", "MIT"), a("sha2", "0.11.1", "MIT")];
        all.extend_from_slice(crates);
        Rules::parse(DENY).unwrap().findings(&all)
    }

    #[test]
    fn an_expression_is_met_by_allowed_licences_only() {
        let allowed = |id: &str| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&id);
        for (expression, met) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("GPL-3.0 AND MIT", Some(false)),
            // AND binds closer: MIT alone is enough.
            ("MIT OR GPL-3.0 AND Zlib", Some(true)),
            ("(MIT OR GPL-3.0) AND Zlib", Some(true)),
            ("(MIT OR GPL-3.0) AND BSD-3-Clause", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("(MIT", None),
            ("MIT GPL-3.0", None),
            ("OR", None),
            ("", None),
        ] {
            assert_eq!(satisfied(expression, &allowed), met, "{expression}");
        }
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_found_but_for_the_crate_of_an_exception() {
        assert_eq!(findings(&[a("only-tests", "1.0.0", "MPL-2.0"), a("fine", "1.0.0", "MIT OR GPL-3.0")]), [""; 0]);
        assert_eq!(
            findings(&[a("other", "1.0.0", "MPL-2.0")]),
            ["other 1.0.0 is under `MPL-2.0`, which is not on the list licenses.allow"]
        );
        let silent = Crate { licence: None, ..a("silent", "1.0.0", "") };
        assert_eq!(findings(&[silent]), ["silent 1.0.0 states no licence"]);
    }

    #[test]
    fn a_crate_that_is_there_twice_needs_a_reason_and_a_reason_needs_the_crate() {
        assert_eq!(
            findings(&[a("syn", "2.0.1", "MIT"), a("syn", "3.0.0", "MIT")]),
            ["syn is there in versions 2.0.1 and 3.0.0; make them one, or add the reason to bans.skip"]
        );
        // `0.10` takes 0.10.9 and not 0.100.0.
        assert_eq!(findings(&[a("sha2", "0.100.0", "MIT")]).len(), 1);
        assert_eq!(
            Rules::parse(DENY).unwrap().findings(&[a("sha2", "0.11.1", "MIT")]),
            ["sha2 on the list bans.skip is not there twice any more; take it off"]
        );
    }

    #[test]
    fn a_crate_on_the_list_of_bans_is_found_in_every_version() {
        assert_eq!(findings(&[a("openssl-sys", "0.9.1", "MIT")]), ["openssl-sys 0.9.1 is on the list bans.deny"]);
    }
}
