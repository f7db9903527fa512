//! What can go wrong between a plugin's folder and a packed module.

use std::{io, path::PathBuf};

use oncebox_core::text::TextErrors;

use crate::code::codes;

/// A module that could not be made or read: what, where, how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// A file could not be read or written.
    #[error("failed to {action} {path}: {source}", path = path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The manifest is wrong.
    #[error("the manifest is wrong: mend handler.toml and run `oncebox build`\n{0}")]
    Manifest(TextErrors),
    /// A program that the build needs could not be started.
    #[error("failed to start `{program}`: {source}; install it, or put it on PATH")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The toolchain has no standard library for components, and rustup could not add it.
    #[error(
        "the Rust toolchain of {dir} has no target {target}, and `rustup target add {target}` failed ({why}); \
         install the target with the toolchain's own package manager", dir = dir.display()
    )]
    TargetMissing {
        /// The plugin's folder, which may choose a toolchain of its own.
        dir: PathBuf,
        /// The target.
        target: &'static str,
        /// What rustup said.
        why: String,
    },
    /// The compiler or the manifest's own command failed; its output went to standard error.
    #[error("`{command}` in {dir} ended with {status}; what it printed above says why", dir = dir.display())]
    Command {
        /// The command.
        command: String,
        /// The folder that it ran in.
        dir: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// cargo built a crate that is no dynamic library.
    #[error("cargo made no WebAssembly file for {manifest}; give it [lib] crate-type = [\"cdylib\"]", manifest = manifest.display())]
    NoLibrary {
        /// The crate's Cargo.toml.
        manifest: PathBuf,
    },
    /// A core module could not be made a component.
    #[error(
        "failed to make a component of the core module: {0}; it must be built with bindings for world `handler` of \
         oncebox:handler (Rust: `oncebox_sdk::export!`), and may import nothing else"
    )]
    Encode(String),
    /// The bytes are not a WebAssembly component.
    #[error("the file is {found}, not a WebAssembly component")]
    NotAComponent {
        /// What it is instead.
        found: &'static str,
    },
    /// The bytes begin like a component and are broken further on.
    #[error("the component is malformed at byte {offset}: {message}; build it again")]
    Malformed {
        /// Where.
        offset: usize,
        /// Why.
        message: String,
    },
    /// The component carries no manifest.
    #[error("the component has no section `{section}`; pack it with `oncebox build`", section = super::MANIFEST_SECTION)]
    NoManifest,
    /// The component carries several manifests, and which one counts would be anybody's guess.
    #[error(
        "the component has {count} sections `{section}` and may have one; pack it with `oncebox build`",
        section = super::MANIFEST_SECTION
    )]
    ManyManifests {
        /// How many.
        count: usize,
    },
    /// The packed manifest is not text.
    #[error(
        "section `{section}` is not UTF-8 from byte {valid_up_to} on; pack it with `oncebox build`",
        section = super::MANIFEST_SECTION
    )]
    ManifestNotText {
        /// Bytes that are text.
        valid_up_to: usize,
    },
}

codes! { ModuleError {
    File "plugin-file" NotFound
        "a file of the plugin's folder cannot be read, or the module cannot be written"
        "name the folder with handler.toml, and an --out that can be written"
    Manifest "manifest-invalid" Refused
        "the manifest is wrong, or of a newer contract"
        "mend handler.toml where the message points, and run `oncebox build`"
    Start "build-program-missing" Away
        "a program that the build needs cannot be started"
        "install it, or put it on PATH"
    TargetMissing "build-target-missing" Away
        "the Rust toolchain cannot build WebAssembly"
        "run `rustup target add wasm32-unknown-unknown`, or use the package manager of the toolchain"
    Command "build-failed" Refused
        "the compiler, or the manifest's own command, failed"
        "mend what it printed"
    NoLibrary "build-no-library" Refused
        "cargo built a crate that is no dynamic library"
        "give it [lib] crate-type = [\"cdylib\"]"
    Encode "build-encode" Refused
        "the core module cannot be made a component"
        "build it with bindings for world `handler`, and no other imports"
    NotAComponent "build-not-a-component" Refused
        "what the build made is no WebAssembly component"
        "let [build] component name the file that the command makes"
    Malformed "module-malformed" Refused
        "the component is truncated or not valid"
        "build it again, and copy it whole"
    NoManifest "manifest-missing" Refused
        "the component has no section oncebox:manifest"
        "run `oncebox build`, which packs handler.toml"
    ManyManifests "manifest-many" Refused
        "the component has several sections oncebox:manifest"
        "run `oncebox build`, which packs one"
    ManifestNotText "manifest-not-text" Refused
        "the section oncebox:manifest is not UTF-8"
        "run `oncebox build`, which packs handler.toml"
} }
