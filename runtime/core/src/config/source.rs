//! Reading `[sources.NAME]` and its envelope.

use super::{Source, SourceKind, keys};
use crate::{
    document::{Item, Table, form::ENVELOPE_TEMPLATE, shape::Shape},
    envelope::{EnvelopeFormat, EnvelopeRule},
    template::{Template, TemplateUse},
};

/// Lanes of a tenant in this version.
const LANES: usize = 4;

/// Reads one source; `None` when its kind is refused, and then nothing else of it is complained of.
pub(super) fn read_source(table: &Table<'_>, batch_max: usize) -> Option<Source> {
    let kind = match table.value(&keys::SOURCE_KIND)? {
        keys::SourceKindWord::Local => SourceKind::Local,
    };
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
    let format = table.value(&keys::FORMAT);
    let only_cloud_events = match format {
        EnvelopeFormat::Structured | EnvelopeFormat::Binary => true,
        EnvelopeFormat::Auto | EnvelopeFormat::Raw => false,
    };
    for name in [keys::ENVELOPE_EVENT_TYPE.name, keys::ENVELOPE_ID.name] {
        if let (true, Some(item)) = (only_cloud_events, table.item(name)) {
            item.refuse("would do nothing: by format, all messages are CloudEvents", "leave it out, or change format");
        }
    }
    if let (None, Some(item)) = (table.item(keys::ENVELOPE_TIME.name), table.item(keys::TIME_FORMAT.name)) {
        item.refuse("would do nothing: time is not given", "leave it out, or say in time where the time comes from");
    }
    EnvelopeRule {
        format,
        event_type: table.value(&keys::ENVELOPE_EVENT_TYPE),
        id: table.value(&keys::ENVELOPE_ID),
        time: table.value(&keys::ENVELOPE_TIME),
        time_format: table.value(&keys::TIME_FORMAT),
    }
}

/// A template of an envelope's fact that may be left out.
#[derive(Debug)]
pub(super) struct MaybeTemplate;

impl Shape for MaybeTemplate {
    type Value = Option<Template>;

    fn read(&self, item: &Item<'_>) -> Option<Option<Template>> {
        let text = ENVELOPE_TEMPLATE.read(item)?;
        Template::parse(&text, TemplateUse::Envelope).ok().map(Some)
    }

    fn absent(&self) -> Option<Template> {
        None
    }

    fn shown(&self) -> String {
        ENVELOPE_TEMPLATE.shown.to_owned()
    }

    fn absent_shown(&self) -> String {
        "none".to_owned()
    }
}
