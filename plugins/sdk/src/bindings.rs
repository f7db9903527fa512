//! The contract as wit-bindgen renders it; the only unsafe code of the SDK is in here. Use what the crate's root
//! offers instead.
#![expect(missing_docs, reason = "generated from wit/handler-v1/handler.wit")]

wit_bindgen::generate!({
    path: "../../wit/handler-v1",
    world: "handler",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "__export_component",
    default_bindings_module: "oncebox_sdk::bindings",
});
