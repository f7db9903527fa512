//! A lane's connection and its unit of work. SQLite has one writer: `BEGIN IMMEDIATE` takes that right at once, so
//! that rows which are read here cannot change before the commit; the locks of other stores are plain reads here.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use oncebox_core::{
    blame::Start,
    ids::{BootId, BusinessKey, Fingerprint, LeaseToken},
    life::{HeldState, InboxState, Verdict},
    value::Value,
};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{admin, errors::store_error, held, order, queues, starts, statements};
use crate::clock;
use crate::store::{
    Halted, HandlerId, HeldId, HeldMark, InboxKey, InboxMark, InboxRow, Lane, LocalId, NewAttempt, NewHeld, NewInbox,
    NewLocal, OrderKey, OrderRow, OutboxRow, QueryAnswer, RuleId, Savepoint, Staged, StartEnd, StatementError,
    StoreError, Suspect, UnitOfWork, encode_headers, starts::columns,
};

/// One connection, owned by a lane.
pub(super) struct SqliteLane {
    connection: SqliteConnection,
    /// A unit was begun and neither committed nor rolled back.
    open: bool,
    turns: Arc<Mutex<()>>,
    /// Ours while a unit is open.
    turn: Option<OwnedMutexGuard<()>>,
    /// When the open unit got the right to write.
    began: Option<Instant>,
    /// The last unit was long: other processes must get a chance before the next one.
    was_long: bool,
}

/// A unit that kept the right to write so long may have made other processes (`oncebox send`) wait.
const LONG: Duration = Duration::from_millis(100);
/// SQLite's waiters in other processes know no order, and look again after 100 ms at most
/// (<https://www.sqlite.org/c3ref/busy_timeout.html>, `sqliteDefaultBusyCallback`): so long the right stays free.
const PAUSE: Duration = Duration::from_millis(110);

impl SqliteLane {
    pub(super) fn new(connection: SqliteConnection, turns: Arc<Mutex<()>>) -> Self {
        Self { connection, open: false, turns, turn: None, began: None, was_long: false }
    }
}

#[async_trait]
impl Lane for SqliteLane {
    async fn inbox_look_up(&mut self, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError> {
        self.clear().await?;
        self.inbox_rows(keys).await
    }

    async fn start_alone(&mut self, suspect: &Suspect, start: Start) -> Result<bool, StoreError> {
        self.clear().await?;
        let _turn = self.turns.clone().lock_owned().await;
        starts::alone(&mut self.connection, suspect, start).await
    }

    async fn begin(&mut self) -> Result<Box<dyn UnitOfWork + '_>, StoreError> {
        self.clear().await?;
        if std::mem::take(&mut self.was_long) {
            tokio::time::sleep(PAUSE).await;
        }
        let turn = self.turns.clone().lock_owned().await;
        self.run("BEGIN IMMEDIATE").await?;
        self.began = Some(clock::monotonic());
        self.open = true;
        self.turn = Some(turn);
        Ok(Box::new(SqliteUnit { lane: self }))
    }
}

impl SqliteLane {
    async fn run(&mut self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::query(sql).execute(&mut self.connection).await.map(|_| ()).map_err(|error| store_error(sql, &error))
    }

