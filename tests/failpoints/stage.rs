//! Two hosts on one queue: `a`, which is armed, and `b`, which goes on.

use std::{fmt::Write as _, time::Duration};

use oncebox::{clock, failpoint::Place};
use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, Plan, Route, TENANT, Tenant, TenantPlan},
    host::Host,
    patience::{PATIENCE, eventually, pass},
    publisher::Publisher,
    services::Session,
};
use serde_json::json;

/// How long what two hosts have to do may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Events published at once, and the time until the next ones.
const CHUNK: usize = 10;
const PACE: Duration = Duration::from_millis(100);

/// All that is held for a host which is not seen is free again after 2 s.
const HOST: &str = "lease_time_ms = 2_000\nheartbeat_ms = 500\nboot_timeout_ms = 2_000";

/// One lane, so that at a place nothing else of the host is on its way. In a debug build, on a busy machine, runs are
/// slow.
const NARROW: TenantPlan = TenantPlan { tenant: "lanes = 1\nslow_run_ms = 1_000", ..TENANT };

/// A host that dies: the servers see its connections end.
pub(crate) const DYING: Plan = Plan { host: HOST, tenants: &[NARROW] };
/// The same on a classic queue, where lanes are many.
pub(crate) const DYING_CLASSIC: Plan =
    Plan { host: HOST, tenants: &[TenantPlan { queue: "classic", tenant: "slow_run_ms = 1_000", ..NARROW }] };

const SILENT: TenantPlan = TenantPlan { store: "idle_timeout_s = 2", connection: "heartbeat_s = 1", ..NARROW };

/// A host that hangs: the servers have to find out by themselves.
pub(crate) const HANGING: Plan = Plan { host: HOST, tenants: &[SILENT] };
/// The same on a classic queue.
pub(crate) const HANGING_CLASSIC: Plan = Plan { host: HOST, tenants: &[TenantPlan { queue: "classic", ..SILENT }] };

/// Whether everything is asked for, at whatever cost in time.
pub(crate) fn is_all() -> bool {
    std::env::var_os("ONCEBOX_CRASH_ALL").is_some()
}

/// What the events do: all of them end applied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Events {
    /// Applied at once.
    Applied,
    /// Applied at the second attempt.
    Parked,
}

/// Two hosts, and what was published to them.
pub(crate) struct Stage {
    pub(crate) fleet: Fleet,
    publisher: Publisher,
    session: Session,
    b: Host,
    published: usize,
}

impl Stage {
    /// Starts host `b`.
    pub(crate) fn new(plan: Plan) -> Self {
        let fleet = Fleet::shared(plan);
        let b = fleet.start("b").ready();
        let tenant = &fleet.tenants[0];
        let (publisher, session) = (tenant.publisher(), tenant.session());
        Self { fleet, publisher, session, b, published: 0 }
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.fleet.tenants[0]
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.session.number(sql)
    }

    /// Starts host `a`, which will act at a place.
    pub(crate) fn armed(&self, place: Place, action: &str) -> Host {
        let failpoints = format!("{}={action}", place.name());
        self.fleet.start_with("a", Route::default(), &[("ONCEBOX_FAILPOINTS", &failpoints)]).ready()
    }

    /// Publishes some events.
    pub(crate) fn publish(&mut self, events: Events) {
        let what = match events {
            Events::Applied => json!({ "key": "", "amount": 1 }),
            Events::Parked => json!({ "key": "", "amount": 1, "do": "until", "times": 2 }),
        };
        let bodies: Vec<String> = (self.published..self.published + CHUNK)
            .map(|n| {
                let mut data = what.clone();
                data["key"] = json!(format!("k-{n}"));
                event(&format!("e-{n}"), &data)
            })
            .collect();
        self.publisher.publish(&bodies);
        self.published += CHUNK;
    }

    /// Publishes events until something has become true.
    #[track_caller]
    pub(crate) fn publish_until(&mut self, what: &str, events: Events, mut is_so: impl FnMut() -> bool) {
        eventually(what, PATIENCE, || {
            if is_so() {
                return Some(());
            }
            self.publish(events);
            pass(PACE);
            is_so().then_some(())
        });
    }

    /// How many deliveries of keys from `first` on were seen again.
    pub(crate) fn duplicates(&self, first: usize) -> i64 {
        self.number(&format!(
            "SELECT CAST(coalesce(sum(duplicates), 0) AS SIGNED) FROM ob_inbox
             WHERE CAST(substr(business_key, 3) AS SIGNED) >= {first}"
        ))
    }

    /// The number of the next event.
    pub(crate) fn published(&self) -> usize {
        self.published
    }

    /// Waits until nothing is left to do, and holds the tables against what was published: every key is applied, once,
    /// the queue is empty, and no transaction is open.
    #[track_caller]
    pub(crate) fn all_applied_once(&self, place: Place) {
        let published = i64::try_from(self.published).unwrap();
        // Asked first, because asking the queue is dear. What is lost shows below.
        let applied = || self.number("SELECT count(*) FROM ob_inbox WHERE state = 0") == published;
        let began = clock::monotonic();
        while !applied() && began.elapsed() < LONG {
            pass(PACE);
        }
        self.tenant().drained(LONG);
        let counted = ["ob_inbox WHERE state = 0", "ob_inbox", "ledger", "ob_outbox"]
            .map(|table| self.number(&format!("SELECT count(*) FROM {table}")));
        if counted != [published; 4] {
            let mut lost = String::new();
            for n in 0..self.published {
                let key = format!("SELECT count(*) FROM ob_inbox WHERE state = 0 AND business_key = 'k-{n}'");
                if self.number(&key) == 0 {
                    let _ = write!(lost, " k-{n}");
                }
            }
            panic!("{place:?}: {counted:?} applied, keys, entries, sent of {published}; not applied:{lost}");
        }
        self.tenant().check();
        self.tenant().nothing_open(PATIENCE);
    }

    /// Ends host `b` in good order.
    pub(crate) fn stop(self) {
        self.b.stop();
    }
}
