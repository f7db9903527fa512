//! Finding and reading the manifest of the crate that is being compiled.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use oncebox_core::manifest::Manifest;

/// `handler.toml` beside the Cargo.toml of the crate that is being compiled.
pub(crate) fn manifest_file() -> Result<PathBuf, String> {
    let dir = env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set: build with cargo")?;
    let file = Path::new(&dir).join("handler.toml");
    if file.is_file() { Ok(file) } else { Err(format!("there is no manifest at {}", file.display())) }
}

/// The manifest, checked as `oncebox build` and the host check it.
pub(crate) fn manifest(file: &Path) -> Result<Manifest, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("failed to read {}: {error}", file.display()))?;
    Manifest::parse(&text, &file.display().to_string()).map_err(|errors| format!("the manifest is wrong\n{errors}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_manifest_is_refused_with_its_file_and_line() {
        let file = env::temp_dir().join(format!("oncebox-sdk-macros-{}.toml", std::process::id()));
        fs::write(&file, "name = \"a\"\nverzion = \"1.0.0\"\n").unwrap();
        let message = manifest(&file).unwrap_err();
        fs::remove_file(&file).unwrap();
        assert!(message.contains(&format!("{}:2:1", file.display())), "{message}");
        assert!(message.contains("verzion"), "{message}");
    }
}
