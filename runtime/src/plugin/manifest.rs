//! Reads the manifest that `oncebox build` packed into a component.

use oncebox_core::{
    manifest::Manifest,
    text::{TextError, TextErrors},
};

use super::PluginError;

/// What errors call the packed text.
const NAME: &str = "oncebox:manifest";

/// Reads the bytes of custom section `oncebox:manifest`.
pub(super) fn read(section: &[u8]) -> Result<Manifest, PluginError> {
    let text = std::str::from_utf8(section).map_err(|error| {
        let error = TextError::of_file(NAME, format!("is not UTF-8 from byte {} on", error.valid_up_to()));
        PluginError::ManifestInvalid(TextErrors::from(error))
    })?;
    Manifest::parse(text, NAME).map_err(PluginError::ManifestInvalid)
}
