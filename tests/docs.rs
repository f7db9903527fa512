//! The hand-written pages name what is there: files, tests and each other.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Folders at the root; a span in backticks that begins with one of them and a slash is a path.
const FOLDERS: [&str; 8] = ["docs", "examples", "migrations", "plugins", "runtime", "tests", "wit", "xtask"];

#[test]
fn every_path_in_backticks_exists() {
    let is_path = |span: &&String| {
        let folder = span.split_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| FOLDERS.contains(&folder)) && !span.contains([' ', '*', '<', '…'])
    };
    let mut missing = Vec::new();
    for page in pages() {
        for path in page.spans().iter().filter(is_path).filter(|path| !root().join(path).exists()) {
            missing.push(page.naming(path));
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let mut broken = Vec::new();
    for page in pages() {
        for link in page.links() {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(file) };
            let leads = target.exists() && (heading.is_empty() || Page::read(target).anchors().contains(heading));
            if !leads {
                broken.push(page.naming(&link));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

/// Names of tests are sentences: a span of five words or more joined by `_` is one. Metrics are named like that too, and
/// so are planted faults, and settings of MySQL, which nobody here declares.
#[test]
fn every_test_and_metric_named_in_the_pages_exists() {
    let is_sentence = |span: &&String| {
        let words: Vec<&str> = span.split('_').collect();
        let plain =
            |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let is_of_mysql = span.starts_with("innodb_") || span.starts_with("group_replication_");
        words.len() >= 5 && words.iter().all(plain) && !is_of_mysql
    };
    let (sources, faults) = (sources(), fs::read_to_string(root().join("runtime/src/planted.rs")).unwrap());
    let mut missing = Vec::new();
    for page in pages() {
        for name in page.spans().iter().filter(is_sentence) {
            let declared = if name.starts_with("oncebox_") { format!("\"{name}\"") } else { format!("fn {name}(") };
            if !sources.contains(&declared) && !faults.contains(&format!("\"{name}\"")) {
                missing.push(page.naming(name));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// A test is named as cargo prints it: its target, its modules, its sentence; what a macro makes of it may stand behind.
#[test]
fn every_test_named_with_its_target_is_there() {
    let is_test = |span: &&String| span.contains("::") && span.split("::").any(|part| part.split('_').count() >= 5);
    let (mut named, mut missing) = (0, Vec::new());
    for page in pages() {
        for span in page.spans().iter().filter(is_test) {
            named += 1;
            let (target, path) = span.split_once("::").unwrap();
            let text = sources_below(&root().join("tests").join(folder_of(target)));
            let is_there = |part: &str| {
                ["fn {}(", "mod {};", "mod {} {"].iter().any(|form| text.contains(&form.replacen("{}", part, 1)))
            };
            if text.is_empty() || !path.split("::").all(is_there) {
                missing.push(page.naming(span));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    assert!(named > 50, "only {named} tests are named");
}

/// Every failure of the list names a test, and every number stands once and in order.
#[test]
fn every_listed_failure_names_a_test() {
    let page = fs::read_to_string(root().join("docs/failures.md")).unwrap();
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split(" | ").collect()).collect();
    let rows = rows.iter().filter_map(|row| Some((row[0].strip_prefix("| ")?.parse::<u32>().ok()?, row)));
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 20 && rows.is_sorted_by(|(one, _), (other, _)| one < other), "{rows:?}");
    for (number, row) in rows {
        assert!(row.len() == 4 && row[3].contains("::"), "{number}: {row:?}");
    }
}

/// The folder below `tests` with the sources of a test target: that of its path in the manifest.
fn folder_of(target: &str) -> String {
    let manifest = fs::read_to_string(root().join("tests/Cargo.toml")).unwrap();
    let begin = format!("[[test]]\nname = \"{target}\"\npath = \"");
    let path = manifest.split_once(&begin).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(path, _)| path);
    path.strip_suffix("/main.rs").unwrap_or("no such target").to_owned()
}

struct Page {
    path: PathBuf,
    /// Without fenced code.
    text: String,
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut fenced = false;
        let prose = text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        });
        Self { text: prose.collect::<Vec<_>>().join("\n"), path }
    }

    fn spans(&self) -> Vec<String> {
        self.text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Targets of links within the checkout, code spans left out.
    fn links(&self) -> Vec<String> {
        let prose: String = self.text.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        targets.map(|(link, _)| link.to_owned()).filter(|link| !link.contains("://")).collect()
    }

    /// What a heading is linked by: lower case, spaces as hyphens, nothing else but letters, digits, hyphens.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        let anchor = |heading: &str| {
            let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        };
        headings.map(anchor).collect()
    }

    fn naming(&self, what: &str) -> String {
        let page = self.path.strip_prefix(root()).unwrap_or(&self.path);
        format!("{}: {what}", page.display())
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The pages written by hand: those at the root, in `docs` and beside plugins and examples.
fn pages() -> Vec<Page> {
    let folders = ["", "docs", "docs/decisions", "plugins", "examples"];
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| listed(&root().join(folder))).collect();
    for folder in ["plugins", "examples"] {
        files.extend(listed(&root().join(folder)).iter().flat_map(|folder| listed(folder)));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    assert!(files.len() > 10, "only {} pages found", files.len());
    files.into_iter().map(Page::read).collect()
}

/// All Rust sources, in one text.
fn sources() -> String {
    ["plugins", "runtime", "tests", "xtask"].map(|name| sources_below(&root().join(name))).concat()
}

fn sources_below(folder: &Path) -> String {
    let mut folders = vec![folder.to_owned()];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in listed(&folder) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(&entry).unwrap();
            }
        }
    }
    text
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