    /// Ends what a unit has left open: nothing of it may be seen, and its right to write is given back.
    async fn clear(&mut self) -> Result<(), StoreError> {
        if !self.open {
            return Ok(());
        }
        match self.run("ROLLBACK").await {
            // SQLite has done it by itself (a full disk, a constraint with `ON CONFLICT ROLLBACK`): nothing is open.
            Ok(()) | Err(StoreError::Statement { .. }) => {
                self.is_over();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn is_over(&mut self) {
        self.was_long = self.began.take().is_some_and(|began| began.elapsed() > LONG);
        self.open = false;
        self.turn = None;
    }

    async fn inbox_rows(&mut self, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError> {
        // One text for any number of keys, so that the statement cache keeps it.
        let asked: Vec<(i64, String)> = keys.iter().map(|(handler, key)| (handler.0, hex(key.as_bytes()))).collect();
        let asked = serde_json::to_string(&asked).unwrap_or_default();
        let rows = sqlx::query(
            "SELECT i.handler_id, i.business_key, i.state, i.fingerprint, i.rule_id, i.token, i.generation
             FROM json_each(?1) AS asked
             JOIN ob_inbox AS i
               ON i.handler_id = asked.value ->> 0 AND i.business_key = unhex(asked.value ->> 1)",
        )
        .bind(asked)
        .fetch_all(&mut self.connection)
        .await
        .map_err(|error| store_error("inbox look-up", &error))?;
        rows.iter().map(inbox_row).collect()
    }
}

/// The open transaction of a lane's connection.
struct SqliteUnit<'a> {
    lane: &'a mut SqliteLane,
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn corrupt(message: &str) -> StoreError {
    StoreError::Corrupt { table: "ob_inbox", message: message.to_owned() }
}

fn inbox_row(row: &SqliteRow) -> Result<InboxRow, StoreError> {
    let wrap = |error| store_error("inbox row", &error);
    let state: u8 = row.try_get(2).map_err(wrap)?;
    let fingerprint: &[u8] = row.try_get(3).map_err(wrap)?;
    let token: &[u8] = row.try_get(5).map_err(wrap)?;
    Ok(InboxRow {
        handler: HandlerId(row.try_get(0).map_err(wrap)?),
        key: BusinessKey::new(row.try_get::<Vec<u8>, _>(1).map_err(wrap)?),
        state: InboxState::from_number(state).ok_or_else(|| corrupt("unknown state"))?,
        fingerprint: Fingerprint::from_slice(fingerprint).ok_or_else(|| corrupt("fingerprint is not 32 bytes"))?,
        rule: RuleId(row.try_get(4).map_err(wrap)?),
        token: LeaseToken::from_slice(token).ok_or_else(|| corrupt("token is not 16 bytes"))?,
        generation: row.try_get(6).map_err(wrap)?,
    })
}

#[async_trait]
impl UnitOfWork for SqliteUnit<'_> {
    async fn now_us(&mut self) -> Result<i64, StoreError> {
        admin::now_us(&mut self.lane.connection).await
    }

    async fn inbox_insert(&mut self, token: LeaseToken, rows: &[NewInbox]) -> Result<Vec<InboxRow>, StoreError> {
        let mut found = Vec::with_capacity(rows.len());
        for new in rows {
            let row = sqlx::query(INBOX_INSERT)
                .bind(new.handler.0)
                .bind(new.key.as_bytes())
                .bind(new.fingerprint.as_bytes())
                .bind(new.rule.0)
                .bind(token.as_bytes())
                .bind(new.deployment.0)
                .bind(&new.event_id)
                .bind(&*new.source)
                .bind(new.traceparent.as_deref())
                .bind(new.received_us)
                .fetch_one(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("inbox insert", &error))?;
            found.push(inbox_row(&row)?);
        }
        Ok(found)
    }

    async fn inbox_lock(&mut self, keys: &[InboxKey]) -> Result<Vec<Option<InboxRow>>, StoreError> {
        let rows = self.lane.inbox_rows(keys).await?;
        Ok(keys.iter().map(|(h, k)| rows.iter().find(|row| row.handler == *h && row.key == *k).cloned()).collect())
    }

    async fn inbox_delete(&mut self, token: LeaseToken, keys: &[InboxKey]) -> Result<(), StoreError> {
        for (handler, key) in keys {
            sqlx::query("DELETE FROM ob_inbox WHERE handler_id = ? AND business_key = ? AND token = ?")
                .bind(handler.0)
                .bind(key.as_bytes())
                .bind(token.as_bytes())
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("inbox delete", &error))?;
        }
        Ok(())
    }

    async fn inbox_mark(&mut self, marks: &[InboxMark]) -> Result<(), StoreError> {
        let sql = concat!(
            "UPDATE ob_inbox SET state = ?, deployment_id = ?, attempts = ?, code = ?, result = ?, decided_at = ",
            now_us!(),
            "
             WHERE handler_id = ? AND business_key = ?"
        );
        for mark in marks {
            let done = sqlx::query(sql)
                .bind(mark.state.number())
                .bind(mark.deployment.map(|d| d.0))
                .bind(mark.attempts)
                .bind(mark.code.as_deref())
                .bind(mark.result.as_deref())
                .bind(mark.handler.0)
                .bind(mark.key.as_bytes())
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("inbox mark", &error))?;
            if done.rows_affected() != 1 {
                return Err(corrupt(&format!("the row of key {} is gone inside its own unit of work", mark.key)));
            }
        }
        Ok(())
    }

    async fn order_lock(&mut self, keys: &[OrderKey]) -> Result<Vec<OrderRow>, StoreError> {
        order::lock(&mut self.lane.connection, keys).await.map_err(|error| store_error("order lock", &error))
    }

    async fn order_mark(&mut self, rows: &[OrderRow]) -> Result<(), StoreError> {
        order::mark(&mut self.lane.connection, rows).await.map_err(|error| store_error("order mark", &error))
    }

    async fn order_due(&mut self, keys: &[OrderKey]) -> Result<(), StoreError> {
        order::due(&mut self.lane.connection, keys).await.map_err(|error| store_error("order due", &error))
    }

    async fn held_lock(&mut self, claims: &[(HeldId, LeaseToken)]) -> Result<Vec<bool>, StoreError> {
        let mut ours = Vec::with_capacity(claims.len());
        for (held, token) in claims {
            let row = sqlx::query("SELECT 1 FROM ob_held WHERE held_id = ? AND lease_token = ? AND state = 0")
                .bind(held.0)
                .bind(token.as_bytes())
                .fetch_optional(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("held lock", &error))?;
            ours.push(row.is_some());
        }
        Ok(ours)
    }

    async fn savepoint(&mut self, name: Savepoint) -> Result<(), StoreError> {
        self.lane
            .run(match name {
                Savepoint::Marks => "SAVEPOINT ob_marks",
                Savepoint::Event => "SAVEPOINT ob_event",
            })
            .await
    }

    async fn rollback_to(&mut self, name: Savepoint) -> Result<(), StoreError> {
        self.lane
            .run(match name {
                Savepoint::Marks => "ROLLBACK TO ob_marks",
                Savepoint::Event => "ROLLBACK TO ob_event",
            })
            .await
    }

    async fn release(&mut self, name: Savepoint) -> Result<(), StoreError> {
        self.lane
            .run(match name {
                Savepoint::Marks => "RELEASE ob_marks",
                Savepoint::Event => "RELEASE ob_event",
            })
            .await
    }

    /// No statement of the embedded store may ask for it.
    async fn last_insert_id_reset(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Row by row: nothing is saved here, where no statement crosses a network.
    async fn staged_writes(&mut self, writes: &[Staged<'_>]) -> Result<Vec<u64>, Halted> {
        let mut matched = Vec::with_capacity(writes.len());
        for write in writes {
            let (text, rows) = match write {
                Staged::One(text, params) => (text, std::slice::from_ref(params)),
                Staged::InsertMany(text, _, rows) | Staged::UpdateMany(text, _, rows) => (text, rows.as_slice()),
            };
            let mut sum = 0;
            for row in rows {
                match statements::write(&mut self.lane.connection, text.sql, row).await {
                    Ok(rows) => sum += rows,
                    Err(error) => return Err(Halted { matched, error }),
                }
            }
            matched.push(sum);
        }
        Ok(matched)
    }

    async fn query(&mut self, sql: &Arc<str>, params: &[Value], rows_max: u32) -> Result<QueryAnswer, StatementError> {
        statements::query(&mut self.lane.connection, sql, params, rows_max).await
    }

    async fn outbox_insert(&mut self, rows: &[OutboxRow]) -> Result<(), StoreError> {
        let sql = concat!(
            "INSERT INTO ob_outbox (event_id, destination, state, handler_id, business_key, generation, position,
               ordering_key, event_type, subject, content_type, data_schema, attributes, headers, payload, traceparent,
               due_at, created_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ",
            now_us!(),
            ")"
        );
        for row in rows {
            let headers = oncebox_core::message::Message { headers: row.headers.clone(), ..Default::default() };
            sqlx::query(sql)
                .bind(&row.event_id)
                .bind(&row.destination)
                .bind(row.state.number())
                .bind(row.handler.0)
                .bind(row.key.as_bytes())
                .bind(row.generation)
                .bind(row.position)
                .bind(row.ordering_key.as_deref())
                .bind(&row.event_type)
                .bind(row.subject.as_deref())
                .bind(row.content_type.as_deref())
                .bind(row.schema.as_deref())
                .bind(serde_json::to_vec(&row.attributes).unwrap_or_default())
                .bind(encode_headers(&headers))
                .bind(&row.payload)
                .bind(row.traceparent.as_deref())
                .bind(row.due_us)
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("outbox insert", &error))?;
        }
        Ok(())
    }

    async fn local_insert(&mut self, rows: &[NewLocal]) -> Result<(), StoreError> {
        let sql = concat!(
            "INSERT INTO ob_local (source, due_at, hops, headers, payload, received_at) VALUES (?, ?, ?, ?, ?, ",
            now_us!(),
            ")"
        );
        for row in rows {
            sqlx::query(sql)
                .bind(&row.source)
                .bind(row.due_us)
                .bind(row.hops)
                .bind(encode_headers(&row.message))
                .bind(&row.message.body)
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("local insert", &error))?;
        }
        Ok(())
    }

    async fn local_settle(&mut self, messages: &[(LocalId, LeaseToken)]) -> Result<Vec<LocalId>, StoreError> {
        queues::local_settle(&mut self.lane.connection, messages).await
    }

    async fn held_insert(&mut self, rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError> {
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            let held = held::insert(&mut self.lane.connection, row).await;
            ids.push(held.map_err(|error| store_error("held insert", &error))?);
        }
        Ok(ids)
    }

    async fn held_mark(&mut self, marks: &[HeldMark]) -> Result<(), StoreError> {
        let sql = concat!(
            "UPDATE ob_held SET state = ?, due_at = ?, lease_token = NULL, attempts = ?, attempts_short = ?,
               class = coalesce(?, class), code = coalesce(?, code), message = coalesce(?, message),
               deployment_id = coalesce(?, deployment_id), place = iif(?, NULL, place), starts = ?, starts_alone = ?,
               changed_at = ",
            now_us!(),
            "
             WHERE held_id = ? AND lease_token = ?"
        );
        for mark in marks {
            let (starts, starts_alone) = columns(&mark.open);
            let why = mark.why.as_ref();
            let done = sqlx::query(sql)
                .bind(mark.state.number())
                .bind(mark.due_us)
                .bind(mark.attempts)
                .bind(mark.attempts_short)
                .bind(why.map(|(class, _, _)| class.number()))
                .bind(why.map(|(_, code, _)| code.as_str()))
                .bind(why.map(|(_, _, message)| message.as_str()))
                .bind(mark.deployment.map(|d| d.0))
                .bind(mark.state == HeldState::Resolved)
                .bind(starts)
                .bind(starts_alone)
                .bind(mark.held.0)
                .bind(mark.token.as_bytes())
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("held mark", &error))?;
            if done.rows_affected() != 1 {
                return Err(StoreError::LeaseLost { held: mark.held.0 });
            }
        }
        Ok(())
    }

