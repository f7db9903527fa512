//! The manifest inside a module: custom section `oncebox:manifest`, readable without running anything.

use oncebox_core::{ids::ModuleDigest, manifest::Manifest};
use sha2::{Digest as _, Sha256};
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{BinaryReader, BinaryReaderError, Parser};

use super::ModuleError;

/// The custom section that holds a module's manifest.
pub const MANIFEST_SECTION: &str = "oncebox:manifest";

/// Bytes of a component before its first section: magic and version.
const HEADER_BYTES: usize = 8;

/// The section id of custom sections, in components as in core modules.
const CUSTOM: u8 = 0;

/// Packs the manifest, without `[build]`, into the component; one that is there already is replaced.
///
/// The same component and manifest give the same bytes, and so the same digest.
///
/// # Errors
/// [`ModuleError::NotAComponent`] or [`ModuleError::Malformed`].
pub fn pack(component: &[u8], manifest: &Manifest) -> Result<Vec<u8>, ModuleError> {
    let text = manifest.packed_text();
    let mut packed = Vec::with_capacity(component.len() + text.len() + MANIFEST_SECTION.len() + HEADER_BYTES);
    let sections = sections(component)?;
    packed.extend_from_slice(&component[..HEADER_BYTES]);
    for section in sections.iter().filter(|section| section.custom_name != Some(MANIFEST_SECTION)) {
        packed.extend_from_slice(section.whole);
    }
    CustomSection { name: MANIFEST_SECTION.into(), data: text.as_bytes().into() }.append_to_component(&mut packed);
    Ok(packed)
}

/// The text of the manifest that a module carries; `None` when it carries none.
///
/// # Errors
/// [`ModuleError::NotAComponent`], [`ModuleError::Malformed`], [`ModuleError::ManyManifests`] or
/// [`ModuleError::ManifestNotText`].
pub fn manifest_section(module: &[u8]) -> Result<Option<String>, ModuleError> {
    let sections = sections(module)?;
    let manifests: Vec<_> = sections.iter().filter(|section| section.custom_name == Some(MANIFEST_SECTION)).collect();
    match manifests.as_slice() {
        [] => Ok(None),
        [only] => match std::str::from_utf8(only.content) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(error) => Err(ModuleError::ManifestNotText { valid_up_to: error.valid_up_to() }),
        },
        many => Err(ModuleError::ManyManifests { count: many.len() }),
    }
}

/// The manifest that a module carries, parsed.
///
/// # Errors
/// As [`manifest_section`]; [`ModuleError::NoManifest`]; [`ModuleError::Manifest`] when this version refuses it.
pub fn manifest(module: &[u8]) -> Result<Manifest, ModuleError> {
    let text = manifest_section(module)?.ok_or(ModuleError::NoManifest)?;
    Manifest::parse(&text, MANIFEST_SECTION).map_err(ModuleError::Manifest)
}

/// The identity of a packed module: the sha256 of the whole file.
#[must_use]
pub fn digest(module: &[u8]) -> ModuleDigest {
    ModuleDigest(Sha256::digest(module).into())
}

/// One section of the component itself; those of the modules and components inside it are content.
struct Section<'a> {
    whole: &'a [u8],
    /// The name of a custom section.
    custom_name: Option<&'a str>,
    /// What follows the name of a custom section; else all of it.
    content: &'a [u8],
}

fn sections(component: &[u8]) -> Result<Vec<Section<'_>>, ModuleError> {
    if !Parser::is_component(component) {
        let found = if Parser::is_core_wasm(component) { "a core module" } else { "no WebAssembly at all" };
        return Err(ModuleError::NotAComponent { found });
    }
    let malformed = |error: BinaryReaderError| ModuleError::Malformed {
        offset: error.offset(),
        message: error.message().to_owned(),
    };
    let mut reader = BinaryReader::new(component, 0);
    let mut sections = Vec::new();
    reader.read_bytes(HEADER_BYTES).map_err(malformed)?;
    while !reader.eof() {
        sections.push(section(component, &mut reader).map_err(malformed)?);
    }
    Ok(sections)
}

