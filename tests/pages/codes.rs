//! The list of failure codes against the source that gives them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use oncebox_core::{failure::Class, failure_code::FAILURE_CODES};

/// The Rust sources of the host and of the decisions, without their tests' own modules and without the list itself.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
    let (mut folders, mut sources) = (vec![root.join("src"), root.join("core/src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("failure_code.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
                sources.push((path, own));
            }
        }
    }
    sources
}

#[test]
fn every_listed_failure_code_is_given_somewhere_in_the_source() {
    let sources = sources();
    let missing: Vec<_> = FAILURE_CODES
        .iter()
        .map(|code| code.name)
        .filter(|name| !sources.iter().any(|(_, text)| text.contains(&format!("\"{name}\""))))
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_failure_code_that_the_source_gives_is_listed() {
    let listed: BTreeSet<&str> = FAILURE_CODES.iter().map(|code| code.name).collect();
    let (mut found, mut missing) = (0, Vec::new());
    for (path, text) in sources() {
        for call in ["Breach::quota(", "Breach::abi(", "Breach::infrastructure(", "Failure::new("] {
            for rest in text.split(call).skip(1) {
                let Some(code) = literal(rest) else { continue };
                found += 1;
                if !listed.contains(code) {
                    missing.push(format!("{}: {code}", path.display()));
                }
            }
        }
    }
    assert_eq!(missing, [""; 0], "not in failure_code.rs");
    assert!(found >= 30, "the calls are written another way now, and this test must follow: {found}");
}

/// The first text literal among a call's arguments, where it stands before the message.
fn literal(arguments: &str) -> Option<&str> {
    let (before, rest) = arguments.split_once('"')?;
    let is_first = before.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || ":,".contains(c));
    let (literal, _) = rest.split_once('"')?;
    is_first.then_some(literal)
}

#[test]
fn every_class_that_the_host_gives_a_code_has_one_listed() {
    let listed: BTreeSet<Class> = FAILURE_CODES.iter().map(|code| code.class).collect();
    // What the plugin itself says has the plugin's own codes.
    let guests = BTreeSet::from([Class::GuestReject, Class::MismatchReject]);
    let missing: Vec<_> = Class::ALL.into_iter().filter(|c| !listed.contains(c) && !guests.contains(c)).collect();
    assert_eq!(missing, []);
}
