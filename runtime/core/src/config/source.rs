//! Reading `[sources.NAME]` and its envelope.

use std::time::Duration;

use super::{Declare, RabbitmqQueue, Source, SourceKind, keys, server::refuse_idle, tenant::known_names};
use crate::{
    document::{
        Item, Table,
        form::{ENVELOPE_TEMPLATE, NAME},
        shape::Shape,
    },
    envelope::{EnvelopeFormat, EnvelopeRule},
    template::{Template, TemplateUse},
    text::quoted,
};

/// Messages in a consumer's hands: AMQP 0-9-1 counts them in 16 bits.
const PREFETCH_MAX: usize = 65_535;

/// Reads one source; `None` when its kind is refused, and then nothing else of it is complained of.
pub(super) fn read_source(
    table: &Table<'_>,
    batch_max: usize,
    lanes: u16,
    connections: &[(String, Table<'_>)],
) -> Option<Source> {
    let kind = table.value(&keys::SOURCE_KIND)?;
    table.refuse_unknown(&keys::SOURCE);
    let kind = match kind {
        keys::SourceKindWord::Local => {
            refuse_idle(table, &keys::RABBITMQ_KEYS, "kind \"local\"", "leave it out");
            SourceKind::Local
        }
        keys::SourceKindWord::Rabbitmq => SourceKind::Rabbitmq(read_queue(table, connections)),
    };
    let prefetch = 2 * batch_max * usize::from(lanes);
    Some(Source {
        kind,
        prefetch: table.value(&keys::PREFETCH).map_or(prefetch.min(PREFETCH_MAX), usize::from),
        unrouted: table.value(&keys::UNROUTED),
        envelope: read_envelope(&table.table_or_empty(&keys::ENVELOPE)),
    })
}

fn read_queue(table: &Table<'_>, connections: &[(String, Table<'_>)]) -> RabbitmqQueue {
    let queue = RabbitmqQueue {
        connection: table.value(&keys::SOURCE_CONNECTION),
        queue: table.value(&keys::SOURCE_QUEUE),
        declare: table.value(&keys::DECLARE),
        cancel_after: Duration::from_millis(table.value(&keys::CANCEL_AFTER_MS)),
    };
    if let Some(item) = table.item(keys::SOURCE_CONNECTION.name)
        && (NAME.check)(&queue.connection).is_ok()
        && !connections.iter().any(|(known, _)| *known == queue.connection)
    {
        let complaint = format!("is {}, and the tenant has no such connection", quoted(&queue.connection));
        item.refuse(complaint, known_names("connections", connections));
    }
    let is_made = match queue.declare {
        Declare::Passive => false,
        Declare::Quorum | Declare::Classic => true,
    };
    if let (true, true, Some(item)) = (is_made, queue.queue.starts_with("amq."), table.item(keys::SOURCE_QUEUE.name)) {
        let complaint =
            format!("is {}, and the broker makes no queue whose name begins with amq.", quoted(&queue.queue));
        item.refuse(complaint, "give it another name, or leave declare out");
    }
    queue
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
