//! Reading `[sources.NAME]` and its envelope.

use super::{Source, SourceKind, keys};
use crate::{document::Table, envelope::EnvelopeRule};

/// Lanes of a tenant in this version.
const LANES: usize = 4;

/// Reads one source; `None` when its kind is refused, and then nothing else of it is complained of.
pub(super) fn read_source(table: &Table<'_>, batch_max: usize) -> Option<Source> {
    let kind: SourceKind = table.value(&keys::SOURCE_KIND)?;
    table.refuse_unknown(&keys::SOURCE);
    Some(Source {
        kind,
        prefetch: table.value(&keys::PREFETCH).map_or(2 * batch_max * LANES, usize::from),
        unrouted: table.value(&keys::UNROUTED),
        envelope: read_envelope(&table.table_or_empty(&keys::ENVELOPE)),
    })
}

fn read_envelope(table: &Table<'_>) -> EnvelopeRule {
    table.refuse_unknown(&keys::ENVELOPE_SECTION);
    if let (None, Some(item)) = (table.item(keys::ENVELOPE_TIME.name), table.item(keys::TIME_FORMAT.name)) {
        item.refuse("would do nothing: time is not given", "leave it out, or say in time where the time comes from");
    }
    envelope_rule(table)
}

/// `envelope.format`, until [`EnvelopeRule`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Auto,
    Structured,
    Binary,
    Raw,
}

/// `envelope.time_format`, until [`EnvelopeRule`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeForm {
    Rfc3339,
    UnixS,
    UnixMs,
}

/// TO BE WIRED at the merge with `envelope.rs`: the texts are read and checked for their length, and not yet kept.
fn envelope_rule(table: &Table<'_>) -> EnvelopeRule {
    let _ = table.value(&keys::FORMAT);
    let _ = table.value(&keys::TIME_FORMAT);
    for key in [&keys::ENVELOPE_EVENT_TYPE, &keys::ENVELOPE_ID, &keys::ENVELOPE_TIME] {
        let _ = table.value(key);
    }
    EnvelopeRule::default()
}