    async fn attempt_insert(&mut self, rows: &[NewAttempt]) -> Result<(), StoreError> {
        for row in rows {
            sqlx::query(
                "INSERT INTO ob_attempt (held_id, generation, attempt, boot_id, deployment_id, started_at, ended_at,
                   class, code, message, backtrace)
                 SELECT ?1, ?2, coalesce(max(attempt), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
                 FROM ob_attempt WHERE held_id = ?1 AND generation = ?2",
            )
            .bind(row.held.0)
            .bind(row.generation)
            .bind(row.boot.as_bytes())
            .bind(row.deployment.map(|d| d.0))
            .bind(row.started_us)
            .bind(row.ended_us)
            .bind(row.class.number())
            .bind(&row.code)
            .bind(&row.message)
            .bind(row.backtrace.as_deref())
            .execute(&mut self.lane.connection)
            .await
            .map_err(|error| store_error("attempt insert", &error))?;
        }
        Ok(())
    }

    async fn tally_add(
        &mut self,
        boot: BootId,
        lane: u16,
        counts: &[(HandlerId, Verdict, u64)],
    ) -> Result<(), StoreError> {
        let sql = concat!(
            "INSERT INTO ob_tally (boot_id, lane, handler_id, verdict, n, at) VALUES (?, ?, ?, ?, ?, ",
            now_us!(),
            ")
             ON CONFLICT (boot_id, lane, handler_id, verdict) DO UPDATE SET n = n + excluded.n, at = excluded.at"
        );
        for (handler, verdict, n) in counts {
            sqlx::query(sql)
                .bind(boot.as_bytes())
                .bind(lane)
                .bind(handler.0)
                .bind(verdict.number())
                .bind(i64::try_from(*n).unwrap_or(i64::MAX))
                .execute(&mut self.lane.connection)
                .await
                .map_err(|error| store_error("tally add", &error))?;
        }
        Ok(())
    }

    async fn start_end(&mut self, ends: &[StartEnd]) -> Result<(), StoreError> {
        starts::end(&mut self.lane.connection, ends).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let committed = self.lane.run("COMMIT").await;
        match &committed {
            Ok(()) => self.lane.is_over(),
            // A constraint that is looked at only now, or a disk that is full: the right to write is given back.
            Err(_) => self.lane.clear().await?,
        }
        committed
    }

    /// Who waits here waits for the right to write, and not for a key.
    async fn give_up(self: Box<Self>) -> Result<(), StoreError> {
        self.rollback().await
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        self.lane.clear().await
    }
}

const INBOX_INSERT: &str = concat!(
    "INSERT INTO ob_inbox (handler_id, business_key, state, fingerprint, rule_id, token, deployment_id, attempts,
           event_id, source, traceparent, received_at, decided_at)
         VALUES (?, ?, 0, ?, ?, ?, ?, 1, ?, ?, ?, ?, ",
    now_us!(),
    ")
         ON CONFLICT (handler_id, business_key) DO UPDATE SET duplicates = duplicates + 1, duplicate_at = ",
    now_us!(),
    "
         RETURNING handler_id, business_key, state, fingerprint, rule_id, token, generation"
);
