//! What can be said of a module without compiling or running it: that it is a component, small enough, and a handler.
//!
//! Nothing here trusts a count or a length of the file; full validation is the compiler's, in its own process.

use wasmparser::{Encoding, Instance, MemoryType, Parser, Payload};

use super::{
    PluginError,
    contract::{GUEST, PACKAGE},
    engine::{CORE_INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX},
    limiter::TABLE_ELEMENTS_MAX,
    text::{MESSAGE_BYTES_MAX, tamed},
};

/// Version of the static caps; part of the cache's key, so that a raised cap never meets old code.
pub(super) const LIMITS_VERSION: u32 = 1;
/// Name of the custom section that carries the manifest.
const MANIFEST_SECTION: &str = "oncebox:manifest";
/// Bytes of a packed manifest.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// Functions of all core modules; 200,000 empty ones took 7 s and 1 GB to compile.
const FUNCTIONS_MAX: u64 = 100_000;
/// Components and modules inside one another.
const DEPTH_MAX: u64 = 16;
/// Imports and exports of the component itself.
const NAMES_MAX: u64 = 1000;

/// The ceilings that a module is measured against.
pub(super) struct Limits {
    pub(super) module_bytes_max: u64,
    pub(super) memory_bytes_max: u64,
}

#[derive(Default)]
struct Findings<'a> {
    depth: u64,
    depth_max: u64,
    functions: u64,
    core_instances: u64,
    memories: u64,
    memory_bytes: u64,
    tables: u64,
    table_elements: u64,
    imports: Vec<&'a str>,
    exports: Vec<&'a str>,
    manifest: Option<&'a [u8]>,
}

/// Checks a module and gives its manifest section.
pub(super) fn module<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a [u8], PluginError> {
    sniff(bytes, limits.module_bytes_max)?;
    let malformed = |error: wasmparser::BinaryReaderError| PluginError::Malformed { reason: error.to_string() };
    let mut findings = Findings::default();
    for payload in Parser::new(0).parse_all(bytes) {
        findings.note(payload.map_err(malformed)?).map_err(malformed)?;
        findings.check_caps()?;
    }
    findings.check_names()?;
    findings.check_room(limits.memory_bytes_max)?;
    findings.manifest.ok_or(PluginError::ManifestMissing)
}

/// Tells by its first bytes what was handed over in place of a component.
///
/// # Errors
/// [`PluginError`], when it is nothing, too much, or something else.
pub fn sniff(bytes: &[u8], bytes_max: u64) -> Result<(), PluginError> {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size == 0 {
        return Err(PluginError::Empty);
    }
    if size > bytes_max {
        return Err(PluginError::TooLarge { bytes: size, limit: bytes_max });
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(PluginError::Precompiled);
    }
    if bytes.trim_ascii_start().starts_with(b"(") || bytes.trim_ascii_start().starts_with(b";;") {
        return Err(PluginError::WatText);
    }
    if !bytes.starts_with(b"\0asm") {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(16)]).into_owned();
        return Err(PluginError::NotWasm { start: tamed(&start, 64) });
    }
    match Parser::new(0).parse_all(bytes).next() {
        Some(Ok(Payload::Version { encoding: Encoding::Module, .. })) => Err(PluginError::CoreModule),
        // Whatever else is wrong is met again, and named, on the way through the whole file.
        Some(_) | None => Ok(()),
    }
}

