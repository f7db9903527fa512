//! Components made from core modules in text form, without any toolchain.

use std::path::{Path, PathBuf};

use wasm_encoder::Encode as _;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Stands for the text of `plugins/hostile/prelude.wat`.
const PRELUDE_MARK: &str = ";; @prelude";

/// A component of world `handler` from a core module and a manifest.
///
/// The module exports `oncebox:handler/guest@1.0.0#handle`, `memory` and `cabi_realloc`; a line `;; @prelude` gives it
/// the last two.
///
/// # Panics
/// The text is not a module, or does not fit the contract.
#[must_use]
pub fn wat_component(core_wat: &str, manifest_toml: &str) -> Vec<u8> {
    wat_component_of_version("1.0.0", core_wat, manifest_toml)
}

/// The same, as if the contract of today had been released with another version.
///
/// # Panics
/// As [`wat_component`].
#[must_use]
#[expect(clippy::expect_used, reason = "a test's own source is wrong, and the test must say so")]
pub fn wat_component_of_version(version: &str, core_wat: &str, manifest_toml: &str) -> Vec<u8> {
    let as_version = |text: String| text.replace("@1.0.0", &format!("@{version}"));
    let prelude = std::fs::read_to_string(root().join("plugins/hostile/prelude.wat")).expect("the prelude is there");
    let text = as_version(core_wat.replace(PRELUDE_MARK, &prelude));
    let mut core = wat::parse_str(text).expect("the text is a core module");
    let path = root().join("wit/handler-v1/handler.wit");
    let contract = as_version(std::fs::read_to_string(&path).expect("the contract is there"));
    let mut resolve = Resolve::default();
    let package = resolve.push_str(&path, &contract).expect("the contract is valid WIT");
    let world = resolve.select_world(&[package], Some("handler")).expect("the contract has world `handler`");
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).expect("the metadata fits in");
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&core)
        .expect("the module fits the contract")
        .encode()
        .expect("the module becomes a component");
    with_manifest(component, manifest_toml)
}

/// The component with the manifest as custom section `oncebox:manifest`.
#[must_use]
pub fn with_manifest(mut component: Vec<u8>, manifest_toml: &str) -> Vec<u8> {
    let section =
        wasm_encoder::CustomSection { name: "oncebox:manifest".into(), data: manifest_toml.as_bytes().into() };
    component.push(0);
    section.encode(&mut component);
    component
}

/// The text of a module under `plugins/`, e.g. `hostile/loop`.
///
/// # Panics
/// There is none.
#[must_use]
#[expect(clippy::expect_used, reason = "a test names a file that is not there, and must say so")]
pub fn source(name: &str) -> String {
    let path = root().join("plugins").join(name).with_extension("wat");
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display())).expect("the source is there")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
