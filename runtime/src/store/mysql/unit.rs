//! A lane's session and its unit of work. The order of the calls is the host's (`host/unit_of_work.rs`); here is what
//! each of them is on MySQL and MariaDB, and what an error leaves of the transaction.

use std::sync::Arc;

use async_trait::async_trait;
use oncebox_core::{
    blame::Start,
    ids::{BootId, LeaseToken},
    life::Verdict,
    value::Value,
};
use sqlx::mysql::MySqlRow;
use tokio::sync::watch;

use super::{
    columns::Columns,
    errors::{MysqlError, Sort},
    held,
    inbox::{self, Entered},
    order, outgoing,
    server::Server,
    session::{SAVEPOINT, Session, Uncommitted},
    staged, starts,
    statements::{self, Signatures},
};
use crate::store::{
    Halted, HandlerId, HeldId, HeldMark, InboxKey, InboxMark, InboxRow, Lane, LocalId, NewAttempt, NewHeld, NewInbox,
    NewLocal, OrderKey, OrderRow, OutboxRow, QueryAnswer, Savepoint, Staged, StartEnd, StatementError, StoreError,
    Suspect, UnitOfWork,
};

/// One session, owned by a lane.
pub(super) struct MysqlLane {
    server: Arc<Server>,
    session: Session,
    /// Of the session's prepared statements.
    signatures: Signatures,
    /// Moved after a commit that others may be waiting for.
    changes: Arc<watch::Sender<u64>>,
}

/// Microseconds since 1970 by the database's clock; a whole number, exact.
macro_rules! now_us {
    () => {
        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
    };
}

impl MysqlLane {
    pub(super) async fn open(server: &Arc<Server>, changes: Arc<watch::Sender<u64>>) -> Result<Self, StoreError> {
        let session = Session::open(server).await?;
        Ok(Self { server: server.clone(), session, signatures: Signatures::default(), changes })
    }

    /// A session that is over (lost, or idle for so long that the server is about to end it) is replaced.
    async fn ready(&mut self) -> Result<(), StoreError> {
        if self.session.is_over() {
            self.session = Session::open(&self.server).await?;
            self.signatures = Signatures::default();
        }
        Ok(())
    }
}

#[async_trait]
impl Lane for MysqlLane {
    async fn inbox_look_up(&mut self, keys: &[InboxKey]) -> Result<Vec<InboxRow>, StoreError> {
        self.ready().await?;
        // What an earlier unit has left open must not be seen.
        self.session.rollback().await?;
        inbox::look_up(&mut self.session, keys).await
    }

    async fn start_alone(&mut self, suspect: &Suspect, start: Start) -> Result<bool, StoreError> {
        self.ready().await?;
        self.session.rollback().await?;
        starts::alone(&mut self.session, suspect, start).await
    }

    async fn begin(&mut self) -> Result<Box<dyn UnitOfWork + '_>, StoreError> {
        self.ready().await?;
        self.session.begin_later(now_us!()).await?;
        Ok(Box::new(MysqlUnit { lane: self, has_news: false, entered: Entered::default(), has_marks: false }))
    }

    async fn close(mut self: Box<Self>) {
        self.session.close().await;
    }
}

/// The open transaction of a lane's session.
struct MysqlUnit<'a> {
    lane: &'a mut MysqlLane,
    /// Others may wait for what it writes.
    has_news: bool,
    /// What it has put into the inbox.
    entered: Entered,
    has_marks: bool,
}

impl MysqlUnit<'_> {
    /// Others may wait for the keys that it has entered: they are taken back, and COMMIT lets the others go. After a
    /// ROLLBACK all of them but one would be deadlocked (45 of 60 tries; so none).
    async fn give_back(&mut self) -> Result<(), StoreError> {
        if !self.entered.first.is_empty() && self.take_back().await.is_ok() {
            return Ok(self.session().commit().await?);
        }
        Ok(self.session().rollback().await?)
    }

    async fn take_back(&mut self) -> Result<(), StoreError> {
        if self.has_marks {
            self.rollback_to(Savepoint::Marks).await?;
            self.release(Savepoint::Marks).await?;
        }
        self.has_news = false;
        inbox::leave(&mut self.lane.session, &self.entered).await
    }

    fn session(&mut self) -> &mut Session {
        &mut self.lane.session
    }
}

