//! Events that kill, hosts that are started again, and what is left in the tables.

use std::{collections::BTreeMap, time::Duration};

use oncebox_core::{failure::Class, life::HeldState};
use oncebox_tests::{
    database::Tables as _,
    feed::event,
    fleet::{Fleet, NOTHING, Tenant},
    host::Host,
    patience::{PATIENCE, eventually},
};
use serde_json::{Value, json};

/// A plugin ends the process with this signal.
pub(crate) const SIGABRT: i32 = 6;
/// Somebody else does.
pub(crate) const SIGKILL: i32 = 9;
/// How long hosts may be started again and again.
const LONG: Duration = Duration::from_mins(4);

/// An event of that type.
pub(crate) fn typed(kind: &str, key: &str, data: &Value) -> String {
    let mut data = data.clone();
    (data["key"], data["amount"]) = (json!(key), json!(1));
    event(&format!("e-{key}"), &data).replace("\"type\":\"entry\"", &format!("\"type\":\"{kind}\""))
}

/// Hosts under these names, each started again when it dies; the answer is how often they died of this signal.
pub(crate) struct Watched<'f> {
    fleet: &'f Fleet,
    hosts: BTreeMap<&'static str, Host>,
    signal: i32,
    deaths: usize,
    started: Box<dyn Fn(&Host) + 'f>,
}

impl<'f> Watched<'f> {
    /// Starts them.
    pub(crate) fn start(fleet: &'f Fleet, names: &[&'static str], signal: i32) -> Self {
        Self::start_and(fleet, names, signal, |_| ())
    }

    /// The same; something is done with each host that is started.
    pub(crate) fn start_and(
        fleet: &'f Fleet,
        names: &[&'static str],
        signal: i32,
        started: impl Fn(&Host) + 'f,
    ) -> Self {
        let mut watched = Self { fleet, hosts: BTreeMap::new(), signal, deaths: 0, started: Box::new(started) };
        for name in names {
            watched.start_one(name);
        }
        watched
    }

    fn start_one(&mut self, name: &'static str) {
        let host = self.fleet.start(name);
        (self.started)(&host);
        self.hosts.insert(name, host);
    }

    /// Goes on until it is so; how often hosts have died by then.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) -> usize {
        eventually(what, LONG, || {
            for name in self.hosts.keys().copied().collect::<Vec<_>>() {
                if let Some(signal) = self.hosts.get_mut(name).unwrap().killed_by() {
                    assert_eq!(signal, self.signal);
                    self.deaths += 1;
                    assert!(self.deaths < 20, "hosts die for ever");
                    self.start_one(name);
                }
            }
            is_so().then_some(())
        });
        self.deaths
    }

    /// The same until so many keys are decided for good and nothing is left to do.
    #[track_caller]
    pub(crate) fn until_drained(&mut self, tenant: &Tenant, keys: usize) -> usize {
        let session = tenant.session();
        let decided = "SELECT count(*) FROM ob_inbox WHERE state <> 2";
        self.until("all are decided", || session.number(decided) == i64::try_from(keys).unwrap());
        let mut last = None;
        self.until("nothing is left to do", || {
            let now = tenant.left(&session);
            last.replace(now) == Some(now) && now == NOTHING
        })
    }

    /// A host that lives now.
    pub(crate) fn host(&self, name: &str) -> &Host {
        &self.hosts[name]
    }
}

/// Keys by their state in the inbox.
pub(crate) fn keys(tenant: &Tenant, state: u8) -> Vec<String> {
    let sql = format!("SELECT CAST(business_key AS CHAR) FROM ob_inbox WHERE state = {state} ORDER BY business_key");
    tenant.session().lines(&sql)
}

/// The killer is dead, says why, and has an attempt for each death; nothing is left of any start.
#[track_caller]
pub(crate) fn is_blamed(tenant: &Tenant, killer: &str, deaths: usize) {
    let session = tenant.session();
    let dead = HeldState::Dead.number();
    let row = "SELECT concat(CAST(business_key AS CHAR), ' ', class, ' ', code, ' ', message)
               FROM ob_held WHERE state = ";
    let message = format!(
        "the host's process has ended {deaths} times while nothing but this event ran (deaths_max is {deaths})"
    );
    let expected = format!("{killer} {} death-alone {message}", Class::DeathAlone.number());
    assert_eq!(session.lines(&format!("{row}{dead}")), [expected]);
    let attempts = format!(
        "SELECT concat(a.class, ' ', a.code) FROM ob_attempt AS a JOIN ob_held AS h USING (held_id)
         WHERE h.state = {dead} AND a.class = {} ORDER BY attempt",
        Class::DeathAlone.number()
    );
    assert_eq!(session.lines(&attempts), vec![format!("{} death-alone", Class::DeathAlone.number()); deaths]);
    let lives = format!(
        "SELECT CAST(count(DISTINCT a.boot_id) AS SIGNED) FROM ob_attempt AS a JOIN ob_boot AS b USING (boot_id)
         JOIN ob_held AS h USING (held_id) WHERE b.ended_at IS NULL AND a.class = {}",
        Class::DeathAlone.number()
    );
    assert_eq!(session.number(&lives), i64::try_from(deaths).unwrap(), "each of another life");
    // Where two units have decided one message, the end is written behind its ack.
    let starts = || session.lines("SELECT concat(source, ' ', times) FROM ob_start").is_empty();
    eventually("no start is left without an end", PATIENCE, || starts().then_some(()));
}
