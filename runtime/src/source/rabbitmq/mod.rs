//! A queue of RabbitMQ: one connection and one channel, kept open by a supervisor of our own.
//!
//! `keeper.rs` connects, subscribes and receives; `hand.rs` knows what is in memory and what may be acked. A delivery is
//! acked on the channel that it came on or never: each channel has a generation, and a receipt of an older one is
//! dropped, because its message comes again and is found to be a duplicate.

mod connect;
mod differs;
mod hand;
mod keeper;
mod message;
mod queue;
mod sieve;
mod wire;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use lapin::{
    Channel, Connection, Consumer,
    options::{BasicAckOptions, BasicNackOptions},
};
use oncebox_core::{
    config,
    failure::{Class, Failure},
    hand_over::{AT_RISK_FROM, Sequence},
    prefix,
};
use tokio::sync::Notify;

use self::{
    hand::{Hand, Handed},
    keeper::Keeper,
};
use super::{Conditions, Intake, Origin, Receipt, Source, Taken};
use crate::clock;

/// Messages taken at once, at most.
const TAKE_MAX: usize = 1_024;

/// The longest that a stop waits for the broker.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// What a source on RabbitMQ works with.
pub struct RabbitmqSupply {
    /// How the broker is reached.
    pub connection: config::Rabbitmq,
    /// What is consumed there.
    pub queue: config::RabbitmqQueue,
    /// Messages that the broker hands over without an ack, at most.
    pub prefetch: u16,
    /// What is decided beyond a gap older than that is acked singly.
    pub ack_gap: Duration,
    /// What it goes by.
    pub conditions: Conditions,
}

/// What a source has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RabbitmqCounters {
    /// Deliveries that came.
    pub deliveries: u64,
    /// Of these: handed over by the broker so often that they are put aside without a run.
    pub at_risk: u64,
    /// Channels opened.
    pub channels: u64,
    /// Acks of everything up to a tag.
    pub acks_up_to: u64,
    /// Acks of one delivery.
    pub acks_single: u64,
    /// Decided deliveries whose channel was gone: they come again and are found to be duplicates.
    pub too_late: u64,
    /// Releases of everything up to a tag.
    pub releases: u64,
}

#[derive(Default)]
struct Counts {
    deliveries: AtomicU64,
    at_risk: AtomicU64,
    channels: AtomicU64,
    acks_up_to: AtomicU64,
    acks_single: AtomicU64,
    too_late: AtomicU64,
    releases: AtomicU64,
}

/// One source on a queue of RabbitMQ.
pub struct RabbitmqSource {
    intake: Intake,
    supply: RabbitmqSupply,
    began: Instant,
    line: Mutex<Line>,
    counts: Counts,
    /// Something came, or may be handed over now.
    arrived: Notify,
    /// There is something new to be acked later.
    gap: Notify,
}

/// The channel of now.
#[derive(Default)]
struct Line {
    /// One more with each channel.
    generation: u64,
    live: Option<Live>,
}

/// A channel with what belongs to it. When dropped, the channel is closed before its consumer can be cancelled: the
/// next consumer of a queue that keeps the order would begin behind what this one has not decided.
struct Live {
    connection: Option<Connection>,
    channel: Channel,
    /// Kept so that the library does not cancel it by itself.
    consumer: Option<Consumer>,
    /// Whether the queue's order must outlive the channel.
    sequence: Sequence,
    hand: Hand,
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.channel.status().connected() {
            let _ = self.channel.close(200, "OK".into()).now_or_never();
        }
    }
}

