//! Claims: in index order, shared by hosts, waiting for nobody.

use std::{collections::BTreeSet, time::Duration};

use oncebox::store::HandlerId;
use oncebox_core::{
    blame::Start,
    ids::{BootId, LeaseToken},
};
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection};

use crate::bench::{Bench, message};

const LEASE: Duration = Duration::from_secs(60);
const START: Start = Start { boot: BootId([1; 16]), at_us: 1 };

/// Parked rows of two handlers, by hand: 400 due ones each, 400 that wait for a time, 400 that wait for a predecessor,
/// and 400 dead.
fn park(bench: &Bench) {
    bench.database.execute("INSERT INTO ob_handler (name) VALUES ('a'), ('b')");
    let digits = (0..10).map(|n| format!("SELECT {n} AS n")).collect::<Vec<_>>().join(" UNION ALL ");
    let of_state = |state: u8, due: &str, offset: u32| {
        format!(
            "INSERT INTO ob_held (identity, handler_id, state, business_key, due_at, attempts, class, code, message,
               fingerprint, rule_id, source, received_at, changed_at)
             SELECT UNHEX(SHA2(CONCAT({offset}, '-', d.n, c.n, b.n, a.n), 256)), 1 + MOD(a.n, 2), {state},
               CONCAT('k', {offset}, '-', d.n, c.n, b.n, a.n), {due}, 1, 1, 'c', 'm', UNHEX(REPEAT('01', 32)), 1, 's',
               UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
             FROM ({digits}) AS a, ({digits}) AS b, ({digits}) AS c, (SELECT 0 AS n) AS d WHERE c.n < 8"
        )
    };
    bench.database.execute(&of_state(0, "'2026-01-01 00:00:00' + INTERVAL (b.n * 100 + c.n) SECOND", 1));
    bench.database.execute(&of_state(0, "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR", 2));
    bench.database.execute(&of_state(0, "NULL", 3));
    bench.database.execute(&of_state(1, "NULL", 4));
    bench.database.execute(
        "INSERT INTO ob_body (held_id, revision, headers, payload, at)
         SELECT held_id, 0, '{}', business_key, UTC_TIMESTAMP(6) FROM ob_held",
    );
    bench.database.execute("ANALYZE TABLE ob_held");
}

/// `EXPLAIN` of a text that has its values in place, one line a table.
async fn explained(bench: &Bench, sql: &str) -> String {
    let form = if bench.is_mariadb() { "" } else { "FORMAT=TRADITIONAL " };
    bench.as_root(&format!("EXPLAIN {form}{sql}")).await.unwrap().join("\n")
}

pub(crate) async fn claims_go_in_index_order_without_a_sort(bench: Bench) {
    bench.ready().await;
    park(&bench);
    for sql in [
        "SELECT held_id FROM ob_held FORCE INDEX (claim) WHERE handler_id = 1 AND state = 0
           AND due_at <= UTC_TIMESTAMP(6) ORDER BY due_at, held_id LIMIT 100 FOR UPDATE SKIP LOCKED",
        "SELECT local_id FROM ob_local FORCE INDEX (claim) WHERE source = 's' AND due_at <= UTC_TIMESTAMP(6)
           ORDER BY due_at, local_id LIMIT 100 FOR UPDATE SKIP LOCKED",
    ] {
        let plan = explained(&bench, sql).await;
        assert!(plan.contains("claim") && !plan.contains("filesort"), "{plan}");
    }
    // And it is so: a claim on its way keeps no other row from the next one, which takes those that come next.
    let in_order = bench.database.lines(
        "SELECT CAST(held_id AS CHAR) FROM ob_held WHERE handler_id = 1 AND state = 0 AND due_at <= UTC_TIMESTAMP(6)
         ORDER BY due_at, held_id LIMIT 40",
    );
    let mut other = MySqlConnection::connect(&bench.database.root_url()).await.unwrap();
    sqlx::query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").execute(&mut other).await.unwrap();
    let mut open = other.begin().await.unwrap();
    let pick = "SELECT held_id FROM ob_held FORCE INDEX (claim) WHERE handler_id = 1 AND state = 0
        AND due_at <= UTC_TIMESTAMP(6) ORDER BY due_at, held_id LIMIT 10 FOR UPDATE SKIP LOCKED";
    assert_eq!(sqlx::query(pick).fetch_all(&mut *open).await.unwrap().len(), 10);
    let store = bench.host().await;
    let claimed = store.held_claim(HandlerId(1), 30, LeaseToken([1; 16]), LEASE, START).await.unwrap();
    open.rollback().await.unwrap();
    let ids: BTreeSet<String> = claimed.iter().map(|row| row.held.to_string()).collect();
    assert_eq!(ids, in_order[10..].iter().cloned().collect());
    assert!(claimed.iter().all(|row| row.body.body == row.key.as_bytes()));
}

