//! The keys of `[tenants.NAME.sources.NAME]`.

use crate::{
    config::{Declare, Unrouted, source::MaybeTemplate},
    document::{
        form::{NAME, QUEUE},
        key::{Key, Nested, Section},
        shape::{Absent, Integer, Kind, MaybeInteger, OneOf, Text},
    },
    envelope::{EnvelopeFormat, TimeFormat},
};

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKindWord {
    Local,
    Rabbitmq,
}

pub(crate) static SOURCE_KIND: Key<Kind<SourceKindWord>> = Key {
    name: "kind",
    shape: Kind {
        known: &[("local", SourceKindWord::Local), ("rabbitmq", SourceKindWord::Rabbitmq)],
        elsewhere: &["kafka", "http"],
        later: &[],
    },
    means: "what the source is; `\"local\"` is a table of the tenant's own database, `\"rabbitmq\"` a queue",
};
pub(crate) static SOURCE_CONNECTION: Key<Text> = Key {
    name: "connection",
    shape: Text { form: &NAME, default: None },
    means: "with kind `\"rabbitmq\"`, and required there: the name of the connection",
};
pub(crate) static SOURCE_QUEUE: Key<Text> = Key {
    name: "queue",
    shape: Text { form: &QUEUE, default: None },
    means: "with kind `\"rabbitmq\"`, and required there: the queue's name",
};
pub(crate) static DECLARE: Key<OneOf<Declare>> = Key {
    name: "declare",
    shape: OneOf {
        choices: &[("passive", Declare::Passive), ("quorum", Declare::Quorum), ("classic", Declare::Classic)],
        absent: Absent::Default(Declare::Passive),
    },
    means: "with kind `\"rabbitmq\"`: whether the host makes the queue: never, or as a durable one of that type when it is not there",
};
pub(crate) static CANCEL_AFTER_MS: Key<Integer<u64>> = Key {
    name: "cancel_after_ms",
    shape: Integer { min: 1_000, max: 3_600_000, default: 60_000 },
    means: "with kind `\"rabbitmq\"`: milliseconds with the database away after which the consumer is cancelled, so that other hosts get what is \
            still in the queue",
};
pub(crate) static PREFETCH: Key<MaybeInteger<u16>> = Key {
    name: "prefetch",
    shape: MaybeInteger { min: 1, max: 65_535, absent: "2 × `batch_max` × `lanes`, at most 65_535" },
    means: "messages taken and not settled",
};
pub(crate) static UNROUTED: Key<OneOf<Unrouted>> = Key {
    name: "unrouted",
    shape: OneOf {
        choices: &[("dead", Unrouted::Dead), ("ignore", Unrouted::Ignore)],
        absent: Absent::Default(Unrouted::Dead),
    },
    means: "what becomes of a message that no route takes: a dead letter, or settled and counted",
};
pub(crate) static ENVELOPE: Nested = Nested {
    name: "envelope",
    shape: "table",
    absent: "CloudEvents",
    means: "where type, id and time of an event come from",
};

/// `[tenants.NAME.sources.NAME]`.
pub(crate) static SOURCE: Section = Section {
    path: "tenants.NAME.sources.NAME",
    about: "A queue of RabbitMQ ([what is done with it](../rabbitmq.md)) or a table of the tenant's own database that events \
            come from.",
    keys: &[
        &SOURCE_KIND,
        &SOURCE_CONNECTION,
        &SOURCE_QUEUE,
        &DECLARE,
        &CANCEL_AFTER_MS,
        &PREFETCH,
        &UNROUTED,
        &ENVELOPE,
    ],
};

pub(crate) static FORMAT: Key<OneOf<EnvelopeFormat>> = Key {
    name: "format",
    shape: OneOf {
        choices: &[
            ("auto", EnvelopeFormat::Auto),
            ("structured", EnvelopeFormat::Structured),
            ("binary", EnvelopeFormat::Binary),
            ("raw", EnvelopeFormat::Raw),
        ],
        absent: Absent::Default(EnvelopeFormat::Auto),
    },
    means: "which messages are CloudEvents: whatever looks like one, all in the body, all in the headers, or none",
};
pub(crate) static ENVELOPE_EVENT_TYPE: Key<MaybeTemplate> = Key {
    name: "event_type",
    shape: MaybeTemplate,
    means: "template of the event type of messages that are no CloudEvents",
};
pub(crate) static ENVELOPE_ID: Key<MaybeTemplate> =
    Key { name: "id", shape: MaybeTemplate, means: "template of the event id of messages that are no CloudEvents" };
pub(crate) static ENVELOPE_TIME: Key<MaybeTemplate> = Key {
    name: "time",
    shape: MaybeTemplate,
    means: "template of the event time of messages that are no CloudEvents, and of CloudEvents without one",
};
pub(crate) static TIME_FORMAT: Key<OneOf<TimeFormat>> = Key {
    name: "time_format",
    shape: OneOf {
        choices: &[("rfc3339", TimeFormat::Rfc3339), ("unix-s", TimeFormat::UnixS), ("unix-ms", TimeFormat::UnixMs)],
        absent: Absent::Default(TimeFormat::Rfc3339),
    },
    means: "how `time` is written; refused without `time`, where it would do nothing",
};

/// Keys of kind `rabbitmq` only.
pub(crate) static RABBITMQ_KEYS: [&str; 4] =
    [SOURCE_CONNECTION.name, SOURCE_QUEUE.name, DECLARE.name, CANCEL_AFTER_MS.name];

/// `[tenants.NAME.sources.NAME.envelope]`.
pub(crate) static ENVELOPE_SECTION: Section = Section {
    path: "tenants.NAME.sources.NAME.envelope",
    about: "Where type, id and time of an event come from, for messages that are no CloudEvents.",
    keys: &[&FORMAT, &ENVELOPE_EVENT_TYPE, &ENVELOPE_ID, &ENVELOPE_TIME, &TIME_FORMAT],
};
