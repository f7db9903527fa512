//! The supervisor of one source: connects, declares, subscribes, receives, and begins again after every fault.
//!
//! Each channel is a life of its own, with a generation. The library's own recovery is never used: it acks tags of one
//! channel on the next.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use lapin::{
    Channel, Connection, Consumer, Event,
    message::Delivery,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions},
    types::FieldTable,
};
use oncebox_core::{hand_over::Sequence, reconnect::reconnect_delay};
use tokio::sync::watch;

use super::{
    RabbitmqSource,
    connect::{ANSWER_MAX, Target, plainly},
    queue::Queue,
};
use crate::{
    clock,
    source::{Conditions, Intake, SourceError},
};

/// A channel that lived so long had no fault of its own: the waits begin anew.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// The longest wait for a cancelled consumer's last deliveries when the host stops.
const LAST_ONES_MAX: Duration = Duration::from_secs(2);

/// Deliveries that are taken up at once, at most.
const RECEIVE_MAX: usize = 256;

/// Keeps one source going.
pub(super) struct Keeper<'a> {
    source: &'a RabbitmqSource,
    conditions: Conditions,
    /// A connection that is good and has no channel.
    connection: Option<Connection>,
    tries: u32,
}

/// Why something is not gone on with.
enum Interrupted {
    /// The host stops.
    Stopping,
    /// It cannot be.
    By(SourceError),
}

impl From<SourceError> for Interrupted {
    fn from(error: SourceError) -> Self {
        Self::By(error)
    }
}

/// What is asked of a channel now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Consume,
    /// Nothing more is to come. What is in memory stays, except where order is kept.
    Pause,
    /// A new channel, because the queue must be looked at once more.
    Reopen,
    Stop,
}

/// How far a consumer's deliveries were taken up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Received {
    /// As far as they have come.
    All,
    /// No more come: the consumer is cancelled, by whomever.
    End,
}

impl<'a> Keeper<'a> {
    /// Of a source that is not kept yet.
    pub(super) fn new(source: &'a RabbitmqSource) -> Self {
        Self { source, conditions: source.supply.conditions.clone(), connection: None, tries: 0 }
    }

    /// Until the host stops.
    pub(super) async fn run(mut self) {
        while self.asked_for().await {
            let began = clock::monotonic();
            match self.life().await {
                Ok(()) => {}
                Err(Interrupted::Stopping) => return,
                Err(Interrupted::By(error)) => {
                    if began.elapsed() >= GOOD_LIFE {
                        self.tries = 0;
                    }
                    self.mourn(&error).await;
                }
            }
        }
    }

    /// Waits until there is something to consume for; false: the host stops.
    async fn asked_for(&mut self) -> bool {
        loop {
            match self.wish(self.source.sequence()) {
                Wish::Stop => return false,
                Wish::Consume | Wish::Reopen => return true,
                Wish::Pause => self.changed(None).await,
            }
        }
    }

    /// From a connection to the end of one channel. `Ok`: it is to be begun anew.
    async fn life(&mut self) -> Result<(), Interrupted> {
        let connection = match self.connection.take().filter(|connection| connection.status().connected()) {
            Some(connection) => connection,
            None => self.unless_stopped(self.target().connect()).await??,
        };
        let sequence = self.source.sequence();
        let queue = self.queue();
        let opened = self.answered("open the queue", queue.open(&connection, sequence)).await;
        let channel = match opened {
            Ok(channel) => channel,
            Err(error) => {
                self.connection = Some(connection);
                return Err(error);
            }
        };
        let prefetch = channel.basic_qos(self.source.supply.prefetch, BasicQosOptions { global: false });
        self.answered("set the prefetch", prefetch.map(|set| set.map_err(|error| self.lost(&error)))).await?;
        let mut events = Box::pin(connection.events_listener());
        let generation = self.source.open_line(connection, channel.clone(), sequence);
        let ended = self.consume(&channel, generation, sequence, &mut events).await;
        if let Err(Interrupted::Stopping) = ended {
            // The lanes go on deciding what they have: the channel stays open for their acks.
            return ended;
        }
        self.connection = tokio::time::timeout(LAST_ONES_MAX, self.source.close_line()).await.ok().flatten();
        ended
    }

