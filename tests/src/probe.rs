//! Plugins for tests, built from `plugins/` as their authors build them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::{fs, path::Path, process::Command, sync::OnceLock};

use crate::{host::binary, wat::with_manifest};

/// The packed probe `ledger`, version 1.
#[must_use]
pub fn ledger() -> &'static [u8] {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| built("probes/ledger"))
}

/// The probe `ledger` in another version, which says so in what it writes.
///
/// # Panics
/// Its manifest is another one.
#[must_use]
pub fn ledger_of_version(number: u32) -> Vec<u8> {
    let module = with_change(ledger(), "version = \"1.0.0\"", &format!("version = \"{number}.0.0\""));
    with_change(&module, "VALUES (?, ?, ?, ?, 1)", &format!("VALUES (?, ?, ?, ?, {number})"))
}

/// A plugin of `plugins/`, packed.
///
/// # Panics
/// It cannot be built.
#[must_use]
pub fn built(name: &str) -> Vec<u8> {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("module.wasm");
    let mut build = Command::new(binary());
    build.arg("build").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(name));
    let built = build.arg("--out").arg(&path).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    fs::read(path).unwrap()
}

/// The same module with something else in its manifest.
///
/// # Panics
/// The manifest does not have it.
#[must_use]
pub fn with_change(module: &[u8], from: &str, to: &str) -> Vec<u8> {
    let manifest = oncebox::module::manifest_section(module).unwrap().unwrap();
    assert!(manifest.contains(from), "no {from} in\n{manifest}");
    let own = with_manifest(Vec::new(), &manifest).len();
    with_manifest(module[..module.len() - own].to_vec(), &manifest.replace(from, to))
}
