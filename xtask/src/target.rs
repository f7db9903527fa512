//! What the toolchain must have for guests and checks: added where rustup can, else named.

use std::process::{Command, Stdio};

use crate::run::{Failed, Repo, Result, output};

/// The only Rust target that brings no imports of its own along.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";

/// Makes sure that guests can be built.
pub(crate) fn ensure_wasm(repo: &Repo) -> Result {
    ensure_linker()?;
    let mut ask = Command::new("rustc");
    ask.args(["--print", "target-libdir", "--target", WASM]).current_dir(repo.path(""));
    if std::path::Path::new(output(&mut ask)?.trim()).is_dir() {
        return Ok(());
    }
    println!("the Rust toolchain has no target {WASM}; adding it: rustup target add {WASM}");
    rustup(repo, &["target", "add", WASM]).map_err(|why| {
        Failed::Step(format!(
            "the Rust toolchain cannot build for {WASM} ({why}); install Rust by rustup (https://rustup.rs), or your \
             system's package of that target (Debian: libstd-rust-dev-wasm32, Fedora: rust-std-static-{WASM})"
        ))
    })
}

/// Makes sure that `cargo NAME` is there, a component of the toolchain.
pub(crate) fn ensure_component(repo: &Repo, name: &str, component: &str) -> Result {
    let mut ask = repo.cargo([name, "--version"]);
    if ask.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        return Ok(());
    }
    println!("`cargo {name}` is missing; adding it: rustup component add {component}");
    rustup(repo, &["component", "add", component]).map_err(|why| {
        Failed::Step(format!(
            "`cargo {name}` is missing ({why}); install Rust by rustup (https://rustup.rs), or your system's package of it \
             (Debian: rust-{component} or {component})"
        ))
    })
}

/// SQLite is compiled in and Rust links by the system's C compiler.
fn ensure_linker() -> Result {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let program = words.next().unwrap_or("cc");
    let asked = Command::new(program).args(words).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if asked.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err(Failed::Step(format!(
            "there is no C compiler (`{compiler}`); install one (Debian: gcc and libc6-dev, Fedora: gcc, macOS: \
             xcode-select --install)"
        )))
    }
}

fn rustup(repo: &Repo, args: &[&str]) -> std::result::Result<(), String> {
    match Command::new("rustup").args(args).current_dir(repo.path("")).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`rustup {}` ended with {status}", args.join(" "))),
        Err(error) => Err(format!("`rustup` could not be started: {error}")),
    }
}