impl<'a> Findings<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "wasmparser's enum; only what is counted matters here")]
    fn note(&mut self, payload: Payload<'a>) -> Result<(), wasmparser::BinaryReaderError> {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.depth += 1;
                self.depth_max = self.depth_max.max(self.depth);
            }
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::FunctionSection(section) => self.functions += u64::from(section.count()),
            Payload::InstanceSection(section) => {
                for instance in section {
                    self.core_instances += u64::from(matches!(instance?, Instance::Instantiate { .. }));
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    self.memories += 1;
                    self.memory_bytes = self.memory_bytes.saturating_add(initial_bytes(&memory?));
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    let table = table?;
                    self.tables += 1;
                    self.table_elements = self.table_elements.max(table.ty.initial);
                }
            }
            Payload::ComponentImportSection(section) if self.depth == 0 => {
                for import in section {
                    self.imports.push(import?.name.name);
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 0 => {
                for export in section {
                    self.exports.push(export?.name.name);
                }
            }
            Payload::CustomSection(section) if self.depth == 0 && section.name() == MANIFEST_SECTION => {
                self.manifest = Some(section.data());
            }
            _ => {}
        }
        Ok(())
    }

    fn check_caps(&self) -> Result<(), PluginError> {
        let count = |list: usize| u64::try_from(list).unwrap_or(u64::MAX);
        let caps = [
            ("levels of nesting", self.depth_max, DEPTH_MAX),
            ("functions", self.functions, FUNCTIONS_MAX),
            ("core instances", self.core_instances, CORE_INSTANCES_MAX.into()),
            ("imports", count(self.imports.len()), NAMES_MAX),
            ("exports", count(self.exports.len()), NAMES_MAX),
            ("bytes of manifest", self.manifest.map_or(0, |section| count(section.len())), MANIFEST_BYTES_MAX),
        ];
        match caps.into_iter().find(|(_, measured, limit)| measured > limit) {
            Some((what, measured, limit)) => Err(PluginError::TooComplex { what, measured, limit }),
            None => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), PluginError> {
        // Versions are the linker's to judge: it knows which functions are used.
        if let Some(name) = self.imports.iter().find(|name| !name.starts_with(PACKAGE)) {
            return Err(PluginError::UnknownImport { name: tamed(name, 256), hint: hint(name) });
        }
        if !self.exports.iter().any(|name| is_guest(name)) {
            let found = match self.exports.as_slice() {
                [] => "it exports nothing".to_owned(),
                names => tamed(&format!("it exports {}", names.join(", ")), MESSAGE_BYTES_MAX),
            };
            return Err(PluginError::MissingExport { wanted: GUEST, found });
        }
        Ok(())
    }

    fn check_room(&self, memory_bytes_max: u64) -> Result<(), PluginError> {
        const FIXED: &str = "the fixed limit";
        let elements_max = u64::try_from(TABLE_ELEMENTS_MAX).unwrap_or(u64::MAX);
        let rooms = [
            ("bytes of memory at start", self.memory_bytes, memory_bytes_max, "host.limits.memory_bytes_max"),
            ("memories", self.memories, MEMORIES_MAX.into(), FIXED),
            ("tables", self.tables, TABLES_MAX.into(), FIXED),
            ("elements in one table", self.table_elements, elements_max, FIXED),
        ];
        match rooms.into_iter().find(|(_, measured, limit, _)| measured > limit) {
            Some((what, measured, limit, setting)) => Err(PluginError::DoesNotFit { what, measured, limit, setting }),
            None => Ok(()),
        }
    }
}

fn initial_bytes(memory: &MemoryType) -> u64 {
    memory.initial.saturating_mul(1 << memory.page_size_log2.unwrap_or(16).min(16))
}

/// `oncebox:handler/guest@1.x`: the look-up is by semantic version.
fn is_guest(name: &str) -> bool {
    name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix("guest@1.")).is_some()
}

fn hint(name: &str) -> &'static str {
    if name.starts_with("wasi:sockets") {
        "a plugin has no network; emit an event to a destination instead"
    } else if name.starts_with("wasi:http") {
        "a plugin makes no HTTP calls; emit an event to an HTTP destination instead"
    } else if name.starts_with("wasi:filesystem") {
        "a plugin has no files; declare [config] values or queries instead"
    } else if name.starts_with("wasi:") {
        "no WASI is given; build for wasm32-unknown-unknown"
    } else {
        "only interfaces of oncebox:handler are given"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { module_bytes_max: 1000, memory_bytes_max: 65_536 };
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn code(bytes: &[u8]) -> &'static str {
        module(bytes, &LIMITS).map_or_else(|error| error.code(), |_| "taken")
    }

    #[test]
    fn every_wrong_upload_is_refused_by_its_own_name() {
        assert_eq!(code(b""), "module-empty");
        assert_eq!(code(&[0; 1001]), "module-too-large");
        assert_eq!(code(b"  (component)"), "module-is-text");
        assert_eq!(code(b"\0asm\x01\0\0\0"), "module-is-core");
        assert_eq!(code(b"\x7fELF\x02\x01"), "module-is-native");
        assert_eq!(code(b"PK\x03\x04"), "module-not-wasm");
        assert_eq!(code(&COMPONENT[..6]), "module-malformed");
        assert_eq!(code(COMPONENT), "export-missing");
    }

    #[test]
    fn refusals_tell_how_to_mend_them() {
        let error = module(b"\0asm\x01\0\0\0", &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "this is a core module, not a component: run `oncebox build`");
        let error = module(&[0; 1001], &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "the module has 1001 bytes, host.limits.module_bytes_max is 1000");
    }

    #[test]
    fn any_minor_version_of_the_guest_interface_is_looked_up() {
        assert!(is_guest("oncebox:handler/guest@1.0.0"));
        assert!(is_guest("oncebox:handler/guest@1.3.0"));
        assert!(!is_guest("oncebox:handler/guest@2.0.0"));
        assert!(!is_guest("oncebox:handler/guest@10.0.0"));
    }
}
