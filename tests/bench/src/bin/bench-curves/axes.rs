//! The axes, their points, and how much an event may cost there.

use crate::scenario::{Keys, Plugin, Scenario};

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Axis {
    Payload,
    Modules,
    Tenants,
    Duplicates,
    Hot,
    Batch,
    Lanes,
    Inbox,
    Failures,
}

/// A figure in relation to the base's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Processor time of host and server.
    Cost,
    /// Time from one event to the next.
    Time,
    /// fsyncs of the server's logs.
    LogFsyncs,
}

impl Figure {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Time => "time",
            Self::LogFsyncs => "log-fsyncs",
        }
    }
}

/// The most that a figure may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Budget {
    pub(crate) figure: Figure,
    pub(crate) at_most: f64,
}

/// How the points of an axis stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// A place on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) axis: Axis,
    pub(crate) value: u32,
    /// The load; how many events is not said yet.
    pub(crate) scenario: Scenario,
    pub(crate) budget: Option<Budget>,
    /// About how many events take as long as one of the base: tells only how many are worth measuring.
    pub(crate) weight: f64,
}

impl Axis {
    /// In the order in which they are measured: those that share a base stand together.
    pub(crate) const ALL: [Self; 9] = [
        Self::Payload,
        Self::Modules,
        Self::Tenants,
        Self::Duplicates,
        Self::Hot,
        Self::Batch,
        Self::Lanes,
        Self::Inbox,
        Self::Failures,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Modules => "modules",
            Self::Tenants => "tenants",
            Self::Duplicates => "duplicates",
            Self::Hot => "hot",
            Self::Batch => "batch",
            Self::Lanes => "lanes",
            Self::Inbox => "inbox",
            Self::Failures => "failures",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Payload => "bytes of a message's body",
            Self::Modules => "handlers with a module each, evenly hit",
            Self::Tenants => "tenants, with a database and a queue each",
            Self::Duplicates => "percent of the messages whose key was applied before",
            Self::Hot => "accounts that all events are for",
            Self::Batch => "batch_max: events of one unit of work",
            Self::Lanes => "lanes: workers of the tenant",
            Self::Inbox => "rows of the inbox before, keys scattered",
            Self::Failures => "percent of the events that fail once",
        }
    }

    pub(crate) const fn scale(self) -> Scale {
        match self {
            Self::Duplicates | Self::Failures => Scale::Linear,
            Self::Payload | Self::Modules | Self::Tenants | Self::Hot | Self::Batch | Self::Lanes | Self::Inbox => {
                Scale::Logarithmic
            }
        }
    }

    const fn values(self, quick: bool) -> &'static [u32] {
        match (self, quick) {
            (Self::Payload, false) => &[64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
            (Self::Payload, true) => &[64, 1 << 10, 16 << 10],
            (Self::Modules, false) => &[1, 100, 1_000],
            (Self::Modules, true) => &[100],
            (Self::Tenants, false) => &[1, 10, 100],
            (Self::Tenants, true) => &[10],
            (Self::Duplicates, false) => &[0, 10, 50, 90, 100],
            (Self::Duplicates, true) => &[50, 100],
            (Self::Hot, false) => &[1, 10, 1_000],
            (Self::Hot, true) => &[1],
            (Self::Batch, false) => &[1, 10, 50, 100, 256, 1_000],
            (Self::Batch, true) => &[10, 100],
            (Self::Lanes, false) => &[1, 2, 4, 8, 16],
            (Self::Lanes, true) => &[1, 16],
            (Self::Inbox, false) => &[0, 100_000, 1_000_000, 10_000_000],
            (Self::Inbox, true) => &[100_000],
            (Self::Failures, false) => &[0, 1, 10, 50],
            (Self::Failures, true) => &[10, 50],
        }
    }

    fn scenario(self, value: u32) -> Scenario {
        let base = Scenario::BASE;
        match self {
            Self::Payload => Scenario { payload_bytes: value as usize, ..base },
            Self::Modules => Scenario { modules: value, ..base },
            Self::Tenants => Scenario { tenants: value, ..base },
            Self::Duplicates => Scenario { duplicates: value, ..base },
            Self::Hot => Scenario { users: value, ..base },
            Self::Batch => Scenario { batch_max: Some(value), ..base },
            Self::Lanes => Scenario { lanes: Some(value), ..base },
            Self::Inbox => Scenario { inbox_rows: value, keys: Keys::Scattered, ..base },
            Self::Failures => Scenario { parked: value, plugin: Plugin::Probe, ..base },
        }
    }

    fn budget(self, value: u32) -> Option<Budget> {
        let (figure, at_most) = match (self, value) {
            (Self::Payload, ..=1_024) => (Figure::Cost, 1.15),
            (Self::Modules, _) => (Figure::Cost, 1.4),
            (Self::Tenants, _) => (Figure::LogFsyncs, 1.5),
            (Self::Duplicates, 100) => (Figure::Cost, 0.25),
            (Self::Inbox, _) => (Figure::Cost, 1.2),
            // 85 % of the base's throughput, half of it.
            (Self::Failures, 10) => (Figure::Time, 1.0 / 0.85),
            (Self::Failures, 50) => (Figure::Time, 2.0),
            (Self::Payload | Self::Duplicates | Self::Failures | Self::Hot | Self::Batch | Self::Lanes, _) => {
                return None;
            }
        };
        Some(Budget { figure, at_most })
    }

    fn weight(self, value: u32) -> f64 {
        let value = f64::from(value);
        match self {
            Self::Payload => 1.0 / (1.0 + value / 16_384.0),
            // Some dozens for each module: what its first run costs is not what is asked.
            Self::Modules => 1.0 + value / 1_000.0,
            // A thousand for each tenant of a hundred: enough for some full batches of its lanes.
            Self::Tenants => 1.0 + value / 33.0,
            Self::Duplicates => 1.0 + value / 100.0,
            Self::Failures => 1.0 / (1.0 + value / 40.0),
            Self::Batch => value / (value + 10.0),
            Self::Lanes | Self::Inbox | Self::Hot => 1.0,
        }
    }

    /// Its points, or a few of them.
    pub(crate) fn points(self, quick: bool) -> Vec<Point> {
        let point = |value: &u32| Point {
            axis: self,
            value: *value,
            scenario: self.scenario(*value),
            budget: self.budget(*value),
            weight: self.weight(*value),
        };
        self.values(quick).iter().map(point).collect()
    }
}

impl Point {
    /// As people write it.
    pub(crate) fn label(&self) -> String {
        let value = self.value;
        match self.axis {
            Axis::Payload if value >= 1 << 20 => format!("{} MiB", value >> 20),
            Axis::Payload if value >= 1 << 10 => format!("{} KiB", value >> 10),
            Axis::Payload => format!("{value} B"),
            Axis::Duplicates | Axis::Failures => format!("{value} %"),
            Axis::Inbox if value >= 1_000_000 => format!("{} M", value / 1_000_000),
            Axis::Inbox if value >= 1_000 => format!("{} k", value / 1_000),
            Axis::Modules | Axis::Tenants | Axis::Hot | Axis::Batch | Axis::Lanes | Axis::Inbox => value.to_string(),
        }
    }
}
