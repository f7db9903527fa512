//! The queue before it is consumed: is it there, is it what the configuration says, does it keep the order.

use lapin::{
    Channel, Connection,
    options::QueueDeclareOptions,
    types::{AMQPValue, FieldTable, ShortString},
};
use oncebox_core::{
    config::{Declare, RabbitmqQueue},
    hand_over::Sequence,
};

use super::{
    connect::{plainly, refusal},
    differs::{Current, Difference, difference},
};
use crate::source::SourceError;

const TYPE: &str = "x-queue-type";
const SINGLE_ACTIVE: &str = "x-single-active-consumer";

/// Arguments that a queue may have, at most: each costs a try to be found out.
const ARGUMENTS_MAX: usize = 32;

/// A queue of a virtual host.
pub(super) struct Queue<'a> {
    /// What the operator says of it.
    pub(super) settings: &'a RabbitmqQueue,
    /// The virtual host.
    pub(super) vhost: &'a str,
}

impl Queue<'_> {
    /// Declares the queue as configured and answers a channel for its consumer. A queue that must keep the order has a
    /// single active consumer, or this fails.
    ///
    /// # Errors
    /// [`SourceError`]: the queue cannot be consumed as it is.
    pub(super) async fn open(&self, connection: &Connection, sequence: Sequence) -> Result<Channel, SourceError> {
        let kind = match self.settings.declare {
            Declare::Passive => None,
            Declare::Quorum => Some("quorum"),
            Declare::Classic => Some("classic"),
        };
        let Some(kind) = kind else {
            let channel = self.found(connection, sequence).await?;
            if sequence == Sequence::Kept {
                self.check_single_active(connection).await?;
            }
            return Ok(channel);
        };
        let mut declared = Properties::durable();
        declared.argue(TYPE, text(kind));
        if sequence == Sequence::Kept {
            declared.argue(SINGLE_ACTIVE, AMQPValue::Boolean(true));
        }
        match self.declare(connection, &declared).await? {
            Ok(channel) => Ok(channel),
            // It keeps an order that nobody asks for now: that harms nothing, and the next deployment may ask for it.
            Err((_, Some(found))) if sequence == Sequence::Free && found.name == SINGLE_ACTIVE => {
                declared.argue(SINGLE_ACTIVE, AMQPValue::Boolean(true));
                let again = self.declare(connection, &declared).await?;
                again.map_err(|(reason, _)| self.differs(kind, reason))
            }
            Err((_, Some(found))) if sequence == Sequence::Kept && found.name == SINGLE_ACTIVE => {
                Err(SourceError::NotSingleActive { queue: self.name() })
            }
            Err((reason, _)) => Err(self.differs(kind, reason)),
        }
    }

    /// The queue must be there; nothing is made.
    async fn found(&self, connection: &Connection, sequence: Sequence) -> Result<Channel, SourceError> {
        let channel = connection.create_channel().await.map_err(|error| self.failed("open a channel for", &error))?;
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        match channel.queue_declare(self.short()?, passive, FieldTable::default()).await {
            Ok(_) => Ok(channel),
            Err(error) if matches!(refusal(&error), Some((404, reason)) if reason.contains("no queue")) => {
                Err(SourceError::QueueMissing {
                    queue: self.name(),
                    vhost: self.vhost.to_owned(),
                    single_active: match sequence {
                        Sequence::Kept => " --arguments '{\"x-single-active-consumer\":true}'",
                        Sequence::Free => "",
                    },
                })
            }
            Err(error) => Err(self.failed("find", &error)),
        }
    }

    /// Whether a queue that somebody else made has a single active consumer.
    ///
    /// The protocol has no question for that. The queue is declared with it and otherwise as it is: the broker compares
    /// and changes nothing, and its refusals say one by one what the queue has.
    async fn check_single_active(&self, connection: &Connection) -> Result<(), SourceError> {
        let mut guess = Properties::durable();
        guess.argue(SINGLE_ACTIVE, AMQPValue::Boolean(true));
        let unknown = |reason| SourceError::OrderUnknown { queue: self.name(), reason };
        for _ in 0..ARGUMENTS_MAX {
            let answer = self.declare(connection, &guess).await.map_err(|error| {
                if let SourceError::QueueRefused { reason, .. } = error { unknown(reason) } else { error }
            })?;
            match answer {
                Ok(channel) => {
                    let _ = channel.close(200, "OK".into()).await;
                    return Ok(());
                }
                Err((_, Some(found))) if found.name == SINGLE_ACTIVE => {
                    return Err(SourceError::NotSingleActive { queue: self.name() });
                }
                Err((reason, Some(found))) if !guess.adopt(&found) => return Err(unknown(reason)),
                Err((_, Some(_))) => {}
                Err((reason, None)) => return Err(unknown(reason)),
            }
        }
        Err(unknown(format!("it has more than {ARGUMENTS_MAX} arguments")))
    }

    /// Declares; the inner error is the broker's 406, with what differs if that can be read from it.
    async fn declare(
        &self,
        connection: &Connection,
        properties: &Properties,
    ) -> Result<Result<Channel, (String, Option<Difference>)>, SourceError> {
        let channel = connection.create_channel().await.map_err(|error| self.failed("open a channel for", &error))?;
        match channel.queue_declare(self.short()?, properties.options, properties.arguments.clone()).await {
            Ok(_) => Ok(Ok(channel)),
            Err(error) => match refusal(&error) {
                Some((406, reason)) => Ok(Err((reason.clone(), difference(&reason)))),
                Some(_) | None => Err(self.failed("declare", &error)),
            },
        }
    }

    fn failed(&self, what: &'static str, error: &lapin::Error) -> SourceError {
        match refusal(error) {
            Some((_, reason)) => SourceError::QueueRefused { queue: self.name(), what, reason },
            None => SourceError::Lost { queue: self.name(), reason: plainly(error) },
        }
    }

    fn differs(&self, kind: &str, difference: String) -> SourceError {
        SourceError::QueueDiffers { queue: self.name(), declared: format!("a durable {kind} queue"), difference }
    }

    fn name(&self) -> String {
        self.settings.queue.clone()
    }

    /// The name as the protocol takes it.
    pub(super) fn short(&self) -> Result<ShortString, SourceError> {
        ShortString::try_new(self.name()).map_err(|error| SourceError::QueueRefused {
            queue: self.name(),
            what: "name",
            reason: error.to_string(),
        })
    }
}

