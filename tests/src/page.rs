//! Generated pages of the documentation: compared with what the code says, or written from it.

use std::path::{Path, PathBuf};

/// A page under `docs/reference/`.
#[must_use]
pub fn reference_page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(name)
}

/// Compares a page under `docs/reference/` with what it should be; with `ONCEBOX_BLESS` set, as `cargo bless` does,
/// writes it.
///
/// # Panics
/// The page is another, or cannot be written.
#[expect(clippy::expect_used, reason = "a page that cannot be written must be seen")]
pub fn assert_up_to_date(name: &str, page: &str) {
    let path = reference_page(name);
    if std::env::var_os("ONCEBOX_BLESS").is_some() {
        std::fs::write(&path, page).expect("docs/reference can be written to");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/{name} is out of date; `cargo bless` rewrites it");
}
