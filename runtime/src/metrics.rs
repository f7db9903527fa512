//! What is counted, in one table: the page `docs/reference/metrics.md` is written from it.

use std::collections::BTreeMap;

use oncebox_core::life::Verdict;
use prometheus::{Encoder as _, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};

use crate::{
    host::{Delivery, Done, Target, Tenant},
    store::{Gauges, HandlerId},
};

/// A metric: name, labels, meaning.
pub struct Described {
    /// Its name, with the prefix.
    pub name: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says, with its unit.
    pub meaning: &'static str,
}

const VERDICTS: Described = Described {
    name: "oncebox_verdicts_total",
    labels: &["tenant", "handler", "verdict"],
    meaning: "Committed verdicts since this host began; handler `-`: a message that was not understood or has no route.",
};
const UNITS: Described = Described {
    name: "oncebox_units_of_work_seconds",
    labels: &["tenant"],
    meaning: "Units of work from BEGIN to COMMIT, in seconds.",
};
const EVENTS: Described =
    Described { name: "oncebox_unit_events", labels: &["tenant"], meaning: "Events in a unit of work." };
const LATENCY: Described = Described {
    name: "oncebox_delivery_seconds",
    labels: &["tenant", "handler"],
    meaning: "From first receipt to the committed verdict, in seconds, waits between attempts included.",
};
const UNDECIDED: Described = Described {
    name: "oncebox_left_undecided_total",
    labels: &["tenant"],
    meaning: "Deliveries whose unit of work failed for a reason that is not an absent database; each has an error in the log.",
};
const SUSPECTS: Described = Described {
    name: "oncebox_suspects_alone_total",
    labels: &["tenant", "handler"],
    meaning: "Runs of suspects since this host began: a life of a host has crashed with them in hand, so nothing else runs meanwhile.",
};
const DEATHS: Described = Described {
    name: "oncebox_deaths_alone_total",
    labels: &["tenant", "handler"],
    meaning: "How often since it began this host has found an event with which a life of a host has ended while nothing else ran.",
};
const HELD: Described = Described {
    name: "oncebox_held_rows",
    labels: &["tenant", "handler", "state"],
    meaning: "Rows now held: parked, dead, conflict, poison.",
};
const OLDEST: Described = Described {
    name: "oncebox_oldest_parked_seconds",
    labels: &["tenant"],
    meaning: "Age of the oldest parked event, in seconds; 0: none.",
};
const LOCAL: Described = Described {
    name: "oncebox_local_messages",
    labels: &["tenant", "source"],
    meaning: "Messages in a local source that are not settled.",
};
const WAITING: Described = Described {
    name: "oncebox_lane_waiting",
    labels: &["tenant", "lane"],
    meaning: "Deliveries in memory that wait for a lane. Numbers: `lanes`, then the back lane (what can wait; not on \
              SQLite), then `slow_lanes`.",
};

/// All metrics, in the order of the page.
pub const ALL: [&Described; 11] =
    [&VERDICTS, &LATENCY, &UNITS, &EVENTS, &UNDECIDED, &SUSPECTS, &DEATHS, &HELD, &OLDEST, &LOCAL, &WAITING];

/// The page `docs/reference/metrics.md`.
#[must_use]
pub fn reference() -> String {
    use std::fmt::Write as _;
    let mut page = String::from(
        "# Metrics\n\nServed at `/metrics` in the Prometheus text format. Written by `cargo bless`; do not edit.\n\n\
         | name | labels | meaning |\n| --- | --- | --- |\n",
    );
    for metric in ALL {
        let _ = writeln!(page, "| `{}` | {} | {} |", metric.name, metric.labels.join(", "), metric.meaning);
    }
    page
}

/// The host's metrics.
pub struct Metrics {
    registry: Registry,
    verdicts: IntCounterVec,
    latency: HistogramVec,
    units: HistogramVec,
    events: HistogramVec,
    undecided: IntCounterVec,
    suspects: IntCounterVec,
    deaths: IntCounterVec,
    held: GaugeVec,
    oldest: GaugeVec,
    local: GaugeVec,
    waiting: GaugeVec,
}

