//! `oncebox build`: from a plugin's folder to a packed module.

use std::{
    io,
    path::{Path, PathBuf},
};

use oncebox_core::{ids::ModuleDigest, manifest::Manifest};
use tokio::fs;

use super::{ModuleError, artifact, encode, pack};

/// A module that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The handler's own name.
    pub name: String,
    /// The version, for people.
    pub version: String,
    /// Where the packed module is.
    pub path: PathBuf,
    /// Its identity.
    pub digest: ModuleDigest,
    /// Its size in bytes.
    pub bytes: usize,
}

/// Builds the plugin whose `handler.toml` is in `dir`, and packs it into `out` (`dir/NAME.wasm` when not given).
///
/// Rust is built by cargo, any other language by the manifest's own command; a core module becomes a component. What the
/// compilers print goes to standard error. `out` is replaced as a whole, or left alone when anything fails.
///
/// # Errors
/// [`ModuleError`], for the step that failed.
pub async fn build(dir: &Path, out: Option<&Path>) -> Result<Built, ModuleError> {
    let manifest = read_manifest(dir).await?;
    let compiled = compile(dir, &manifest).await?;
    let bytes =
        fs::read(&compiled).await.map_err(|source| ModuleError::File { action: "read", path: compiled, source })?;
    let module = pack::pack(&encode::component(bytes)?, &manifest)?;
    let path = out.map_or_else(|| dir.join(format!("{}.wasm", manifest.name)), Path::to_path_buf);
    replace(&path, &module).await.map_err(|source| ModuleError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    Ok(Built {
        name: manifest.name,
        version: manifest.version,
        path,
        digest: pack::digest(&module),
        bytes: module.len(),
    })
}

async fn read_manifest(dir: &Path) -> Result<Manifest, ModuleError> {
    let path = dir.join("handler.toml");
    match fs::read_to_string(&path).await {
        Ok(text) => Manifest::parse(&text, &path.display().to_string()).map_err(ModuleError::Manifest),
        Err(source) => Err(ModuleError::File { action: "read", path, source }),
    }
}

/// The file that the plugin's compiler leaves: a component, or a core module with bindings.
async fn compile(dir: &Path, manifest: &Manifest) -> Result<PathBuf, ModuleError> {
    match (&manifest.build.command, &manifest.build.component) {
        (Some(command), Some(component)) => {
            artifact::shell(dir, command).await?;
            Ok(dir.join(component))
        }
        // The reader of the manifest lets both or none through, and none for Rust only.
        (None, _) | (_, None) => artifact::cargo(dir).await,
    }
}

/// Writes beside, then renames: whoever reads `path` meanwhile sees the old module or the new one.
async fn replace(path: &Path, module: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, module).await?;
    fs::rename(&beside, path).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(command: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let manifest = format!(
            "name = \"a\"\nversion = \"1.0.0\"\ncontract = \"1.0\"\nkey = \"{{/id}}\"\nfingerprint = \"payload\"\n\
             [build]\nlanguage = \"shell\"\ncommand = '''{command}'''\ncomponent = \"a.component\"\n"
        );
        std::fs::write(dir.path().join("handler.toml"), manifest).unwrap();
        dir
    }

    #[tokio::test]
    async fn another_languages_command_makes_the_component_that_is_packed() {
        let dir = folder(r"printf '\0asm\015\0\001\0' > a.component");
        let built = build(dir.path(), None).await.unwrap();
        assert_eq!((built.name.as_str(), &built.path), ("a", &dir.path().join("a.wasm")));
        let module = std::fs::read(&built.path).unwrap();
        assert_eq!(pack::manifest(&module).unwrap().name, "a");
        assert_eq!((pack::digest(&module), module.len()), (built.digest, built.bytes));
    }

    #[tokio::test]
    async fn a_build_that_fails_leaves_the_module_of_before_alone() {
        let dir = folder("echo not wasm > a.component");
        let out = dir.path().join("a.wasm");
        std::fs::write(&out, b"before").unwrap();
        let error = build(dir.path(), None).await.unwrap_err();
        assert_eq!(error.code(), "build-not-a-component");
        assert_eq!(std::fs::read(&out).unwrap(), b"before");
    }

    #[tokio::test]
    async fn a_folder_without_a_manifest_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = build(dir.path(), None).await.unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("failed to read {}", dir.path().join("handler.toml").display()))
        );
    }
}
