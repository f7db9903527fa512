//! Running the compilers of plugins.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::ModuleError;

/// The only Rust target that brings no imports of its own along.
const TARGET: &str = "wasm32-unknown-unknown";

/// How a Rust plugin is compiled, whatever its own profile says: small, one unit, panics trap, and the name section kept,
/// so that a trap's stack names functions.
const PROFILE: &[&str] = &[
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.panic=\"abort\"",
    "profile.release.debug=false",
    "profile.release.strip=\"debuginfo\"",
];

/// The memory that a module has for its heap from the start: an instance lives for one attempt, and growing its memory is
/// two system calls of the host.
const INITIAL_HEAP: &str = "-Clink-arg=--initial-heap=262144";

/// Builds a Rust crate; returns the file that cargo says it made.
pub(super) async fn cargo(dir: &Path) -> Result<PathBuf, ModuleError> {
    ensure_target(dir).await?;
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    command.args(["--config", &rustflags(env::var_os("CARGO_HOME"), env::var_os("HOME"))]);
    let messages = run(&mut command, dir, "cargo build").await?;
    let manifest = dir.join("Cargo.toml");
    let own = manifest.canonicalize().unwrap_or_else(|_| manifest.clone());
    messages.lines().filter_map(|line| wasm_file(line, &own)).next_back().ok_or(ModuleError::NoLibrary { manifest })
}

/// The compiler's flags, as a setting of cargo's. Panic messages name `/cargo` in place of the builder's own folder, so
/// that the same sources have the same digest whoever builds them.
fn rustflags(cargo_home: Option<OsString>, home: Option<OsString>) -> String {
    let folder = cargo_home.map(PathBuf::from).or_else(|| Some(Path::new(&home?).join(".cargo")));
    let mapped = folder.and_then(|folder| Some(format!("--remap-path-prefix={}=/cargo", folder.to_str()?)));
    let flags: Vec<_> = mapped.into_iter().chain([INITIAL_HEAP.to_owned()]).collect();
    format!("target.{TARGET}.rustflags={}", toml::Value::from(flags))
}

/// Runs the manifest's own command through the shell; what it leaves where is the manifest's word.
pub(super) async fn shell(dir: &Path, line: &str) -> Result<(), ModuleError> {
    run(Command::new("sh").args(["-c", line]), dir, line).await.map(drop)
}

/// The WebAssembly file that a message of cargo's speaks of, if it is about the crate of that Cargo.toml.
fn wasm_file(message: &str, manifest: &Path) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message.get("reason")? != "compiler-artifact" || Path::new(message.get("manifest_path")?.as_str()?) != manifest {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter();
    files.filter_map(|file| file.as_str()).map(PathBuf::from).find(|file| file.extension().is_some_and(|e| e == "wasm"))
}

/// Adds the target by rustup where the toolchain does not have it.
async fn ensure_target(dir: &Path) -> Result<(), ModuleError> {
    let mut ask = Command::new("rustc");
    ask.args(["--print", "target-libdir", "--target", TARGET]);
    let libraries = run(&mut ask, dir, "rustc --print target-libdir").await?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    tracing::info!(target = TARGET, "the Rust toolchain has no such target; adding it by rustup");
    let added =
        Command::new("rustup").args(["target", "add", TARGET]).current_dir(dir).stdin(Stdio::null()).output().await;
    let why = match added {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ModuleError::TargetMissing { dir: dir.to_owned(), target: TARGET, why })
}

/// Runs a command to its end; its standard error is ours, its standard output is returned.
async fn run(command: &mut Command, dir: &Path, shown: &str) -> Result<String, ModuleError> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let command = command.current_dir(dir).stdin(Stdio::null()).stderr(Stdio::inherit()).stdout(Stdio::piped());
    let output = command.kill_on_drop(true).output().await.map_err(|source| ModuleError::Start { program, source })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(ModuleError::Command { command: shown.to_owned(), dir: dir.to_owned(), status: output.status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_cargos_messages_only_the_crates_own_wasm_file_counts() {
        let message = |manifest: &str, file: &str| {
            format!(r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","filenames":["/t/a.d","{file}"]}}"#)
        };
        let own = Path::new("/p/Cargo.toml");
        assert_eq!(wasm_file(&message("/p/Cargo.toml", "/t/p.wasm"), own), Some("/t/p.wasm".into()));
        assert_eq!(wasm_file(&message("/p/Cargo.toml", "/t/p.rlib"), own), None);
        assert_eq!(wasm_file(&message("/q/Cargo.toml", "/t/q.wasm"), own), None);
        assert_eq!(wasm_file(r#"{"reason":"build-finished","success":true}"#, own), None);
        assert_eq!(wasm_file("warning: not json", own), None);
    }

    #[test]
    fn the_builders_own_folder_is_mapped_away_whatever_its_name() {
        let flags = |cargo: Option<&str>, home: Option<&str>| rustflags(cargo.map(Into::into), home.map(Into::into));
        let expected = |mapped: &str| {
            format!("target.wasm32-unknown-unknown.rustflags=[{mapped}\"-Clink-arg=--initial-heap=262144\"]")
        };
        let mapped = |folder: &str| expected(&format!("\"--remap-path-prefix={folder}=/cargo\", "));
        assert_eq!(flags(Some("/opt/cargo"), Some("/home/ann")), mapped("/opt/cargo"));
        assert_eq!(flags(None, Some("/home/ann")), mapped("/home/ann/.cargo"));
        assert_eq!(flags(None, None), expected(""));
    }

    #[tokio::test]
    async fn a_command_that_fails_says_which_and_where() {
        let error = shell(Path::new("/"), "exit 3").await.unwrap_err();
        assert_eq!(error.to_string(), "`exit 3` in / ended with exit status: 3; what it printed above says why");
    }
}
