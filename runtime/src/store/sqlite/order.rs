//! The lock rows of ordering keys. SQLite has one writer, so that reading them is locking them.

use sqlx::{Row as _, SqliteConnection};

use crate::store::{OrderKey, OrderRow};

/// Place of the first held row of a key that is not over; the places of resolved ones are given up.
macro_rules! head {
    ($what:literal) => {
        concat!(
            "(SELECT ",
            $what,
            " FROM ob_held WHERE handler_id = ?1 AND ordering_key = ?2 AND place IS NOT NULL AND state IN (0, 1)
              ORDER BY place LIMIT 1)"
        )
    };
}

pub(super) async fn lock(connection: &mut SqliteConnection, keys: &[OrderKey]) -> Result<Vec<OrderRow>, sqlx::Error> {
    let sql = concat!(
        "INSERT INTO ob_order (handler_id, ordering_key, used_at) VALUES (?1, ?2, ",
        now_us!(),
        ") ON CONFLICT (handler_id, ordering_key) DO UPDATE SET used_at = excluded.used_at
         RETURNING held, next_place, ",
        head!("place")
    );
    let mut rows = Vec::with_capacity(keys.len());
    for key in keys {
        let row = sqlx::query(sql).bind(key.0.0).bind(key.1.as_slice()).fetch_one(&mut *connection).await?;
        let next_place: i64 = row.try_get(1)?;
        let head: Option<i64> = row.try_get(2)?;
        rows.push(OrderRow {
            key: key.clone(),
            held: row.try_get(0)?,
            next_place: next_place.unsigned_abs(),
            head: head.map(i64::unsigned_abs),
        });
    }
    Ok(rows)
}

pub(super) async fn mark(connection: &mut SqliteConnection, rows: &[OrderRow]) -> Result<(), sqlx::Error> {
    for row in rows {
        sqlx::query("UPDATE ob_order SET held = ?, next_place = ? WHERE handler_id = ? AND ordering_key = ?")
            .bind(row.held)
            .bind(i64::try_from(row.next_place).unwrap_or(i64::MAX))
            .bind(row.key.0.0)
            .bind(row.key.1.as_slice())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

pub(super) async fn due(connection: &mut SqliteConnection, keys: &[OrderKey]) -> Result<(), sqlx::Error> {
    // The first of those that are not over: when that is a dead one, it goes on holding the others.
    let sql = concat!(
        "UPDATE ob_held SET due_at = ",
        now_us!(),
        ", changed_at = ",
        now_us!(),
        " WHERE state = 0 AND due_at IS NULL AND held_id = ",
        head!("held_id")
    );
    for (handler, key) in keys {
        sqlx::query(sql).bind(handler.0).bind(key.as_slice()).execute(&mut *connection).await?;
    }
    Ok(())
}
