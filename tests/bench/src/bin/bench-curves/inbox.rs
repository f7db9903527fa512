//! Rows that an inbox has before a drain, as many events would have left them.

use anyhow::{Result, ensure};
use oncebox_bench::stage::Stage;
use oncebox_tests::database::Tables as _;

use crate::scenario::order_sql;

/// Numbers of the drain's own events are below.
const FIRST: u32 = 1 << 24;
/// Rows of one statement.
const CHUNK: u32 = 100_000;

/// Inserts so many; the server makes them itself, in the order of their numbers, which is none of their keys.
pub(crate) fn fill(stage: &Stage, rows: u32) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let session = stage.session();
    let handler = session.number("SELECT CAST(handler_id AS SIGNED) FROM ob_handler LIMIT 1");
    let rule = session.number("SELECT CAST(rule_id AS SIGNED) FROM ob_rule LIMIT 1");
    session.execute("SET SESSION sql_log_bin = 0");
    session.execute("CREATE TABLE thousand (n BIGINT UNSIGNED PRIMARY KEY)");
    session.execute(
        "INSERT INTO thousand WITH RECURSIVE d AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM d WHERE n < 999) SELECT n FROM d",
    );
    let order = order_sql("n");
    for first in (0..rows).step_by(CHUNK as usize) {
        let from = u64::from(FIRST) + u64::from(first);
        let thousands = CHUNK.min(rows - first) / 1_000;
        session.execute(&format!(
            "INSERT INTO ob_inbox (handler_id, business_key, state, fingerprint, rule_id, token, deployment_id, attempts,
               event_id, source, received_at, decided_at)
             SELECT {handler}, CONCAT('order:', {order}, ':paid'), 0, UNHEX(SHA2(n, 256)), {rule}, LEFT(UNHEX(SHA2(n, 256)), 16), 1, 1,
               CONCAT('m-', n), 'orders', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)
             FROM (SELECT {from} + a.n * 1000 + b.n AS n FROM thousand AS a JOIN thousand AS b WHERE a.n < {thousands}) AS d"
        ));
    }
    session.execute("DROP TABLE thousand");
    let there = session.number("SELECT COUNT(*) FROM ob_inbox");
    ensure!(there == i64::from(rows), "the inbox has {there} rows of {rows}");
    // What the server only has in memory is written now, so that it does not do so in the drain.
    session.execute("FLUSH TABLES ob_inbox FOR EXPORT");
    session.execute("UNLOCK TABLES");
    Ok(())
}
