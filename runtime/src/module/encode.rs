//! From what a compiler leaves to a component.

use wasmparser::Parser;
use wit_component::ComponentEncoder;

use super::ModuleError;

/// Makes a component of a core module that carries bindings; a component stays as it is.
pub(super) fn component(bytes: Vec<u8>) -> Result<Vec<u8>, ModuleError> {
    if Parser::is_component(&bytes) {
        return Ok(bytes);
    }
    if !Parser::is_core_wasm(&bytes) {
        return Err(ModuleError::NotAComponent { found: "no WebAssembly at all" });
    }
    let encoder = ComponentEncoder::default().validate(true).module(&bytes);
    encoder.and_then(|mut encoder| encoder.encode()).map_err(|error| ModuleError::Encode(format!("{error:#}")))
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{EntityType, ImportSection, MemoryType, Module};

    use super::*;

    #[test]
    fn a_core_module_becomes_a_component_and_a_component_stays_as_it_is() {
        let encoded = component(Module::new().finish()).unwrap();
        assert!(Parser::is_component(&encoded));
        assert_eq!(component(encoded.clone()).unwrap(), encoded);
    }

    #[test]
    fn a_core_module_that_imports_what_no_binding_explains_is_refused_by_name() {
        let mut imports = ImportSection::new();
        let memory = MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None };
        imports.import("env", "their_memory", EntityType::Memory(memory));
        let mut module = Module::new();
        module.section(&imports);
        let error = component(module.finish()).unwrap_err();
        assert_eq!(error.code(), "build-encode");
        assert!(error.to_string().contains("their_memory"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_webassembly_are_refused() {
        let error = component(b"#!/bin/sh".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "the file is no WebAssembly at all, not a WebAssembly component");
    }
}