impl Metrics {
    /// A registry of its own: several hosts may live in one process.
    ///
    /// # Errors
    /// A name that prometheus does not take: a bug.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |described: &Described| {
            let made = IntCounterVec::new(Opts::new(described.name, described.meaning), described.labels)?;
            registry.register(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let gauge = |described: &Described| {
            let made = GaugeVec::new(Opts::new(described.name, described.meaning), described.labels)?;
            registry.register(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let histogram = |described: &Described, buckets: &[f64]| {
            let options = HistogramOpts::new(described.name, described.meaning).buckets(buckets.to_vec());
            let made = HistogramVec::new(options, described.labels)?;
            registry.register(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let seconds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 60.0, 3600.0];
        Ok(Self {
            verdicts: counter(&VERDICTS)?,
            latency: histogram(&LATENCY, &seconds)?,
            units: histogram(&UNITS, &seconds)?,
            events: histogram(&EVENTS, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0])?,
            undecided: counter(&UNDECIDED)?,
            suspects: counter(&SUSPECTS)?,
            deaths: counter(&DEATHS)?,
            held: gauge(&HELD)?,
            oldest: gauge(&OLDEST)?,
            local: gauge(&LOCAL)?,
            waiting: gauge(&WAITING)?,
            registry,
        })
    }

    /// A committed verdict.
    pub fn decided(&self, tenant: &Tenant, delivery: &Delivery, verdict: Verdict) {
        let handler = match &delivery.target {
            Target::Handler(handler, _) => &*handler.name,
            Target::Nobody => "-",
        };
        self.verdicts.with_label_values(&[&*tenant.name, handler, verdict.name()]).inc();
        let waited_us = crate::clock::now_us().saturating_sub(delivery.origin.received_us).max(0);
        #[expect(clippy::cast_precision_loss, reason = "a histogram needs no more than 2^53 microseconds")]
        self.latency.with_label_values(&[&*tenant.name, handler]).observe(waited_us as f64 / 1e6);
    }

    /// A suspect is about to run alone.
    pub fn suspect_ran(&self, tenant: &str, handler: &str) {
        self.suspects.with_label_values(&[tenant, handler]).inc();
    }

    /// An event was found with which a process has ended.
    pub fn death_found(&self, tenant: &str, handler: &str) {
        self.deaths.with_label_values(&[tenant, handler]).inc();
    }

    /// A committed unit of work.
    pub fn unit(&self, tenant: &str, done: &Done) {
        self.units.with_label_values(&[tenant]).observe(done.took.as_secs_f64());
        let events = u32::try_from(done.fates.len()).unwrap_or(u32::MAX);
        self.events.with_label_values(&[tenant]).observe(f64::from(events));
    }

    /// A delivery that was left undecided.
    pub fn undecided(&self, tenant: &str) {
        self.undecided.with_label_values(&[tenant]).inc();
    }

    /// Brings the gauges of a tenant up to date.
    pub fn gauges(&self, tenant: &Tenant, gauges: &Gauges, now_us: i64) {
        let names: BTreeMap<HandlerId, &str> = tenant.handlers.values().map(|h| (h.id, &*h.name)).collect();
        for handler in tenant.handlers.values() {
            for state in ["parked", "dead", "conflict", "poison"] {
                self.held.with_label_values(&[&*tenant.name, &*handler.name, state]).set(0.0);
            }
        }
        for source in tenant.settings.sources.keys() {
            self.local.with_label_values(&[&*tenant.name, source]).set(0.0);
        }
        for (handler, state, n) in &gauges.held {
            let handler = names.get(handler).copied().unwrap_or("-");
            self.held.with_label_values(&[&*tenant.name, handler, state.name()]).set(count(*n));
        }
        for (source, n) in &gauges.local {
            self.local.with_label_values(&[&*tenant.name, source.as_str()]).set(count(*n));
        }
        let age_us = gauges.oldest_parked_us.map_or(0, |oldest| now_us.saturating_sub(oldest).max(0));
        self.oldest.with_label_values(&[&*tenant.name]).set(count(age_us.unsigned_abs()) / 1e6);
        for (number, (queue, _)) in tenant.all_lanes().enumerate() {
            self.waiting.with_label_values(&[&*tenant.name, &number.to_string()]).set(count(queue.len() as u64));
        }
    }

    /// The text for `/metrics`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        // Writing into memory does not fail; a metric that cannot be written is left out.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        #[cfg(feature = "count-allocations")]
        out.extend(format!("oncebox_allocations_total {}\n", crate::allocations::count()).into_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 2^53")]
fn count(n: u64) -> f64 {
    n as f64
}