fn section<'a>(component: &'a [u8], reader: &mut BinaryReader<'a>) -> Result<Section<'a>, BinaryReaderError> {
    let start = reader.original_position();
    let id = reader.read_u8()?;
    let length = reader.read_var_u32()? as usize;
    let content_at = reader.original_position();
    let content = reader.read_bytes(length)?;
    let whole = &component[start..reader.original_position()];
    if id != CUSTOM {
        return Ok(Section { whole, custom_name: None, content });
    }
    let mut inside = BinaryReader::new(content, content_at);
    let name = inside.read_string()?;
    let rest = &content[inside.current_position()..];
    Ok(Section { whole, custom_name: Some(name), content: rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn some_manifest(version: &str) -> Manifest {
        let text = format!(
            "name = \"a\"\nversion = \"{version}\"\ncontract = \"1.0\"\nkey = \"{{/id}}\"\nfingerprint = \"payload\"\n\
             [build]\nlanguage = \"rust\"\n"
        );
        Manifest::parse(&text, "handler.toml").unwrap()
    }

    #[test]
    fn a_packed_manifest_reads_back_without_how_it_was_built() {
        let packed = pack(EMPTY_COMPONENT, &some_manifest("1.0.0")).unwrap();
        let read = manifest(&packed).unwrap();
        assert_eq!((read.name.as_str(), read.version.as_str(), read.key.as_str()), ("a", "1.0.0", "{/id}"));
        assert_eq!(read.build, oncebox_core::manifest::Build::default());
    }

    #[test]
    fn packing_again_replaces_the_manifest_and_keeps_every_other_section() {
        let mut component = EMPTY_COMPONENT.to_vec();
        CustomSection { name: "notes".into(), data: b"kept"[..].into() }.append_to_component(&mut component);
        let first = pack(&component, &some_manifest("1.0.0")).unwrap();
        let second = pack(&first, &some_manifest("2.0.0")).unwrap();
        assert_eq!(manifest(&second).unwrap().version, "2.0.0");
        assert!(second.starts_with(&component));
        assert_eq!(second, pack(&component, &some_manifest("2.0.0")).unwrap());
        assert_ne!(digest(&first), digest(&second));
    }

    #[test]
    fn a_module_with_no_manifest_or_two_of_them_is_refused() {
        assert!(matches!(manifest(EMPTY_COMPONENT), Err(ModuleError::NoManifest)));
        let mut twice = pack(EMPTY_COMPONENT, &some_manifest("1.0.0")).unwrap();
        let section = twice[HEADER_BYTES..].to_vec();
        twice.extend(section);
        assert!(matches!(manifest(&twice), Err(ModuleError::ManyManifests { count: 2 })));
    }

    #[test]
    fn a_manifest_inside_a_nested_module_does_not_count() {
        let mut inner = wasm_encoder::Module::new();
        inner.section(&CustomSection { name: MANIFEST_SECTION.into(), data: b"name = \"b\""[..].into() });
        let mut component = wasm_encoder::Component::new();
        component.section(&wasm_encoder::ModuleSection(&inner));
        assert_eq!(manifest_section(&component.finish()).unwrap(), None);
    }

    #[test]
    fn bytes_that_are_no_component_or_end_early_are_refused() {
        assert!(matches!(
            manifest_section(b"\0asm\x01\0\0\0"),
            Err(ModuleError::NotAComponent { found: "a core module" })
        ));
        assert!(matches!(manifest_section(b""), Err(ModuleError::NotAComponent { .. })));
        let packed = pack(EMPTY_COMPONENT, &some_manifest("1.0.0")).unwrap();
        for length in HEADER_BYTES + 1..packed.len() {
            let result = manifest_section(&packed[..length]);
            assert!(matches!(result, Err(ModuleError::Malformed { .. })), "{length}: {result:?}");
        }
    }
}