#[async_trait]
impl UnitOfWork for MysqlUnit<'_> {
    async fn now_us(&mut self) -> Result<i64, StoreError> {
        clock(self.session().told().await?)
    }

    async fn inbox_insert(&mut self, token: LeaseToken, rows: &[NewInbox]) -> Result<Vec<InboxRow>, StoreError> {
        inbox::insert(&mut self.lane.session, token, rows, &mut self.entered).await
    }

    async fn inbox_lock(&mut self, keys: &[InboxKey]) -> Result<Vec<Option<InboxRow>>, StoreError> {
        inbox::lock(self.session(), keys).await
    }

    async fn inbox_delete(&mut self, token: LeaseToken, keys: &[InboxKey]) -> Result<(), StoreError> {
        inbox::delete(self.session(), token, keys).await
    }

    async fn inbox_mark(&mut self, marks: &[InboxMark]) -> Result<(), StoreError> {
        inbox::mark(self.session(), marks).await
    }

    async fn order_lock(&mut self, keys: &[OrderKey]) -> Result<Vec<OrderRow>, StoreError> {
        order::lock(self.session(), keys).await
    }

    async fn order_mark(&mut self, rows: &[OrderRow]) -> Result<(), StoreError> {
        order::mark(self.session(), rows).await
    }

    async fn order_due(&mut self, keys: &[OrderKey]) -> Result<(), StoreError> {
        self.has_news |= !keys.is_empty();
        order::due(self.session(), keys).await
    }

    async fn held_lock(&mut self, claims: &[(HeldId, LeaseToken)]) -> Result<Vec<bool>, StoreError> {
        held::lock(self.session(), claims).await
    }

    async fn savepoint(&mut self, name: Savepoint) -> Result<(), StoreError> {
        let sql = match name {
            Savepoint::Marks => "SAVEPOINT ob_marks",
            Savepoint::Event => "SAVEPOINT ob_event",
        };
        self.session().later(SAVEPOINT, sql).await?;
        self.has_marks |= name == Savepoint::Marks;
        Ok(())
    }

    async fn rollback_to(&mut self, name: Savepoint) -> Result<(), StoreError> {
        let sql = match name {
            Savepoint::Marks => "ROLLBACK TO SAVEPOINT ob_marks",
            Savepoint::Event => "ROLLBACK TO SAVEPOINT ob_event",
        };
        Ok(self.session().later(SAVEPOINT, sql).await?)
    }

    async fn release(&mut self, name: Savepoint) -> Result<(), StoreError> {
        // That of the marks proves, with COMMIT, that the transaction is still the one that was begun.
        let sql = match name {
            Savepoint::Marks => "RELEASE SAVEPOINT ob_marks",
            Savepoint::Event => "RELEASE SAVEPOINT ob_event",
        };
        Ok(self.session().later(SAVEPOINT, sql).await?)
    }

    async fn last_insert_id_reset(&mut self) -> Result<(), StoreError> {
        self.session().rows("reset", "SELECT LAST_INSERT_ID(0)", args![]).await?;
        Ok(())
    }

    async fn staged_writes(&mut self, writes: &[Staged<'_>]) -> Result<Vec<u64>, Halted> {
        staged::write_all(&mut self.lane.session, &mut self.lane.signatures, writes).await
    }

    async fn query(&mut self, sql: &Arc<str>, params: &[Value], rows_max: u32) -> Result<QueryAnswer, StatementError> {
        statements::query(&mut self.lane.session, &mut self.lane.signatures, sql, params, rows_max).await
    }

    async fn outbox_insert(&mut self, rows: &[OutboxRow]) -> Result<(), StoreError> {
        outgoing::outbox_insert(self.session(), rows).await
    }

    async fn local_insert(&mut self, rows: &[NewLocal]) -> Result<(), StoreError> {
        self.has_news |= !rows.is_empty();
        outgoing::local_insert(self.session(), rows).await
    }

    async fn local_settle(&mut self, messages: &[(LocalId, LeaseToken)]) -> Result<Vec<LocalId>, StoreError> {
        outgoing::local_settle(self.session(), messages).await
    }

    async fn held_insert(&mut self, rows: &[NewHeld]) -> Result<Vec<HeldId>, StoreError> {
        self.has_news |= !rows.is_empty();
        held::insert(self.session(), rows).await
    }

    async fn held_mark(&mut self, marks: &[HeldMark]) -> Result<(), StoreError> {
        self.has_news |= !marks.is_empty();
        held::mark(self.session(), marks).await
    }

    async fn attempt_insert(&mut self, rows: &[NewAttempt]) -> Result<(), StoreError> {
        held::attempt_insert(self.session(), rows).await
    }

    async fn tally_add(
        &mut self,
        boot: BootId,
        lane: u16,
        counts: &[(HandlerId, Verdict, u64)],
    ) -> Result<(), StoreError> {
        outgoing::tally_add(self.session(), boot, lane, counts).await
    }

    async fn start_end(&mut self, ends: &[StartEnd]) -> Result<(), StoreError> {
        starts::end(self.session(), ends).await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        match self.lane.session.commit().await {
            Ok(()) => {
                if self.has_news {
                    self.lane.changes.send_modify(|changes| *changes += 1);
                }
                Ok(())
            }
            Err(Uncommitted { error, is_unknown: true }) => Err(uncommitted(error)),
            // Nothing may stay locked while the host waits for a better time.
            Err(Uncommitted { error, is_unknown: false }) => {
                if let Err(second) = self.give_back().await {
                    tracing::debug!(error = %second, "could not give back");
                }
                Err(error.into())
            }
        }
    }

    async fn give_up(mut self: Box<Self>) -> Result<(), StoreError> {
        self.give_back().await
    }

    async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
        Ok(self.lane.session.rollback().await?)
    }
}

/// What a failed COMMIT means: undone for sure, or unknown. Either way the batch is done again.
fn uncommitted(error: MysqlError) -> StoreError {
    match error.sort() {
        Sort::Conflict => error.into(),
        Sort::Away
        | Sort::Wait
        | Sort::Blocked
        | Sort::DuplicateKey
        | Sort::ForeignKey(_)
        | Sort::Data(..)
        | Sort::Other => StoreError::Away { message: error.to_string() },
    }
}

/// The database's clock on a session of the store's own.
pub(super) async fn now_us(session: &mut Session) -> Result<i64, StoreError> {
    let rows = session.rows("clock", now_us!(), args![]).await?;
    clock(rows.first())
}

fn clock(row: Option<&MySqlRow>) -> Result<i64, StoreError> {
    let unread = || StoreError::Corrupt { table: "the clock", message: "no answer".to_owned() };
    row.map(|row| Columns::of("the clock", row).integer(0)).ok_or_else(unread)?
}