    /// Receives on a channel, with or without a consumer, until it is gone or another one is needed.
    async fn consume(
        &mut self,
        channel: &Channel,
        generation: u64,
        sequence: Sequence,
        events: &mut (impl Stream<Item = Event> + Unpin),
    ) -> Result<(), Interrupted> {
        let mut consumer: Option<Consumer> = None;
        let mut cancelled_at: Option<Instant> = None;
        let mut ended = Received::All;
        loop {
            if ended == Received::End {
                if cancelled_at.take().is_none() {
                    return Err(SourceError::Cancelled { queue: self.queue_name() }.into());
                }
                (consumer, ended) = (None, Received::All);
                self.source.consumed_by(None);
            }
            let wish = self.wish(sequence);
            match (wish, &consumer) {
                (Wish::Consume, None) => {
                    consumer = Some(self.subscribe(channel).await?);
                    self.source.consumed_by(consumer.clone());
                    cancelled_at = None;
                }
                (Wish::Stop, None) => return Err(Interrupted::Stopping),
                // A cancelled consumer keeps its deliveries, and the queue goes on with the next consumer behind them
                // (tried): where order is kept, the channel stays as it is until the lanes are done, or is closed.
                (Wish::Stop, Some(_)) if sequence == Sequence::Kept => return Err(Interrupted::Stopping),
                (Wish::Reopen, _) => return Ok(()),
                (Wish::Pause, _) if sequence == Sequence::Kept => {
                    self.say_paused("gives everything back");
                    return Ok(());
                }
                (Wish::Pause | Wish::Stop, Some(active)) if cancelled_at.is_none() => {
                    // Polled once: the frame is queued. The stream ends when the broker has answered, after its last
                    // delivery.
                    let _ = channel.basic_cancel(active.tag(), BasicCancelOptions { nowait: false }).now_or_never();
                    cancelled_at = Some(clock::monotonic());
                    if wish == Wish::Pause {
                        self.say_paused("keeps what it has");
                    }
                }
                (Wish::Stop, Some(_)) if cancelled_at.is_some_and(|at| at.elapsed() >= LAST_ONES_MAX) => {
                    return Err(Interrupted::Stopping);
                }
                (Wish::Consume | Wish::Stop, Some(_)) | (Wish::Pause, _) => {}
            }
            let due = self.source.settle_due().map(|ms| self.source.began + Duration::from_millis(ms));
            let last_ones = cancelled_at.filter(|_| wish == Wish::Stop).map(|at| at + LAST_ONES_MAX);
            tokio::select! {
                next = next(&mut consumer) => match next {
                    Some(Ok(first)) => ended = self.receive(generation, first, &mut consumer)?,
                    Some(Err(error)) => return Err(self.lost(&error).into()),
                    None => ended = Received::End,
                },
                event = events.next() => self.heard(channel, event)?,
                () = self.changed(due.into_iter().chain(last_ones).min()) => {}
            }
        }
    }

    async fn subscribe(&mut self, channel: &Channel) -> Result<Consumer, Interrupted> {
        let queue = self.queue().short()?;
        let consuming = channel.basic_consume(queue, "".into(), BasicConsumeOptions::default(), FieldTable::default());
        let consuming = consuming.map(|consumer| consumer.map_err(|error| self.lost(&error)));
        let consumer = self.answered("subscribe", consuming).await?;
        let Intake { tenant, name, .. } = &self.source.intake;
        self.conditions.health.mended(&self.source.reason_name());
        tracing::info!(%tenant, source = %name, queue = %self.queue_name(), "consumes");
        Ok(consumer)
    }

    fn say_paused(&self, and: &str) {
        let Intake { tenant, name, .. } = &self.source.intake;
        let served = *self.conditions.served.borrow();
        let why = if served { "the database has been away for cancel_after_ms" } else { "a handler is not served" };
        tracing::info!(%tenant, source = %name, queue = %self.queue_name(), why, and, "receives nothing more");
    }

    /// Takes up a delivery and those that are there behind it.
    fn receive(
        &self,
        generation: u64,
        first: Delivery,
        consumer: &mut Option<Consumer>,
    ) -> Result<Received, SourceError> {
        let source = self.source;
        let (mut came, mut ended, mut failed) = (vec![first], Received::All, None);
        let ready =
            |consumer: &mut Option<Consumer>| consumer.as_mut().and_then(|consumer| consumer.next().now_or_never());
        while came.len() < RECEIVE_MAX
            && let Some(next) = ready(consumer)
        {
            match next {
                Some(Ok(delivery)) => came.push(delivery),
                Some(Err(error)) => {
                    failed = Some(self.lost(&error));
                    break;
                }
                None => {
                    ended = Received::End;
                    break;
                }
            }
        }
        let now_ms = source.now_ms();
        let mut line = source.line();
        let Some(live) = line.live.as_mut() else { return Ok(ended) };
        for delivery in came {
            // Those of a channel that is gone come still; they belong to others now.
            if !delivery.acker.usable() {
                continue;
            }
            let tag = delivery.delivery_tag;
            if !live.hand.came(tag, source.taken(generation, delivery), now_ms) {
                let reason = format!("delivery tag {tag} came out of turn");
                return Err(SourceError::Lost { queue: self.queue_name(), reason });
            }
        }
        drop(line);
        source.arrived.notify_one();
        failed.map_or(Ok(ended), Err)
    }

