//! The reference pages: what the descriptors say, as Markdown.

use std::fmt::Write as _;

use super::key::Section;

/// A page with one table a section.
pub(crate) fn page(title: &str, introduction: &str, sections: &[&Section]) -> String {
    let mut out = format!("# {title}\n\n<!-- generated; `cargo bless` rewrites it -->\n\n{introduction}\n");
    for section in sections {
        let heading = if section.path.is_empty() { "At the top".to_owned() } else { format!("`{}`", section.path) };
        let _ = write!(out, "\n## {heading}\n\n{}\n\n", section.about);
        out.push_str("| key | value | without it | meaning |\n| --- | --- | --- | --- |\n");
        for key in section.keys {
            let cells = [format!("`{}`", key.name()), key.shape(), key.absent(), key.means().to_owned()];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out
}

/// Compares a page under `docs/reference/` with what it should be; with `ONCEBOX_BLESS` set, writes it.
#[cfg(test)]
pub(crate) fn assert_up_to_date(name: &str, page: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("ONCEBOX_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/{name} is out of date; `cargo bless` rewrites it");
}