impl RabbitmqSource {
    /// The source, with what it works with. It connects when it is kept.
    #[must_use]
    pub fn new(intake: Intake, supply: RabbitmqSupply) -> Self {
        let source = Self {
            intake,
            supply,
            began: clock::monotonic(),
            line: Mutex::default(),
            counts: Counts::default(),
            arrived: Notify::new(),
            gap: Notify::new(),
        };
        // Until it consumes for the first time, nobody may take this host for ready.
        source.supply.conditions.health.missing(source.reason_name(), "waits until its handlers are served");
        source
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> RabbitmqCounters {
        let Counts { deliveries, at_risk, channels, acks_up_to, acks_single, too_late, releases } = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RabbitmqCounters {
            deliveries: read(deliveries),
            at_risk: read(at_risk),
            channels: read(channels),
            acks_up_to: read(acks_up_to),
            acks_single: read(acks_single),
            too_late: read(too_late),
            releases: read(releases),
        }
    }

    fn reason_name(&self) -> String {
        format!("tenant {}: source {}", self.intake.tenant, self.intake.name)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn ack_gap_ms(&self) -> u64 {
        u64::try_from(self.supply.ack_gap.as_millis()).unwrap_or(u64::MAX)
    }

    fn sequence(&self) -> Sequence {
        if *self.supply.conditions.keeps_order.borrow() { Sequence::Kept } else { Sequence::Free }
    }

    /// From now on deliveries come on this channel; the answer is its generation.
    fn open_line(&self, connection: Connection, channel: Channel, sequence: Sequence) -> u64 {
        let mut line = self.line();
        line.generation += 1;
        let hand = Hand::new(self.supply.prefetch);
        line.live = Some(Live { connection: Some(connection), channel, consumer: None, sequence, hand });
        self.counts.channels.fetch_add(1, Ordering::Relaxed);
        line.generation
    }

    /// Who consumes on the channel of now.
    fn consumed_by(&self, consumer: Option<Consumer>) {
        if let Some(live) = &mut self.line().live {
            live.consumer = consumer;
        }
    }

    /// The channel is not used any more: what is decided is acked, everything else goes back to the queue with the
    /// channel's end. The answer is the connection.
    async fn close_line(&self) -> Option<Connection> {
        let mut live = self.line().live.take()?;
        let settle = live.hand.settle(self.now_ms(), 0);
        self.ack(&live.channel, &settle);
        let _ = live.channel.close(200, "OK".into()).await;
        live.connection.take()
    }

    /// Acks what may be acked now, and says when there will be more.
    fn settle_due(&self) -> Option<u64> {
        let mut line = self.line();
        let live = line.live.as_mut()?;
        let settle = live.hand.settle(self.now_ms(), self.ack_gap_ms());
        self.ack(&live.channel, &settle);
        live.hand.due_ms(self.ack_gap_ms())
    }

    /// Gives the acks to the channel's writer, in order. The caller holds the channel's line (or has taken it down), so
    /// that nobody else writes in between and no tag of another channel can be meant.
    fn ack(&self, channel: &Channel, settle: &prefix::Settle) {
        let send = |tag, multiple| {
            // Polled once: the frame is queued. Nobody waits until it is written, which a blocked connection may put off
            // for long; a channel that fails is noticed where its deliveries come from.
            let _ = channel.basic_ack(tag, BasicAckOptions { multiple }).now_or_never();
        };
        if let Some(tag) = settle.up_to {
            send(tag, true);
            self.counts.acks_up_to.fetch_add(1, Ordering::Relaxed);
        }
        for tag in &settle.singly {
            send(*tag, false);
        }
        self.counts.acks_single.fetch_add(settle.singly.len() as u64, Ordering::Relaxed);
    }

    fn taken(&self, generation: u64, delivery: lapin::message::Delivery) -> Taken {
        let earlier = message::earlier_deliveries(&delivery);
        let at_risk = (earlier >= AT_RISK_FROM).then(|| {
            let text = format!(
                "the queue has delivered the message {earlier} times before and drops it at its delivery limit (20 unless \
                 set): it is put aside without a run"
            );
            Failure::new(Class::Unrun, "redelivered", text)
        });
        self.counts.deliveries.fetch_add(1, Ordering::Relaxed);
        self.counts.at_risk.fetch_add(at_risk.is_some().into(), Ordering::Relaxed);
        Taken {
            receipt: Receipt::Broker { generation, tag: delivery.delivery_tag },
            is_redelivered: delivery.redelivered,
            message: Arc::new(message::message(&self.supply.queue.queue, delivery)),
            hops: 0,
            received_us: clock::now_us(),
            permit: None,
            at_risk,
        }
    }

    fn hand_over(&self) -> Handed {
        let mut line = self.line();
        let Some(live) = &mut line.live else { return Handed::Later(None) };
        live.hand.hand_over(self.sequence(), TAKE_MAX, self.now_ms())
    }

    /// Acks what is decided and gives everything else back, in this order.
    async fn let_go(&self) {
        self.release();
        if let Some(connection) = self.close_line().await {
            let _ = connection.close(200, "OK".into()).await;
        }
    }

    /// Gives back what is undecided, uncounted. Where order is kept that would let later messages pass it (tried on
    /// RabbitMQ 4.3): there the end of the channel gives back everything at once and in order, and counts a delivery.
    fn release(&self) {
        let mut line = self.line();
        let Some(live) = line.live.as_mut().filter(|live| live.sequence == Sequence::Free) else { return };
        let settle = live.hand.settle(self.now_ms(), 0);
        self.ack(&live.channel, &settle);
        if let Some(tag) = live.hand.release() {
            let all = BasicNackOptions { multiple: true, requeue: true };
            let _ = live.channel.basic_nack(tag, all).now_or_never();
            self.counts.releases.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl Source for RabbitmqSource {
    fn intake(&self) -> &Intake {
        &self.intake
    }

    async fn take(&self) -> Option<Vec<Taken>> {
        let Conditions { served, stopping, .. } = &self.supply.conditions;
        let (mut served, mut stopping) = (served.clone(), stopping.clone());
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                served = served.wait_for(|served| *served) => drop(served.ok()?),
            }
            let wait = match self.hand_over() {
                Handed::Now(taken) => return Some(taken),
                Handed::Later(ms) => ms.map_or(Duration::MAX, Duration::from_millis),
            };
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                () = self.arrived.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn has_at_risk(&self) -> bool {
        self.line().live.as_ref().is_some_and(|live| live.hand.has_at_risk())
    }

    /// The broker knows what is ours.
    fn watch(&self, _origin: &Arc<Origin>) {}

    /// Connects, subscribes and receives, until the host stops; the channel stays open for what is decided after that.
    async fn keep(&self) {
        Keeper::new(self).run().await;
    }

    async fn settle(&self, receipts: &[Receipt]) {
        let (now_ms, gap_ms) = (self.now_ms(), self.ack_gap_ms());
        let mut line = self.line();
        let generation = line.generation;
        let Some(live) = &mut line.live else {
            self.counts.too_late.fetch_add(receipts.len() as u64, Ordering::Relaxed);
            return;
        };
        let waited = live.hand.due_ms(gap_ms);
        for receipt in receipts {
            match receipt {
                Receipt::Broker { generation: own, tag } if *own == generation => {
                    if let Err(error) = live.hand.decided(*tag, now_ms) {
                        let Intake { tenant, name, .. } = &self.intake;
                        tracing::error!(%tenant, source = %name, %error, "settled twice: this is a bug of oncebox");
                    }
                }
                Receipt::Broker { .. } | Receipt::Local { .. } => {
                    self.counts.too_late.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let settle = live.hand.settle(now_ms, gap_ms);
        self.ack(&live.channel, &settle);
        if live.hand.due_ms(gap_ms) != waited {
            self.gap.notify_one();
        }
        // What was held back for those at risk may be due now.
        self.arrived.notify_one();
    }

    async fn close(&self) {
        if tokio::time::timeout(CLOSE_MAX, self.let_go()).await.is_err() {
            let Intake { tenant, name, .. } = &self.intake;
            tracing::warn!(%tenant, source = %name, "the broker did not answer at the end: what was decided may come again");
        }
    }
}