pub(crate) async fn two_hosts_share_what_is_due_and_nobody_waits(bench: Bench) {
    bench.ready().await;
    park(&bench);
    let messages: Vec<_> = (0..300u32).map(|n| message(&n.to_be_bytes())).collect();
    let (one, other) = (bench.host().await, bench.host().await);
    one.local_offer("orders", &messages).await.unwrap();
    let (mut held, mut local) = (BTreeSet::new(), BTreeSet::new());
    let (mut held_n, mut local_n) = (0, 0);
    for round in 0..50u8 {
        let (a, b) = (LeaseToken([2 * round + 1; 16]), LeaseToken([2 * round + 2; 16]));
        let (h1, h2, l1, l2) = tokio::join!(
            one.held_claim(HandlerId(1), 7, a, LEASE, START),
            other.held_claim(HandlerId(1), 7, b, LEASE, START),
            one.local_claim("orders", 7, a, LEASE),
            other.local_claim("orders", 7, b, LEASE),
        );
        for row in h1.unwrap().into_iter().chain(h2.unwrap()) {
            held_n += 1;
            held.insert(row.held);
        }
        for row in l1.unwrap().into_iter().chain(l2.unwrap()) {
            local_n += 1;
            local.insert(row.id);
        }
    }
    assert_eq!((held_n, held.len()), (400, 400), "each once");
    assert_eq!((local_n, local.len()), (300, 300), "each once");
}

pub(crate) async fn a_row_that_a_unit_holds_is_neither_claimed_nor_renewed_nor_waited_for(bench: Bench) {
    bench.ready().await;
    let store = bench.host().await;
    store.local_offer("orders", &[message(b"1"), message(b"2")]).await.unwrap();
    let token = LeaseToken([1; 16]);
    let taken = store.local_claim("orders", 9, token, Duration::ZERO).await.unwrap();
    let mut unit = MySqlConnection::connect(&bench.database.root_url()).await.unwrap();
    let mut open = unit.begin().await.unwrap();
    let lock = format!("SELECT * FROM ob_local WHERE local_id = {} FOR UPDATE", taken[0].id);
    sqlx::query(AssertSqlSafe(lock)).fetch_all(&mut *open).await.unwrap();
    // Its lease is over; the one that is locked is being settled.
    let again = store.local_claim("orders", 9, LeaseToken([2; 16]), LEASE).await.unwrap();
    assert_eq!(again.iter().map(|local| local.id).collect::<Vec<_>>(), [taken[1].id]);
    store.local_renew(&[token, LeaseToken([2; 16])], LEASE * 10).await.unwrap();
    // Neither has waited: the wait would have ended with an error.
    open.rollback().await.unwrap();
    let leases = "SELECT CAST(due_at > UTC_TIMESTAMP(6) + INTERVAL 300 SECOND AS CHAR) FROM ob_local ORDER BY local_id";
    assert_eq!(bench.database.lines(leases), ["0", "1"]);
}

pub(crate) async fn what_is_due_is_found_in_one_step_a_handler(bench: Bench) {
    bench.ready().await;
    park(&bench);
    let plan = explained(
        &bench,
        "SELECT handler_id, MIN(due_at) FROM ob_held FORCE INDEX (claim)
         WHERE state = 0 AND due_at IS NOT NULL GROUP BY handler_id",
    )
    .await;
    assert!(plan.contains("Using index for group-by"), "{plan}");
    let due = bench.host().await.held_due().await.unwrap();
    // 2026-01-01 UTC.
    assert_eq!(due, [(HandlerId(1), 1_767_225_600_000_000), (HandlerId(2), 1_767_225_600_000_000)]);
}
