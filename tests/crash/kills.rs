//! A host that is killed on either side of its COMMIT.

use oncebox_tests::{
    database::Tables as _,
    feed::entry,
    fleet::{Fleet, Plan, QUEUE, Route, TENANT, Tenant, TenantPlan},
    patience::{PATIENCE, eventually},
    proxy::{Protocol, Proxy, Treatment, Way},
    services::Counts,
};

const APPLIED: &str = "SELECT count(*) FROM ob_inbox WHERE state = 0";
const DUPLICATES: &str = "SELECT CAST(coalesce(sum(duplicates), 0) AS SIGNED) FROM ob_inbox";

/// Inbox rows, entries of the ledger, events sent.
fn effects(tenant: &Tenant) -> [i64; 3] {
    let session = tenant.session();
    ["ob_inbox", "ledger", "ob_outbox"].map(|table| session.number(&format!("SELECT count(*) FROM {table}")))
}

/// Kills a host whose ack never reaches the broker.
fn between_commit_and_ack(plan: Plan) {
    let fleet = Fleet::shared(plan);
    let tenant = &fleet.tenants[0];
    let proxy = Proxy::start(&tenant.vhost.server().address(), Protocol::Amqp);
    let host = fleet.start_by("a", Route { broker: Some(proxy.address()), ..Route::default() }).ready();
    // It is subscribed: what is published now comes to it, and what it answers does not come back.
    proxy.treat(Way::ToServer, Treatment::Hold);
    tenant.publisher().publish(&[entry("e-1", "k-1", 5)]);
    let session = tenant.session();
    eventually("the row is committed", PATIENCE, || (session.number(APPLIED) == 1).then_some(()));
    tenant.vhost.wait_for(QUEUE, Counts { ready: 0, unacked: 1 });
    host.kill();
    proxy.close();
    tenant.vhost.wait_for(QUEUE, Counts { ready: 1, unacked: 0 });
    assert_eq!(session.number(DUPLICATES), 0);

    let host = fleet.start("a").ready();
    tenant.drained(PATIENCE);
    assert_eq!((effects(tenant), session.number(DUPLICATES)), ([1, 1, 1], 1));
    tenant.check();
    host.stop();
}

#[test]
fn killed_between_commit_and_ack_the_message_comes_again_and_is_a_duplicate() {
    between_commit_and_ack(Plan { host: "", tenants: &[TENANT] });
}

#[test]
fn killed_between_commit_and_ack_of_a_classic_queue_it_is_a_duplicate_too() {
    between_commit_and_ack(Plan { host: "", tenants: &[TenantPlan { queue: "classic", ..TENANT }] });
}

/// Sessions of the host's user that do what begins like that.
fn doing(tenant: &Tenant, what: &str) -> usize {
    let own = &tenant.database.database;
    let (list, user) = (own.server().kind.process_list(), &own.runtime.name);
    let sql = format!("SELECT CAST(id AS CHAR) FROM {list} WHERE user = '{user}' AND info LIKE '{what}%'");
    tenant.database.database.lines(&sql).len()
}

#[test]
fn killed_inside_its_unit_of_work_nothing_of_it_is_there_and_it_is_applied_once() {
    const PATIENT: TenantPlan = TenantPlan { store: "lock_wait_s = 60\nidle_timeout_s = 60", ..TENANT };
    let fleet = Fleet::shared(Plan { host: "", tenants: &[PATIENT] });
    let tenant = &fleet.tenants[0];
    let host = fleet.start("a").ready();
    let other = tenant.session();
    other.execute("BEGIN");
    assert_eq!(other.lines("SELECT handler FROM counter WHERE handler = 'a' FOR UPDATE"), ["a"]);
    tenant.publisher().publish(&[entry("e-1", "k-1", 5)]);
    eventually("the unit waits for the row", PATIENCE, || (doing(tenant, "UPDATE counter") == 1).then_some(()));
    let uncommitted = tenant.session();
    uncommitted.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    let written = "SELECT (SELECT count(*) FROM ob_inbox) + (SELECT count(*) FROM ledger)";
    assert_eq!(uncommitted.number(written), 2, "its inbox row and its entry are written, and not committed");
    host.kill();
    tenant.vhost.wait_for(QUEUE, Counts { ready: 1, unacked: 0 });
    assert_eq!(effects(tenant), [0, 0, 0]);
    other.execute("ROLLBACK");
    // The server goes on with what the dead host's session asked for, and finds nobody to answer to.
    let own = &tenant.database.database;
    eventually("its sessions are gone", PATIENCE, || own.sessions_of(&own.runtime).is_empty().then_some(()));
    assert_eq!((effects(tenant), uncommitted.number(written)), ([0, 0, 0], 0));

    let host = fleet.start("a").ready();
    tenant.drained(PATIENCE);
    assert_eq!((effects(tenant), other.number(DUPLICATES)), ([1, 1, 1], 0));
    tenant.check();
    host.stop();
}
