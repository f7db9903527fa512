//! Strict JSON with exact numbers.

/// Placeholder.
#[derive(Debug)]
pub struct Json;

impl Json {
    /// Parses.
    ///
    /// # Errors
    /// Not JSON.
    pub fn parse(_bytes: &[u8]) -> Result<Self, String> {
        Ok(Self)
    }
}