    fn heard(&self, channel: &Channel, event: Option<Event>) -> Result<(), SourceError> {
        let target = self.target();
        match event {
            Some(Event::ConnectionBlocked(reason)) => {
                let (connection, address) = (target.name.to_owned(), target.address());
                self.complain(&SourceError::Blocked { connection, address, reason });
            }
            Some(Event::ConnectionUnblocked) => {
                self.conditions.health.mended(&self.source.reason_name());
            }
            // Of this channel or of its connection: an earlier channel's refusals are heard here too.
            Some(Event::Error(error)) if !channel.status().connected() => return Err(self.lost(&error)),
            Some(_) => {}
            None => {
                let reason = "the connection is gone".to_owned();
                return Err(SourceError::Lost { queue: self.queue_name(), reason });
            }
        }
        Ok(())
    }

    /// Says once what is wrong, and waits before the next try.
    async fn mourn(&mut self, error: &SourceError) {
        self.complain(error);
        let wait = reconnect_delay(self.tries, rand::random());
        self.tries = self.tries.saturating_add(1);
        let _ = tokio::time::timeout(wait, self.conditions.stopping.wait_for(|stopping| *stopping)).await;
    }

    fn complain(&self, error: &SourceError) {
        if self.conditions.health.missing(self.source.reason_name(), error.to_string()) {
            let Intake { tenant, name, .. } = &self.source.intake;
            tracing::warn!(%tenant, source = %name, code = error.code(), %error, "does not consume");
        }
    }

    /// What is asked of a channel whose queue was looked at for this sequence.
    fn wish(&self, sequence: Sequence) -> Wish {
        let Conditions { served, stopping, .. } = &self.conditions;
        if *stopping.borrow() {
            return Wish::Stop;
        }
        let given_up = self.give_up_at().is_some_and(|at| clock::monotonic() >= at);
        if !*served.borrow() || given_up {
            return Wish::Pause;
        }
        match (sequence, self.source.sequence()) {
            (Sequence::Free, Sequence::Kept) => Wish::Reopen,
            (Sequence::Free | Sequence::Kept, _) => Wish::Consume,
        }
    }

    /// When the database has been away for so long that nothing more is to be received.
    fn give_up_at(&self) -> Option<Instant> {
        self.conditions.database_away.borrow().map(|since| since + self.source.supply.queue.cancel_after)
    }

    /// Waits until something of the conditions has changed, there is more to ack later, or it is that late.
    async fn changed(&mut self, until: Option<Instant>) {
        let now = clock::monotonic();
        let give_up = self.give_up_at().filter(|at| *at > now);
        let until = until.into_iter().chain(give_up).min();
        let Conditions { served, keeps_order, stopping, database_away, .. } = &mut self.conditions;
        let late = async {
            match until {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = turned(served) => {}
            () = turned(keeps_order) => {}
            () = turned(stopping) => {}
            () = turned(database_away) => {}
            () = self.source.gap.notified() => {}
            () = late => {}
        }
    }

    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        let mut stopping = self.conditions.stopping.clone();
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => Err(Interrupted::Stopping),
            done = work => Ok(done),
        }
    }

    /// An answer of the broker, or none in time.
    async fn answered<T>(
        &self,
        what: &'static str,
        asked: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, Interrupted> {
        match self.unless_stopped(tokio::time::timeout(ANSWER_MAX, asked)).await? {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(self.target().no_answer(what).into()),
        }
    }

    fn target(&self) -> Target<'a> {
        let Intake { tenant, name, .. } = &self.source.intake;
        Target {
            name: &self.source.supply.queue.connection,
            settings: &self.source.supply.connection,
            shown_as: format!("oncebox {tenant}/{name}"),
        }
    }

    fn queue(&self) -> Queue<'a> {
        let supply = &self.source.supply;
        Queue { settings: &supply.queue, vhost: &supply.connection.address.space }
    }

    fn queue_name(&self) -> String {
        self.source.supply.queue.queue.clone()
    }

    fn lost(&self, error: &lapin::Error) -> SourceError {
        SourceError::Lost { queue: self.queue_name(), reason: plainly(error) }
    }
}

/// The next delivery of a consumer, if there is one.
async fn next(consumer: &mut Option<Consumer>) -> Option<lapin::Result<Delivery>> {
    match consumer {
        Some(consumer) => consumer.next().await,
        None => pending().await,
    }
}

/// Waits until the value was written anew; for ever if nobody can write it any more.
async fn turned<T>(value: &mut watch::Receiver<T>) {
    if value.changed().await.is_err() {
        pending().await
    }
}
