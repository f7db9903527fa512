//! Faults that show when a host dies, or is overtaken: real processes.

use oncebox::planted::Fault;
use oncebox_tests::{
    checker::broken,
    database::Tables as _,
    feed::entry,
    fleet::{Fleet, Plan, QUEUE, Route, TENANT, Tenant, TenantPlan},
    host::Host,
    patience::{PATIENCE, eventually},
    services::{Counts, Session},
};

/// In a debug build, on a busy machine, runs are slow. Who waits for a row of a test's own waits long.
const PLAN: Plan =
    Plan { host: "", tenants: &[TenantPlan { tenant: "slow_run_ms = 1_000", store: "lock_wait_s = 60", ..TENANT }] };

/// Plays a story on a fleet of its own without the fault, after which nothing may be wrong, and with it: the answer is
/// what is wrong then.
fn caught(fault: Fault, story: fn(&Story) -> Vec<String>) -> Vec<String> {
    let played = |fault| {
        let fleet = Fleet::shared(PLAN);
        let session = fleet.tenants[0].session();
        let story_of = Story { fleet, session, fault };
        let mut found = story(&story_of);
        found.extend(broken(&story_of.session).iter().map(ToString::to_string));
        found
    };
    assert_eq!(played(None), Vec::<String>::new(), "without the fault");
    played(Some(fault))
}

struct Story {
    fleet: Fleet,
    session: Session,
    fault: Option<Fault>,
}

impl Story {
    fn tenant(&self) -> &Tenant {
        &self.fleet.tenants[0]
    }

    /// Starts host `a`, with the fault if there is one.
    fn faulty(&self, failpoints: &str) -> Host {
        let mut environment = vec![("ONCEBOX_FAILPOINTS", failpoints)];
        environment.extend(self.fault.map(|fault| ("ONCEBOX_PLANTED_FAULT", fault.name())));
        self.fleet.start_with("a", Route::default(), &environment).ready()
    }

    /// Lets a host without a fault do what is left to do; keys that are not applied then.
    fn left_over(&self, keys: &[String]) -> Vec<String> {
        let b = self.fleet.start("b").ready();
        self.tenant().drained(PATIENCE * 2);
        b.stop();
        not_applied(&self.session, keys)
    }
}

/// Keys that were published, that their handler would apply, and that are not applied.
fn not_applied<K: AsRef<str>>(session: &Session, published: &[K]) -> Vec<String> {
    let applied = session.lines("SELECT CAST(business_key AS CHAR) FROM ob_inbox WHERE state = 0");
    let missing = published.iter().map(AsRef::as_ref).filter(|key| !applied.iter().any(|one| one == key));
    missing.map(|key| format!("{key} is not applied")).collect()
}

fn published(tenant: &Tenant, events: usize) -> Vec<String> {
    let keys: Vec<String> = (0..events).map(|n| format!("k-{n}")).collect();
    let bodies: Vec<String> = keys.iter().map(|key| entry(&format!("e-{key}"), key, 1)).collect();
    tenant.publisher().publish(&bodies);
    keys
}

#[test]
fn an_ack_before_the_commit_loses_what_a_crash_takes() {
    let lost = caught(Fault::AckBeforeCommit, |story| {
        let mut a = story.faulty("before-commit=kill");
        let keys = published(story.tenant(), 1);
        eventually("a has died", PATIENCE, || a.has_died().then_some(()));
        story.left_over(&keys)
    });
    assert_eq!(lost, ["k-0 is not applied"]);
}

#[test]
fn an_ack_over_a_gap_loses_what_is_in_the_gap() {
    let lost = caught(Fault::AckMultipleOvershoot, |story| {
        let a = story.faulty("");
        // The first key of the queue is somebody else's for now; what shares its lane waits behind it.
        let other = story.tenant().session();
        other.execute("BEGIN");
        other.execute(
            "INSERT INTO ob_inbox (handler_id, business_key, state, fingerprint, rule_id, token, attempts, event_id, source,
               received_at, decided_at)
             SELECT handler_id, 'k-0', 0, '', 0, '', 1, '', '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM ob_handler",
        );
        let keys = published(story.tenant(), 40);
        let left = || {
            let Counts { ready, unacked } = story.tenant().vhost.counts(QUEUE);
            ready + unacked
        };
        eventually("what is decided beyond the gap is acked", PATIENCE, || (left() < 40).then_some(()));
        a.kill();
        other.execute("ROLLBACK");
        story.left_over(&keys)
    });
    assert!(lost.contains(&"k-0 is not applied".to_owned()), "{lost:?}");
}

#[test]
fn a_conflict_that_only_the_look_up_has_seen_is_found_not_applied() {
    let wrong = caught(Fault::ConflictFromSnapshot, |story| {
        let a = story.faulty("after-look-up@2=stop");
        let mut publisher = story.tenant().publisher();
        publisher.publish(&[entry("e-1", "k", 1)]);
        let applied = || story.session.number("SELECT count(*) FROM ob_inbox WHERE state = 0") == 1;
        eventually("the first is applied", PATIENCE, || applied().then_some(()));
        publisher.publish(&[entry("e-2", "k", 2)]);
        eventually("a hangs behind its look-up", PATIENCE, || a.hangs().then_some(()));
        // Meanwhile the key is forgotten, with all that stands beside it.
        for table in ["ob_inbox", "ob_outbox", "ob_tally", "ledger"] {
            story.session.execute(&format!("DELETE FROM {table}"));
        }
        story.session.execute("UPDATE counter SET n = 0, total = 0");
        a.thaw();
        story.tenant().drained(PATIENCE);
        a.stop();
        not_applied(&story.session, &["k"])
    });
    assert!(wrong.contains(&"k is not applied".to_owned()), "{wrong:?}");
}
