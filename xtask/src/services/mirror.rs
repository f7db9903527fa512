//! The mirror of Debian that this machine's apt uses, so that no host is named here.

use std::path::{Path, PathBuf};

use crate::run::{Failed, Result};

/// Says which mirror, where apt's sources name none of Debian's (Ubuntu).
pub(super) const VARIABLE: &str = "ONCEBOX_DEBIAN_MIRROR";

/// The mirror that is set, or that of apt.
pub(super) fn mirror() -> Result<String> {
    if let Some(mirror) = std::env::var(VARIABLE).ok().filter(|mirror| !mirror.is_empty()) {
        return Ok(mirror);
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let files = source_files(Path::new("/etc/apt"));
    if codename(&release).is_some() && is_debian(&release) {
        for file in &files {
            let text = std::fs::read_to_string(file).map_err(Failed::to(format!("read {}", file.display())))?;
            if let Some(mirror) = mirror_in(&text, codename(&release).unwrap_or_default()) {
                return Ok(mirror);
            }
        }
    }
    Err(Failed::Step(format!(
        "failed to find a mirror of Debian in the apt sources of this machine ({} files); set {VARIABLE} to the URL of \
         one, the folder that holds `dists` and `pool`",
        files.len()
    )))
}

/// Debian's own files first: other parties' may use the same suite's name.
fn source_files(apt: &Path) -> Vec<PathBuf> {
    let parts = apt.join("sources.list.d");
    let own = [parts.join("debian.sources"), apt.join("sources.list")];
    let mut others: Vec<PathBuf> = std::fs::read_dir(&parts)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "sources" || end == "list") && !own.contains(path))
        .collect();
    others.sort();
    own.into_iter().filter(|path| path.is_file()).chain(others).collect()
}

fn is_debian(release: &str) -> bool {
    release.lines().any(|line| line.trim() == "ID=debian")
}

fn codename(release: &str) -> Option<&str> {
    release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).map(|name| name.trim().trim_matches('"'))
}

/// The first URI of a source with that suite and the component `main`; both formats of apt are understood.
fn mirror_in(text: &str, suite: &str) -> Option<String> {
    one_line(text, suite).or_else(|| text.split("\n\n").find_map(|stanza| deb822(stanza, suite)))
}

/// `deb [options] URI SUITE COMPONENT...`
fn one_line(text: &str, suite: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.split('#').next()?.trim().strip_prefix("deb ")?.trim_start();
        let line = if line.starts_with('[') { line.split_once(']')?.1 } else { line };
        let mut words = line.split_whitespace();
        let uri = words.next()?;
        let fits = words.next()? == suite && words.any(|component| component == "main");
        (fits && fetches(uri)).then(|| plain(uri))
    })
}

/// A stanza of `Types:`, `URIs:`, `Suites:`, `Components:`.
fn deb822(stanza: &str, suite: &str) -> Option<String> {
    let field = |name: &str| {
        let values = stanza.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
        values.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).next()
    };
    let has = |name: &str, wanted: &str| field(name).is_some_and(|value| value.split_whitespace().any(|v| v == wanted));
    let off = field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    if off || !has("Types", "deb") || !has("Suites", suite) || !has("Components", "main") {
        return None;
    }
    field("URIs")?.split_whitespace().find(|uri| fetches(uri)).map(plain)
}

fn fetches(uri: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| uri.starts_with(scheme))
}

fn plain(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stanza_of_the_release_is_found_and_not_that_of_security() {
        let text = "Types: deb\n# URIs: http://old.example/debian\nURIs: http://security.example/debian-security\n\
                    Suites: bookworm-security\nComponents: main\n\n\
                    Types: deb deb-src\nURIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates\n\
                    Components: main contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n";
        assert_eq!(mirror_in(text, "bookworm").as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(mirror_in(text, "trixie"), None);
    }

    #[test]
    fn a_comment_or_a_disabled_stanza_is_no_source() {
        let text = "Types: deb\nURIs: http://a.example/debian\nSuites: trixie\nComponents: main\nEnabled: no\n";
        assert_eq!(mirror_in(text, "trixie"), None);
        assert_eq!(mirror_in("# deb http://a.example/debian trixie main", "trixie"), None);
    }

    #[test]
    fn lines_with_and_without_options_are_read() {
        let text = "deb cdrom:[Debian 12]/ bookworm main\n\
                    deb-src http://src.example/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian/ bookworm main # ours\n";
        assert_eq!(mirror_in(text, "bookworm").as_deref(), Some("https://mirror.example/debian"));
        assert_eq!(mirror_in("deb http://m.example/d bookworm contrib", "bookworm"), None);
        assert_eq!(
            mirror_in("deb http://m.example/d bookworm main", "bookworm").as_deref(),
            Some("http://m.example/d")
        );
    }

    #[test]
    fn the_release_is_named_by_its_file() {
        let text = "ID=debian\nVERSION_CODENAME=bookworm\n";
        assert!(is_debian(text));
        assert_eq!(codename(text), Some("bookworm"));
        assert!(!is_debian("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"));
    }
}
