//! The id of an outgoing event, until the core's own is merged.

use sha2::{Digest, Sha256};

/// The id of the event at `position`, the same whenever the attempt is repeated.
pub(super) fn outgoing_event_id(
    tenant: &str,
    handler: &str,
    business_key: &[u8],
    generation: u32,
    position: u32,
) -> String {
    let mut hash = Sha256::new();
    let (generation, position) = (generation.to_be_bytes(), position.to_be_bytes());
    for field in [tenant.as_bytes(), handler.as_bytes(), business_key, &generation, &position] {
        hash.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(field);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