/// With what a queue is declared.
struct Properties {
    options: QueueDeclareOptions,
    arguments: FieldTable,
}

impl Properties {
    fn durable() -> Self {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        Self { options, arguments: FieldTable::default() }
    }

    fn argue(&mut self, name: &str, value: AMQPValue) {
        self.arguments.insert(name.into(), value);
    }

    /// Takes over what the queue has; false if that cannot be said in a declaration.
    fn adopt(&mut self, found: &Difference) -> bool {
        let Difference { name, current } = found;
        let (value, kind) = match current {
            Current::None => {
                let kept = self.arguments.inner().iter().filter(|(other, _)| other.as_str() != name);
                let kept: std::collections::BTreeMap<_, _> = kept.map(|(n, v)| (n.clone(), v.clone())).collect();
                let removed = kept.len() < self.arguments.inner().len();
                self.arguments = kept.into();
                return removed;
            }
            Current::Value { text, kind } => (text.as_str(), kind.as_deref()),
        };
        match (name.as_str(), value) {
            ("durable", value) => self.options.durable = value == "true",
            ("auto_delete", value) => self.options.auto_delete = value == "true",
            ("exclusive", value) => self.options.exclusive = value == "true",
            (name, value) => {
                let Ok(name) = ShortString::try_new(name) else { return false };
                let value = match (kind, value.parse::<i64>()) {
                    (Some("bool" | "boolean"), _) => AMQPValue::Boolean(value == "true"),
                    (None | Some("longstr" | "shortstr" | "binary"), _) | (_, Err(_)) => text(value),
                    (Some(_), Ok(number)) => AMQPValue::LongLongInt(number),
                };
                self.arguments.insert(name, value);
            }
        }
        true
    }
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
