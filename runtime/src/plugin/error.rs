//! Why a module is not taken in: what, where, and how to mend it.

use std::path::PathBuf;

use oncebox_core::text::TextErrors;
use thiserror::Error;

use crate::code::codes;

/// A module that is refused, or an engine that cannot be made. The version that serves goes on serving.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PluginError {
    /// Nothing was handed over.
    #[error("the module is empty (0 bytes): upload the file that `oncebox build` wrote")]
    Empty,
    /// Over the operator's ceiling.
    #[error("the module has {bytes} bytes, host.limits.module_bytes_max is {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The ceiling.
        limit: u64,
    },
    /// The text format.
    #[error("this is WebAssembly text, not a binary component: run `oncebox build`")]
    WatText,
    /// A core module.
    #[error("this is a core module, not a component: run `oncebox build`")]
    CoreModule,
    /// Native code of a compiler's cache.
    #[error("this is compiled native code: only a WebAssembly component is taken, the host compiles it itself")]
    Precompiled,
    /// No WebAssembly at all.
    #[error("this is no WebAssembly: the file begins with `{start}`, a component with `\\0asm`")]
    NotWasm {
        /// Its first bytes, escaped.
        start: String,
    },
    /// Truncated or not valid.
    #[error("the component is truncated or not valid: {reason}")]
    Malformed {
        /// What the parser says, with the offset.
        reason: String,
    },
    /// Beyond a static cap.
    #[error("the component has {measured} {what}, the limit is {limit}: leave out what the handler does not use")]
    TooComplex {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        measured: u64,
        /// How many may be.
        limit: u64,
    },
    /// Not made by `oncebox build`.
    #[error("custom section `oncebox:manifest` is missing: run `oncebox build`, which packs handler.toml")]
    ManifestMissing,
    /// Not understood.
    #[error("the packed manifest is refused: mend handler.toml and run `oncebox build`\n{0}")]
    ManifestInvalid(TextErrors),
    /// Something that a plugin is not given.
    #[error("the component imports `{name}`: {hint}")]
    UnknownImport {
        /// The import's name.
        name: String,
        /// How to do without it.
        hint: &'static str,
    },
    /// No handler in it.
    #[error("the component does not export `{wanted}` ({found}): build it for world `handler` of {wanted}")]
    MissingExport {
        /// The export that is looked up.
        wanted: &'static str,
        /// What is exported instead.
        found: String,
    },
    /// Built for another version of the contract.
    #[error("the component and oncebox:handler@1.0.0 of this host do not agree: {chain}")]
    VersionSkew {
        /// The whole chain of causes.
        chain: String,
    },
    /// Would never find room.
    #[error("the component needs {measured} {what}, {setting} is {limit}")]
    DoesNotFit {
        /// What it needs.
        what: &'static str,
        /// How much of it.
        measured: u64,
        /// How much there is.
        limit: u64,
        /// The setting, or the name of a fixed limit.
        setting: &'static str,
    },
    /// The compiler said no.
    #[error("the module does not compile: {reason}")]
    CompileFailed {
        /// What the compiler wrote.
        reason: String,
    },
    /// The compiler took too long.
    #[error(
        "the module is not compiled within {seconds} s: it is built to be slow to compile, or the host is too busy"
    )]
    CompileTimeout {
        /// The limit.
        seconds: u64,
    },
    /// The compiler's process did not start or broke.
    #[error("the compiler {program} cannot be run: {source}")]
    CompilerAway {
        /// The executable.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The compiled artefact is refused by the engine that is to run it.
    #[error("the compiled module cannot be loaded: {chain}")]
    Unloadable {
        /// The whole chain of causes.
        chain: String,
    },
    /// An instance cannot be made.
    #[error("the dry run of the module failed: {reason}")]
    DryRun {
        /// The class and the message of the failure.
        reason: String,
    },
    /// The engine itself cannot be made.
    #[error("the WebAssembly engine cannot be made (host.limits.instances_max, memory_bytes_max): {chain}")]
    Engine {
        /// The whole chain of causes.
        chain: String,
    },
}

codes! { PluginError {
    Empty "module-empty" Refused
        "the file has no bytes"
        "hand over the file that `oncebox build` wrote"
    TooLarge "module-too-large" Refused
        "the module is over host.limits.module_bytes_max"
        "leave out what it does not use, or raise the limit"
    WatText "module-is-text" Refused
        "the file is WebAssembly text"
        "run `oncebox build`"
    CoreModule "module-is-core" Refused
        "the file is a core module, not a component"
        "run `oncebox build`"
    Precompiled "module-is-native" Refused
        "the file is compiled native code"
        "hand over the component; the host compiles it itself"
    NotWasm "module-not-wasm" Refused
        "the file is no WebAssembly"
        "hand over the file that `oncebox build` wrote"
    Malformed "module-malformed" Refused
        "the component is truncated or not valid"
        "build it again, and copy it whole"
    TooComplex "module-too-complex" Refused
        "the component is beyond a static limit of functions, instances or nesting"
        "leave out what the handler does not use"
    ManifestMissing "manifest-missing" Refused
        "the component has no section oncebox:manifest"
        "run `oncebox build`, which packs handler.toml"
    ManifestInvalid "manifest-invalid" Refused
        "the manifest is wrong, or of a newer contract"
        "mend handler.toml where the message points, and run `oncebox build`"
    UnknownImport "import-unknown" Refused
        "the component needs something that a plugin is not given, such as a network or files"
        "do without it; the message says how"
    MissingExport "export-missing" Refused
        "the component exports no handler"
        "build it for world `handler` of oncebox:handler"
    VersionSkew "contract-skew" Refused
        "the component was built for another version of the contract"
        "build it against the contract of this oncebox, or use a newer oncebox"
    DoesNotFit "module-does-not-fit" Refused
        "the component needs more memory or tables at start than an instance may have"
        "make it smaller, or raise the setting that the message names"
    CompileFailed "compile-failed" Refused
        "the compiler refuses the component"
        "build it again; the message has the compiler's words"
    CompileTimeout "compile-timeout" Refused
        "the component did not compile in time"
        "make it smaller, or try again when the machine is less busy"
    CompilerAway "compiler-away" Away
        "oncebox could not start itself as the compiler"
        "see that its executable is still in place and may be run"
    Unloadable "module-unloadable" Refused
        "the compiled module cannot be loaded"
        "deploy again; if it stays so, report it with the message"
    DryRun "dry-run-failed" Refused
        "an instance of the module cannot be made"
        "mend what the module does when it starts; the message has the trap"
    Engine "engine" Config
        "the sandbox cannot be made with these limits"
        "lower host.limits.instances_max or memory_bytes_max"
} }
